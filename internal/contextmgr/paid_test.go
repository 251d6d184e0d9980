package contextmgr

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// pacedModel answers when its gate opens.
type pacedModel struct {
	asked chan struct{} // a request has begun
	gate  chan struct{}
	n     int
}

func (m *pacedModel) Summarize(ctx context.Context, in session.SummaryRequest) (session.Summary, error) {
	select {
	case m.asked <- struct{}{}:
	default: // a split turn asks twice
	}
	select {
	case <-m.gate:
	case <-ctx.Done():
		return session.Summary{}, ctx.Err()
	}
	m.n++
	return session.Summary{
		Text: fmt.Sprintf("MODEL %d. %.300s", m.n, in.Previous), Span: fmt.Sprintf("MODEL SPAN %d", m.n), Provider: "gemini", Model: "flash",
		Calls: []session.Call{{Purpose: session.PurposeSummary, Status: session.CallOK, Provider: "gemini", Model: "flash"}},
	}, nil
}

// pacedRig plays an agent whose model for summaries takes as long as the test says.
type pacedRig struct {
	*rig
	model   *pacedModel
	runs    chan error // of the request under way; nil: none
	readyAt time.Time
	soft    bool
}

func newPacedRig(t *testing.T, window int64) *pacedRig {
	p := &pacedRig{model: &pacedModel{asked: make(chan struct{}, 1)}}
	p.rig = newRig(t, window, func(c *Config) {
		c.Remotes = defaultRemote(p.model)
		c.OnSoft = func(session.ID) { p.soft = true }
	})
	return p
}

// stage does what the daemon's jobs do after a turn above the soft threshold.
func (p *pacedRig) stage(latency time.Duration) {
	p.t.Helper()
	if !p.soft {
		return
	}
	p.soft = false
	due := testkit.Must(p.mgr.StageDigest(p.ctx, p.id))(p.t)
	if !due || p.runs != nil {
		return
	}
	runs := make(chan error, 1)
	p.model.gate = make(chan struct{})
	go func() { runs <- p.mgr.StageModel(p.ctx, p.id) }()
	select {
	case <-p.model.asked:
		p.runs, p.readyAt = runs, p.clock.Now().Add(latency)
	case err := <-runs:
		testkit.Check(p.t, err)
	}
}

// pass lets time pass, in which the model may answer.
func (p *pacedRig) pass(d time.Duration) {
	p.t.Helper()
	until := p.clock.Now().Add(d)
	if p.runs != nil && !p.readyAt.After(until) {
		p.clock.advance(p.readyAt.Sub(p.clock.Now()))
		close(p.model.gate)
		testkit.Check(p.t, <-p.runs)
		select {
		case <-p.model.asked:
		default:
		}
		p.runs = nil
	}
	p.clock.advance(max(0, until.Sub(p.clock.Now())))
}

func TestPaidSummariesAreUsed(t *testing.T) {
	const latency = 4 * time.Second
	for _, c := range []struct {
		name   string
		turn   time.Duration // from one request to the next
		tokens int           // of a turn
		calls  int
	}{
		{"slow agent, short turns", 20 * time.Second, 200, 0},
		{"slow agent, long turns", 20 * time.Second, 1500, 0},
		{"fast agent, short turns", time.Second, 200, 0},
		{"fast agent, long turns", time.Second, 1500, 0},
		{"fast agent, huge turns", time.Second, 3000, 0},
		{"slow agent, calls", 5 * time.Second, 600, 6},
		{"fast agent, calls", time.Second / 2, 600, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPacedRig(t, 16000)
			var breaks int
			for n := range 60000 / c.tokens {
				p.append(text(session.User, fmt.Sprintf("Question %d. %s", n, filler(c.tokens/10))))
				left := c.tokens * 9 / 10
				for i := range c.calls + 1 {
					if v := p.turn(TurnInput{}); v.Prefix.BrokenBy == "epoch" {
						breaks++
					} else if v.Prefix.BrokenBy != "" {
						t.Fatalf("broken by %s", v.Prefix.BrokenBy)
					}
					if i < c.calls {
						id := fmt.Sprintf("c%d_%d", n, i)
						p.append(calling(id), answering(id, filler(left/(c.calls+1))))
					} else {
						p.append(text(session.Assistant, fmt.Sprintf("Answer %d. %s", n, filler(left/(c.calls+1)))))
					}
					p.pass(c.turn / 2)
					p.stage(latency)
					p.pass(c.turn / 2)
				}
			}
			all := p.compactions()
			var b strings.Builder
			for _, c := range all {
				fmt.Fprintf(&b, "%d %s prev %v through %d by %s before %d after %d: %s\n", c.RowID, c.Status, c.PreviousID, *c.ThroughID, c.Provider, c.TokensBefore, c.TokensAfter, c.Reason)
			}
			paid, direct, done := 0, 0, 0
			for i := range all {
				c := &all[i]
				if c.Status == session.StatusDone {
					done++
				}
				if byModel(c) {
					paid++
					if c.Status == session.StatusDone {
						direct++
					}
				}
			}
			t.Logf("paid %d, direct %d, effective compactions %d, epochs broken %d", paid, direct, done, breaks)
			if testing.Verbose() && strings.Contains(t.Name(), "fast_agent,_long") {
				t.Log(b.String())
			}
		})
	}
}

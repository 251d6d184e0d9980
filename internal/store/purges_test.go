package store

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/session"
)

// clearing is a wood in which sessions are purged while it grows: several at once, each broken
// off and taken up again anywhere, as by two processes.
type clearing struct {
	wood
	purged  []session.ID
	running []*Purge
	frozen  map[session.ID][]frozenNode // what is to be found in a session's contexts
}

type frozenNode struct {
	at      *node
	content string
}

func (c *clearing) step() {
	switch rapid.IntRange(0, 9).Draw(c.t, "what") {
	case 0, 1:
		c.begin()
	case 2, 3, 4:
		c.advance()
	case 5:
		c.freeze()
	default:
		known := len(c.all)
		c.wood.step()
		for _, b := range c.all[known:] {
			c.inherit(b)
		}
	}
}

func (c *clearing) inherit(b *branching) {
	if len(b.shared) == 0 {
		return
	}
	sess, err := c.s.Session(context.Background(), b.id)
	c.must(err)
	for _, f := range c.frozen[sess.ParentID] {
		if slices.Contains(b.shared, f.at) {
			c.frozen[b.id] = append(c.frozen[b.id], f)
		}
	}
}

func (c *clearing) freeze() {
	if len(c.all) == 0 {
		return
	}
	b := rapid.SampledFrom(c.all).Draw(c.t, "freezes")
	if b.head == nil {
		return
	}
	at := rapid.SampledFrom(b.head.path()).Draw(c.t, "frozen at")
	for _, f := range c.frozen[b.id] {
		if f.at == at {
			return
		}
	}
	c.count++
	f := frozenNode{at: at, content: fmt.Sprintf(`"frozen %d"`, c.count)}
	_, err := c.s.SaveContext(context.Background(), session.Context{SessionID: b.id}, nil, []session.Frozen{{
		SessionID: b.id, MessageID: at.row, Kind: "closed_call", Content: session.JSON(f.content),
	}})
	c.must(err)
	c.frozen[b.id] = append(c.frozen[b.id], f)
}

func (c *clearing) begin() {
	if len(c.all) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.all)-1).Draw(c.t, "purges")
	id := c.all[i].id
	p, _, err := c.s.BeginPurge(context.Background(), PurgeRequest{Session: id})
	c.must(err)
	p.size = 1
	c.all = slices.Delete(c.all, i, i+1)
	c.purged, c.running = append(c.purged, id), append(c.running, p)
}

// advance does a step of a purge that runs, or begins it anew.
func (c *clearing) advance() {
	if len(c.running) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.running)-1).Draw(c.t, "goes on")
	if how := rapid.IntRange(0, 5).Draw(c.t, "how"); how < 2 {
		p, err := c.s.ResumePurge(context.Background(), c.running[i].ID)
		c.must(err)
		p.size = 1
		if how == 0 {
			c.running[i] = p
		} else {
			c.running = append(c.running, p)
		}
	}
	c.goOn(i)
}

func (c *clearing) goOn(i int) {
	ctx := context.Background()
	p := c.running[i]
	rows, err := p.Doomed(ctx)
	c.must(err)
	if len(rows) > 0 {
		c.must(p.Delete(ctx, rows))
		return
	}
	shells, err := p.Finish(ctx)
	c.must(err)
	c.running = slices.Delete(c.running, i, i+1)
	for _, id := range shells {
		next, err := c.s.ResumePurge(ctx, id)
		c.must(err)
		next.size = 1
		c.running = append(c.running, next)
	}
}

// checkPurged compares what is left of the purged sessions with what the living ones share.
func (c *clearing) checkPurged() {
	ctx := context.Background()
	for _, id := range c.purged {
		var want, got []int64
		for _, b := range c.all {
			for _, n := range b.shared {
				if n.id.Session == id {
					want = append(want, n.row)
				}
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		c.must(c.s.list(ctx, &got, `SELECT id FROM messages WHERE session_id = ? ORDER BY id`, id))
		if !slices.Equal(got, want) {
			c.t.Fatalf("of %s %v are left, and %v are shared", id, got, want)
		}
		var left bool
		c.must(c.s.get(ctx, &left, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?)`, id))
		forks, err := forksOf(ctx, c.s, id)
		c.must(err)
		living := slices.ContainsFunc(forks, func(fork session.ID) bool {
			return slices.ContainsFunc(c.all, func(b *branching) bool { return b.id == fork })
		})
		if left && !living {
			c.t.Fatalf("a row of %s is left for nobody", id)
		}
	}
	for _, b := range c.all {
		sess, err := c.s.Session(ctx, b.id)
		c.must(err)
		all, err := c.s.Frozen(ctx, sess)
		c.must(err)
		for _, f := range c.frozen[b.id] {
			if !slices.ContainsFunc(all, func(g session.Frozen) bool { return g.MessageID == f.at.row && string(g.Content) == f.content }) {
				c.t.Fatalf("%s lost what was frozen at %s: %s", b.id, f.at.id, f.content)
			}
		}
	}
}

func TestPurgesOfAnySessionsAtOnceLeaveWhatTheOthersShare(t *testing.T) {
	s := openTest(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := clearing{wood: wood{t: rt, s: s}, frozen: map[session.ID][]frozenNode{}}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			c.step()
		}
		for len(c.running) > 0 {
			c.goOn(rapid.IntRange(0, len(c.running)-1).Draw(rt, "ends"))
		}
		c.check()
		c.checkPurged()
	})
}

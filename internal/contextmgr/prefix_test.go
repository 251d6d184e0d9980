package contextmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
)

func TestComparePrefix(t *testing.T) {
	head := int64(7)
	base := session.Context{
		HeadID: &head, Epoch: 3, Model: "m", Dialect: "d", SystemHash: "s", InitialHash: "i",
		ToolsHash: "t",
	}
	with := func(change func(*session.Context)) session.Context {
		c := base
		change(&c)
		return c
	}
	for _, c := range []struct {
		name                    string
		last                    *session.Context
		now                     session.Context
		headKept, late, trimmed bool
		want                    string
		stable                  int64
	}{
		{"the first context", nil, base, true, false, false, "", 0},
		{"the same", &base, base, true, false, false, "", 9},
		{"model", &base, with(func(c *session.Context) { c.Model = "x" }), true, false, false, "model", 0},
		{"dialect", &base, with(func(c *session.Context) { c.Dialect = "x" }), true, false, false, "dialect", 0},
		{"system", &base, with(func(c *session.Context) { c.SystemHash = "x" }), true, false, false, "system", 0},
		{"initial", &base, with(func(c *session.Context) { c.InitialHash = "x" }), true, false, false, "initial", 0},
		{"tools", &base, with(func(c *session.Context) { c.ToolsHash = "x" }), true, false, false, "tools", 0},
		{"epoch", &base, with(func(c *session.Context) { c.Epoch = 4 }), true, false, false, "epoch", 0},
		{"a late result", &base, base, true, true, false, "late_result", 0},
		{"the head moved", &base, base, false, false, false, "head", 0},
		{"parts cut to fit", &base, base, true, false, true, "trimmed", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ComparePrefix(c.last, c.now, c.headKept, c.late, c.trimmed, 9)
			if got.BrokenBy != c.want || got.StableTokens != c.stable || got.Epoch != c.now.Epoch {
				t.Errorf("%+v, want broken by %q, %d stable", got, c.want, c.stable)
			}
		})
	}
}

// Cache marks stand at the end of the context and after the parts that last longest.
func TestCacheBorders(t *testing.T) {
	r := newRig(t, 20000)
	system, none := "Be short.", ""
	slots := func(n int64) Settings { return Settings{CacheSlots: &n} }
	want := func(name string, v View, borders ...int) {
		t.Helper()
		if !slices.Equal(v.Borders, borders) {
			t.Errorf("%s: borders %v of %d messages, want %v", name, v.Borders, len(v.Messages), borders)
		}
	}
	r.append(text(session.User, "hi"))
	want("no system text", r.turn(TurnInput{Budget: Budget{Dialect: dialect.Anthropic}}), 0)
	want("with it", r.turn(TurnInput{Budget: Budget{System: &system}}), SystemBorder, 0)
	want("one slot", r.turn(TurnInput{Budget: Budget{Settings: slots(1)}}), 0)
	want("none", r.turn(TurnInput{Budget: Budget{Settings: slots(0)}}))
	r.talk(1, 10)
	want("four: the end of the context before, too", r.turn(TurnInput{Budget: Budget{Settings: slots(4)}}), SystemBorder,
		0, 2)

	var ids []string
	for i := range 11 {
		ids = append(ids, fmt.Sprintf("c%d", i))
	}
	r.append(calling(ids...))
	for _, id := range ids {
		r.append(answering(id, "x"))
	}
	want("so many blocks since that their end is out of reach", r.turn(TurnInput{}), 2, 14)
	want("nothing new", r.turn(TurnInput{}), SystemBorder, 14)
	r.append(calling("waits"))
	want("calls wait", r.turn(TurnInput{}))
	r.append(answering("waits", "x"))

	r.talk(20, 200)
	r.compact(CompactInput{KeepTokens: new(int64)})
	v := r.turn(TurnInput{Budget: Budget{Settings: slots(3)}})
	want("behind the summary and what is shown again, too", v, SystemBorder, 1, len(v.Messages)-1)
	want("of another epoch nothing is left", r.turn(TurnInput{Budget: Budget{System: &none}}), 1, len(v.Messages)-1)

	_, err := r.mgr.Turn(r.ctx, r.id, TurnInput{Budget: Budget{Settings: slots(5)}})
	wantCode(t, err, session.Invalid, "cache_slots", "between 0 and 4")
}

// noting is a digest that notes how long summaries may be.
type noting struct {
	heads
	most *[]int64
}

func (d noting) Summarize(ctx context.Context, in session.SummaryRequest) (session.Summary, error) {
	*d.most = append(*d.most, in.MaxTokens)
	return d.heads.Summarize(ctx, in)
}

// A session that was compacted with smaller numbers, as before an upgrade, keeps its prefix. The new numbers hold from
// its next compaction on.
func TestNewDefaultsWaitForTheNextCompaction(t *testing.T) {
	var most []int64
	r := newRig(t, 8000, func(c *Config) { c.Digest = noting{heads{"extractive"}, &most} })
	older := TurnInput{Budget: Budget{Settings: Settings{
		SummaryMaxTokens: ptr[int64](600),
		KeepRecentTokens: ptr[int64](1800),
	}}}
	until := func(compactions int64, in TurnInput) (last View) {
		for r.session().CompactionCount < compactions {
			r.talk(1, 200)
			before := last
			if last = r.turn(in); r.session().CompactionCount < compactions && before.Tokens.Total > 0 &&
				!strings.HasPrefix(wire(last), wire(before)) {
				t.Fatalf("before compaction %d the prefix broke by %q", compactions, last.Prefix.BrokenBy)
			}
		}
		return last
	}
	before := until(1, older)
	if slices.Max(most) > 600 {
		t.Fatalf("summaries of %v tokens", most)
	}
	r.talk(1, 200)
	after := r.turn(TurnInput{})
	if after.Prefix.BrokenBy != "" || !strings.HasPrefix(wire(after), wire(before)) || r.session().CompactionCount != 1 {
		t.Fatalf("with the new numbers the prefix is broken by %q", after.Prefix.BrokenBy)
	}
	most = nil
	until(2, TurnInput{})
	if slices.Max(most) <= 600 {
		t.Errorf("the next summary had %v tokens", most)
	}
}

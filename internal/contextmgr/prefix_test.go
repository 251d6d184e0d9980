package contextmgr

import (
	"testing"

	"sessiond/internal/session"
)

func TestComparePrefix(t *testing.T) {
	head := int64(7)
	base := session.Context{HeadID: &head, Epoch: 3, Model: "m", Dialect: "d", SystemHash: "s", InitialHash: "i", ToolsHash: "t"}
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

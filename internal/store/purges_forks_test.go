package store

import (
	"slices"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// heirs is a family of forks in which some are purged: origin with five messages, a fork of it
// at its last one, and a fork of that at the second.
type heirs struct {
	t                  *testing.T
	s                  *Store
	origin, mid, child session.ID
	rows               []int64 // of origin
}

func (h *heirs) fork(of session.ID, seq int64) session.ID {
	return testkit.Must(h.s.Fork(h.t.Context(), Fork{Session: of, At: ref(h.origin, seq)}))(h.t).ID
}

func (h *heirs) freeze(id session.ID, seq int64, text string) {
	testkit.Must(h.s.SaveContext(h.t.Context(), session.Context{SessionID: id}, nil, []session.Frozen{{
		SessionID: id, MessageID: h.rows[seq-1], Kind: session.FrozenVolatile, Content: session.JSONOf(text),
	}}))(h.t)
}

// purge deletes sessions and what that leaves for nobody.
func (h *heirs) purge(ids ...session.ID) {
	for _, id := range ids {
		purge(h.t, h.s, id)
		for left := testkit.Must(h.s.Purging(h.t.Context()))(h.t); len(left) > 0; left = testkit.Must(h.s.Purging(h.t.Context()))(h.t) {
			endOfPurge(h.t, testkit.Must(h.s.ResumePurge(h.t.Context(), left[0]))(h.t))
		}
	}
}

func TestAPurgeLeavesWhatForksInheritAndNoMore(t *testing.T) {
	type family = func(h *heirs)
	forks := func(h *heirs) { h.mid = h.fork(h.origin, 5); h.child = h.fork(h.mid, 2) }
	for name, c := range map[string]struct {
		grow, purge family
		frozen      []string // of the child
		kept        int64    // frozen rows
		messages    int64
		sessions    int64
	}{
		"frozen by the fork between, whose row would be empty": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 2)
				h.freeze(h.mid, 2, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge:  func(h *heirs) { h.purge(h.mid) },
			frozen: []string{`"mid"`}, kept: 1, messages: 5, sessions: 3,
		},
		"the origin goes first": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 2)
				h.freeze(h.mid, 2, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge:  func(h *heirs) { h.purge(h.origin, h.mid) },
			frozen: []string{`"mid"`}, kept: 1, messages: 2, sessions: 3,
		},
		"the fork between shared more": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 5)
				h.freeze(h.mid, 2, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge:  func(h *heirs) { h.purge(h.mid, h.origin) },
			frozen: []string{`"mid"`}, kept: 1, messages: 2, sessions: 3,
		},
		"a compaction of the fork between, where nobody follows": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 5)
				testkit.Must(h.s.AddCompaction(h.t.Context(), session.Compaction{
					SessionID: h.mid, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone, ThroughID: &h.rows[4],
				}))(h.t)
				h.child = h.fork(h.mid, 2)
			},
			purge:    func(h *heirs) { h.purge(h.mid, h.origin) },
			messages: 2, sessions: 2,
		},
		"a compaction of the fork between, which shared more": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 5)
				testkit.Must(h.s.AddCompaction(h.t.Context(), session.Compaction{
					SessionID: h.mid, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone, ThroughID: &h.rows[0],
				}))(h.t)
				h.child = h.fork(h.mid, 2)
			},
			purge:    func(h *heirs) { h.purge(h.mid, h.origin) },
			messages: 2, sessions: 3,
		},
		"frozen after the fork was made": {
			grow:     func(h *heirs) { forks(h); h.freeze(h.mid, 2, "mid"); h.freeze(h.origin, 1, "origin") },
			purge:    func(h *heirs) { h.purge(h.mid, h.origin) },
			messages: 2, sessions: 2,
		},
		"frozen where the fork does not go": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 5)
				h.freeze(h.mid, 4, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge:    func(h *heirs) { h.purge(h.mid) },
			messages: 5, sessions: 2,
		},
		"everything goes": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 2)
				h.freeze(h.mid, 2, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge: func(h *heirs) { h.purge(h.mid, h.origin, h.child); h.child = "" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			h := &heirs{t: t, s: s, origin: mustCreate(t, s, NewSession{}).ID}
			for range 5 {
				h.rows = append(h.rows, mustAppend(t, s, h.origin, says(session.User, "said")).Messages[0].RowID)
			}
			c.grow(h)
			c.purge(h)
			if h.child != "" {
				var frozen []string
				for _, f := range testkit.Must(s.Frozen(t.Context(), testkit.Must(s.Session(t.Context(), h.child))(t)))(t) {
					frozen = append(frozen, string(f.Content))
				}
				if !slices.Equal(frozen, c.frozen) {
					t.Errorf("the fork has %v frozen, not %v", frozen, c.frozen)
				}
			}
			got := [3]int64{count(t, s, `SELECT COUNT(*) FROM frozen`), count(t, s, `SELECT COUNT(*) FROM messages`), count(t, s, `SELECT COUNT(*) FROM sessions`)}
			if want := [3]int64{c.kept, c.messages, c.sessions}; got != want {
				t.Errorf("%v frozen rows, messages, sessions are left, not %v", got, want)
			}
			healthy(t, s)
		})
	}
}

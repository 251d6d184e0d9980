package contextmgr

import (
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"

	"github.com/google/go-cmp/cmp"
)

// fromStore returns the context as a manager with an empty cache assembles it.
func (r *rig) fromStore() string {
	r.t.Helper()
	v := testkit.Must(New(r.store, r.mgr.cfg).Assemble(r.ctx, r.id, Budget{}))(r.t)
	return wire(v)
}

// The cached path equals the stored one, wherever the head goes and however the messages are edited.
func TestCachedPathEqualsStoredPath(t *testing.T) {
	r := newRig(t, 20000)
	check := func(step string) {
		t.Helper()
		if got, want := wire(r.turn(TurnInput{})), r.fromStore(); got != want {
			t.Errorf("%s: %s", step, cmp.Diff(want, got))
		}
		known, _ := r.mgr.paths.get(r.id)
		if len(known) == 0 {
			return
		}
		var stored []session.Message
		testkit.Check(t, r.store.Walk(r.ctx, known[len(known)-1].RowID, func(m session.Message) bool {
			stored = append([]session.Message{m}, stored...)
			return m.RowID != known[0].RowID
		}))
		if diff := cmp.Diff(stored, known); diff != "" {
			t.Errorf("%s: the cached path differs from the stored one: %s", step, diff)
		}
	}
	at := func(seq int64) *session.MessageRef { return &session.MessageRef{Session: r.id, Seq: seq} }
	say := func(parent *session.MessageRef, msgs ...session.Message) {
		t.Helper()
		testkit.Must(r.store.Append(r.ctx, store.Append{Session: r.id, Parent: parent, Messages: msgs}))(t)
	}
	r.talk(3, 20)
	check("a beginning")
	r.talk(2, 20)
	check("more")
	say(at(4), text(session.User, "another branch"), calling("c"), answering("c", filler(6000)))
	check("a branch, with an output that is cut")
	say(at(10), text(session.User, "back on the first one"))
	check("back")
	testkit.Must(r.store.MoveHead(r.ctx, store.HeadMove{Session: r.id, To: at(2)}))(t)
	check("the head went back")
	r.talk(60, 150)
	check("a compaction on the spot")
	if warning := r.undo(r.compactions()[0].RowID); warning == "" {
		t.Error("it fits without the overlay: the test proves nothing")
	}
	r.redo(r.compactions()[0].RowID)
	r.talk(30, 150)
	check("and another")
	r.mgr.Forget()
	check("forgotten")
}

func TestCacheStaysWithinItsSize(t *testing.T) {
	c := newCache[string, int](10)
	c.put("too large", 1, 11)
	if _, ok := c.get("too large"); ok || c.size != 0 {
		t.Errorf("a value over the limit is cached, size %d", c.size)
	}
	for i := range 60 {
		c.put(string(rune('A'+i)), i, 3)
		if v, ok := c.get(string(rune('A' + i))); !ok || v != i || c.size > 10 || c.size != 3*len(c.entries) {
			t.Fatalf("value %d: %d %t, size %d of %d entries", i, v, ok, c.size, len(c.entries))
		}
	}
	c.clear()
	c.put("A", 1, 4)
	c.put("A", 2, 5)
	if v, _ := c.get("A"); v != 2 || c.size != 5 {
		t.Errorf("a replaced value is %d, size %d", v, c.size)
	}
}

package contextmgr

import (
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"

	"github.com/google/go-cmp/cmp"
)

// fromStore is the context as a manager gives it that remembers nothing.
func (r *rig) fromStore() string {
	r.t.Helper()
	v, err := New(r.store, r.mgr.cfg).Assemble(r.ctx, r.id, Budget{})
	if err != nil {
		r.t.Fatal(err)
	}
	return wire(v)
}

// What is remembered of a path is what the store holds, wherever the head goes and whatever was
// made of the messages meanwhile.
func TestARememberedPathIsTheStoredOne(t *testing.T) {
	r := newRig(t, 20000)
	check := func(step string) {
		t.Helper()
		if got, want := wire(r.turn(TurnInput{})), r.fromStore(); got != want {
			t.Errorf("%s: %s", step, cmp.Diff(want, got))
		}
		known := r.mgr.paths.of(r.id)
		if len(known) == 0 {
			return
		}
		var stored []session.Message
		if err := r.store.Walk(r.ctx, known[len(known)-1].RowID, func(m session.Message) bool {
			stored = append([]session.Message{m}, stored...)
			return m.RowID != known[0].RowID
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored, known); diff != "" {
			t.Errorf("%s: the memory is not what is stored: %s", step, diff)
		}
	}
	at := func(seq int64) *session.MessageRef { return &session.MessageRef{Session: r.id, Seq: seq} }
	say := func(parent *session.MessageRef, msgs ...session.Message) {
		t.Helper()
		if _, err := r.store.Append(r.ctx, store.Append{Session: r.id, Parent: parent, Messages: msgs}); err != nil {
			t.Fatal(err)
		}
	}
	r.talk(3, 20)
	check("a beginning")
	r.talk(2, 20)
	check("more")
	say(at(4), text(session.User, "another branch"), calling("c"), answering("c", filler(6000)))
	check("a branch, with an output that is cut")
	say(at(10), text(session.User, "back on the first one"))
	check("back")
	if _, err := r.store.MoveHead(r.ctx, store.HeadMove{Session: r.id, To: at(2)}); err != nil {
		t.Fatal(err)
	}
	check("the head went back")
	r.talk(60, 150)
	check("a compaction on the spot")
	if _, err := r.mgr.Undo(r.ctx, r.id, r.compactions()[0].RowID, 0); err == nil {
		t.Error("it fits without the overlay: the test proves nothing")
	}
	r.talk(30, 150)
	check("and another")
	r.mgr.Forget()
	check("forgotten")
}

// forgetful is a digest that remembers messages, too.
type forgetful struct {
	heads
	times *int
}

func (f forgetful) Forget() { *f.times++ }

// What a digest remembers of messages goes with what contexts do: they may have been purged.
func TestForgettingReachesTheDigest(t *testing.T) {
	times := 0
	r := newRig(t, 10000, func(c *Config) { c.Digest = forgetful{heads{digestProvider}, &times} })
	if r.mgr.Forget(); times != 1 {
		t.Errorf("the digest was told %d times", times)
	}
}

func TestPathMemoryIsBounded(t *testing.T) {
	var p pathMemory
	path := func(row int64, size int) []session.Message {
		return []session.Message{{RowID: row, Parts: []session.Part{session.TextPart(string(make([]byte, size)))}}}
	}
	p.keep("huge", path(1, mostOfOnePath))
	if p.of("huge") != nil || p.bytes != 0 {
		t.Errorf("a path over the limit is remembered: %d bytes", p.bytes)
	}
	const mb = 1 << 20
	for n := range int64(60) {
		p.keep(session.ID(rune('A'+n)), path(n, mb))
		p.of("A") // in use all the time
	}
	if p.bytes > mostRemembered || len(p.by) < 40 || p.of("A") == nil || p.of("B") != nil {
		t.Errorf("%d paths of %d bytes", len(p.by), p.bytes)
	}
	p.keep("A", nil)
	if p.of("A") != nil {
		t.Error("a path that is no more is remembered")
	}
}

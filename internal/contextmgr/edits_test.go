package contextmgr

import (
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// What is hidden is in no later context, parts by themselves; a call without its result is none.
func TestHiddenMessagesAreNotSent(t *testing.T) {
	r := newRig(t, 100_000)
	both := calling("c1", "c2")
	both.Parts = append([]session.Part{session.TextPart("I look twice.")}, both.Parts...)
	r.append(text(session.User, "first"), text(session.Assistant, "the secret"), text(session.User, "second"), both,
		answering("c1", "one"), answering("c2", "two"), text(session.Assistant, "done"))
	before := r.turn(TurnInput{Budget: Budget{Dialect: "native"}})
	hide := func(seq int64, parts ...int) {
		t.Helper()
		at := session.MessageRef{Session: r.id, Seq: seq}
		testkit.Must(r.store.HideMessage(r.ctx, store.Hide{Session: r.id, Message: at, Parts: parts}))(t)
	}
	hide(2)
	hide(4, 0)
	hide(4, 2) // the call c2
	hide(6)    // and its result
	view := r.turn(TurnInput{Budget: Budget{Dialect: "native"}})
	said := ""
	for i := range view.Messages {
		m := &view.Messages[i]
		said += m.Text() + "|"
		for _, c := range m.Calls() {
			said += c.CallID + "|"
		}
	}
	for _, gone := range []string{"secret", "twice", "c2", "two"} {
		if strings.Contains(said, gone) {
			t.Errorf("%q is sent: %s", gone, said)
		}
	}
	for _, stays := range []string{"first", "second", "c1", "one", "done"} {
		if !strings.Contains(said, stays) {
			t.Errorf("%q is not sent: %s", stays, said)
		}
	}
	if view.Prefix.BrokenBy != "epoch" || view.Tokens.Total >= before.Tokens.Total {
		t.Errorf("prefix %+v, %d tokens after %d", view.Prefix, view.Tokens.Total, before.Tokens.Total)
	}
}

package dialecttest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// failer is a test, or one run of rapid's.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Accepted sends a context, twice alike, and asks the provider's validator.
func Accepted(t failer, form wire.Form, in wire.Request) wire.Sent {
	t.Helper()
	sent, err := form.Send(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := ValidateFor(form.Name, in.Model, sent.Request); err != nil {
		t.Fatalf("the provider would refuse it: %v\n%.3000s", err, sent.Request)
	}
	again, err := form.Send(in)
	if err != nil || string(again.Request) != string(sent.Request) {
		t.Fatalf("the same context is sent differently (%v)", err)
	}
	return sent
}

// AcceptsAny sends generated conversations to one of the models: the provider accepts them.
func AcceptsAny(t *testing.T, form wire.Form, conversation func(*rapid.T) []session.Message, models ...string) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		Accepted(r, form, wire.Request{System: pick(r, "system", "", "Be short."), Messages: conversation(r), Model: pick(r, "model", models...)})
	})
}

// StaysAPrefix tells that a context which grew at its end is sent as it was, with more behind
// it: caches of the provider hold whole prefixes.
func StaysAPrefix(t *testing.T, form wire.Form, conversation func(*rapid.T) []session.Message, models ...string) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		msgs, model := conversation(r), pick(r, "model", models...)
		send := func(msgs []session.Message) []string {
			sent, err := form.Send(wire.Request{Messages: msgs, Model: model})
			if err != nil {
				r.Fatal(err)
			}
			return Flat(r, form.Name, sent.Request)
		}
		whole := send(msgs)
		for n := range msgs {
			if msgs[n].Role != session.User {
				continue // a context is handed out when every call has its result
			}
			if part := send(msgs[:n+1]); len(part) > len(whole) || !slices.Equal(part, whole[:len(part)]) {
				r.Fatalf("after %d messages\n%q\nis no beginning of\n%q", n+1, part, whole)
			}
		}
	})
}

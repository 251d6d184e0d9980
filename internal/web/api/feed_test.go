package api

import (
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// The tokens of one owner cannot take all streams of events.
func TestStreamsHaveALimitForEachOwner(t *testing.T) {
	f := NewFeed()
	hers := session.WithScope(t.Context(), session.Scope{Owner: "her"})
	var last func()
	for range maxOfToken {
		last = testkit.Must(f.enter(hers))(t)
	}
	if _, err := f.enter(hers); session.CodeOf(err) != session.Busy {
		t.Errorf("one more stream: %v", err)
	}
	testkit.Must(f.enter(session.WithScope(t.Context(), session.Scope{Owner: "his"})))(t)()
	testkit.Must(f.enter(t.Context()))(t)()
	last()
	last() // counts once
	testkit.Must(f.enter(hers))(t)()
	testkit.Equal(t, maxOfToken-1, f.count())
}

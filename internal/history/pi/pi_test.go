package pi_test

import (
	"testing"

	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

// house is a store with an importer of pi's files.
type house struct{ *historytest.House }

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{historytest.New(t, pi.New(historytest.NoEnv))}
}

// context returns what the model would see at the head: the effective overlay's summary, if
// there is one, as "summary", then the roles of what follows it.
func (h *house) context(s session.Session) []string {
	h.Helper()
	var roles []string
	effective, rest := h.Seen(s)
	if effective != nil {
		roles = append(roles, "summary")
	}
	for _, m := range rest {
		roles = append(roles, string(m.Role))
	}
	return roles
}

func sample(t testing.TB, parts ...string) string {
	t.Helper()
	return historytest.Sample(t, "pi", parts...)
}

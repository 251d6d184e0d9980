package historytest

import (
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// Labels returns the labels of a session's messages, by row.
func Labels(t testing.TB, s *store.Store, id session.ID) map[int64]string {
	t.Helper()
	labels := map[int64]string{}
	for _, m := range testkit.Must(s.Marks(t.Context(), id))(t) {
		if m.Kind == store.MarkTag && m.Place == 0 {
			labels[m.Row] = m.Text
		}
	}
	return labels
}

package search

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Not a whole word and no end of one is left: FTS5 stores words without the beginning that
// they share with the word before.
func TestScrubbedIndexContainsNoPartOfAForgottenWord(t *testing.T) {
	for run := range 20 {
		store := newFakeStore()
		fill(store, 40)
		var rows []int64
		for i := range 200 {
			text := fmt.Sprintf("ordinary%dword number", i)
			if i%3 == run%3 {
				text = fmt.Sprintf("zebra%dxqkv%djwz and geheimnis%dwort", i, run, i)
			}
			m := store.add(first, session.User, text)
			if i%3 == run%3 {
				rows = append(rows, m.RowID)
			}
		}
		path := filepath.Join(t.TempDir(), "search.db")
		ix := testkit.Must(Open(t.Context(), path, store))(t)
		catchUp(t, ix)
		testkit.Check(t, ix.Forget(t.Context(), rows))
		testkit.Check(t, ix.Scrub(t.Context()))
		for _, suffix := range []string{"", "-wal"} {
			b := testkit.Must(os.ReadFile(path + suffix))(t)
			for _, end := range []string{"xqkv", fmt.Sprintf("%djwz", run), "jwz", "zebra", "geheimnis", "heimnis"} {
				if bytes.Contains(b, []byte(end)) {
					t.Fatalf("run %d: search.db%s still holds %q", run, suffix, end)
				}
			}
		}
		if r := search(t, ix, Query{Text: "ordinary*"}); len(r.Hits) == 0 {
			t.Error("the rest is gone, too")
		}
		testkit.Check(t, ix.Close())
	}
}

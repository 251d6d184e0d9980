package store

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/session"
)

// An import that finds no room takes nothing with it of what shares its transaction.
func TestAnImportThatFindsNoRoomLeavesOthersWhole(t *testing.T) {
	for _, n := range []int{1, 30, 356} {
		s := openTest(t)
		limit := func(pages int64) {
			t.Helper()
			if err := s.alone(t.Context(), func(t *tx) error {
				var n int64
				return t.row(fmt.Sprint(`PRAGMA max_page_count = `, pages), nil, &n)
			}); err != nil {
				t.Fatal(err)
			}
		}
		b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: "large"}}
		for i := range n {
			b.Messages = append(b.Messages, record(fmt.Sprint(i), "", session.User, strings.Repeat("x", 60_000)))
		}
		if err := s.prepareImport(&b); err != nil {
			t.Fatal(err)
		}
		imports := func(t *tx) error {
			im := importer{tx: t, batch: &b, res: &ImportResult{}, spots: map[string]spot{}}
			return im.run()
		}
		limit(count(t, s, `PRAGMA page_count`) + 12)
		errs := together(t, s, note(1), imports, note(2))
		for i, want := range []session.Code{"", session.StorageFull, ""} {
			wants(t, errs[i], want, "")
			if errs[i] != nil && (strings.Contains(errs[i].Error(), "\n") || !strings.Contains(errs[i].Error(), "make room")) {
				t.Errorf("it says %q", errs[i])
			}
		}
		if got := count(t, s, `SELECT SUM(model) * 10 + COUNT(*) FROM calibrations`); got != 32 {
			t.Errorf("%d messages: what was acknowledged beside it: %d", n, got)
		}
		if got := count(t, s, `SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM parts) + (SELECT COUNT(*) FROM sessions)`); got != 0 {
			t.Errorf("%d rows are left", got)
		}
		limit(1 << 30)
		for i, err := range together(t, s, note(3), imports, note(4)) {
			wants(t, err, "", fmt.Sprint(i))
		}
		mustBeHealthy(t, s)
	}
}

package pi_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/history/historytest"
	"sessiond/internal/history/pi"
	"sessiond/internal/samples"
	"sessiond/internal/store"
)

// TestLongLinesGiveTheSameRows: what very long lines say is stored the same, whether they are read
// whole or shortened.
func TestLongLinesGiveTheSameRows(t *testing.T) {
	historytest.InflatedSameWhole(t, func() history.Source { return pi.New(historytest.NoEnv) }, filepath.Join(samples.Dir(t), "pi"), 20,
		"text", "thinking", "data", "content", "output", "arguments", "summary", "details", "name")
}

// rewriting is a store for which, once, a file is changed when a batch was measured, in front of its
// transaction.
type rewriting struct {
	history.Store
	change func()
}

func (r *rewriting) Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error) {
	if r.change != nil && len(b.Messages) > 0 {
		if err := r.Store.(*store.Store).PrepareImport(&b); err != nil {
			return store.ImportResult{}, err
		}
		r.change()
		r.change = nil
	}
	return r.Store.Import(ctx, b)
}

// TestLongLineThatChangesWhileItIsStored: what stands in the file when it is stored is what was
// measured, or all is read again. Nothing of both comes in.
func TestLongLineThatChangesWhileItIsStored(t *testing.T) {
	text := func(word string) string {
		return strings.Repeat("some words\n", 100_000) + word + strings.Repeat("some words\n", 100_000)
	}
	calm, h := newHouse(t), newHouse(t)
	path := h.Write("one.jsonl", header, user("1", "", text("before")), user("2", "1", "short"))
	other := h.Write("other.jsonl", header, user("1", "", text("behind")), user("2", "1", "short"))
	changed := historytest.Read(t, other)
	h.Importer.Store = &rewriting{Store: h.Importer.Store, change: func() {
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Error(err)
		}
	}}
	if done := h.Import(path); len(done.Errors) != 0 {
		t.Errorf("%+v", done)
	}
	calm.Import(other)
	if diff := cmp.Diff(calm.Told(), h.Told()); diff != "" {
		t.Errorf("-calm +changed\n%.1500s", diff)
	}
	for _, s := range h.Sessions() {
		if got := h.Entries(s.ID)[0].Text(); got != text("behind") {
			t.Errorf("%d bytes, %t %t", len(got), strings.Contains(got, "before"), strings.Contains(got, "behind"))
		}
	}
}

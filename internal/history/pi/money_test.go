package pi_test

import (
	"path/filepath"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/usage"
)

// A cost of 0 is no price where the model has one, and a write of an hour costs more; a model on the host stays free.
func TestZeroIsNoPriceOfAPricedModel(t *testing.T) {
	h := newHouse(t)
	h.Importer.Price = testkit.Must(usage.Load(nil))(t).PriceImported
	h.Import(filepath.Join(samples.Case(t, "22-pi-zero-cost-and-1h-writes"), "pi"))
	s := h.Sessions()[0]
	calls := h.Calls(s.ID)
	for i, want := range []struct {
		model, source string
		cost, hour    int64
	}{
		{"claude-sonnet-5", "catalogue", 3_000_000, 0},
		{"claude-sonnet-5", "catalogue", 8_003_000_000, 2_000_000},
		{"qwen3-coder:30b", "reported", 0, 0},
		{"qwen3-coder:30b", "reported", 21_000_000, 0}, // the compaction's, with the model that was in use
	} {
		if c := calls[i]; c.Model != want.model || c.PriceSource != want.source || *c.CostNanoUSD != want.cost ||
			c.CacheWrite1h != want.hour {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	if last := calls[3]; last.Purpose != session.PurposeSummary || last.InputTokens != 9000 || last.OutputTokens != 300 {
		t.Errorf("the compaction: %+v", last)
	}
	if s.UnpricedCalls != 0 || *s.CostNanoUSD != 8_027_000_000 {
		t.Errorf("%d, %d unpriced", *s.CostNanoUSD, s.UnpricedCalls)
	}
	h.Examine()
}

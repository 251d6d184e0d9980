package pi

import (
	"math"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// usageOf reads a usage object into a call. Tokens: input excludes cache, output includes
// reasoning. Cost is what pi stored, in US dollars: the provider's figure or its own
// catalogue's estimate at that time.
func usageOf(raw []byte, provider string) (session.Call, bool) {
	o, ok := jsonx.ReadFields(raw)
	if !ok {
		return session.Call{}, false
	}
	call := session.Call{
		InputTokens:      history.Count(o.Get("input")),
		OutputTokens:     history.Count(o.Get("output")),
		CacheReadTokens:  history.Count(o.Get("cacheRead")),
		CacheWriteTokens: history.Count(o.Get("cacheWrite")),
		CacheWrite1h:     history.Count(o.Get("cacheWrite1h")),
		ReasoningTokens:  history.Count(o.Get("reasoning")),
	}
	call.CacheWriteTokens = max(call.CacheWriteTokens, call.CacheWrite1h)
	// Before 0.63.0 Google's input held the cached tokens, too; the total gives it away.
	if strings.HasPrefix(provider, "google") && call.CacheReadTokens > 0 &&
		history.Count(o.Get("totalTokens")) == call.InputTokens+call.OutputTokens {
		call.InputTokens = max(0, call.InputTokens-call.CacheReadTokens)
		call.Metadata = session.JSONOf(map[string]bool{"cost_counts_cached_twice": true})
	}
	call.CostNanoUSD = costOf(o.Inner("cost"))
	return call, true
}

// costOf returns nano-dollars, nil where none are told.
func costOf(o jsonx.Object) *int64 {
	total, ok := history.Number(o.Get("total"))
	if !ok {
		for _, key := range []string{"input", "output", "cacheRead", "cacheWrite"} {
			if part, is := history.Number(o.Get(key)); is {
				total, ok = total+part, true
			}
		}
	}
	if !ok || total < 0 || total > 1e9 {
		return nil
	}
	return new(int64(math.Round(total * 1e9)))
}

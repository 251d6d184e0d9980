package pi

import (
	"math"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// usageOf reads a usage object into a call. Tokens: input excludes cache, output includes
// reasoning. Cost is what pi stored, in US dollars: the provider's figure or its own
// catalogue's estimate at that time.
func usageOf(raw []byte, provider string) (session.Call, bool) {
	o, ok := history.Fields(raw)
	if !ok {
		return session.Call{}, false
	}
	call := session.Call{
		Status:           session.CallOK,
		InputTokens:      count(o, "input"),
		OutputTokens:     count(o, "output"),
		CacheReadTokens:  count(o, "cacheRead"),
		CacheWriteTokens: count(o, "cacheWrite"),
		ReasoningTokens:  count(o, "reasoning"),
	}
	// Before 0.63.0 Google's input held the cached tokens, too; the total gives it away.
	if strings.HasPrefix(provider, "google") && call.CacheReadTokens > 0 &&
		count(o, "totalTokens") == call.InputTokens+call.OutputTokens {
		call.InputTokens = max(0, call.InputTokens-call.CacheReadTokens)
		call.Metadata = session.JSONOf(map[string]bool{"cost_counts_cached_twice": true})
	}
	if cost, ok := costOf(o.Get("cost")); ok {
		call.CostNanoUSD, call.PriceSource = &cost, "reported"
	}
	return call, true
}

// costOf returns nano-dollars.
func costOf(raw []byte) (int64, bool) {
	o, ok := history.Fields(raw)
	if !ok {
		return 0, false
	}
	total, ok := number(o.Get("total"))
	if !ok {
		for _, key := range []string{"input", "output", "cacheRead", "cacheWrite"} {
			if part, is := number(o.Get(key)); is {
				total, ok = total+part, true
			}
		}
	}
	if !ok || total < 0 || total > 1e9 {
		return 0, false
	}
	return int64(math.Round(total * 1e9)), true
}

// count reads a number of tokens; what is none, or negative, is 0.
func count(o history.Object, key string) int64 {
	n, ok := number(o.Get(key))
	if !ok || n < 0 || n > 1e15 {
		return 0
	}
	return int64(n)
}

func number(raw []byte) (float64, bool) {
	n, err := strconv.ParseFloat(string(raw), 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// fingerprint tells what an entry says, whatever id it has and whichever version wrote it.
// Copies of an entry in other files have the same, so that its usage counts once.
func fingerprint(o history.Object, version int) string {
	message, _ := history.Fields(o.Get("message"))
	if message.String("role") == "hookMessage" {
		o = o.With("message", message.With("role", []byte(`"custom"`)).JSON())
	}
	if version == 4 { // a copy has other numbers and no lane
		o = o.Without("seq", "lane")
	}
	return history.Fingerprint(o, "id", "parentId", "firstKeptEntryId", "firstKeptEntryIndex")
}

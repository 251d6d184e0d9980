package cline

import (
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// ledger adds the rows of what the task used, as its events say it, else its messages.
func (t *task) ledger() {
	prefix := string(t.in.Source()) + ":" + t.id + ":"
	requests := 0
	for _, e := range t.events {
		kind := e.String("say")
		text, _ := jsonx.ReadObject([]byte(e.String("text")))
		at := history.TimeOf(e.Get("ts"))
		switch kind {
		case "api_req_started":
			c := t.call(text, at)
			index, isKnown := history.Number(e.Get("conversationHistoryIndex"))
			if isKnown {
				c.MessageKey = t.last[int(max(index, 0))+1]
			} else if requests < len(t.replies) {
				c.MessageKey = t.replies[requests]
			}
			requests++
			if c.ContextTokens() == 0 {
				continue
			}
			if model := e.Inner("modelInfo"); model != nil {
				c.Model, c.Provider = model.String("modelId"), model.String("providerId")
			}
			c.ExternalID = prefix + string(e.Get("ts"))
			t.whole.Calls = append(t.whole.Calls, c)
		case "deleted_api_reqs", "subagent_usage": // sums of requests that stand nowhere else
			if c := t.call(text, at); c.ContextTokens() > 0 {
				c.ExternalID, c.Sum, c.Purpose = prefix+string(e.Get("ts")), true, session.PurposeOther
				t.whole.Calls = append(t.whole.Calls, c)
			}
		case "condense_context":
			if nano, ok := history.NanoUSD(e.Inner("contextCondense").Get("cost")); ok && nano > 0 {
				c := history.Call{Call: session.Call{ExternalID: prefix + string(e.Get("ts")), CreatedAt: at, CostNanoUSD: &nano}}
				c.Purpose = session.PurposeSummary
				t.whole.Calls = append(t.whole.Calls, c)
			}
		}
	}
}

// call makes a row of the ledger. Cline's tokensIn is what no cache gave, Roo's since October 2025 the whole input.
func (t *task) call(usage jsonx.Object, at session.Time) history.Call {
	count := func(key string) int64 { return history.Count(usage.Get(key)) }
	c := history.Call{Call: session.Call{
		CreatedAt: at, InputTokens: count("tokensIn"), OutputTokens: count("tokensOut"), CacheReadTokens: count("cacheReads"),
		CacheWriteTokens: count("cacheWrites"),
	}}
	if caches := c.CacheReadTokens + c.CacheWriteTokens; t.isRoo && c.InputTokens >= caches {
		c.InputTokens -= caches
	}
	c.Model, c.Provider = t.modelAt(at)
	if nano, ok := history.NanoUSD(usage.Get("cost")); ok && nano > 0 {
		c.CostNanoUSD = &nano
	}
	return c
}

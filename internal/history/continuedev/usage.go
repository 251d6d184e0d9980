package continuedev

import (
	"slices"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// call makes a row of the ledger of what a provider reported, in either spelling. Its prompt tokens include the caches.
func (t *talk) call(used jsonx.Object) (c history.Call, ok bool) {
	details := used.Inner("prompt_tokens_details")
	if details == nil {
		details = used.Inner("promptTokensDetails")
	}
	prompt := history.Count(used.First("prompt_tokens", "promptTokens"))
	c.CacheReadTokens = min(prompt, history.Count(details.First("cached_tokens", "cachedTokens")))
	c.CacheWriteTokens = min(prompt-c.CacheReadTokens,
		history.Count(details.First("cache_creation_tokens", "cacheWriteTokens")))
	c.InputTokens = prompt - c.CacheReadTokens - c.CacheWriteTokens
	c.OutputTokens = history.Count(used.First("completion_tokens", "completionTokens"))
	c.Model = used.String("model")
	return c, prompt+c.OutputTokens > 0
}

// spent are the tokens of a prompt, with the caches, and of its completion.
type spent struct{ prompt, completion int64 }

func spentIn(c *session.Call) spent {
	return spent{c.InputTokens + c.CacheReadTokens + c.CacheWriteTokens, c.OutputTokens}
}

func (s spent) plus(more spent) spent {
	return spent{s.prompt + more.prompt, s.completion + more.completion}
}

func (s spent) within(limit spent) bool {
	return s.prompt <= limit.prompt && s.completion <= limit.completion
}

// total returns what the session says that all of its calls used, those of compactions and sub-agents, too.
func (t *talk) total() (all spent, isKnown bool) {
	c, isKnown := t.call(t.about.Inner("usage"))
	return spentIn(&c.Call), isKnown
}

// sum returns what the messages say.
func (t *talk) sum() (all spent) {
	for i := range t.calls {
		all = all.plus(spentIn(&t.calls[i].Call))
	}
	return all
}

// ledger adds the rows of messages, and one for the rest of what the session used. A fork copies messages with their
// usage and counts from zero: only the last of them are its own.
func (t *talk) ledger(total spent, isKnown bool) {
	prefix := string(session.SourceContinue) + ":" + t.whole.New.SourceID + ":"
	var own spent
	for i := len(t.calls) - 1; i >= 0; i-- {
		c := t.calls[i]
		more := own.plus(spentIn(&c.Call))
		if isKnown && !more.within(total) {
			break
		}
		own, c.ExternalID = more, prefix+c.ExternalID
		t.whole.Calls = append(t.whole.Calls, c)
	}
	slices.Reverse(t.whole.Calls)
	if !isKnown {
		return
	}
	if !t.in.Quiet() { // a reply that is being written is in the total, and not among the messages
		t.in.LookAgain()
		return
	}
	rest := prefix + "rest"
	if t.here != nil {
		own = spent{}
		now := map[string]bool{rest: true}
		for i := range t.whole.Calls {
			now[t.whole.Calls[i].ExternalID] = true
			own = own.plus(spentIn(&t.whole.Calls[i].Call))
		}
		t.in.Calls(t.here.ID, func(c *session.Call) {
			if !now[c.ExternalID] { // of messages that a compaction took away
				own = own.plus(spentIn(c))
			}
		})
	}
	c := history.Call{Call: session.Call{ExternalID: rest, Purpose: session.PurposeSummary}}
	c.InputTokens, c.OutputTokens = max(0, total.prompt-own.prompt), max(0, total.completion-own.completion)
	c.CreatedAt = session.At(t.in.Found.ModifiedAt)
	if c.InputTokens+c.OutputTokens > 0 {
		t.whole.Calls = append(t.whole.Calls, c)
	}
}

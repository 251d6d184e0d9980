package goose

import (
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// balance are the sums that Goose keeps of a session. nil columns are unknown.
type balance struct {
	input, output, cacheRead, cacheWrite int64
	cost                                 *int64
	cached                               bool // the cache's share is known, and inside input
}

// balanceOf reads sums; nil where Goose kept none.
func balanceOf(column func(name string) []byte) *balance {
	b := &balance{
		input: history.Count(column("input_tokens")), output: history.Count(column("output_tokens")),
		cacheRead: history.Count(column("cache_read_tokens")), cacheWrite: history.Count(column("cache_write_tokens")),
		cached: len(column("cache_read_tokens"))+len(column("cache_write_tokens")) > 0,
	}
	if cost, ok := history.NanoUSD(column("cost")); ok {
		b.cost = &cost
	}
	if b.input+b.output == 0 {
		if b.input = history.Count(column("total_tokens")); b.input == 0 && b.cost == nil {
			return nil
		}
	}
	return b
}

// split takes the cache's share out of the input: since version 14 that holds it. ok is false
// where the share cannot be in it; then input is taken as it stands.
func split(input, cacheRead, cacheWrite int64) (rest int64, ok bool) {
	if cacheRead+cacheWrite > input {
		return input, false
	}
	return input - cacheRead - cacheWrite, true
}

// entry is one row of usage_ledger.
type entry struct {
	at                                   *session.Time
	model, costSource                    string
	input, output, cacheRead, cacheWrite int64
	cost                                 *int64
	compaction                           bool
	hash                                 string
}

func entryOf(c columns) entry {
	e := entry{
		model: c.text("model"), costSource: c.text("cost_source"), compaction: c.text("is_compaction") == "1",
		input: history.Count(c.number("input_tokens")), output: history.Count(c.number("output_tokens")),
		cacheRead: history.Count(c.number("cache_read_tokens")), cacheWrite: history.Count(c.number("cache_write_tokens")),
	}
	if e.input+e.output == 0 {
		e.input = history.Count(c.number("total_tokens"))
	}
	if at, ok := timeOf(c.number("created_timestamp")); ok {
		e.at = &at
	}
	if cost, ok := history.NanoUSD(c.number("cost")); ok {
		e.cost = &cost
	}
	var o history.Object
	for name, value := range c {
		if name != "id" && name != "session_id" && value != nil {
			o = append(o, history.Field{Key: name, Raw: raw(session.JSONOf(c.text(name)))})
		}
	}
	e.hash = history.Fingerprint(o)
	return e
}

const carriedForward = "carried_forward"

// calls turns a session's usage into ledger rows. One of its sources counts: the rows of
// usage_ledger, else the session's sums, else what the messages say.
func (r *reader) calls() []history.Call {
	switch {
	case len(r.entries) > 0:
		return r.ledger()
	case r.about.balance != nil:
		return r.opening(r.about.balance, "accumulated", *r.created)
	}
	return r.replies()
}

func (r *reader) ledger() []history.Call {
	var calls []history.Call
	seen := map[string]int{}
	for _, e := range r.entries {
		at := *r.created
		if e.at != nil {
			at = *e.at
		}
		if e.costSource == carriedForward && r.usageOf() == "accumulated" {
			// What was counted as the session's sums before the ledger began is in it.
			b := &balance{input: e.input, output: e.output, cacheRead: e.cacheRead, cacheWrite: e.cacheWrite, cost: e.cost, cached: true}
			calls = append(calls, r.opening(b, carriedForward, at)...)
			continue
		}
		c := session.Call{
			Purpose: session.PurposeChat, Model: e.model, OutputTokens: e.output, CacheReadTokens: e.cacheRead, CacheWriteTokens: e.cacheWrite,
			CostNanoUSD: e.cost, CreatedAt: at,
		}
		if e.compaction {
			c.Purpose = session.PurposeSummary
		}
		notes := history.Object{}
		if e.costSource != "" {
			notes = append(notes, history.Field{Key: "cost_source", Raw: raw(session.JSONOf(e.costSource))})
		}
		inside := false
		if c.InputTokens, inside = split(e.input, e.cacheRead, e.cacheWrite); !inside {
			notes = append(notes, history.Field{Key: "cache_exceeds_input", Raw: raw("true")})
		}
		c.Metadata = notes.JSON()
		call := history.Call{Call: c}
		if e.costSource != carriedForward {
			call.MessageKey = r.replyOf(&e, at)
		}
		calls = append(calls, r.own(call, fmt.Sprintf("%s#%d", e.hash, seen[e.hash])))
		seen[e.hash]++
	}
	return calls
}

// opening counts what the session's sums hold beyond what was counted before.
func (r *reader) opening(b *balance, source string, at session.Time) []history.Call {
	had := session.Session{}
	if r.existing != nil {
		had = *r.existing
	}
	c := session.Call{
		Purpose: session.PurposeChat, OutputTokens: max(0, b.output-had.OutputTokens), CreatedAt: at,
		CacheReadTokens: max(0, b.cacheRead-had.CacheReadTokens), CacheWriteTokens: max(0, b.cacheWrite-had.CacheWriteTokens),
	}
	input, _ := split(b.input, b.cacheRead, b.cacheWrite)
	c.InputTokens = max(0, input-had.InputTokens)
	if b.cost != nil {
		cost := *b.cost
		if had.CostNanoUSD != nil {
			cost = max(0, cost-*had.CostNanoUSD)
		}
		c.CostNanoUSD = &cost
	}
	if c.ContextTokens() == 0 && (c.CostNanoUSD == nil || *c.CostNanoUSD == 0) {
		return nil
	}
	notes := history.Object{{Key: "cost_source", Raw: raw(session.JSONOf(source))}}
	if !b.cached {
		notes = append(notes, history.Field{Key: "cache_unknown", Raw: raw("true")})
	}
	c.Metadata = notes.JSON()
	return []history.Call{r.own(history.Call{Call: c}, fmt.Sprintf("balance:%d:%d:%d:%d", b.input, b.output, b.cacheRead, b.cacheWrite))}
}

// replies counts the calls that the messages themselves tell of.
func (r *reader) replies() []history.Call {
	var calls []history.Call
	for i := range r.records {
		m := &r.records[i]
		if m.usage == nil || m.within != "" {
			continue
		}
		u := m.usage
		c := session.Call{
			Purpose: session.PurposeChat, Model: u.String("model"), OutputTokens: history.Count(u.Get("outputTokens")),
			CacheReadTokens: history.Count(u.Get("cacheReadTokens")), CacheWriteTokens: history.Count(u.Get("cacheWriteTokens")), CreatedAt: m.at,
		}
		if string(u.Get("isCompaction")) == "true" {
			c.Purpose = session.PurposeSummary
		}
		c.InputTokens, _ = split(history.Count(u.Get("inputTokens")), c.CacheReadTokens, c.CacheWriteTokens)
		if cost, ok := history.NanoUSD(u.Get("cost")); ok {
			c.CostNanoUSD = &cost
		}
		if ms := history.Count(u.Get("elapsedMs")); ms > 0 {
			c.LatencyMS = &ms
		}
		calls = append(calls, r.own(history.Call{Call: c, MessageKey: m.key}, "m:"+m.key))
	}
	return calls
}

// own names a call of the session, so that it is counted once.
func (r *reader) own(c history.Call, name string) history.Call {
	c.Status, c.Source, c.Directory = session.CallOK, session.SourceGoose, r.about.directory
	c.Provider = r.about.provider
	if c.Model == "" && !strings.HasPrefix(name, "balance:") && c.MessageKey != "" {
		c.Model = r.about.model
	}
	if c.CostNanoUSD != nil {
		c.PriceSource = "reported"
	}
	c.ExternalID = "goose:" + r.sourceID + ":" + name
	return c
}

// replyOf finds the reply that a ledger row is of: the one with the same numbers, else the
// newest one up to its second; "" if there is none in the session itself.
func (r *reader) replyOf(e *entry, at session.Time) string {
	newest := -1
	for i := range r.records {
		m := &r.records[i]
		if m.role != "assistant" || m.raw() || m.within != "" || !m.says.model {
			continue
		}
		if u := m.usage; u != nil && history.Count(u.Get("inputTokens")) == e.input && history.Count(u.Get("outputTokens")) == e.output &&
			history.Count(u.Get("cacheReadTokens")) == e.cacheRead && m.at.Unix() <= at.Unix()+60 && m.at.Unix() >= at.Unix()-60 {
			return m.key
		}
		if m.at.Unix() <= at.Unix() {
			newest = i
		}
	}
	if e.compaction {
		if c := r.summaryNear(at); c >= 0 {
			newest = c
		}
	}
	if newest < 0 {
		return ""
	}
	return r.records[newest].key
}

// summaryNear finds the summary that was made about then, -1 if there is none.
func (r *reader) summaryNear(at session.Time) int {
	i := slices.IndexFunc(r.overlays, func(c summarised) bool {
		d := r.records[c.summary].at.Unix() - at.Unix()
		return d >= -5 && d <= 5 && r.records[c.summary].within == ""
	})
	if i < 0 {
		return -1
	}
	return r.overlays[i].summary
}

// difference says where the ledger and the session's sums differ; "" where they do not.
func (r *reader) difference() string {
	if r.about.balance == nil || len(r.entries) == 0 {
		return ""
	}
	var sum balance
	for _, e := range r.entries {
		sum.input += e.input
		sum.output += e.output
	}
	b := r.about.balance
	if sum.input == b.input && sum.output == b.output {
		return ""
	}
	return fmt.Sprintf("session %s: its ledger sums up to %d tokens in and %d out, Goose's own totals say %d and %d; the ledger counts",
		r.about.id, sum.input, sum.output, b.input, b.output)
}

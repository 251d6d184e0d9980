package goose

import (
	"fmt"
	"slices"
	"sort"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// usage is one call, a row of usage_ledger, or the sums of a session. Its input includes the cache's
// share, as Goose counts.
type usage struct {
	session.Call
	cached            bool   // the cache's share is known
	costSource, print string // of a row
}

// usageOf parses numbers by the names that columns have.
func usageOf(column func(name string) []byte) usage {
	count := func(name string) int64 { return history.Count(column(name)) }
	u := usage{cached: len(column("cache_read_tokens"))+len(column("cache_write_tokens")) > 0}
	u.Purpose, u.InputTokens, u.OutputTokens = session.PurposeChat, count("input_tokens"), count("output_tokens")
	u.CacheReadTokens, u.CacheWriteTokens = count("cache_read_tokens"), count("cache_write_tokens")
	if cost, ok := history.NanoUSD(column("cost")); ok {
		u.CostNanoUSD = &cost
	}
	if u.InputTokens+u.OutputTokens == 0 {
		u.InputTokens = count("total_tokens")
	}
	return u
}

// namesInMessages are the names that columns have in the usage of a message.
var namesInMessages = map[string]string{
	"input_tokens": "inputTokens", "output_tokens": "outputTokens", "cache_read_tokens": "cacheReadTokens",
	"cache_write_tokens": "cacheWriteTokens", "cost": "cost",
}

// usageOfMessage parses what a message says of its call.
func usageOfMessage(o jsonx.Object) *usage {
	u := usageOf(func(name string) []byte { return o.Get(namesInMessages[name]) })
	u.Model = o.String("model")
	if ms := history.Count(o.Get("elapsedMs")); ms > 0 {
		u.LatencyMS = &ms
	}
	if string(o.Get("isCompaction")) == "true" {
		u.Purpose = session.PurposeSummary
	}
	return &u
}

// usageOfRow parses a row of usage_ledger.
func usageOfRow(r history.Row) usage {
	u := usageOf(func(name string) []byte { return []byte(r.Get(name)) })
	u.Model, u.costSource = r.Get("model"), r.Get("cost_source")
	if r.Get("is_compaction") == "1" {
		u.Purpose = session.PurposeSummary
	}
	u.CreatedAt, _ = timeOf([]byte(r.Get("created_timestamp")))
	var o jsonx.Object
	for _, c := range r {
		if c.Name != "id" && c.Name != "session_id" {
			o = append(o, jsonx.MemberOf(c.Name, c.Text))
		}
	}
	u.print = jsonx.Fingerprint(o)
	return u
}

// isEmpty reports whether Goose kept no sums.
func (u *usage) isEmpty() bool { return u.InputTokens+u.OutputTokens == 0 && u.CostNanoUSD == nil }

const carriedForward = "carried_forward"

// calls adds the session's usage. One of its sources counts: the rows of usage_ledger, else the
// session's sums, else what the messages say.
func (r *reader) calls() {
	switch {
	case len(r.ledger) > 0:
		r.ledgerCalls()
	case !r.about.balance.isEmpty():
		r.opening(&r.about.balance, "accumulated", r.created)
	default:
		r.replies()
	}
}

// ledgerCalls adds the rows of usage_ledger.
func (r *reader) ledgerCalls() {
	times := map[string]int{} // that an equal row came
	for i := range r.ledger {
		e := &r.ledger[i]
		at := r.created
		if !e.CreatedAt.IsZero() {
			at = e.CreatedAt
		}
		var fresh bool
		if r.isCounted(e) {
			e.cached = true
			fresh = r.opening(e, carriedForward, at)
		} else {
			fresh = r.ledgerCall(e, at, times[e.print])
			times[e.print]++
		}
		if fresh {
			r.in.Import(1)
		} else {
			r.in.Skip(history.SkipKnown, 1)
		}
	}
}

// isCounted reports whether a row carries forward what an earlier import counted as the session's
// sums.
func (r *reader) isCounted(e *usage) bool {
	return e.costSource == carriedForward && r.talk.Here != nil &&
		(history.Notes(r.talk.Here, "goose").String("usage") == "accumulated" || r.hasCall(e.name()))
}

// name is that of a call of the sums.
func (u *usage) name() string {
	return fmt.Sprintf("balance:%d:%d:%d:%d", u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens)
}

// ledgerCall adds the call of a row. occurrence is how often an equal row came before.
func (r *reader) ledgerCall(e *usage, at session.Time, occurrence int) (fresh bool) {
	var notes jsonx.Object
	if e.costSource != "" {
		notes = append(notes, jsonx.MemberOf("cost_source", e.costSource))
	}
	call, inside := e.call(at)
	if !inside {
		notes = append(notes, jsonx.MemberOf("cache_exceeds_input", true))
	}
	call.Metadata = notes.Column()
	c := history.Call{Call: call}
	if e.costSource != carriedForward {
		c.MessageKey = r.replyOf(e, at)
	}
	return r.call(c, fmt.Sprintf("%s#%d", e.print, occurrence))
}

// call returns the call, its input without the cache's share. inside is false where that cannot be
// in the input, which includes it since version 14: then the input stays as it is.
func (u *usage) call(at session.Time) (c session.Call, inside bool) {
	c = u.Call
	c.CreatedAt = at
	if inside = c.CacheReadTokens+c.CacheWriteTokens <= c.InputTokens; inside {
		c.InputTokens -= c.CacheReadTokens + c.CacheWriteTokens
	}
	return c, inside
}

// opening adds the part of the session's sums that no call counted before.
func (r *reader) opening(u *usage, source string, at session.Time) (fresh bool) {
	c, _ := u.call(at)
	c.Purpose, c.Model = session.PurposeChat, ""
	if had := r.talk.Here; had != nil {
		c.InputTokens, c.OutputTokens = max(0, c.InputTokens-had.InputTokens), max(0, c.OutputTokens-had.OutputTokens)
		c.CacheReadTokens, c.CacheWriteTokens = max(0, c.CacheReadTokens-had.CacheReadTokens),
			max(0, c.CacheWriteTokens-had.CacheWriteTokens)
		if c.CostNanoUSD != nil && had.CostNanoUSD != nil {
			c.CostNanoUSD = new(max(0, *c.CostNanoUSD-*had.CostNanoUSD))
		}
	}
	if c.ContextTokens() == 0 && (c.CostNanoUSD == nil || *c.CostNanoUSD == 0) {
		return false
	}
	notes := jsonx.Object{jsonx.MemberOf("cost_source", source)}
	if !u.cached {
		notes = append(notes, jsonx.MemberOf("cache_unknown", true))
	}
	c.Metadata = notes.Column()
	return r.call(history.Call{Call: c}, u.name())
}

// replies adds the calls in the metadata of the messages.
func (r *reader) replies() {
	for i := range r.records {
		m := &r.records[i]
		u := m.used
		if u == nil || m.copyOf != "" {
			continue
		}
		c, _ := u.call(m.at)
		r.call(history.Call{Call: c, MessageKey: m.key}, "m:"+m.key)
	}
}

// call adds a call under a name, so that it is counted once.
func (r *reader) call(c history.Call, name string) (fresh bool) {
	c.Directory, c.Provider = r.about.directory, r.about.provider
	if c.Model == "" && c.MessageKey != "" {
		c.Model = r.about.model
	}
	c.ExternalID = r.callID(name)
	if r.hasCall(name) {
		return false
	}
	r.talk.Call(c)
	return true
}

func (r *reader) callID(name string) string { return "goose:" + r.talk.New.SourceID + ":" + name }

// hasCall reports whether a call was counted by an earlier import.
func (r *reader) hasCall(name string) bool {
	return r.talk.Here != nil && r.in.CallOwner(r.callID(name)) != nil
}

// maxNear is how many messages of two minutes are compared with a call.
const maxNear = 1 << 10

// replyOf finds the reply that a ledger row is of: the one with the same numbers, else the
// newest one up to its second; "" if there is none in the session itself.
func (r *reader) replyOf(e *usage, at session.Time) string {
	upTo := func(second int64) int { // records are in the order of seconds
		return sort.Search(len(r.records), func(i int) bool { return r.records[i].at.Unix() > second })
	}
	second := at.Unix()
	from := upTo(second - 61)
	for i := from; i < min(from+maxNear, len(r.records)) && r.records[i].at.Unix() <= second+60; i++ {
		m := &r.records[i]
		if m.reply == i && m.used != nil && m.used.InputTokens == e.InputTokens && m.used.OutputTokens == e.OutputTokens &&
			m.used.CacheReadTokens == e.CacheReadTokens {
			return m.key
		}
	}
	newest := -1
	if i := upTo(second); i > 0 {
		newest = r.records[i-1].reply
	}
	if e.Purpose == session.PurposeSummary {
		near := slices.IndexFunc(r.overlays, func(c summarised) bool {
			m := &r.records[c.summary]
			return isNear(m.at, at) && m.copyOf == ""
		})
		if near >= 0 {
			newest = r.overlays[near].summary
		}
	}
	if newest < 0 {
		return ""
	}
	return r.records[newest].key
}

// difference says where the ledger and the session's sums differ; "" where they do not.
func (r *reader) difference() string {
	b := &r.about.balance
	if b.isEmpty() || len(r.ledger) == 0 {
		return ""
	}
	var input, output int64
	for i := range r.ledger {
		input, output = input+r.ledger[i].InputTokens, output+r.ledger[i].OutputTokens
	}
	if input == b.InputTokens && output == b.OutputTokens {
		return ""
	}
	return fmt.Sprintf("session %s: its ledger sums up to %d tokens in and %d out, Goose's own totals say %d and %d; "+
		"the ledger counts",
		r.about.id, input, output, b.InputTokens, b.OutputTokens)
}

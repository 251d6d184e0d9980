package goose

import (
	"fmt"
	"slices"
	"sort"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// usage are the numbers of one call, of a row of usage_ledger, or the sums of a session.
type usage struct {
	input, output, cacheRead, cacheWrite int64

	cost       *int64 // nil: unknown
	cached     bool   // the cache's share is known, and inside input
	model      string
	ms         int64 // that the call took
	compaction bool

	at                session.Time // of a row; zero: unknown
	costSource, print string
}

// usageOf parses numbers by the names that columns have.
func usageOf(column func(name string) []byte) usage {
	u := usage{
		input: history.Count(column("input_tokens")), output: history.Count(column("output_tokens")),
		cacheRead: history.Count(column("cache_read_tokens")), cacheWrite: history.Count(column("cache_write_tokens")),
		cached: len(column("cache_read_tokens"))+len(column("cache_write_tokens")) > 0,
	}
	if cost, ok := history.NanoUSD(column("cost")); ok {
		u.cost = &cost
	}
	if u.input+u.output == 0 {
		u.input = history.Count(column("total_tokens"))
	}
	return u
}

// namesInMessages are the names that columns have in the usage of a message.
var namesInMessages = map[string]string{
	"input_tokens": "inputTokens", "output_tokens": "outputTokens", "cache_read_tokens": "cacheReadTokens", "cache_write_tokens": "cacheWriteTokens", "cost": "cost",
}

// usageOfMessage parses what a message says of its call.
func usageOfMessage(o history.Object) *usage {
	u := usageOf(func(name string) []byte { return o.Get(namesInMessages[name]) })
	u.model, u.ms, u.compaction = o.String("model"), history.Count(o.Get("elapsedMs")), string(o.Get("isCompaction")) == "true"
	return &u
}

// isEmpty reports whether Goose kept no sums.
func (u *usage) isEmpty() bool { return u.input+u.output == 0 && u.cost == nil }

const carriedForward = "carried_forward"

// usageOfRow parses a row of usage_ledger.
func usageOfRow(r history.Row) usage {
	u := usageOf(func(name string) []byte { return []byte(r.Get(name)) })
	u.model, u.costSource, u.compaction = r.Get("model"), r.Get("cost_source"), r.Get("is_compaction") == "1"
	u.at, _ = timeOf([]byte(r.Get("created_timestamp")))
	var o history.Object
	for _, c := range r {
		if c.Name != "id" && c.Name != "session_id" {
			o = append(o, history.Member(c.Name, c.Text))
		}
	}
	u.print = history.Fingerprint(o)
	return u
}

// calls adds the session's usage. One of its sources counts: the rows of usage_ledger, else the
// session's sums, else what the messages say.
func (r *reader) calls() error {
	switch {
	case len(r.ledger) > 0:
		return r.ledgerCalls()
	case !r.about.balance.isEmpty():
		_, err := r.opening(&r.about.balance, "accumulated", r.created)
		return err
	}
	return r.replies()
}

// ledgerCalls adds the rows of usage_ledger.
func (r *reader) ledgerCalls() error {
	times := map[string]int{} // that an equal row came
	for i := range r.ledger {
		e := &r.ledger[i]
		at := r.created
		if !e.at.IsZero() {
			at = e.at
		}
		counted, err := r.isCounted(e)
		if err != nil {
			return err
		}
		var fresh bool
		if counted {
			e.cached = true
			fresh, err = r.opening(e, carriedForward, at)
		} else {
			fresh, err = r.ledgerCall(e, at, times[e.print])
			times[e.print]++
		}
		if fresh {
			r.in.Import(1)
		} else {
			r.in.Skip(history.SkipKnown, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isCounted reports whether a row carries forward what an earlier import counted as the session's
// sums.
func (r *reader) isCounted(e *usage) (bool, error) {
	if e.costSource != carriedForward || r.talk.Here == nil {
		return false, nil
	}
	if history.Notes(r.talk.Here, "goose").String("usage") == "accumulated" {
		return true, nil
	}
	return r.hasCall(e.name())
}

// name is that of a call of the sums.
func (u *usage) name() string {
	return fmt.Sprintf("balance:%d:%d:%d:%d", u.input, u.output, u.cacheRead, u.cacheWrite)
}

// ledgerCall adds the call of a row. occurrence is how often an equal row came before.
func (r *reader) ledgerCall(e *usage, at session.Time, occurrence int) (fresh bool, err error) {
	var notes history.Object
	if e.costSource != "" {
		notes = append(notes, history.Member("cost_source", e.costSource))
	}
	c := history.Call{}
	var inside bool
	if c.Call, inside = e.call(at); !inside {
		notes = append(notes, history.Member("cache_exceeds_input", true))
	}
	if c.Model = e.model; e.compaction {
		c.Purpose = session.PurposeSummary
	}
	c.Metadata = notes.JSON()
	if e.costSource != carriedForward {
		c.MessageKey = r.replyOf(e, at)
	}
	return r.call(c, fmt.Sprintf("%s#%d", e.print, occurrence))
}

// call returns a call of the sums. inside is false where the cache's share cannot be in the input,
// which includes it since version 14: then the input stays as it is.
func (u *usage) call(at session.Time) (c session.Call, inside bool) {
	c = session.Call{
		Purpose: session.PurposeChat, InputTokens: u.input, OutputTokens: u.output, CacheReadTokens: u.cacheRead, CacheWriteTokens: u.cacheWrite,
		CostNanoUSD: u.cost, CreatedAt: at,
	}
	if inside = u.cacheRead+u.cacheWrite <= u.input; inside {
		c.InputTokens -= u.cacheRead + u.cacheWrite
	}
	return c, inside
}

// opening adds the part of the session's sums that no call counted before.
func (r *reader) opening(u *usage, source string, at session.Time) (fresh bool, err error) {
	c, _ := u.call(at)
	if had := r.talk.Here; had != nil {
		c.InputTokens, c.OutputTokens = max(0, c.InputTokens-had.InputTokens), max(0, c.OutputTokens-had.OutputTokens)
		c.CacheReadTokens, c.CacheWriteTokens = max(0, c.CacheReadTokens-had.CacheReadTokens), max(0, c.CacheWriteTokens-had.CacheWriteTokens)
		if c.CostNanoUSD != nil && had.CostNanoUSD != nil {
			cost := max(0, *c.CostNanoUSD-*had.CostNanoUSD)
			c.CostNanoUSD = &cost
		}
	}
	if c.ContextTokens() == 0 && (c.CostNanoUSD == nil || *c.CostNanoUSD == 0) {
		return false, nil
	}
	notes := history.Object{history.Member("cost_source", source)}
	if !u.cached {
		notes = append(notes, history.Member("cache_unknown", true))
	}
	c.Metadata = notes.JSON()
	return r.call(history.Call{Call: c}, u.name())
}

// replies adds the calls in the metadata of the messages.
func (r *reader) replies() error {
	for i := range r.records {
		m := &r.records[i]
		u := m.used
		if u == nil || m.copyOf != "" {
			continue
		}
		c, _ := u.call(m.at)
		if c.Model = u.model; u.compaction {
			c.Purpose = session.PurposeSummary
		}
		if u.ms > 0 {
			c.LatencyMS = &u.ms
		}
		if _, err := r.call(history.Call{Call: c, MessageKey: m.key}, "m:"+m.key); err != nil {
			return err
		}
	}
	return nil
}

// call adds a call under a name, so that it is counted once.
func (r *reader) call(c history.Call, name string) (fresh bool, err error) {
	c.Status, c.Source, c.Directory, c.Provider = session.CallOK, session.SourceGoose, r.about.directory, r.about.provider
	if c.Model == "" && c.MessageKey != "" {
		c.Model = r.about.model
	}
	if c.CostNanoUSD != nil {
		c.PriceSource = "reported"
	}
	c.ExternalID = r.callID(name)
	if has, err := r.hasCall(name); err != nil || has {
		return false, err
	}
	return true, r.talk.Call(c)
}

func (r *reader) callID(name string) string { return "goose:" + r.talk.New.SourceID + ":" + name }

// hasCall reports whether a call was counted by an earlier import.
func (r *reader) hasCall(name string) (bool, error) {
	if r.talk.Here == nil {
		return false, nil
	}
	owner, err := r.in.Known.CallOwner(r.in.Context(), session.SourceGoose, r.callID(name))
	return owner != "", err
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
		if m.reply == i && m.used != nil && m.used.input == e.input && m.used.output == e.output && m.used.cacheRead == e.cacheRead {
			return m.key
		}
	}
	newest := -1
	if i := upTo(second); i > 0 {
		newest = r.records[i-1].reply
	}
	if e.compaction {
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
		input, output = input+r.ledger[i].input, output+r.ledger[i].output
	}
	if input == b.input && output == b.output {
		return ""
	}
	return fmt.Sprintf("session %s: its ledger sums up to %d tokens in and %d out, Goose's own totals say %d and %d; the ledger counts",
		r.about.id, input, output, b.input, b.output)
}

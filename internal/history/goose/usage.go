package goose

import (
	"fmt"
	"slices"
	"sort"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// used is what a message says of its call.
type used struct {
	balance
	model      string
	ms         int64
	compaction bool
}

func usedOf(o history.Object) *used {
	sums := balance{
		input: history.Count(o.Get("inputTokens")), output: history.Count(o.Get("outputTokens")),
		cacheRead: history.Count(o.Get("cacheReadTokens")), cacheWrite: history.Count(o.Get("cacheWriteTokens")), cost: costOf(o.Get("cost")),
	}
	return &used{sums, o.String("model"), history.Count(o.Get("elapsedMs")), string(o.Get("isCompaction")) == "true"}
}

// costOf parses US dollars; nil where they are unknown.
func costOf(number []byte) *int64 {
	if nano, ok := history.NanoUSD(number); ok {
		return &nano
	}
	return nil
}

// balance are the sums of a session, or the numbers of one call.
type balance struct {
	input, output, cacheRead, cacheWrite int64
	cost                                 *int64
	cached                               bool // the cache's share is known, and inside input
}

func balanceOf(column func(name string) []byte) balance {
	b := balance{
		input: history.Count(column("input_tokens")), output: history.Count(column("output_tokens")),
		cacheRead: history.Count(column("cache_read_tokens")), cacheWrite: history.Count(column("cache_write_tokens")),
		cached: len(column("cache_read_tokens"))+len(column("cache_write_tokens")) > 0, cost: costOf(column("cost")),
	}
	if b.input+b.output == 0 {
		b.input = history.Count(column("total_tokens"))
	}
	return b
}

// isEmpty reports whether Goose kept no sums.
func (b *balance) isEmpty() bool { return b.input+b.output == 0 && b.cost == nil }

const carriedForward = "carried_forward"

// entry is one row of usage_ledger.
type entry struct {
	balance
	at                *session.Time
	model, costSource string
	compaction        bool
	print             string
}

func entryOf(c columns) entry {
	e := entry{balance: balanceOf(c.number), model: c.text("model"), costSource: c.text("cost_source"), compaction: c.text("is_compaction") == "1"}
	if at, ok := timeOf(c.number("created_timestamp")); ok {
		e.at = &at
	}
	var o history.Object
	for name, value := range c {
		if name != "id" && name != "session_id" && value != nil {
			o = append(o, field(name, c.text(name)))
		}
	}
	e.print = history.Fingerprint(o)
	return e
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
		if e.at != nil {
			at = *e.at
		}
		counted, err := r.isCounted(e)
		if err != nil {
			return err
		}
		var fresh bool
		if counted {
			e.cached = true
			fresh, err = r.opening(&e.balance, carriedForward, at)
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
func (r *reader) isCounted(e *entry) (bool, error) {
	if e.costSource != carriedForward || r.existing == nil {
		return false, nil
	}
	if notesOf(r.existing).String("usage") == "accumulated" {
		return true, nil
	}
	return r.hasCall(e.name())
}

// name is that of a call of the sums.
func (b *balance) name() string {
	return fmt.Sprintf("balance:%d:%d:%d:%d", b.input, b.output, b.cacheRead, b.cacheWrite)
}

// ledgerCall adds the call of a row. occurrence is how often an equal row came before.
func (r *reader) ledgerCall(e *entry, at session.Time, occurrence int) (fresh bool, err error) {
	var notes history.Object
	if e.costSource != "" {
		notes = append(notes, field("cost_source", e.costSource))
	}
	c := history.Call{}
	var inside bool
	if c.Call, inside = e.call(at); !inside {
		notes = append(notes, field("cache_exceeds_input", true))
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
func (b *balance) call(at session.Time) (c session.Call, inside bool) {
	c = session.Call{
		Purpose: session.PurposeChat, InputTokens: b.input, OutputTokens: b.output, CacheReadTokens: b.cacheRead, CacheWriteTokens: b.cacheWrite,
		CostNanoUSD: b.cost, CreatedAt: at,
	}
	if inside = b.cacheRead+b.cacheWrite <= b.input; inside {
		c.InputTokens -= b.cacheRead + b.cacheWrite
	}
	return c, inside
}

// opening adds the part of the session's sums that no call counted before.
func (r *reader) opening(b *balance, source string, at session.Time) (fresh bool, err error) {
	c, _ := b.call(at)
	if had := r.existing; had != nil {
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
	notes := history.Object{field("cost_source", source)}
	if !b.cached {
		notes = append(notes, field("cache_unknown", true))
	}
	c.Metadata = notes.JSON()
	return r.call(history.Call{Call: c}, b.name())
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
	if r.existing == nil {
		return false, nil
	}
	owner, err := r.in.Known.CallOwner(r.in.Context(), session.SourceGoose, r.callID(name))
	return owner != "", err
}

// maxNear is how many messages of two minutes are compared with a call.
const maxNear = 1 << 10

// replyOf finds the reply that a ledger row is of: the one with the same numbers, else the
// newest one up to its second; "" if there is none in the session itself.
func (r *reader) replyOf(e *entry, at session.Time) string {
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

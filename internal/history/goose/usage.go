package goose

import (
	"fmt"
	"slices"
	"sort"
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

const carriedForward = "carried_forward"

// calls turns a session's usage into ledger rows. One of its sources counts: the rows of
// usage_ledger, else the session's sums, else what the messages say.
func (r *reader) calls() error {
	switch {
	case r.ledger.rows > 0:
		return r.ledgerCalls()
	case r.about.balance != nil:
		return r.opening(r.about.balance, "accumulated", *r.created)
	}
	return r.replies()
}

// call puts a call into the batch, and gives it away when it is full.
func (r *reader) call(c history.Call) error {
	r.batch.Calls = append(r.batch.Calls, c)
	if len(r.batch.Calls) < history.MaxBatch {
		return nil
	}
	return r.flush()
}

// ledgerCalls counts the rows of usage_ledger. What is carried forward comes first: how much of
// it is new is told by what is counted already.
func (r *reader) ledgerCalls() error {
	carried := func(e *entry) bool { return e.costSource == carriedForward && r.usageOf() == "accumulated" }
	if r.usageOf() == "accumulated" {
		err := r.ledger.each(func(e *entry) error {
			if !carried(e) {
				return nil
			}
			// What was counted as the session's sums before the ledger began is in it.
			b := &balance{input: e.input, output: e.output, cacheRead: e.cacheRead, cacheWrite: e.cacheWrite, cost: e.cost, cached: true}
			return r.opening(b, carriedForward, r.calledAt(e))
		})
		if err != nil {
			return err
		}
	}
	seen := newOccurrences()
	defer seen.close()
	return r.ledger.each(func(e *entry) error {
		if carried(e) {
			return nil
		}
		return r.call(r.ledgerCall(e, seen.next(e.hash)))
	})
}

func (r *reader) calledAt(e *entry) session.Time {
	if e.at != nil {
		return *e.at
	}
	return *r.created
}

// ledgerCall turns a row into a call. occurrence is how often an equal one came before.
func (r *reader) ledgerCall(e *entry, occurrence int32) history.Call {
	at := r.calledAt(e)
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
		call.MessageKey = r.replyOf(e, at)
	}
	return r.own(call, fmt.Sprintf("%s#%d", e.hash, occurrence))
}

// opening counts what the session's sums hold beyond what was counted before.
func (r *reader) opening(b *balance, source string, at session.Time) error {
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
	return r.call(r.own(history.Call{Call: c}, fmt.Sprintf("balance:%d:%d:%d:%d", b.input, b.output, b.cacheRead, b.cacheWrite)))
}

// replies counts the calls that the messages themselves tell of.
func (r *reader) replies() error {
	for i := range r.records.len() {
		m := *r.records.at(i)
		if m.usage == 0 || m.within != 0 {
			continue
		}
		u, _ := history.ParseObject([]byte(r.records.texts.Get(m.usage)))
		c := session.Call{
			Purpose: session.PurposeChat, Model: u.String("model"), OutputTokens: history.Count(u.Get("outputTokens")),
			CacheReadTokens: history.Count(u.Get("cacheReadTokens")), CacheWriteTokens: history.Count(u.Get("cacheWriteTokens")), CreatedAt: m.time(),
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
		key := r.records.key(&m)
		if err := r.call(r.own(history.Call{Call: c, MessageKey: key}, "m:"+key)); err != nil {
			return err
		}
	}
	return nil
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

// mostNear is how many messages of two minutes are looked through for the one of a call.
const mostNear = 1 << 10

// replyOf finds the reply that a ledger row is of: the one with the same numbers, else the
// newest one up to its second; "" if there is none in the session itself.
func (r *reader) replyOf(e *entry, at session.Time) string {
	l := r.records
	upTo := func(second int64) int { // records are in the order of seconds
		return sort.Search(l.len(), func(i int) bool { return l.at(i).time().Unix() > second })
	}
	used, second := l.usedNumbers(e.input, e.output, e.cacheRead), at.Unix()
	from := upTo(second - 61)
	for i := from; i < min(from+mostNear, l.len()); i++ {
		m := l.at(i)
		if m.time().Unix() > second+60 {
			break
		}
		if m.sum == used && m.reply == int32(i) {
			return l.place(i).key
		}
	}
	newest := -1
	if i := upTo(second); i > 0 {
		newest = int(l.at(i - 1).reply)
	}
	if e.compaction {
		if c := r.summaryNear(at); c >= 0 {
			newest = c
		}
	}
	if newest < 0 {
		return ""
	}
	return l.place(newest).key
}

// summaryNear finds the summary that was made about then, -1 if there is none.
func (r *reader) summaryNear(at session.Time) int {
	i := slices.IndexFunc(r.overlays, func(c summarised) bool {
		m := r.records.at(c.summary)
		d := m.time().Unix() - at.Unix()
		return d >= -5 && d <= 5 && m.within == 0
	})
	if i < 0 {
		return -1
	}
	return r.overlays[i].summary
}

// difference says where the ledger and the session's sums differ; "" where they do not.
func (r *reader) difference() string {
	if r.about.balance == nil || r.ledger.rows == 0 {
		return ""
	}
	b, sum := r.about.balance, &r.ledger
	if sum.input == b.input && sum.output == b.output {
		return ""
	}
	return fmt.Sprintf("session %s: its ledger sums up to %d tokens in and %d out, Goose's own totals say %d and %d; the ledger counts",
		r.about.id, sum.input, sum.output, b.input, b.output)
}

package opencode

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// summarise adds the compaction of a request and its summary, the i-th record. It represents
// what is before the request, or before the tail that is kept.
func (r *reader) summarise(i int) {
	m := r.records[i]
	r.prune(m.at.UnixMilli()) // the summary was made of what was left
	request, asked := i, m.alone
	if !asked {
		request, asked = r.byID[m.answers]
	}
	if !asked || request > i || !m.alone && !r.records[request].request {
		return // it has no request, or the request is gone
	}
	first := request
	if at, ok := r.byID[r.records[request].tail]; ok && r.records[request].tail != "" && at < request {
		first = at
	}
	through := r.records[first].before
	if through < 0 {
		return
	}
	o := m.body.data
	c := history.Compaction{Key: m.key, ThroughKey: r.records[through].last}
	c.CreatedAt, c.MessageCount = m.at, int64(through+1)
	c.Summary, c.Provider, c.Model = clean(textOf(m.body.parts)), clean(o.String("providerID")), clean(o.String("modelID"))
	if first < request {
		c.FirstKeptKey = r.records[first].key
	}
	if m.alone {
		c.PrefixSummary = clean(o.String("recent"))
	}
	for _, kept := range r.records[first:request] {
		c.Pruned = append(c.Pruned, kept.outputs(math.MinInt64, m.at.UnixMilli())...)
	}
	if end, ok := history.UnixMilli(o.Inner("time").Get("completed")); ok && end.After(c.CreatedAt.Time) {
		c.DurationMS = end.Sub(c.CreatedAt.Time).Milliseconds()
	}
	r.c.Compact(c)
}

// pruned is the mark of an output that opencode does not send to its model any more.
type pruned struct {
	at   int64 // milliseconds
	call string
}

// onePruning is how far apart the marks of one pruning are at most: opencode writes them one
// after the other.
const onePruning = int64(time.Second / time.Millisecond)

// prune adds an overlay for each time that opencode pruned outputs on the way to the head, since
// the last call and up to a moment. The store skips those that it has. Rule: opencode,
// session/compaction.ts, prune: marked outputs stay stored, and the model sees a line instead.
func (r *reader) prune(until int64) {
	if !r.trusted {
		return // the newer store knows it
	}
	var marks []int64
	for _, m := range r.records[:r.line] {
		for _, p := range m.pruned {
			if r.until < p.at && p.at <= until {
				marks = append(marks, p.at)
			}
		}
	}
	slices.Sort(marks)
	for len(marks) > 0 {
		n := 1
		for n < len(marks) && marks[n]-marks[n-1] <= onePruning {
			n++
		}
		r.pruneTogether(marks[0], marks[n-1])
		r.until, marks = marks[n-1], marks[n:]
	}
}

// pruneTogether adds the overlay of the outputs that were marked in a period.
func (r *reader) pruneTogether(from, until int64) {
	at := millis(until)
	if at.IsZero() {
		return
	}
	var c history.Compaction
	c.Strategy, c.CreatedAt = session.StrategyPrune, at
	for _, m := range r.records[:r.line] {
		c.Pruned = append(c.Pruned, m.outputs(from, until)...)
	}
	if len(c.Pruned) == 0 {
		return // marked calls that never had an output
	}
	for _, m := range slices.Backward(r.records[:r.line]) {
		if !m.aside && m.at.UnixMilli() <= until {
			c.At.Key = m.last
			break
		}
	}
	what := "outputs"
	if len(c.Pruned) == 1 {
		what = "output"
	}
	c.Reason = fmt.Sprintf("opencode took %d %s of tools out of its model's sight", len(c.Pruned), what)
	r.c.Compact(c)
}

// outputs returns where the outputs of a record that were marked in a period are stored.
func (r *record) outputs(from, until int64) (places []history.Output) {
	calls := map[string]bool{}
	for _, p := range r.pruned {
		if from <= p.at && p.at <= until {
			calls[p.call] = true
		}
	}
	if len(calls) == 0 || r.aside { // kept raw, a record has no outputs
		return nil
	}
	for n, s := range segments(r.body.parts, r.role) {
		key := r.segmentKey(n)
		for _, parts := range [][]session.Part{s.says, s.results} {
			for i := range parts {
				if parts[i].Kind == session.PartToolResult && calls[parts[i].CallID] {
					places = append(places, history.Output{Place: history.Place{Key: key}, CallID: parts[i].CallID})
				}
			}
			key = r.segmentKey(n) + resultsSuffix
		}
	}
	return places
}

// segmentKey returns the external id of the message of the n-th step, from 0.
func (r *record) segmentKey(n int) string {
	if n == 0 {
		return r.key
	}
	return r.key + "#" + strconv.Itoa(n+1)
}

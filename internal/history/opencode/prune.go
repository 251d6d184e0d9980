package opencode

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// pruned is the mark of an output that opencode gives its model no more.
type pruned struct {
	at   int64 // milliseconds
	call string
}

// onePruning is how far apart the marks of one pruning are at most: opencode writes them one
// after the other.
const onePruning = int64(time.Second / time.Millisecond)

// marked is a record with a mark.
type marked struct {
	at     int64
	record int
}

// prunings gives an overlay for each time that opencode pruned outputs on the way to the head
// since the last reading, and until a moment. Rule: opencode, session/compaction.ts, prune: what
// is marked stays stored, and its model sees a line instead.
func (r *reader) prunings(until int64) error {
	if !r.trusted {
		return nil // the newer store knows it
	}
	since := r.until
	if r.existing != nil {
		since = max(since, r.before.Pruned)
	}
	var marks []marked
	for i := range r.line {
		if b := r.records.at(i); b.aside || !b.pruned {
			continue // kept raw, a record has no outputs
		}
		for _, p := range r.records.record(i).pruned {
			if since < p.at && p.at <= until {
				marks = append(marks, marked{p.at, i})
			}
		}
	}
	slices.SortFunc(marks, func(a, b marked) int { return cmp.Compare(a.at, b.at) })
	for len(marks) > 0 {
		n := 1
		for n < len(marks) && marks[n].at-marks[n-1].at <= onePruning {
			n++
		}
		if err := r.pruning(marks[:n]); err != nil {
			return err
		}
		r.until, marks = marks[n-1].at, marks[n:]
	}
	return nil
}

// pruning makes the overlay of outputs that were marked together, oldest mark first.
func (r *reader) pruning(marks []marked) error {
	from, until := marks[0].at, marks[len(marks)-1].at
	at, ok := history.UnixMilli([]byte(strconv.FormatInt(until, 10)))
	if !ok {
		return nil
	}
	var c history.Compaction
	c.Strategy, c.Trigger, c.Status, c.CreatedAt = session.StrategyPrune, session.TriggerImport, session.StatusDone, at
	var of []int
	for _, m := range marks {
		of = append(of, m.record)
	}
	slices.Sort(of)
	for _, i := range slices.Compact(of) {
		places, err := r.outputs(i, func(p pruned) bool { return from <= p.at && p.at <= until })
		if err != nil {
			return err
		}
		c.Pruned = append(c.Pruned, places...)
	}
	if len(c.Pruned) == 0 {
		return nil // marked calls that never had an output
	}
	for i := r.line - 1; i >= 0; i-- {
		if b := r.records.at(i); !b.aside && b.at <= until {
			head := r.records.last(i)
			c.At = history.Place{Key: head.key, Session: head.session}
			break
		}
	}
	what := "outputs"
	if len(c.Pruned) == 1 {
		what = "output"
	}
	c.Reason = fmt.Sprintf("opencode took %d %s of tools out of its model's sight", len(c.Pruned), what)
	r.batch.Compactions = append(r.batch.Compactions, c)
	return nil
}

// prunedIn gives the outputs of some records that were marked until a moment.
func (r *reader) prunedIn(first, end int, until int64) (all []history.Output, err error) {
	for i := first; i < end; i++ {
		places, err := r.outputs(i, func(p pruned) bool { return p.at <= until })
		if err != nil {
			return nil, err
		}
		all = append(all, places...)
	}
	return all, nil
}

// outputs finds in which of the messages that a record became the outputs stand that are marked.
func (r *reader) outputs(i int, want func(pruned) bool) (places []history.Output, err error) {
	b := *r.records.at(i)
	if b.aside || !b.pruned {
		return nil, nil
	}
	m := r.records.record(i)
	if !slices.ContainsFunc(m.pruned, want) {
		return nil, nil
	}
	in, err := r.from.load(r.ctx, r.records, i)
	if err != nil {
		return nil, err
	}
	for n, s := range segments(in.parts, m.role) {
		key := m.key
		if n > 0 {
			key += "#" + strconv.Itoa(n+1)
		}
		for _, list := range []struct {
			parts []session.Part
			key   string
		}{{s.says, key}, {s.results, key + "#r"}} {
			for k := range list.parts {
				result := &list.parts[k]
				if result.Kind == session.PartToolResult && slices.ContainsFunc(m.pruned, func(p pruned) bool { return p.call == result.CallID && want(p) }) {
					place := history.Place{Key: list.key, Session: r.records.from[b.within]}
					places = append(places, history.Output{Place: place, CallID: result.CallID})
				}
			}
		}
	}
	return places, nil
}

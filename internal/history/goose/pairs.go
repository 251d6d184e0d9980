package goose

import (
	"fmt"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// pair is a call and its result that the model does not see any more: a summary stands for them.
type pair struct {
	request, response int
	summaries         []int // rows: older versions make one for each call of a message
}

// mostBetween is how many rows apart a summary, a result and its call are looked for.
const mostBetween = 64

// pairings finds the summaries of calls with their results: rows for the model only, in the
// second of the result, since Goose gives them its time. Rule: Goose, context_mgmt,
// maybe_summarize_tool_pairs.
func (r *reader) pairings() {
	r.pairs, r.paired = nil, map[int]int{}
	for i := range r.records.len() {
		m := *r.records.at(i)
		if _, marker := r.markers[i]; marker || m.aside || !isSummary(&m) || i > r.hidden && !m.agent || i <= r.hidden && m.agent || r.repeated[i] {
			continue
		}
		response := r.summarisedResult(i, &m)
		if response < 0 {
			continue
		}
		if k, ok := r.paired[response]; ok {
			r.pairs[k].summaries = append(r.pairs[k].summaries, i)
			r.paired[i] = k
			continue
		}
		request := r.summarisedCall(response)
		if request < 0 {
			continue
		}
		r.paired[request], r.paired[response], r.paired[i] = len(r.pairs), len(r.pairs), len(r.pairs)
		r.pairs = append(r.pairs, pair{request, response, []int{i}})
	}
}

// summarisedResult finds the result that a summary speaks of: of those of its second the first
// that has none yet, -1 if there is none.
func (r *reader) summarisedResult(i int, m *brief) int {
	taken, first := -1, -1
	for j := i - 1; j >= max(0, i-mostBetween); j-- {
		b := r.records.at(j)
		if b.at/1000 != m.at/1000 {
			break
		}
		if b.aside || b.agent || b.role != userRole || !b.says.results {
			continue
		}
		if _, ok := r.paired[j]; !ok {
			first = j
		} else if taken < 0 {
			taken = j
		}
	}
	if first < 0 {
		return taken
	}
	return first
}

// summarisedCall finds the call of a result, -1 if it stands nowhere near.
func (r *reader) summarisedCall(response int) int {
	for j := response - 1; j >= max(0, response-mostBetween); j-- {
		b := r.records.at(j)
		if _, ok := r.paired[j]; ok || b.aside {
			continue
		}
		if b.says.calls {
			if b.agent {
				return -1
			}
			return j
		}
	}
	return -1
}

// replaced gives an overlay with the texts of the pairs that are new, up to a record: it can be
// undone, and then the model sees the calls and their results again.
func (r *reader) replaced(until int) error {
	if r.superseded {
		return nil
	}
	var c history.Compaction
	n := 0
	for ; r.told < len(r.pairs) && r.pairs[r.told].response < until; r.told++ {
		p := &r.pairs[r.told]
		piece := history.Replaced{}
		fresh := false
		for _, i := range p.summaries {
			m := *r.records.at(i)
			fresh = fresh || !r.here[i]
			text, err := r.textOf(i)
			if err != nil {
				return err
			}
			if piece.Text != "" {
				piece.Text += "\n"
			}
			piece.Text += text
			c.CreatedAt = m.time()
		}
		if !fresh {
			continue
		}
		for _, i := range []int{p.request, p.response} {
			at := r.records.place(i)
			piece.Messages = append(piece.Messages, history.Place{Key: at.key, Session: at.session})
			n++
		}
		c.Replaced = append(c.Replaced, piece)
	}
	if len(c.Replaced) == 0 {
		return nil
	}
	c.Strategy, c.Trigger, c.Status, c.MessageCount = session.StrategyPrune, session.TriggerImport, session.StatusDone, int64(n)
	c.Reason = fmt.Sprintf("Goose summarised old calls of tools: %d of their messages", n)
	head := r.parent()
	c.At = history.Place{Key: head.key, Session: head.session}
	r.batch.Compactions = append(r.batch.Compactions, c)
	return nil
}

package goose

import (
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// pair is a call and its result that the model does not see any more: a summary replaces them.
type pair struct {
	request, response int
	summaries         []int // rows: older versions make one for each call of a message
}

// mostBetween is how many rows apart a summary, a result and its call are looked for.
const mostBetween = 64

// pairings finds the summaries of calls with their results: rows for the model only, in the
// second of the result, since Goose gives them its time. Rule: Goose, context_mgmt,
// maybe_summarize_tool_pairs.
func (r *reader) pairings(hidden int) {
	for i := range r.records {
		m := &r.records[i]
		if m.marker || m.why != "" || !m.isSummary() || m.agent != (i > hidden) || m.repeated {
			continue
		}
		response := r.summarisedResult(i)
		if response < 0 {
			continue
		}
		p := r.records[response].paired
		if p == nil {
			request := r.summarisedCall(response)
			if request < 0 {
				continue
			}
			p = &pair{request: request, response: response}
			r.records[request].paired, r.records[response].paired = p, p
			r.pairs = append(r.pairs, p)
		}
		p.summaries = append(p.summaries, i)
		m.paired, m.between = p, true
	}
}

// summarisedResult finds the result that a summary speaks of: of those of its second the first
// that has none yet, -1 if there is none.
func (r *reader) summarisedResult(i int) int {
	taken, first := -1, -1
	for j := i - 1; j >= max(0, i-mostBetween) && r.records[j].at.Unix() == r.records[i].at.Unix(); j-- {
		m := &r.records[j]
		if m.why != "" || m.agent || m.role != "user" || !m.says.results {
			continue
		}
		if m.paired == nil {
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

// summarisedCall finds the call of a result, -1 if it is not near.
func (r *reader) summarisedCall(response int) int {
	for j := response - 1; j >= max(0, response-mostBetween); j-- {
		m := &r.records[j]
		if m.paired != nil || m.why != "" || !m.says.calls {
			continue
		}
		if m.agent {
			return -1
		}
		return j
	}
	return -1
}

// replaced adds an overlay with the texts of the pairs that are new, up to a record: it can be
// undone, and then the model sees the calls and their results again.
func (r *reader) replaced(until int) {
	var c history.Compaction
	n := 0
	for len(r.pairs) > 0 && r.pairs[0].response < until && !r.superseded {
		p := r.pairs[0]
		if r.pairs = r.pairs[1:]; !slices.ContainsFunc(p.summaries, func(i int) bool { return !r.records[i].known }) {
			continue
		}
		var texts []string
		for _, i := range p.summaries {
			texts = append(texts, r.textOf(i))
			c.CreatedAt = r.records[i].at
		}
		c.Replaced = append(c.Replaced, history.Replaced{
			Text:     strings.TrimPrefix(strings.Join(texts, "\n"), "\n"),
			Messages: []history.Place{{Key: r.records[p.request].key}, {Key: r.records[p.response].key}},
		})
		n += 2
	}
	if n == 0 {
		return
	}
	c.Strategy, c.MessageCount = session.StrategyPrune, int64(n)
	c.Reason = fmt.Sprintf("Goose summarised old calls of tools: %d of their messages", n)
	c.At.Key = r.head()
	r.talk.Compact(c)
}

package contextmgr

import (
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// Item is one message of a context, with where it comes from.
type Item struct {
	Message    session.Message
	Kind       string // see the kinds of provenance
	Compaction string // of a summary and a recall
	Changed    bool   // it is no longer the stored message, so its stored size does not count
	Sources    []session.MessageRef

	unshared bool // its parts are its own: a stored message's are not to be changed
}

// Repaired is a list of messages in which each call has one result and the reverse.
type Repaired struct {
	Items     []Item
	Synthetic []string             // ids of calls that were closed with a made-up result
	ClosedIn  map[int64][]string   // the same by the message that calls
	Late      []string             // ids of calls that were closed before and have a result now
	Dropped   []session.MessageRef // messages of results that answer nothing
	Pending   []string             // calls of the last reply that still wait for a result

	Adjustments []string
	Losses      []string
}

// closedText is the made-up result of a call that never got one.
const closedText = "No result: this call was not completed."

// callAt is a call and the result that answers it.
type callAt struct {
	message int
	id      string
	name    string
	void    bool // its reply failed: nothing may answer it
	inline  bool // executed by the provider: its result stands in the same message
	result  *resultAt
}

// resultAt is a result with the parts that belong to it: parts from…to of a tool message.
type resultAt struct {
	message, from, to int
	id                string
	answers           string // the id of its call, which is another where they match by name
}

// Repair puts messages, which are in the order of the path, into the form that every
// provider accepts: results follow their calls in the order of these; a call without result
// gets one made-up error; what answers nothing is left out; failed and aborted replies keep
// their text and lose their calls. closed are calls that an earlier context closed, by the
// message that calls. Calls of the last reply are not closed, unless they were before or
// closeCalls is set: they are pending. Cases: conformance, sessiond.repair.
func Repair(msgs []session.Message, closed map[int64][]string, closeCalls bool) Repaired {
	out := Repaired{Items: make([]Item, 0, len(msgs)), ClosedIn: map[int64][]string{}}
	calls, orphans := match(msgs)
	last := lastReply(msgs)
	for i := range msgs {
		m := &msgs[i]
		switch {
		case m.Role == session.Tool:
			out.dropOrphans(m, i, orphans)
		case m.Role == session.Assistant && m.Finish.Failed():
			out.keepText(m)
		case len(m.Parts) == 0:
			out.Losses = append(out.Losses, fmt.Sprintf("%s: empty, left out", m.ID))
		default:
			out.Items = append(out.Items, stored(m))
			if m.Role == session.Assistant {
				out.answer(msgs, i, calls[i], closed[m.RowID], i == last && !closeCalls)
			}
		}
	}
	return out
}

func stored(m *session.Message) Item {
	return Item{Message: *m, Kind: ItemMessage, Sources: []session.MessageRef{m.ID}}
}

// match finds for each call the first later result, and for each result the nearest earlier
// call that is not answered yet. It gives the calls by message and the results left over.
func match(msgs []session.Message) (calls map[int][]*callAt, orphans map[int][]resultAt) {
	calls, orphans = map[int][]*callAt{}, map[int][]resultAt{}
	var open []*callAt
	for i := range msgs {
		m := &msgs[i]
		if m.Role == session.Assistant {
			for j := range m.Parts {
				if p := &m.Parts[j]; p.Kind == session.PartToolCall {
					c := &callAt{message: i, id: p.CallID, name: p.ToolName, void: m.Finish.Failed(), inline: executedInline(m, p.CallID)}
					calls[i] = append(calls[i], c)
					if !c.inline {
						open = append(open, c)
					}
				}
			}
			continue
		}
		if m.Role != session.Tool {
			continue
		}
		for _, r := range resultsOf(m, i) {
			k := nearest(open, r, m)
			if k < 0 || open[k].void {
				orphans[i] = append(orphans[i], r)
				continue
			}
			r.answers = open[k].id
			open[k].result = &r
			open = slices.Delete(open, k, k+1)
		}
	}
	return calls, orphans
}

func executedInline(m *session.Message, id string) bool {
	return slices.ContainsFunc(m.Parts, func(p session.Part) bool { return p.Kind == session.PartToolResult && p.CallID == id })
}

// nearest gives the index in open of the call that r answers, -1 for none: by its id, else,
// where the wire had none, by its tool's name.
func nearest(open []*callAt, r resultAt, m *session.Message) int {
	found := -1
	if r.id != "" {
		found = firstOfNewest(open, func(c *callAt) bool { return c.id == r.id })
	}
	if p := &m.Parts[r.from]; found < 0 && p.MatchedByName() {
		found = firstOfNewest(open, func(c *callAt) bool { return c.name == p.ToolName })
	}
	return found
}

// firstOfNewest gives the first call that fits, of the newest reply that has one; -1 for none.
func firstOfNewest(open []*callAt, fits func(*callAt) bool) int {
	found := -1
	for k, c := range slices.Backward(open) {
		switch {
		case !fits(c):
		case found >= 0 && c.message != open[found].message:
			return found
		default:
			found = k
		}
	}
	return found
}

// resultsOf gives the results of a tool message. Parts that are no results (an image beside
// a text) belong to the result before them.
func resultsOf(m *session.Message, i int) []resultAt {
	var found []resultAt
	for j := range m.Parts {
		if m.Parts[j].Kind != session.PartToolResult {
			continue
		}
		if n := len(found); n > 0 {
			found[n-1].to = j
		}
		found = append(found, resultAt{message: i, from: j, to: len(m.Parts), id: m.Parts[j].CallID})
	}
	return found
}

// lastReply gives the index of the reply that the newest messages still answer, -1 if
// something else than results came after it.
func lastReply(msgs []session.Message) int {
	for i := range slices.Backward(msgs) {
		switch {
		case msgs[i].Role == session.Tool:
		case msgs[i].Role == session.Assistant && !msgs[i].Finish.Failed():
			return i
		default:
			return -1
		}
	}
	return -1
}

func (out *Repaired) dropOrphans(m *session.Message, i int, orphans map[int][]resultAt) {
	if len(m.Results()) == 0 {
		out.Losses = append(out.Losses, fmt.Sprintf("%s: a tool's message without a result, left out", m.ID))
		return
	}
	for _, r := range orphans[i] {
		out.Losses = append(out.Losses, fmt.Sprintf("%s: a result of %q that answers no open call, left out", m.ID, r.id))
	}
	if len(orphans[i]) > 0 && len(orphans[i]) == len(m.Results()) {
		out.Dropped = append(out.Dropped, m.ID)
	}
}

// keepText keeps what a failed reply said.
func (out *Repaired) keepText(m *session.Message) {
	var kept []session.Part
	for i := range m.Parts {
		if p := &m.Parts[i]; (p.Kind == session.PartText || p.Kind == session.PartRefusal) && p.Content() != "" {
			kept = append(kept, *p)
		}
	}
	switch {
	case len(kept) == 0:
		out.Losses = append(out.Losses, fmt.Sprintf("%s: the reply ended with %s and holds no text, left out", m.ID, m.Finish))
		return
	case len(kept) < len(m.Parts):
		out.Losses = append(out.Losses, fmt.Sprintf("%s: the reply ended with %s, all but its text left out", m.ID, m.Finish))
	}
	item := stored(m)
	item.Changed = len(kept) < len(m.Parts)
	item.Message.Parts = kept
	out.Items = append(out.Items, item)
}

// answer puts the results of a reply's calls behind it, in the order of the calls.
func (out *Repaired) answer(msgs []session.Message, i int, calls []*callAt, closed []string, mayWait bool) {
	reply := &msgs[i]
	var run []resultAt // results of one tool message, in their own order
	flush := func() {
		if len(run) > 0 {
			out.Items = append(out.Items, resultItem(&msgs[run[0].message], run))
			run = nil
		}
	}
	previous := i
	for _, c := range calls {
		switch {
		case c.inline:
		case c.result != nil:
			r := *c.result
			if n := len(run); n > 0 && (run[n-1].message != r.message || run[n-1].to != r.from) {
				flush()
			}
			run = append(run, r)
			if r.message < previous || intervenes(msgs[i+1:r.message]) {
				out.Adjustments = append(out.Adjustments, fmt.Sprintf("%s: the result of %q moved to its call", msgs[r.message].ID, c.id))
			}
			previous = r.message
			if slices.Contains(closed, c.id) {
				out.Late = append(out.Late, c.id)
			}
		case mayWait && !slices.Contains(closed, c.id):
			out.Pending = append(out.Pending, c.id)
		default:
			flush()
			out.Items = append(out.Items, closedItem(reply, c))
			out.Synthetic = append(out.Synthetic, c.id)
			out.ClosedIn[reply.RowID] = append(out.ClosedIn[reply.RowID], c.id)
			out.Adjustments = append(out.Adjustments, fmt.Sprintf("%s: call %q has no result, closed with an error", reply.ID, c.id))
		}
	}
	flush()
}

// intervenes tells whether something else than results stands among the messages.
func intervenes(msgs []session.Message) bool {
	return slices.ContainsFunc(msgs, func(m session.Message) bool { return m.Role != session.Tool })
}

func resultItem(m *session.Message, run []resultAt) Item {
	item := stored(m)
	if len(run) < len(m.Results()) {
		item.Message.Parts = slices.Clone(m.Parts[run[0].from:run[len(run)-1].to])
		item.Changed, item.unshared = true, true
	}
	for _, r := range run {
		for i := r.from; r.answers != r.id && i < r.to; i++ {
			item.own()
			item.Message.Parts[i-run[0].from].CallID = r.answers
		}
	}
	return item
}

func closedItem(reply *session.Message, c *callAt) Item {
	failed := true
	return Item{
		Kind:    ItemClosedCall,
		Changed: true,
		Sources: []session.MessageRef{reply.ID},
		Message: session.Message{
			SessionID: reply.SessionID,
			Kind:      session.KindMessage,
			Role:      session.Tool,
			Origin:    session.Program,
			InContext: true,
			Parts: []session.Part{{
				Kind: session.PartToolResult, Text: closedText, ToolName: c.name, CallID: c.id, IsError: &failed,
			}},
		},
	}
}

package contextmgr

import (
	"cmp"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// Item is one message of a context, with its provenance.
type Item struct {
	Message    session.Message
	Kind       string // see the kinds of provenance
	Compaction string // of a summary and a recall
	Changed    bool   // it differs from the stored message, so its stored size does not count
	Sources    []session.MessageRef

	ownsParts bool // its parts may be changed: a stored message's are shared
}

// copyParts copies the item's parts before they are changed: a stored message's are shared.
func (item *Item) copyParts() {
	if !item.ownsParts {
		item.Message.Parts = slices.Clone(item.Message.Parts)
		item.ownsParts = true
	}
}

// Repaired is a list of messages in which each call has one result and the reverse.
type Repaired struct {
	Items     []Item
	Synthetic []string             // ids of calls that were closed with an error
	ClosedIn  map[int64][]string   // the same by the message that calls
	Late      []string             // ids of calls that were closed before and have a result now
	Dropped   []session.MessageRef // messages of results that answer no call
	Pending   []string             // calls of the last reply that wait for a result

	Adjustments []string
	Losses      []string
}

// closedText is the result of a call that never got one.
const closedText = "No result: this call was not completed."

// callAt is a call and the result that answers it.
type callAt struct {
	message int
	id      string
	name    string
	failed  bool // its reply failed: nothing may answer it
	inline  bool // executed by the provider: its result is in the same message
	result  *resultAt
}

// resultAt is a result with the parts that belong to it: parts from…to of a tool message.
type resultAt struct {
	message, from, to int
	id                string
	answers           string // the id of its call, another one if they match by name
}

// Repair brings messages, in the order of the path, into the form that every provider accepts:
// results follow their calls, in the same order; a call without a result gets an error; results
// without a call are left out; failed and aborted replies keep their text and lose their calls.
// closed are calls that an earlier context closed, by the message that calls. Calls of the last
// reply are pending, unless they were closed before or closeCalls is set. Messages that are not in
// the context are skipped. Cases: conformance, sessiond.repair.
func Repair(msgs []session.Message, closed map[int64][]string, closeCalls bool) Repaired {
	const atTheFront = 8 // items that Assemble inserts there
	out := Repaired{Items: make([]Item, 0, len(msgs)+atTheFront), ClosedIn: map[int64][]string{}}
	calls, orphans := matchResults(msgs)
	last := lastReply(msgs)
	for i := range msgs {
		m := &msgs[i]
		switch {
		case !m.InContext:
		case m.Role == session.Tool:
			out.noteOrphans(m, orphans[i])
		case m.Role == session.Assistant && m.Finish.Failed():
			out.addFailedReply(m)
		case len(m.Parts) == 0:
			out.Losses = append(out.Losses, fmt.Sprintf("%s: empty, left out", m.ID))
		default:
			out.Items = append(out.Items, storedItem(m, ItemMessage))
			if m.Role == session.Assistant {
				out.addResults(msgs, i, calls[i], closed[m.RowID], i == last && !closeCalls)
			}
		}
	}
	return out
}

func storedItem(m *session.Message, kind string) Item {
	return Item{Message: *m, Kind: kind, Sources: []session.MessageRef{m.ID}}
}

// name returns what losses call the item: its message, else the overlay that holds it, else its kind.
func (item *Item) name() string {
	if ref := item.Message.ID.String(); ref != "" {
		return ref
	}
	return cmp.Or(item.Compaction, item.Kind)
}

// isShownAgain reports whether the item is a hidden message that the overlay shows again.
func (item *Item) isShownAgain() bool { return item.Kind == ItemTurnStart || item.Kind == ItemPerson }

// matchResults pairs each call with the first later result, and each result with the nearest
// earlier call without one. It returns the calls, and the results left over, by message.
func matchResults(msgs []session.Message) (calls map[int][]*callAt, orphans map[int][]resultAt) {
	calls, orphans = map[int][]*callAt{}, map[int][]resultAt{}
	var open []*callAt
	for i := range msgs {
		m := &msgs[i]
		if !m.InContext {
			continue
		}
		if m.Role == session.Assistant {
			for j := range m.Parts {
				if p := &m.Parts[j]; p.Kind == session.PartToolCall {
					c := &callAt{
						message: i, id: p.CallID, name: p.ToolName, failed: m.Finish.Failed(),
						inline: m.HasResultOf(p.CallID),
					}
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
			k := answeredCall(open, r, m)
			if k < 0 || open[k].failed {
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

// answeredCall returns the index in open of the call that r answers, -1 for none: by its id, or by
// the tool's name if the wire form has no ids.
func answeredCall(open []*callAt, r resultAt, m *session.Message) int {
	found := -1
	if r.id != "" {
		found = firstInNewestReply(open, func(c *callAt) bool { return c.id == r.id })
	}
	if p := &m.Parts[r.from]; found < 0 && p.MatchedByName() {
		found = firstInNewestReply(open, func(c *callAt) bool { return c.name == p.ToolName })
	}
	return found
}

// firstInNewestReply returns the first matching call of the newest reply that has one; -1 for none.
func firstInNewestReply(open []*callAt, matches func(*callAt) bool) int {
	found := -1
	for k, c := range slices.Backward(open) {
		switch {
		case !matches(c):
		case found >= 0 && c.message != open[found].message:
			return found
		default:
			found = k
		}
	}
	return found
}

// resultsOf returns the results of a tool message. Other parts (an image beside a text) belong to
// the result before them.
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

// lastReply returns the index of the last reply, -1 if anything but results came after it.
func lastReply(msgs []session.Message) int {
	for i := range slices.Backward(msgs) {
		switch {
		case !msgs[i].InContext, msgs[i].Role == session.Tool:
		case msgs[i].Role == session.Assistant && !msgs[i].Finish.Failed():
			return i
		default:
			return -1
		}
	}
	return -1
}

// noteOrphans records the results of a tool message that answer no call.
func (out *Repaired) noteOrphans(m *session.Message, orphans []resultAt) {
	if len(m.Results()) == 0 {
		out.Losses = append(out.Losses, fmt.Sprintf("%s: a tool message without a result, left out", m.ID))
		return
	}
	for _, r := range orphans {
		out.Losses = append(out.Losses, fmt.Sprintf("%s: the result of %q answers no call, left out", m.ID, r.id))
	}
	if len(orphans) > 0 && len(orphans) == len(m.Results()) {
		out.Dropped = append(out.Dropped, m.ID)
	}
}

// addFailedReply adds only the text of a failed reply.
func (out *Repaired) addFailedReply(m *session.Message) {
	var kept []session.Part
	for i := range m.Parts {
		if p := &m.Parts[i]; (p.Kind == session.PartText || p.Kind == session.PartRefusal) && p.Content() != "" {
			kept = append(kept, *p)
		}
	}
	switch {
	case len(kept) == 0:
		out.Losses = append(out.Losses, fmt.Sprintf("%s: the reply ended with %s and has no text, left out", m.ID, m.Finish))
		return
	case len(kept) < len(m.Parts):
		out.Losses = append(out.Losses, fmt.Sprintf("%s: the reply ended with %s, only its text is kept", m.ID, m.Finish))
	}
	item := storedItem(m, ItemMessage)
	item.Changed = len(kept) < len(m.Parts)
	item.Message.Parts = kept
	out.Items = append(out.Items, item)
}

// addResults adds the results of a reply's calls, in the order of the calls.
func (out *Repaired) addResults(msgs []session.Message, i int, calls []*callAt, closed []string, mayPend bool) {
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
			if r.message < previous || hasNonResult(msgs[i+1:r.message]) {
				out.Adjustments = append(out.Adjustments,
					fmt.Sprintf("%s: the result of %q is moved to its call", msgs[r.message].ID, c.id))
			}
			previous = r.message
			if slices.Contains(closed, c.id) {
				out.Late = append(out.Late, c.id)
			}
		case mayPend && !slices.Contains(closed, c.id):
			out.Pending = append(out.Pending, c.id)
		default:
			flush()
			out.Items = append(out.Items, closedItem(reply, c))
			out.Synthetic = append(out.Synthetic, c.id)
			out.ClosedIn[reply.RowID] = append(out.ClosedIn[reply.RowID], c.id)
			out.Adjustments = append(out.Adjustments,
				fmt.Sprintf("%s: call %q has no result and is closed with an error", reply.ID, c.id))
		}
	}
	flush()
}

// hasNonResult reports whether anything but results is among the messages.
func hasNonResult(msgs []session.Message) bool {
	for i := range msgs {
		if msgs[i].InContext && msgs[i].Role != session.Tool {
			return true
		}
	}
	return false
}

// resultItem returns a tool message with only a run of its results.
func resultItem(m *session.Message, run []resultAt) Item {
	item := storedItem(m, ItemMessage)
	if len(run) < len(m.Results()) {
		item.Message.Parts = slices.Clone(m.Parts[run[0].from:run[len(run)-1].to])
		item.Changed, item.ownsParts = true, true
	}
	for _, r := range run {
		for i := r.from; r.answers != r.id && i < r.to; i++ {
			item.copyParts()
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

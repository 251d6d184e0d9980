package store

import (
	"math"
	"slices"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// How far back on a path, in messages, the call of a result is looked for: first where it
// nearly always is.
const (
	callNear = 16
	callFar  = 4096
)

// answersClosed reports whether a result came for a call that an earlier context closed with an
// error of its own: what follows is no continuation of that context.
func (t *tx) answersClosed(sess session.Session, msgs []session.Message) (bool, error) {
	for i := range msgs {
		for _, r := range msgs[i].Results() {
			if r.CallPartID == nil {
				continue
			}
			if closed, err := t.closedCall(sess, *r.CallPartID>>10); err != nil || closed {
				return closed, err
			}
		}
	}
	return false, nil
}

// closedCall reports whether a context closed the calls of a message: one of this session, or one
// that it inherits.
func (t *tx) closedCall(sess session.Session, message int64) (closed bool, err error) {
	const closing = `SELECT 1 FROM frozen WHERE session_id = ? AND message_id = ? AND kind = 'closed_call' AND id <= ?`
	if closed, err = t.Exists(closing, sess.ID, message, int64(math.MaxInt64)); err != nil {
		return false, err
	}
	err = ancestors(t.Ctx, t, sess, func(id session.ID, l link) (err error) {
		if !closed {
			closed, err = t.Exists(closing, id, message, l.FrozenID)
		}
		return err
	})
	return closed, err
}

// callOf finds the call that the i-th part of m answers: the nearest one before it on the
// path with its id, one that this path has not answered yet before one that it has, and of
// several in one message the first. Where the wire had no id, and no open call has the one that
// was made, it is found by the tool's name. earlier are the messages right before m that the
// same request brings. A result without a call is kept too.
func (t *tx) callOf(m *session.Message, i int, earlier []*session.Message) (*int64, error) {
	p := &m.Parts[i]
	var call *int64
	if p.CallID != "" {
		found, open, err := t.callBy(wantedCall{id: p.CallID}, m, i, earlier)
		if err != nil || open {
			return found, err
		}
		call = found
	}
	if p.ToolName != "" && p.MatchedByName() {
		found, open, err := t.callBy(wantedCall{tool: p.ToolName}, m, i, earlier)
		if err != nil || open {
			return found, err
		}
	}
	return call, nil
}

// wantedCall is what a call is looked for by: its id, or its tool's name.
type wantedCall struct{ id, tool string }

func (k wantedCall) matches(p *session.Part) bool {
	return p.Kind == session.PartToolCall && (k.id != "" && p.CallID == k.id || k.id == "" && p.ToolName == k.tool)
}

// isExact reports whether the wire said the key: then the only call of it is the one, answered or not.
func (k wantedCall) isExact() bool {
	return k.id != "" && !strings.HasPrefix(k.id, session.MadeCallID)
}

// callBy finds a call, and tells whether it was not answered yet.
func (t *tx) callBy(key wantedCall, m *session.Message, i int,
	earlier []*session.Message,
) (call *int64, open bool, err error) {
	answered := map[int64]bool{}
	note := func(parts []session.Part) {
		for _, p := range parts {
			if p.Kind == session.PartToolResult && p.CallPartID != nil {
				answered[*p.CallPartID] = true
			}
		}
	}
	note(m.Parts[:i])
	for j := range m.Parts[:i] { // a tool that the provider ran stands with its result in one reply
		if c := &m.Parts[j]; key.matches(c) && !answered[c.RowID] {
			return &c.RowID, true, nil
		}
	}
	before := m.Parent
	for j := len(earlier) - 1; j >= 0; j-- {
		note(earlier[j].Parts)
		for _, c := range earlier[j].Calls() {
			if key.matches(c) && !answered[c.RowID] {
				return &c.RowID, true, nil
			}
		}
		before = earlier[j].Parent
	}
	return t.callOnPath(before, key, answered)
}

// callOnPath looks for a call on the stored path that ends at from.
func (t *tx) callOnPath(from *session.MessageRef, key wantedCall,
	answered map[int64]bool,
) (call *int64, open bool, err error) {
	if from == nil {
		return nil, false, nil
	}
	at, err := t.placeAfter(*from)
	if err != nil {
		return nil, false, err
	}
	query, value := callsInSpan, key.id
	if value == "" {
		query, value = callsOfToolInSpan, key.tool
	}
	for _, reach := range []int64{callNear, callFar} {
		var found []int64 // the nearest first
		var spans []Span
		left := reach
		err := eachSpan(t.Ctx, t, at.id, func(sp Span) error {
			spans = append(spans, Span{Session: sp.Session, From: max(sp.From, sp.To-left+1), To: sp.To})
			if left -= sp.To - sp.From + 1; left <= 0 {
				return engine.ErrEnough
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		for _, sp := range spans {
			here, err := engine.List[int64](t.Ctx, t, query, sp.Session, sp.From, sp.To, value)
			if err != nil {
				return nil, false, err
			}
			found = append(found, here...)
		}
		if len(found) == 0 {
			continue
		}
		if call, open, err = t.firstUnanswered(key, found, spans, answered); err != nil || open || key.isExact() {
			return call, open, err
		}
	}
	return call, false, nil
}

const callsInSpan = `
	SELECT p.id FROM messages m JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
	WHERE m.session_id = ? AND m.seq BETWEEN ? AND ? AND p.kind = 'tool_call' AND p.call_id = ?
	ORDER BY m.seq DESC, p.id`

const callsOfToolInSpan = `
	SELECT p.id FROM messages m JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
	WHERE m.session_id = ? AND m.seq BETWEEN ? AND ? AND p.kind = 'tool_call' AND p.tool_name = ?
	ORDER BY m.seq DESC, p.id`

// firstUnanswered chooses among calls of one key. What another branch answered is open on this
// one, so an answer counts only where the path holds it.
func (t *tx) firstUnanswered(key wantedCall, calls []int64, spans []Span,
	answered map[int64]bool,
) (call *int64, open bool, err error) {
	for i, id := range calls {
		if answered[id] {
			continue
		}
		if len(calls) == 1 && key.isExact() {
			return &calls[i], true, nil
		}
		results, err := engine.List[session.MessageRef](t.Ctx, t, resultsOfCall, id)
		if err != nil {
			return nil, false, err
		}
		if open = !slices.ContainsFunc(results, func(ref session.MessageRef) bool { return holds(spans, ref) }); open {
			return &calls[i], true, nil
		}
	}
	return &calls[0], false, nil
}

const resultsOfCall = `
	SELECT m.session_id || '.' || m.seq FROM parts r JOIN messages m ON m.id = r.message_id WHERE r.call_part_id = ?`

package claudecode

import (
	"cmp"
	"slices"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// cut is the boundary of a compaction.
type cut struct {
	at              session.Time
	uuid            string
	anchor          string   // the row that those which stayed in the context follow: the summary, or the boundary
	stayed          []string // these rows, where it names them
	head, tail      string   // else the first and the last of them
	pre, post, took int64
}

// newCut reads the row that begins a compaction. Its overlay is made when the summary comes.
func newCut(w *row) *cut {
	meta := w.Inner("compactMetadata")
	segment, named := meta.Inner("preservedSegment"), meta.Inner("preservedMessages")
	return &cut{
		at: w.at, uuid: w.uuid, pre: tokens(meta, "preTokens"), post: tokens(meta, "postTokens"),
		took:   tokens(meta, "durationMs"),
		anchor: plain(cmp.Or(named.String("anchorUuid"), segment.String("anchorUuid"))), stayed: uuids(named.Get("uuids")),
		head: plain(segment.String("headUuid")), tail: plain(segment.String("tailUuid")),
	}
}

// stays returns the messages before a boundary from the first one that stayed in the context on, and which
// of them did not stay.
func (st *stream) stays(c *cut) (first string, left []string) {
	names := c.stayed
	if len(names) == 0 && c.head != "" {
		names = []string{c.head, c.tail}
	}
	stays := map[string]bool{}
	for _, name := range names {
		if key := st.messageOf[name]; key != "" {
			stays[key] = true
		}
	}
	within := false // a segment, from its tail back to its head
	var after []string
	for key := st.before[st.messageOf[c.uuid]]; key != "" && len(stays) > 0; key = st.before[key] {
		stayed := stays[key] || within
		if len(c.stayed) == 0 && stays[key] {
			within = key != st.messageOf[c.head]
		}
		if !stayed {
			after = append(after, key)
			continue
		}
		first, left = key, append(left, after...)
		after = nil
		delete(stays, key)
	}
	slices.Reverse(left)
	return first, left
}

// summary decodes what a compaction left of the conversation. The overlay says it; the row is out
// of the context, so that undoing the overlay gives back what was before. The overlay ends with
// the row, or before the messages that stayed; where the summary follows these, it replaces what
// came after them.
func (r *reader) summary(st *stream, w *row, at place) {
	text := plain(w.text)
	c := overlay(w, session.StrategySummarize)
	c.Summary = text
	var first string
	var left []string
	if begun := st.cut; begun != nil {
		c.CreatedAt, c.TokensBefore, c.TokensAfter, c.DurationMS = begun.at, begun.pre, begun.post, begun.took
		first, left = st.stays(begun)
	}
	switch {
	case first == "":
		st.withdrawn, st.cleared = nil, nil // the summary hides them with all else
	case st.cut.anchor == st.cut.uuid, st.before[first] == "":
		piece := history.Replaced{Text: text}
		for _, key := range append(left, w.uuid) {
			piece.Messages = append(piece.Messages, history.Place{Key: key})
		}
		c.Strategy, c.Summary, c.Replaced = session.StrategyPrune, "", []history.Replaced{piece}
		c.Reason = "Claude Code summarised what came after the messages that it kept"
	default:
		c.ThroughKey, c.FirstKeptKey, c.Pruned = st.before[first], first, st.cleared
		for _, key := range append(left, st.withdrawn...) {
			c.Replaced = append(c.Replaced, history.Replaced{Messages: []history.Place{{Key: key}}})
		}
	}
	st.cut = nil
	if len(c.Replaced) > 0 {
		c.At = history.Place{Key: w.uuid}
	}
	m := inUsersRole(session.KindMarker, session.Program, text)
	m.InContext = false
	r.put(st, w, at, decoded{overlay: &c, messages: []session.Message{m}})
}

// overlay is one that a row makes and that ends with it.
func overlay(w *row, strategy session.Strategy) history.Compaction {
	c := history.Compaction{Key: w.uuid, ThroughKey: w.uuid}
	c.Strategy, c.CreatedAt = strategy, w.at
	return c
}

// clear makes an overlay of a microcompaction: results of tools, and attachments, that the
// model no longer sees. What the row says of the size counts. nil: it names nothing.
func (st *stream) clear(w *row) *history.Compaction {
	meta := w.Inner("microcompactMetadata")
	calls, _ := jsonx.ReadArray(meta.Get("compactedToolIds"))
	c := overlay(w, session.StrategyPrune)
	for _, call := range calls {
		if text, _ := jsonx.Text(call); text != "" {
			c.Pruned = append(c.Pruned, history.Output{CallID: plain(text)})
			st.cleared = append(st.cleared, history.Output{
				CallID: plain(text),
				Place:  history.Place{Key: st.answered[plain(text)]},
			})
		}
	}
	c.Replaced = st.withdraw(uuids(meta.Get("clearedAttachmentUUIDs")))
	if len(c.Pruned)+len(c.Replaced) == 0 {
		return nil
	}
	if before, saved := tokens(meta, "preTokens"), tokens(meta, "tokensSaved"); before > saved {
		c.TokensBefore, c.TokensAfter = before, before-saved
	}
	c.Reason = "Claude Code took results of tools out of its model's sight"
	return &c
}

// retract makes an overlay of what a row withdraws after a refusal: the model that answers
// instead does not see it. nil: none of that is here.
func (st *stream) retract(w *row, names []string) *history.Compaction {
	pieces := st.withdraw(names)
	if len(pieces) == 0 {
		return nil
	}
	c := overlay(w, session.StrategyPrune)
	c.Replaced, c.At = pieces, history.Place{Key: w.uuid}
	c.MessageCount, c.Reason = int64(len(pieces)), "Claude Code withdrew messages after a refusal"
	return &c
}

// superseded retracts what the rows of a reply supersede, but for rows of the reply itself.
func (st *stream) superseded(rows []*row) *history.Compaction {
	var names []string
	for _, w := range rows {
		names = append(names, uuids(w.Get("supersedesUuids"))...)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(rows, func(w *row) bool { return w.uuid == name })
	})
	return st.retract(rows[len(rows)-1], names)
}

// supersededBy reports whether a row stands for what its own response said so far: then that is
// a message of its own. One with calls is not: their results would go with it.
func (o *reply) supersededBy(w *row) bool {
	names := uuids(w.Get("supersedesUuids"))
	if len(names) == 0 || slices.ContainsFunc(o.rows, func(before *row) bool { return len(before.calls()) > 0 }) {
		return false
	}
	return slices.ContainsFunc(o.rows, func(before *row) bool { return slices.Contains(names, before.uuid) })
}

// mostWithdrawn bounds the rows that one row takes out of the context.
const mostWithdrawn = 1000

// withdraw notes which messages the model no longer sees: nothing takes their place. A reply goes
// with its last row, whose name it has: of one that is withdrawn in part the rest counts. Rows
// that are not in the file are skipped.
func (st *stream) withdraw(names []string) []history.Replaced {
	var pieces []history.Replaced
	for _, name := range names {
		if st.messageOf[name] != name {
			continue
		}
		pieces = append(pieces, history.Replaced{Messages: []history.Place{{Key: name}}})
		st.withdrawn = append(st.withdrawn, name)
	}
	return pieces
}

// uuids reads a list of names of rows.
func uuids(raw []byte) []string {
	elements, _ := jsonx.ReadArray(raw)
	var names []string
	for _, e := range elements[:min(len(elements), mostWithdrawn)] {
		text, _ := jsonx.Text(e)
		if name := plain(text); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

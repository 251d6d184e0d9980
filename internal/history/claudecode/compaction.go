package claudecode

import (
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// boundary begins a compaction. Its overlay is made when the summary comes.
func (r *reader) boundary(st *stream, w *row) {
	meta, _ := history.Fields(w.Get("compactMetadata"))
	kept, _ := history.Fields(meta.Get("preservedSegment"))
	st.Cut = &cut{
		Key: w.uuid, At: w.at, Head: plain(kept.String("headUuid")),
		Pre: count(meta, "preTokens"), Post: count(meta, "postTokens"), Took: count(meta, "durationMs"),
	}
	if messages, ok := history.Fields(meta.Get("preservedMessages")); ok && st.Cut.Head == "" {
		uuids, _ := history.Elements(messages.Get("uuids"))
		if len(uuids) > 0 {
			text, _ := history.Text(uuids[0])
			st.Cut.Head = plain(text)
		}
	}
}

// summary takes what a compaction left of the conversation. The overlay says it; the row itself
// is out of the context, so that undoing the overlay gives back what was before. It ends with
// the row, or before the messages that stayed.
func (r *reader) summary(id string, st *stream, w *row, at place, note string) {
	text := plain(w.text())
	m := session.Message{Kind: session.KindMarker, Role: session.User, Origin: session.Program, Parts: []session.Part{session.TextPart(text)}}
	r.put(id, st, w, history.Message{Message: m}, at, note, false)
	c := history.Compaction{Key: w.uuid, ThroughKey: w.uuid}
	c.Strategy, c.Trigger, c.Status = session.StrategySummarize, session.TriggerImport, session.StatusDone
	c.Summary, c.CreatedAt = text, w.at
	if begun := st.Cut; begun != nil {
		c.CreatedAt, c.TokensBefore, c.TokensAfter, c.DurationMS = begun.At, begun.Pre, begun.Post, begun.Took
		if head, ok := st.Alias.get(begun.Head); ok {
			begun.Head = head.Key
		}
		if before, ok := st.Before.get(begun.Head); ok && before.Key != "" && before.Session == "" {
			c.ThroughKey, c.FirstKeptKey = before.Key, begun.Head
		}
	}
	st.Cut = nil
	if c.FirstKeptKey == "" {
		st.Withdrawn = nil // the summary hides them with all else
	}
	if len(st.Withdrawn) > 0 {
		c.At = history.Place{Key: w.uuid}
	}
	for _, key := range st.Withdrawn {
		c.Replaced = append(c.Replaced, history.Replaced{Messages: []history.Place{{Key: key}}})
	}
	p := r.pending(id, st)
	p.batch.Compactions = append(p.batch.Compactions, c)
}

// cleared makes an overlay of a microcompaction: results of tools, and attachments, that the
// model sees no more. It ends with its row. What the row says of the size counts.
func (r *reader) cleared(id string, st *stream, w *row) error {
	meta, _ := history.Fields(w.Get("microcompactMetadata"))
	calls, _ := history.Elements(meta.Get("compactedToolIds"))
	var c history.Compaction
	for _, call := range calls {
		if text, _ := history.Text(call); text != "" {
			c.Pruned = append(c.Pruned, history.Output{CallID: plain(text)})
		}
	}
	attachments, err := r.withdrawn(id, st, uuids(meta.Get("clearedAttachmentUUIDs")))
	if err != nil || len(c.Pruned)+len(attachments) == 0 {
		return err
	}
	c.Replaced = attachments
	c.Key, c.ThroughKey = w.uuid, w.uuid
	c.Strategy, c.Trigger, c.Status, c.CreatedAt = session.StrategyPrune, session.TriggerImport, session.StatusDone, w.at
	if before, saved := count(meta, "preTokens"), count(meta, "tokensSaved"); before > saved {
		c.TokensBefore, c.TokensAfter = before, before-saved
	}
	c.Reason = "Claude Code took results of tools out of its model's sight"
	p := r.pending(id, st)
	p.batch.Compactions = append(p.batch.Compactions, c)
	return nil
}

package store

import (
	"cmp"

	"sessiond/internal/session"
)

// progress moves a session's head, counters and times past a message, in memory. An imported message
// can have a date in the future; the session's own times stop at now.
func progress(sess *session.Session, m *session.Message, now session.Time) {
	at := earlier(m.CreatedAt, now)
	sess.HeadID, sess.Head, sess.LastSeq = &m.RowID, &m.ID, m.Seq
	sess.MessageCount++
	if m.Talk == session.Said {
		sess.SaidCount++
	}
	sess.TotalTokens += m.Tokens
	if m.Role == session.User && m.Kind != session.KindBranchSummary {
		sess.TurnOrigin = m.Origin
	}
	if sess.TurnOrigin == session.Person && m.Kind != session.KindBranchSummary && sess.ActiveAt.Before(at.Time) {
		sess.ActiveAt = at
	}
	if m.Origin == session.Person {
		if sess.InboundAt == nil || sess.InboundAt.Before(at.Time) {
			sess.InboundAt = &at
		}
		if m.Role == session.User && sess.TitleSource == "" {
			if title := titleOf(m); title != "" {
				sess.Title, sess.TitleSource = title, "first_message"
			}
		}
	}
	if m.Role == session.Assistant {
		sess.Draft = false
		sess.Provider, sess.Model = orElse(m.Provider, sess.Provider), orElse(m.Model, sess.Model)
	}
}

func earlier(a, b session.Time) session.Time {
	if a.After(b.Time) {
		return b
	}
	return a
}

// moveHead writes what every append changes. The head moves in the same transaction as the
// rows, so that a reader never sees one without the other.
func (t *tx) moveHead(sess *session.Session) error {
	sess.Revision++
	sess.UpdatedAt = t.Now
	return session.Wrap(t.Exec(`UPDATE sessions SET head_id = ?, last_seq = ?, revision = ?, message_count = ?, said_count = ?, total_tokens = ?, context_tokens = ?,
		turn_origin = ?, active_at = ?, inbound_at = ?, updated_at = ? WHERE id = ?`,
		optional(sess.HeadID), sess.LastSeq, sess.Revision, sess.MessageCount, sess.SaidCount, sess.TotalTokens,
		sess.ContextTokens,
		string(sess.TurnOrigin), sess.ActiveAt.SQL(), sess.InboundAt, sess.UpdatedAt.SQL(), string(sess.ID)), "move the head")
}

// saveProgress writes everything that progress and updateOverlay may have changed.
func (t *tx) saveProgress(sess *session.Session) error {
	sess.Revision++
	sess.UpdatedAt = t.Now
	return session.Wrap(t.Exec(`UPDATE sessions SET title = ?, title_source = ?, draft = ?, provider = ?, model = ?, head_id = ?, last_seq = ?,
		compaction_id = ?, epoch = ?, revision = ?, message_count = ?, said_count = ?, total_tokens = ?, context_tokens = ?,
		turn_origin = ?, active_at = ?, inbound_at = ?, updated_at = ? WHERE id = ?`,
		sess.Title, sess.TitleSource, sess.Draft, sess.Provider, sess.Model, sess.HeadID, sess.LastSeq,
		sess.CompactionID, sess.Epoch, sess.Revision, sess.MessageCount, sess.SaidCount, sess.TotalTokens, sess.ContextTokens,
		sess.TurnOrigin, sess.ActiveAt, sess.InboundAt, sess.UpdatedAt, sess.ID), "update session")
}

// titleOf makes a title of the first text of a message that has one; else of a command with words.
func titleOf(m *session.Message) string {
	ofCommand := ""
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartText, session.PartRefusal, session.PartToolResult:
			text := p.Content()
			if title := session.TitleOf(text); title != "" {
				return title
			}
			ofCommand = cmp.Or(ofCommand, session.TitleOfCommand(text))
		}
	}
	return ofCommand
}

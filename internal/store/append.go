package store

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Append is a request to add messages to a session's path.
type Append struct {
	Session    session.ID
	Messages   []session.Message
	ExpectHead *ExpectHead         // nil: unchecked
	Parent     *session.MessageRef // nil: the head; else the messages branch off here and the head moves
	Call       *session.Call       // the model call behind the last assistant message, nil: none
	Idem       *Idempotency
}

// ExpectHead is the head that the caller last saw; a nil Ref means an empty session.
type ExpectHead struct{ Ref *session.MessageRef }

// Appended tells what an append did, or, replayed, what an earlier one with the same key did.
type Appended struct {
	Messages []session.Message
	// Session is as the append left it, replayed as it is now: names, place, counters and times.
	// What an append need not read is left out (metadata, key, kind, window, calls' tokens …).
	Session  session.Session
	Head     *session.MessageRef
	Revision int64 // after the append, also replayed
	// ContextTokens is the size of the context after the append, by the reference counter.
	ContextTokens int64
	Replayed      bool
}

// Append stores messages at the end of a session's path, durably, in one transaction, with
// counters, roll-ups, touched files, the call and the event. Messages get consecutive seqs.
// Codes: NotFound, Conflict (the head moved, or an external id exists), Invalid.
func (s *Store) Append(ctx context.Context, in Append) (Appended, error) {
	msgs := make([]session.Message, len(in.Messages))
	for i := range in.Messages {
		msgs[i] = in.Messages[i]
		msgs[i].Parts, msgs[i].Day = slices.Clone(in.Messages[i].Parts), ""
		err := s.prepare(&msgs[i])
		if err == nil && !msgs[i].CreatedAt.IsZero() {
			err = msgs[i].CreatedAt.CheckDate("created_at", s.opt.Now())
		}
		if err != nil {
			return Appended{}, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return writeOnce(ctx, s, in.Idem, (*tx).replayAppend, func(t *tx) (Appended, outcome, error) {
		out, err := t.append(in, msgs)
		o := outcome{
			Status: 201, SessionID: string(in.Session), N: int64(len(msgs)), Revision: out.Revision,
			HeadID: out.Session.HeadID, CompactionID: out.Session.CompactionID, ContextTokens: out.ContextTokens,
		}
		if len(out.Messages) > 0 {
			o.MessageID = &out.Messages[0].RowID
		}
		return out, o, err
	})
}

// place is where on the tree the next message goes.
type place struct {
	id         *int64 // the parent's row; nil: none
	session    session.ID
	seq        int64
	depth      int64 // of the next message
	pathTokens int64 // up to the parent
}

func (t *tx) append(in Append, msgs []session.Message) (Appended, error) {
	sess, end, err := t.sessionToExtend(in.Session)
	if err != nil {
		return Appended{}, err
	}
	if sess.DeletedAt != nil {
		return Appended{}, inTrash(sess.ID)
	}
	if err := checkHead(sess, in.ExpectHead); err != nil {
		return Appended{}, err
	}
	at, moved, was := end, false, sess
	if in.Parent != nil && (sess.Head == nil || *in.Parent != *sess.Head) {
		if at, err = t.placeOnTree(sess, *in.Parent, "parent"); err != nil {
			return Appended{}, err
		}
		if sess.TurnOrigin, err = t.turnOrigin(*in.Parent); err != nil {
			return Appended{}, err
		}
		moved = true
	}
	if len(msgs) == 0 && in.Call == nil {
		return Appended{Session: sess, Head: sess.Head, Revision: sess.Revision, ContextTokens: sess.ContextTokens}, nil
	}
	added, err := t.insertLine(&sess, at, msgs)
	if err != nil {
		return Appended{}, err
	}
	if in.Call != nil {
		call := *in.Call
		call.SessionID, call.MessageID = sess.ID, lastReply(msgs)
		if err := t.addCall(&call, &sess); err != nil {
			return Appended{}, err
		}
		sess.Provider, sess.Model = orElse(call.Provider, sess.Provider), orElse(call.Model, sess.Model)
	}
	sess.ContextTokens += added
	late, err := t.answersClosed(sess, msgs)
	if err != nil {
		return Appended{}, err
	}
	if moved && len(msgs) > 0 {
		if err := t.updateOverlay(&sess); err != nil {
			return Appended{}, err
		}
	}
	if moved && len(msgs) > 0 || late {
		sess.Epoch++
	}
	if was.Draft && !sess.Draft {
		if err := t.countSession(&sess, 1); err != nil { // a draft counts from its first reply on
			return Appended{}, err
		}
	}
	save := t.moveHead
	if moved || late || in.Call != nil || sess.Title != was.Title || sess.Provider != was.Provider ||
		sess.Model != was.Model || sess.Draft != was.Draft {
		save = t.saveProgress
	}
	if err := save(&sess); err != nil {
		return Appended{}, err
	}
	if len(msgs) > 0 {
		if err := t.event(sess.ID, EventMessagesAppended, sess.LastSeq,
			session.JSON(fmt.Sprintf(`{"from":%d}`, was.LastSeq+1))); err != nil {
			return Appended{}, err
		}
	}
	return Appended{
		Messages: msgs, Session: sess, Head: sess.Head, Revision: sess.Revision,
		ContextTokens: sess.ContextTokens,
	}, nil
}

// sessionToExtend reads, in one statement, what an append needs: the session without its
// wide columns, and the place after its head.
func (t *tx) sessionToExtend(id session.ID) (session.Session, place, error) {
	s := session.Session{ID: id}
	var head struct {
		session          *session.ID
		seq, depth, path *int64
	}
	err := t.Row(placeOfSession, []any{string(id)},
		&s.Day, &s.Source, &s.Directory, &s.Project, &s.Kind, &s.Title, &s.TitleSource, &s.Draft, &s.Provider, &s.Model,
		&s.ParentID, &s.ParentKind,
		&s.HeadID, &s.LastSeq, &s.CompactionID, &s.Epoch, &s.Revision, &s.MessageCount, &s.SaidCount, &s.TotalTokens,
		&s.ContextTokens,
		&s.TurnOrigin, &s.CreatedAt, &s.ActiveAt, &s.InboundAt, &s.DeletedAt, &head.session, &head.seq, &head.depth,
		&head.path)
	switch {
	case engine.NoRows(err):
		return s, place{}, noSession(id)
	case err != nil:
		return s, place{}, fmt.Errorf("session %s: %w", id, err)
	case head.seq == nil:
		return s, place{}, nil
	}
	s.Head = &session.MessageRef{Session: *head.session, Seq: *head.seq}
	return s, place{id: s.HeadID, session: *head.session, seq: *head.seq, depth: *head.depth + 1, pathTokens: *head.path},
		nil
}

const placeOfSession = `
	SELECT s.day, s.source, s.directory, s.project, s.kind, s.title, s.title_source, s.draft, s.provider, s.model, s.parent_id, s.parent_kind,
	       s.head_id, s.last_seq, s.compaction_id, s.epoch, s.revision, s.message_count, s.said_count, s.total_tokens, s.context_tokens,
	       s.turn_origin, s.created_at, s.active_at, s.inbound_at, s.deleted_at, h.session_id, h.seq, h.depth, h.path_tokens
	FROM sessions s LEFT JOIN messages h ON h.id = s.head_id WHERE s.id = ? AND s.purged_at IS NULL`

func checkHead(sess session.Session, expect *ExpectHead) error {
	switch {
	case expect == nil,
		expect.Ref == nil && sess.Head == nil,
		expect.Ref != nil && sess.Head != nil && *expect.Ref == *sess.Head:
		return nil
	case sess.Head == nil:
		return session.Errorf(session.Conflict,
			"session %s has no head, since it is empty or was taken back before its first message; "+
				"expect_head must be null or left out", sess.ID)
	}
	return session.Errorf(session.Conflict,
		"the head of session %s is %s, not what expect_head says: read what came since and decide anew", sess.ID, sess.Head).
		At("expect_head", "the head is %s", sess.Head)
}

// placeOnTree finds the place after a named message, which must be one of the session's own
// or, in a fork, one of the path that it shares. field is what of the request names it.
// Codes: Invalid.
func (t *tx) placeOnTree(sess session.Session, ref session.MessageRef, field string) (place, error) {
	at, err := t.placeAfter(ref)
	on := false
	if err == nil {
		on, err = onTree(t.Ctx, t, sess, ref, *at.id)
	}
	if err == nil && !on {
		err = checkSeen(t.Ctx, t, ref)
	}
	if session.CodeOf(err) == session.NotFound {
		hint := ""
		if sess.ParentKind == session.ParentFork && ref.Session == sess.ID {
			hint = fmt.Sprintf("; one that this fork shares is named with its own session, like %s.%d", sess.ParentID, ref.Seq)
		}
		return at, session.Errorf(session.Invalid, "there is no message %s: %s needs a message of session %s%s",
			ref, field, sess.ID, hint).At(field, "no such message")
	}
	if err == nil && !on {
		err = session.Errorf(session.Invalid,
			"message %s is of another session: %s needs a message of session %s, or one that it shares with the session "+
				"that it was forked from", ref, field, sess.ID).
			At(field, "of another session")
	}
	return at, err
}

func (t *tx) placeAfter(ref session.MessageRef) (place, error) {
	at := place{session: ref.Session, seq: ref.Seq}
	err := t.Row(`SELECT id, depth + 1, path_tokens FROM messages WHERE session_id = ? AND seq = ?`, []any{ref.Session, ref.Seq},
		&at.id, &at.depth, &at.pathTokens)
	if engine.NoRows(err) {
		return at, session.Errorf(session.NotFound, "there is no message %s", ref)
	}
	return at, err
}

// insertLine inserts messages in a line after at and moves the session's head and counters
// (in memory). It returns the tokens that they add to the context.
func (t *tx) insertLine(sess *session.Session, at place, msgs []session.Message) (added int64, err error) {
	var line []*session.Message
	for i := range msgs {
		m := &msgs[i]
		if err := t.insertMessage(sess, at, m, line); err != nil {
			return 0, err
		}
		if m.InContext {
			added += m.Tokens
		}
		at, line = placeAfterMessage(m), append(line, m)
	}
	return added, nil
}

// placeAfterMessage is the place after a message that was just inserted.
func placeAfterMessage(m *session.Message) place {
	return place{id: &m.RowID, session: m.SessionID, seq: m.Seq, depth: m.Depth + 1, pathTokens: m.PathTokens}
}

// insertMessage inserts a message with its parts as the session's next and moves the session's
// head and counters, in memory. line are the messages before it that the same request inserted.
func (t *tx) insertMessage(sess *session.Session, at place, m *session.Message, line []*session.Message) error {
	if m.CreatedAt.IsZero() {
		m.CreatedAt = t.Now
	}
	if err := t.insertRow(sess, at, m); err != nil {
		return err
	}
	if err := t.insertParts(sess, m, func(i int) (*int64, error) { return t.callOf(m, i, line) }); err != nil {
		return err
	}
	progress(sess, m, t.Now)
	return nil
}

// insertRow inserts a message without its parts, and counts it in the roll-up.
func (t *tx) insertRow(sess *session.Session, at place, m *session.Message) error {
	if m.Day == "" {
		m.Day = m.CreatedAt.Day(t.opt.Zone)
	}
	m.SessionID, m.Seq = sess.ID, sess.LastSeq+1
	m.ID = session.MessageRef{Session: sess.ID, Seq: m.Seq}
	m.ParentID, m.Parent, m.Depth = at.id, nil, at.depth
	jump := m.Seq > 1
	if at.id != nil {
		m.Parent = &session.MessageRef{Session: at.session, Seq: at.seq}
		jump = at.session != sess.ID || at.seq != m.Seq-1
	}
	m.PathTokens = at.pathTokens
	if m.InContext {
		m.PathTokens += m.Tokens
	}
	m.Talk = session.TalkOf(m)
	err := t.insertMessageRow(m, jump)
	if engine.IsTaken(err) && m.ExternalID != "" {
		return session.Errorf(session.Conflict,
			"session %s has a message with external_id %q already; nothing of this request was stored", sess.ID, m.ExternalID)
	}
	if err != nil {
		return fmt.Errorf("insert message: %w", err)
	}
	project, err := t.usageProject(sess)
	if err != nil {
		return err
	}
	use := t.usage.at(usageKey{Day: m.Day, Project: project, Source: sess.Source})
	use.Messages++
	if m.Origin == session.Person {
		use.Prompts++
	}
	return nil
}

// insertMessageRow inserts a message with the next id. On PostgreSQL it does not wait for the outcome, unless the
// message's external id may be taken.
func (t *tx) insertMessageRow(m *session.Message, jump bool) (err error) {
	args := []any{
		string(m.SessionID), m.Seq, optional(m.ParentID), jump, m.Depth,
		string(m.Kind), string(m.Role), string(m.Origin), string(m.Finish), m.Author,
		m.Tokens, m.PathTokens, m.InContext, m.Display, string(m.Talk),
		m.Provider, m.Model, m.Dialect, m.ExternalID, m.Day, m.CreatedAt.SQL(), optionalJSON(m.Metadata),
		optionalJSON(m.Extra),
	}
	if m.RowID = t.NextID(); m.RowID == 0 {
		m.RowID, err = t.Insert(insertMessage, append(args, nil)...)
		return err
	}
	args = append(args, m.RowID)
	if m.ExternalID == "" {
		return t.Exec(insertMessage, args...)
	}
	_, err = t.Changed(insertMessage, args...)
	return err
}

const insertMessage = `
	INSERT INTO messages (session_id, seq, parent_id, jump, depth, kind, role, origin, finish, author,
		tokens, path_tokens, in_context, display, talk, provider, model, dialect, external_id, day, created_at, metadata, extra, id)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// replayAppend builds the answer of an earlier append again, from what it stored.
func (t *tx) replayAppend(o *outcome) (Appended, error) {
	id := session.ID(o.SessionID)
	sess, err := readSession(t.Ctx, t, id)
	if err != nil {
		return Appended{}, err
	}
	out := Appended{Session: sess, Revision: o.Revision, ContextTokens: o.ContextTokens, Replayed: true}
	if o.HeadID != nil {
		ref, err := refOf(t.Ctx, t, *o.HeadID)
		if err != nil {
			return Appended{}, err
		}
		out.Head = &ref
	}
	if o.MessageID == nil {
		return out, nil
	}
	first, err := refOf(t.Ctx, t, *o.MessageID)
	if err != nil {
		return Appended{}, err
	}
	out.Messages, err = readRange(t.Ctx, t, id, first.Seq, first.Seq+o.N-1)
	return out, err
}

func lastReply(msgs []session.Message) *int64 {
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == session.Assistant {
			return &msgs[i].RowID
		}
	}
	return nil
}

// insertParts inserts a message's parts, their blobs and the files that its calls touch. callOf
// returns the row of the call that the i-th part answers.
func (t *tx) insertParts(sess *session.Session, m *session.Message, callOf func(i int) (*int64, error)) error {
	calls := false
	for i := range m.Parts {
		p := &m.Parts[i]
		p.MessageID, p.Idx, p.RowID = m.RowID, int64(i), m.RowID<<10|int64(i)
		switch p.Kind {
		case session.PartToolCall:
			calls = true
		case session.PartToolResult:
			var err error
			if p.CallPartID, err = callOf(i); err != nil {
				return fmt.Errorf("find call %q: %w", p.CallID, err)
			}
		}
		if err := t.insertBlob(p.Blob); err != nil {
			return err
		}
		if err := t.Exec(insertPart,
			p.RowID, p.MessageID, p.Idx, string(p.Kind), p.Text, p.ToolName, p.CallID, optional(p.CallPartID),
			p.Arguments, optional(p.IsError), optional(p.DurationMS), optional(p.BlobSHA), p.Tokens,
			optionalJSON(p.Extra)); err != nil {
			return fmt.Errorf("insert part: %w", err)
		}
	}
	if t.opt.Touched == nil {
		return nil
	}
	if err := t.forgetFailures(m); err != nil {
		return fmt.Errorf("files of failed calls: %w", err)
	}
	if !calls {
		return nil
	}
	for _, f := range t.opt.Touched(m, sess.Directory) {
		if err := t.Exec(insertTouched, f.Path, m.RowID, string(f.Op), string(sess.ID)); err != nil {
			return fmt.Errorf("insert touched file: %w", err)
		}
	}
	return nil
}

// forgetFailures removes the touched files of the earlier calls that a message says failed.
func (t *tx) forgetFailures(m *session.Message) error {
	for _, r := range m.Results() {
		if r.IsError == nil || !*r.IsError || r.CallPartID == nil || *r.CallPartID>>10 == m.RowID {
			continue
		}
		if err := t.forgetFailed(*r.CallPartID >> 10); err != nil {
			return err
		}
	}
	return nil
}

const (
	insertPart = `
		INSERT INTO parts (id, message_id, idx, kind, text, tool_name, call_id, call_part_id, arguments, is_error, duration_ms, blob, tokens, extra)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertTouched = `INSERT INTO touched_files (path, message_id, op, session_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`
)

// optional returns what p points to, or NULL, in a type that the driver binds as it is: a pointer
// or a named type goes through reflection.
func optional[T bool | int64 | string](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// optionalJSON is NULL for an empty value.
func optionalJSON(j session.JSON) any {
	if len(j) == 0 {
		return nil
	}
	return string(j)
}

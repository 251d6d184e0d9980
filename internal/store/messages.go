package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

const messageColumns = `m.id, m.session_id, m.seq, m.parent_id, m.jump, m.depth, m.kind, m.role, m.origin, m.finish, m.author,
	m.tokens, m.path_tokens, m.in_context, m.display, m.talk, m.provider, m.model, m.dialect, m.external_id, m.day,
	m.created_at, m.metadata, m.extra`

// A part's message and index are in its id. Each column of a row costs as much as a look-up,
// so what can be told without one is not read, and blobs, which are rare, come behind.
const partColumns = `p.id, p.kind, p.text, p.tool_name, p.call_id, p.call_part_id, p.arguments,
	p.is_error, p.duration_ms, p.blob, p.tokens, p.extra`

// messageRow is a row of messages. A jump does not follow the message before it in its session.
type messageRow struct {
	session.Message
	Jump bool `db:"jump"`
}

// selection is a pair of statements with the same arguments: messages, and their parts in the same order.
type selection struct{ messages, parts string }

func selectMessages(where, order string) selection {
	where += ` ORDER BY m.` + order
	return selection{
		messages: `SELECT ` + messageColumns + ` FROM messages m WHERE ` + where,
		parts: `SELECT ` + partColumns + ` FROM messages m
			JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023 WHERE ` + where + `, p.id`,
	}
}

var (
	messagesOfRange = selectMessages(`m.session_id = ? AND m.seq BETWEEN ? AND ? AND m.id >= ?`, `seq`)
	// Distinct, PostgreSQL casts the ids before it compares them: in row-level security no cast comes before the policy.
	messagesByID = selectMessages(`m.id IN (SELECT DISTINCT CAST(value AS BIGINT) FROM json_each(?))`, `id`)
)

// readRange reads a session's messages of seqs from … to, in order, with their parts and blobs.
func readRange(ctx context.Context, q engine.Queryer, id session.ID, from, to int64) ([]session.Message, error) {
	msgs, err := readRangeRows(ctx, q, id, from, to)
	if err != nil {
		return nil, err
	}
	return msgs, readAllBlobs(ctx, q, msgs)
}

// readRangeRows is readRange without blobs.
func readRangeRows(ctx context.Context, q engine.Queryer, id session.ID, from, to int64) ([]session.Message, error) {
	return readRangeDownTo(ctx, q, id, from, to, 0)
}

// readRangeDownTo is readRangeRows without the messages whose row is below lowest. The index of
// seqs tells those.
func readRangeDownTo(ctx context.Context, q engine.Queryer, id session.ID, from, to,
	lowest int64,
) ([]session.Message, error) {
	return readSelection(ctx, q, to-from+1, messagesOfRange, id, from, to, lowest)
}

// readSelection reads at most so many messages with their parts, without blobs.
func readSelection(ctx context.Context, q engine.Queryer, most int64, of selection,
	args ...any,
) ([]session.Message, error) {
	msgs := make([]session.Message, 0, max(0, most))
	if err := q.Read(ctx, intoMessages(&msgs, of.messages, args...), intoParts(&msgs, of.parts, args...)); err != nil {
		return nil, err
	}
	return msgs, nameParents(ctx, q, msgs)
}

// intoMessages reads rows of messages. A message that is no jump follows the one before it in its session;
// nameParents names the parents of the others.
func intoMessages(msgs *[]session.Message, query string, args ...any) engine.Reading {
	return engine.Into(func(m *messageRow) error {
		m.ID = session.MessageRef{Session: m.SessionID, Seq: m.Seq}
		if m.ParentID != nil && !m.Jump {
			m.Parent = &session.MessageRef{Session: m.SessionID, Seq: m.Seq - 1}
		}
		*msgs = append(*msgs, m.Message)
		return nil
	}, query, args...)
}

func nameParents(ctx context.Context, q engine.Queryer, msgs []session.Message) error {
	for i := range msgs {
		if m := &msgs[i]; m.ParentID != nil && m.Parent == nil {
			ref, err := refOf(ctx, q, *m.ParentID)
			if err != nil {
				return err
			}
			m.Parent = &ref
		}
	}
	return nil
}

// intoParts adds parts to their messages. The rows come in the messages' order.
func intoParts(msgs *[]session.Message, query string, args ...any) engine.Reading {
	i := 0
	return engine.Into(func(p *session.Part) error {
		p.MessageID, p.Idx = p.RowID>>10, p.RowID&(session.MaxParts-1)
		for i < len(*msgs) && (*msgs)[i].RowID != p.MessageID {
			i++
		}
		if i == len(*msgs) { // of a message that was appended between the two statements
			return engine.ErrEnough
		}
		m := &(*msgs)[i]
		m.Parts = append(m.Parts, *p)
		return nil
	}, query, args...)
}

// batchRows is how many messages a reading in pages reads by one statement, without their blobs.
const batchRows = 64

// EachInRange yields a session's own messages of seqs from … to, in order. It reads a few rows at
// once, and the blobs of one message. A message is the caller's. Messages never change, so it
// needs no transaction; but a purge may delete some meanwhile. Codes: Busy (a purge did).
func (s *Store) EachInRange(ctx context.Context, id session.ID, from, to int64,
	yield func(*session.Message) error,
) error {
	_, err := s.eachInRange(ctx, id, from, to, func(m *session.Message) error {
		if err := readCompleteBlobs(ctx, s, m); err != nil {
			return err
		}
		return yield(m)
	})
	return err
}

// EachHeadInRange is EachInRange with the beginnings of large parts alone.
func (s *Store) EachHeadInRange(ctx context.Context, id session.ID, from, to int64, head session.Head,
	yield func(*session.Message) error,
) error {
	_, err := s.eachInRange(ctx, id, from, to, func(m *session.Message) error {
		if err := readHeads(ctx, s, m, head); err != nil {
			return err
		}
		return yield(m)
	})
	return err
}

// eachInRange is EachInRange without blobs. It counts the messages.
func (s *Store) eachInRange(ctx context.Context, id session.ID, from, to int64,
	yield func(*session.Message) error,
) (n int64, err error) {
	var counts []int64
	count := engine.IntoList(&counts, messagesInRange, id, from, to)
	for at := from; at <= to; at += batchRows {
		upto := min(to, at+batchRows-1)
		msgs := make([]session.Message, 0, upto-at+1)
		page := []engine.Reading{
			intoMessages(&msgs, messagesOfRange.messages, id, at, upto, 0),
			intoParts(&msgs, messagesOfRange.parts, id, at, upto, 0),
		}
		if at == from {
			page = append([]engine.Reading{count}, page...)
		}
		if err := cmp.Or(s.Read(ctx, page...), nameParents(ctx, s, msgs)); err != nil {
			return n, fmt.Errorf("messages of %s: %w", id, err)
		}
		for i := range msgs {
			m := msgs[i]
			msgs[i] = session.Message{} // its blobs are the caller's alone
			if err := yield(&m); err != nil {
				return n, err
			}
			n++
		}
	}
	if err := s.Read(ctx, count); err != nil {
		return n, fmt.Errorf("messages of %s: %w", id, err)
	}
	// one may have lost its parts before they were read
	if slices.ContainsFunc(counts, func(c int64) bool { return c != n }) {
		return n, purgedMeanwhile(id)
	}
	return n, nil
}

const messagesInRange = `SELECT COUNT(*) FROM messages WHERE session_id = ? AND seq BETWEEN ? AND ?`

func purgedMeanwhile(id session.ID) error {
	return session.Errorf(session.Busy,
		"messages of session %s are gone, and what was read of it is not whole: it was purged meanwhile; if it was not, "+
			"run `sessiond doctor`", id)
}

// CheckNotPurged fails if a session was purged while the caller read it in pieces. Codes: Busy.
func (s *Store) CheckNotPurged(ctx context.Context, id session.ID) error {
	_, err := s.Session(ctx, id)
	if session.CodeOf(err) == session.NotFound {
		err = session.Errorf(session.Busy, "session %s was purged while it was read: what was written is not all of it", id)
	}
	return err
}

// refOf names a message outside the database.
func refOf(ctx context.Context, q engine.Queryer, id int64) (session.MessageRef, error) {
	ref, err := engine.Get[session.MessageRef](ctx, q, nameOfMessage, id)
	if engine.NoRows(err) {
		err = missingRow(id)
	}
	return ref, err
}

const nameOfMessage = `SELECT session_id || '.' || seq FROM messages WHERE id = ?`

func missingRow(id int64) error {
	return session.Errorf(session.NotFound, "a message that should be there is gone (row %d): run `sessiond doctor`", id)
}

// Message reads one message. Codes: NotFound.
func (s *Store) Message(ctx context.Context, ref session.MessageRef) (session.Message, error) {
	return readMessage(ctx, s, ref)
}

// TreeMessage reads one message of a session's tree: its own, or one that a fork shares.
// Codes: NotFound.
func (s *Store) TreeMessage(ctx context.Context, id session.ID, ref session.MessageRef) (session.Message, error) {
	return s.LargeTreeMessage(ctx, id, ref, nil)
}

// LargeTreeMessage is TreeMessage that calls reserve before it reads a message of more than 4 MiB, with its size.
func (s *Store) LargeTreeMessage(ctx context.Context, id session.ID, ref session.MessageRef,
	reserve func(context.Context, int64) error,
) (session.Message, error) {
	page, err := s.PageOf(ctx, []session.MessageRef{ref}, reserve)
	if err != nil {
		return session.Message{}, err
	}
	if m := page[0]; ref.Session == id {
		return m, nil
	}
	sess, err := s.Session(ctx, id)
	if err != nil {
		return session.Message{}, err
	}
	return page[0], checkOnTree(ctx, s, sess, ref, page[0].RowID)
}

// OnTree checks that a message is on a session's tree. Codes: NotFound.
func (s *Store) OnTree(ctx context.Context, id session.ID, ref session.MessageRef) error {
	m, err := s.MessageHead(ctx, ref, session.Head{})
	if err != nil || ref.Session == id {
		return err
	}
	sess, err := s.Session(ctx, id)
	if err != nil {
		return err
	}
	return checkOnTree(ctx, s, sess, ref, m.RowID)
}

// MessagesAround reads a message with at most so many before it and after it that stand in a line
// with it in its own session, in order; none where there is no such message.
func (s *Store) MessagesAround(ctx context.Context, ref session.MessageRef, before,
	after int,
) ([]session.Message, error) {
	msgs, err := readRange(ctx, s, ref.Session, ref.Seq-int64(before), ref.Seq+int64(after))
	if err != nil {
		return nil, fmt.Errorf("messages around %s: %w", ref, err)
	}
	at := slices.IndexFunc(msgs, func(m session.Message) bool { return m.ID == ref })
	if at < 0 {
		return nil, nil
	}
	follows := func(i int) bool { return msgs[i].ParentID != nil && *msgs[i].ParentID == msgs[i-1].RowID }
	from, to := at, at+1
	for from > 0 && follows(from) {
		from--
	}
	for to < len(msgs) && follows(to) {
		to++
	}
	return msgs[from:to], nil
}

func readMessage(ctx context.Context, q engine.Queryer, ref session.MessageRef) (session.Message, error) {
	msgs, err := readRange(ctx, q, ref.Session, ref.Seq, ref.Seq)
	if err != nil {
		return session.Message{}, fmt.Errorf("message %s: %w", ref, err)
	}
	if len(msgs) == 0 {
		return session.Message{}, session.Errorf(session.NotFound, "there is no message %s", ref)
	}
	return msgs[0], nil
}

// MessageByID reads one message by its row. Codes: NotFound.
func (s *Store) MessageByID(ctx context.Context, id int64) (session.Message, error) {
	ref, err := refOf(ctx, s, id)
	if err != nil {
		return session.Message{}, err
	}
	return readMessage(ctx, s, ref)
}

// MessagesByID reads messages by their rows, at once and in the order of rows. Those that are
// gone are left out.
func (s *Store) MessagesByID(ctx context.Context, ids []int64) ([]session.Message, error) {
	msgs, err := readSelection(ctx, s, int64(len(ids)), messagesByID, string(session.JSONOf(ids)))
	if err != nil {
		return nil, err
	}
	return msgs, readAllBlobs(ctx, s, msgs)
}

// EachHead yields messages by their rows, in the order of rows, with the beginnings of large parts alone. It holds
// the blobs of one message at a time. Messages that are gone are left out.
func (s *Store) EachHead(ctx context.Context, ids []int64, head session.Head,
	yield func(*session.Message) error,
) error {
	for some := range slices.Chunk(slices.Sorted(slices.Values(ids)), batchRows) {
		msgs, err := readSelection(ctx, s, int64(len(some)), messagesByID, string(session.JSONOf(some)))
		if err != nil {
			return err
		}
		for i := range msgs {
			m := msgs[i]
			msgs[i] = session.Message{}
			if err := readHeads(ctx, s, &m, head); err != nil {
				return err
			}
			if err := yield(&m); err != nil {
				return err
			}
		}
	}
	return nil
}

// MessageHead is Message with the beginnings of large parts alone. Codes: NotFound.
func (s *Store) MessageHead(ctx context.Context, ref session.MessageRef, head session.Head) (session.Message, error) {
	msgs, err := readRangeRows(ctx, s, ref.Session, ref.Seq, ref.Seq)
	if err == nil && len(msgs) == 0 {
		return session.Message{}, session.Errorf(session.NotFound, "there is no message %s", ref)
	}
	if err == nil {
		err = readHeads(ctx, s, &msgs[0], head)
	}
	if err != nil {
		return session.Message{}, fmt.Errorf("message %s: %w", ref, err)
	}
	return msgs[0], nil
}

// MessagePage says which messages of a session are read.
type MessagePage struct {
	After, Before int64 // seqs of this session, exclusive; 0: open
	Limit         int   // 0: 50; at most 1000
	Descending    bool
	All           bool // every message of the session, not only the path to its head

	// Reserve is called before a message larger than a page is read, with about its size. nil: nothing is.
	Reserve func(ctx context.Context, bytes int64) error

	// The same as After and Before for any message of the path: a fork's begins in another
	// session. nil: open.
	AfterRef, BeforeRef *session.MessageRef
}

// Prompts returns the messages of a person on the path to head, oldest first: how many there are, and
// those from the nth, counted from 1.
func (s *Store) Prompts(ctx context.Context, head int64, nth,
	limit int,
) (msgs []session.Message, total int, err error) {
	spans, err := s.Spans(ctx, head)
	if err != nil {
		return nil, 0, err
	}
	slices.Reverse(spans)
	return s.PromptsIn(ctx, spans, nth, limit)
}

// promptHead is how much of a prompt is read: what a list of prompts shows, and more.
var promptHead = session.Head{Text: 16 << 10}

// PromptsIn is Prompts of ranges of messages, in their order. With a limit of 0 it only counts.
func (s *Store) PromptsIn(ctx context.Context, spans []Span, nth,
	limit int,
) (msgs []session.Message, total int, err error) {
	var rows []int64
	for _, sp := range spans {
		near, far := sp, sp
		near.To, far.From = min(sp.To, unindexedPrompts), max(sp.From, unindexedPrompts+1)
		for _, piece := range []struct {
			Span
			statement string
		}{{near, promptsInRange + ` ORDER BY seq`}, {far, promptsInRange + ` AND seq > 5000 ORDER BY seq`}} {
			switch {
			case piece.Len() <= 0:
			case limit == 0:
				var n int
				n, err = engine.Get[int](ctx, s, `SELECT COUNT(*) FROM (`+piece.statement+`) AS p`,
					sp.Session, piece.From, piece.To)
				total += n
			default:
				var some []int64
				some, err = engine.List[int64](ctx, s, piece.statement, sp.Session, piece.From, piece.To)
				rows = append(rows, some...)
			}
			if err != nil {
				return nil, 0, fmt.Errorf("prompts of %s: %w", sp.Session, err)
			}
		}
	}
	if limit == 0 {
		return nil, total, nil
	}
	from := min(max(nth-1, 0), len(rows))
	err = s.EachHead(ctx, rows[from:min(from+limit, len(rows))], promptHead, func(m *session.Message) error {
		msgs = append(msgs, *m)
		return nil
	})
	return msgs, len(rows), err
}

const promptsInRange = `
	SELECT id FROM messages WHERE session_id = ? AND seq BETWEEN ? AND ? AND origin = 'person' AND kind IN ('message', 'bash')`

// unindexedPrompts is the seq behind which the index messages_prompts has the prompts of a session.
const unindexedPrompts = 5000

// pageBytes ends a page of messages early, so that it does not have to fit many large parts.
const pageBytes = 4 << 20

// Messages reads messages of a session: of the path to its head, or all of its own. more
// tells whether there are others beyond: a page ends at its limit, or before the message that
// makes it larger than 4 MiB. Codes: NotFound, Invalid (AfterRef or BeforeRef is not on the path).
//
// On the path of a fork After and Before count this session's own seqs; the part that it
// shares with its parent comes before seq 1.
func (s *Store) Messages(ctx context.Context, id session.ID,
	p MessagePage,
) (msgs []session.Message, more bool, err error) {
	sess, err := sessionBy(ctx, s, headOfSession, id)
	if err != nil {
		return nil, false, err
	}
	limit := Page{Limit: p.Limit}.limit()
	spans, err := pageSpans(ctx, s, sess, p, int64(limit))
	if err != nil {
		return nil, false, err
	}
	size := 0
	for _, sp := range spans {
		for from, to := sp.From, sp.To; from <= to; {
			step := int64(min(limit-len(msgs)+1, batchRows))
			lo, hi := from, min(to, from+step-1)
			if p.Descending {
				lo, hi = max(from, to-step+1), to
				to = lo - 1
			} else {
				from = hi + 1
			}
			got, err := readRangeRows(ctx, s, sp.Session, lo, hi)
			if err != nil {
				return nil, false, fmt.Errorf("messages of %s: %w", id, err)
			}
			if p.Descending {
				slices.Reverse(got)
			}
			for i := range got {
				if len(msgs) == limit {
					return msgs, true, nil
				}
				blobs, err := s.sizeOfBlobs(ctx, &got[i])
				if err != nil {
					return nil, false, err
				}
				if size += SizeOf(&got[i]) + blobs; size > pageBytes && len(msgs) > 0 {
					return msgs, true, nil
				}
				if err := s.readPage(ctx, &got[i], size, p.Reserve); err != nil {
					return nil, false, fmt.Errorf("messages of %s: %w", id, err)
				}
				msgs = append(msgs, got[i])
			}
		}
	}
	return msgs, false, nil
}

// readPage reads the blobs of a message of a page, whose messages have so many bytes.
func (s *Store) readPage(ctx context.Context, m *session.Message, bytes int,
	reserve func(context.Context, int64) error,
) error {
	if bytes > pageBytes && reserve != nil {
		if err := reserve(ctx, int64(bytes)); err != nil {
			return err
		}
	}
	return readBlobs(ctx, s, m)
}

// sizeOfBlobs returns the bytes of a message's blobs without reading them.
func (s *Store) sizeOfBlobs(ctx context.Context, m *session.Message) (sum int, err error) {
	for i := range m.Parts {
		if sha := m.Parts[i].BlobSHA; sha != nil {
			size, err := engine.First[int](ctx, s, `SELECT size FROM blobs WHERE sha256 = ?`, *sha)
			if err != nil {
				return 0, err
			}
			if size != nil {
				sum += *size
			}
		}
	}
	return sum, nil
}

// PageOf reads messages by their names, as many as fit into a page of 4 MiB, at least one. It calls reserve before
// it reads a message larger than that. Codes: NotFound.
func (s *Store) PageOf(ctx context.Context, refs []session.MessageRef,
	reserve func(context.Context, int64) error,
) (msgs []session.Message, err error) {
	size := 0
	for _, ref := range refs {
		got, err := readRangeRows(ctx, s, ref.Session, ref.Seq, ref.Seq)
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", ref, err)
		}
		if len(got) == 0 {
			return nil, session.Errorf(session.NotFound, "there is no message %s", ref)
		}
		blobs, err := s.sizeOfBlobs(ctx, &got[0])
		if err != nil {
			return nil, err
		}
		if size += SizeOf(&got[0]) + blobs; size > pageBytes && len(msgs) > 0 {
			return msgs, nil
		}
		if err := s.readPage(ctx, &got[0], size, reserve); err != nil {
			return nil, fmt.Errorf("message %s: %w", ref, err)
		}
		msgs = append(msgs, got[0])
	}
	return msgs, nil
}

// pageSpans gives what of a session's messages may stand on a page, in the page's order. It
// goes from the head no further back than that needs.
func pageSpans(ctx context.Context, q engine.Queryer, sess session.Session, p MessagePage,
	limit int64,
) ([]Span, error) {
	w := window{MessagePage: p, own: sess.ID}
	if p.Descending {
		w.enough = limit + 1
	}
	var err error
	if p.All {
		if sess.LastSeq > 0 {
			_ = w.take(Span{Session: sess.ID, From: 1, To: sess.LastSeq})
		}
	} else {
		err = eachSpan(ctx, q, sess.HeadID, w.take)
	}
	if err == nil {
		err = w.checkBounds()
	}
	if !p.Descending {
		reverse(w.spans)
	}
	return w.spans, err
}

// window cuts the spans of a path, which come newest first, to a page's bounds.
type window struct {
	MessagePage
	own    session.ID
	enough int64 // messages; 0: all
	spans  []Span
	held   int64
}

func (w *window) take(sp Span) error {
	whole := sp
	if w.BeforeRef != nil {
		if !sp.holds(*w.BeforeRef) {
			return nil
		}
		sp.To, w.BeforeRef = w.BeforeRef.Seq-1, nil
	}
	last := false // nothing older is on the page
	if w.AfterRef != nil && whole.holds(*w.AfterRef) {
		sp.From, last, w.AfterRef = w.AfterRef.Seq+1, true, nil
	}
	switch {
	case sp.Session == w.own:
		if w.Before > 0 {
			sp.To = min(sp.To, w.Before-1)
		}
		last = last || sp.From <= w.After
		sp.From = max(sp.From, w.After+1)
	case w.After > 0:
		return engine.ErrEnough
	}
	if sp.From <= sp.To {
		w.spans = append(w.spans, sp)
		w.held += sp.To - sp.From + 1
	}
	if last || w.enough > 0 && w.held >= w.enough {
		return engine.ErrEnough
	}
	return nil
}

// checkBounds says so when a bound was not met on the way back to the root.
func (w *window) checkBounds() error {
	for _, bound := range []struct {
		name string
		ref  *session.MessageRef
	}{{"before", w.BeforeRef}, {"after", w.AfterRef}} {
		if bound.ref == nil || bound.name == "after" && w.enough > 0 && w.held >= w.enough {
			continue
		}
		return session.Errorf(session.Invalid, "%s names %s, which is not on the path of session %s", bound.name, bound.ref,
			w.own).At(bound.name, "not on the path")
	}
	return nil
}

// MessagesAfter reads up to limit messages of all sessions by order of arrival, after the
// row mark, for whoever keeps something derived from them: fewer when they are large, none
// only when there are none. Of a blob it returns the first 8 MiB.
func (s *Store) MessagesAfter(ctx context.Context, mark int64, limit int) ([]session.Message, error) {
	msgs := make([]session.Message, 0, limit)
	if err := s.Read(ctx, intoMessages(&msgs, messagesAfter, mark, limit)); err != nil {
		return nil, err
	}
	size, read := 0, 0
	for read < len(msgs) && size < bytesAfter {
		some := msgs[read:min(read+rowsAfter, len(msgs))]
		if err := s.Read(ctx, intoParts(&some, partsBetween, some[0].RowID, some[len(some)-1].RowID)); err != nil {
			return nil, err
		}
		for i := range some {
			read++
			if err := readBlobs(ctx, s, &some[i]); err != nil {
				return nil, err
			}
			for j := range some[i].Parts {
				if b := some[i].Parts[j].Blob; b != nil {
					b.Data = b.Data[:min(len(b.Data), bytesAfter)]
				}
			}
			if size += SizeOf(&some[i]); size >= bytesAfter {
				break
			}
		}
	}
	msgs = msgs[:read]
	return msgs, nameParents(ctx, s, msgs)
}

const (
	bytesAfter = 8 << 20 // bytes that MessagesAfter returns at once, and those of one message more; of a blob no more
	rowsAfter  = 250     // messages whose texts it reads by one statement
)

const (
	messagesAfter = `SELECT ` + messageColumns + ` FROM messages m WHERE m.id > ? ORDER BY m.id LIMIT +?`
	partsBetween  = `SELECT ` + partColumns + ` FROM parts p
		WHERE p.id BETWEEN (CAST(? AS BIGINT) << 10) AND (CAST(? AS BIGINT) << 10) + 1023 ORDER BY p.id`
)

// LastMessageID returns the row of the newest message, 0 when there is none.
func (s *Store) LastMessageID(ctx context.Context) (int64, error) {
	id, err := engine.Get[int64](ctx, s, `SELECT COALESCE(MAX(id), 0) FROM messages`)
	return id, err
}

// A message's parts are a range of ids, which SQLite reads without an index. PostgreSQL takes such a
// range for a ninth of the table, and asks the policy of parts before it: there an index has them.
var partsOfMessage = pattern.New(`\bp\.id BETWEEN m\.id << 10 AND \(m\.id << 10\) \+ 1023`)

// rewriteForPostgres returns a statement that finds a message's parts by its id.
func rewriteForPostgres(query string) string {
	return partsOfMessage.ReplaceAllString(query, "p.message_id = m.id")
}

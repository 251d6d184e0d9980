package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"sessiond/internal/session"
)

const (
	docBits = 12  // of n in a docid
	step    = 500 // messages in one transaction

	// SQLite's lock is not fair, so that one of several who catch up may wait for long.
	busyWaits = 10 // of two seconds
)

// CatchUp indexes what the store has beyond the mark, in short transactions, and tells how
// many messages it went over. Several processes may do so at once: each message is indexed
// once. A damaged index is made anew from the first message. Codes: Busy.
func (ix *Index) CatchUp(ctx context.Context) (int, error) {
	return ix.CatchUpTelling(ctx, func(int) {})
}

// CatchUpTelling is CatchUp that tells after each step how many messages it went over.
func (ix *Index) CatchUpTelling(ctx context.Context, told func(messages int)) (int, error) {
	total, waits := 0, 0
	healed := false
	for {
		n, done, err := ix.advance(ctx)
		total += n
		told(n)
		switch {
		case (isDamage(err) || isContradiction(err)) && !healed:
			healed = true
			if err := ix.replace(ctx); err != nil {
				return total, fmt.Errorf("make the damaged search index anew: %w", err)
			}
		case isBusy(err):
			if waits++; waits == busyWaits || ctx.Err() != nil {
				return total, session.Errorf(session.Busy, "the search index %s is written by another process; try again: %w", ix.path, err)
			}
		case err != nil:
			return total, fmt.Errorf("catch up the search index: %w", err)
		case done:
			return total, nil
		default:
			waits = 0
		}
	}
}

// advance indexes one step. The messages are read before the transaction, so that it is
// short; if another process moved the mark meanwhile, they are left to it.
func (ix *Index) advance(ctx context.Context) (n int, done bool, err error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.writer == nil {
		return 0, true, errors.New("it is open for reading only")
	}
	mark, err := readMark(ctx, ix.reader)
	if err != nil {
		return 0, false, err
	}
	messages, err := ix.src.MessagesAfter(ctx, mark, step)
	if err != nil || len(messages) == 0 {
		return 0, true, err
	}
	entries, err := entriesOf(ctx, ix.src, messages)
	if err != nil {
		return 0, false, err
	}
	letGo(messages, entries)
	tx, err := ix.writer.BeginTx(ctx, nil)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = tx.Rollback() }()
	now, err := readMark(ctx, tx)
	if err != nil {
		return 0, false, err
	}
	if now != mark {
		return 0, false, nil
	}
	if err := insert(ctx, tx, entries); err != nil {
		return 0, false, err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE state SET mark = ?, boot = ? WHERE id = 1`, messages[len(messages)-1].RowID, bootID()); err != nil {
		return 0, false, err
	}
	if err := tx.Commit(); err != nil {
		return 0, false, err
	}
	return len(messages), false, nil // a few may be all that were given at once
}

// replace makes an index that cannot be used anew.
func (ix *Index) replace(ctx context.Context) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if err := ix.closeFile(); err != nil && !isDamage(err) {
		return err
	}
	if err := removeFile(ix.path); err != nil {
		return err
	}
	return ix.openFile(ctx)
}

// abandon makes a damaged index anew, or, where it is open for reading only, does without.
func (ix *Index) abandon(ctx context.Context) error {
	ix.mu.RLock()
	readOnly := ix.writer == nil
	ix.mu.RUnlock()
	if !readOnly {
		return ix.replace(ctx)
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.why = "it is damaged"
	return ix.closeFile()
}

// empty forgets everything, for an index of another store.
func (ix *Index) empty(ctx context.Context) error {
	tx, err := ix.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := wipe(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

func wipe(ctx context.Context, tx *sql.Tx) error {
	for _, statement := range []string{
		`INSERT INTO words (words) VALUES ('delete-all')`,
		`DELETE FROM docs`,
		`UPDATE state SET mark = 0 WHERE id = 1`,
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// entry is a message as it goes into the index.
type entry struct {
	message           *session.Message
	text, stems, tags string
	words             int
}

// muchText is from how many bytes of entries on the texts that they were made from are let go of
// before the index takes them in, which holds them once more.
const muchText = 4 << 20

func letGo(messages []session.Message, entries []entry) {
	size := 0
	for i := range entries {
		size += len(entries[i].text) + len(entries[i].stems)
	}
	if size < muchText {
		return
	}
	for i := range messages {
		messages[i].Parts = nil
	}
	debug.FreeOSMemory()
}

// entriesOf gives the entries of those messages that hold something to find.
func entriesOf(ctx context.Context, src Source, messages []session.Message) ([]entry, error) {
	sessions := map[session.ID]session.Session{}
	var entries []entry
	for i := range messages {
		m := &messages[i]
		text := searchable(m)
		if text == "" {
			continue
		}
		s, ok := sessions[m.SessionID]
		if !ok {
			var err error
			if s, err = src.Session(ctx, m.SessionID); err != nil && session.CodeOf(err) != session.NotFound {
				return nil, fmt.Errorf("session %s: %w", m.SessionID, err)
			}
			sessions[m.SessionID] = s
		}
		n := normalize(text, true)
		entries = append(entries, entry{m, n.text, n.stems, tagsOf(m, &s), n.words})
	}
	return entries, nil
}

// searchable gives the text by which a message is found: what was said and thought, what
// tools were called with and what they answered.
func searchable(m *session.Message) string {
	switch m.Kind {
	case session.KindCustom, session.KindMarker, session.KindUnknown:
		return ""
	}
	var texts []string
	size := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if size > maxText { // the rest is not indexed
			break
		}
		switch p.Kind {
		case session.PartText, session.PartRefusal, session.PartToolResult, session.PartReasoning:
			if text := p.Content(); text != "" {
				texts = append(texts, text)
				size += len(text)
			}
		case session.PartToolCall:
			texts = append(texts, p.ToolName+" "+argumentText(p.Arguments))
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return strings.Join(texts, "\n")
}

// argumentText gives the words of a call's arguments. They are JSON: its escapes would stick
// to the words behind them, \n to the next line's first.
func argumentText(arguments string) string {
	var words []string
	dec := json.NewDecoder(strings.NewReader(arguments))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(words, " ")
		}
		if err != nil {
			return arguments
		}
		switch v := token.(type) {
		case string:
			words = append(words, v)
		case json.Number:
			words = append(words, v.String())
		}
	}
}

func insert(ctx context.Context, tx *sql.Tx, entries []entry) error {
	last, err := tx.PrepareContext(ctx, `SELECT MAX(docid) FROM docs WHERE docid BETWEEN ? AND ?`)
	if err != nil {
		return err
	}
	defer func() { _ = last.Close() }()
	doc, err := tx.PrepareContext(ctx, `INSERT INTO docs (docid, message_id, session_id, seq, words) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (docid) DO NOTHING`)
	if err != nil {
		return err
	}
	defer func() { _ = doc.Close() }()
	words, err := tx.PrepareContext(ctx, `INSERT INTO words (rowid, text, stems, tags) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = words.Close() }()
	for _, e := range entries {
		docid, err := insertDoc(ctx, doc, last, &e)
		if err != nil {
			return fmt.Errorf("message %d: %w", e.message.RowID, err)
		}
		if _, err := words.ExecContext(ctx, docid, e.text, e.stems, e.tags); err != nil {
			return fmt.Errorf("message %d: %w", e.message.RowID, err)
		}
	}
	return nil
}

// insertDoc gives a message its docid: the first of its moment, which is nearly always free,
// else the next one that is.
func insertDoc(ctx context.Context, doc, last *sql.Stmt, e *entry) (docid int64, err error) {
	docid = millis(e.message.CreatedAt) << docBits
	for {
		res, err := doc.ExecContext(ctx, docid, e.message.RowID, string(e.message.SessionID), e.message.Seq, e.words)
		if err != nil {
			return 0, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return docid, err
		}
		if docid, err = freeDocID(ctx, last, e.message.CreatedAt); err != nil {
			return 0, err
		}
	}
}

// freeDocID finds the next docid of a moment. More than 4,096 messages of one millisecond
// (a source that knows only the day) run over into the next ones.
func freeDocID(ctx context.Context, last *sql.Stmt, at session.Time) (int64, error) {
	for ms := millis(at); ; ms++ {
		var top sql.NullInt64
		if err := last.QueryRowContext(ctx, ms<<docBits, ms<<docBits|(1<<docBits-1)).Scan(&top); err != nil {
			return 0, err
		}
		if !top.Valid {
			return ms << docBits, nil
		}
		if top.Int64 < ms<<docBits|(1<<docBits-1) {
			return top.Int64 + 1, nil
		}
	}
}

// millis gives milliseconds since 1970; earlier times count as that moment.
func millis(t session.Time) int64 { return max(0, t.UnixMilli()) }

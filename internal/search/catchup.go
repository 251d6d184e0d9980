package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/text"
)

const (
	docBits = 12   // of n in a docid
	step    = 500  // messages that are read at once
	batch   = 2000 // messages that CatchUp indexes in one transaction

	// SQLite's lock is not fair: one of several processes that catch up may wait for long.
	maxBusyWaits = 10 // of two seconds
)

// CatchUp indexes the store's messages beyond the mark, in short transactions, and returns their
// number. Several processes may do so at once: each message is indexed once. A damaged index is
// built again. Codes: Busy.
func (ix *Index) CatchUp(ctx context.Context) (int, error) {
	return ix.CatchUpWithProgress(ctx, func(int) {})
}

// CatchUpWithProgress is CatchUp that calls progress after each step with its number of messages.
func (ix *Index) CatchUpWithProgress(ctx context.Context, progress func(messages int)) (int, error) {
	if err := ix.stopWaiting(ctx); err != nil {
		return 0, err
	}
	total, waits := 0, 0
	rebuilt, compared := false, false
	for {
		n, done, err := ix.advance(ctx, !compared)
		compared = compared || err == nil
		total += n
		progress(n)
		switch {
		case (isDamage(err) || isContradiction(err)) && !rebuilt:
			rebuilt = true
			if err := ix.replace(ctx); err != nil {
				return total, fmt.Errorf("rebuild the damaged search index: %w", err)
			}
		case isBusy(err):
			if waits++; waits == maxBusyWaits || ctx.Err() != nil {
				return total, session.Errorf(session.Busy, "another process is writing the search index %s; try again: %w", ix.path,
					err)
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

// stopWaiting opens an index for writing that Open opened read-only on a full disk.
func (ix *Index) stopWaiting(ctx context.Context) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if !ix.waits {
		return nil
	}
	if err := ix.closeFile(); err != nil {
		return err
	}
	err := ix.openToWrite(ctx)
	if err == nil {
		ix.waits, ix.reason = false, ""
		return nil
	}
	if reader, readErr := openExisting(ctx, ix.path); readErr == nil {
		ix.reader = reader
	}
	return fmt.Errorf("open the search index %s: %w", ix.path, err)
}

// advance indexes one step, the first one after a comparison with the store. It reads the messages before the
// transaction, so that this is short. If another process moved the mark meanwhile, that process indexes them.
func (ix *Index) advance(ctx context.Context, first bool) (n int, done bool, err error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.writer == nil {
		return 0, true, errors.New("it is open read-only")
	}
	if first {
		if err := ix.rewind(ctx); err != nil {
			return 0, false, err
		}
	}
	mark, err := readMark(ctx, ix.reader)
	if err != nil {
		return 0, false, err
	}
	messages, err := ix.src.MessagesAfter(ctx, mark, batch)
	if err != nil || len(messages) == 0 {
		return 0, true, err
	}
	entries, err := ix.entriesOf(ctx, messages)
	if err != nil {
		return 0, false, err
	}
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
	last := &messages[len(messages)-1]
	if _, err := tx.ExecContext(ctx, `UPDATE state SET mark = ?, mark_message = ?, boot = ? WHERE id = 1`, last.RowID, identity(last), bootID()); err != nil {
		return 0, false, err
	}
	if err := tx.Commit(); err != nil {
		return 0, false, err
	}
	return len(messages), false, nil
}

// replace replaces the file with an empty index.
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

// abandon replaces a damaged index, or closes one that is open read-only.
func (ix *Index) abandon(ctx context.Context) error {
	ix.mu.RLock()
	readOnly := ix.writer == nil
	ix.mu.RUnlock()
	if !readOnly {
		return ix.replace(ctx)
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.reason = "it is damaged"
	return ix.closeFile()
}

// empty deletes all rows of an index of another store.
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
		`UPDATE state SET mark = 0, docs = 0, words = 0, languages = 0`,
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// entry is the row of a message in the index.
type entry struct {
	message  *session.Message
	at       int64 // its place in the order of time, in milliseconds
	language text.Language
	norm     text.Tokens
	tags     string
}

// entriesOf is the function entriesOf, with the stems of earlier messages.
func (ix *Index) entriesOf(ctx context.Context, messages []session.Message) ([]entry, error) {
	ix.tokenizer.Lock()
	defer ix.tokenizer.Unlock()
	if ix.tokenizer.Tokenizer == nil {
		ix.tokenizer.Tokenizer = text.NewTokenizer()
	}
	return entriesOf(ctx, ix.src, ix.tokenizer.Tokenizer, messages)
}

// entriesOf returns the entries of the messages with searchable text.
func entriesOf(ctx context.Context, src Source, n *text.Tokenizer, messages []session.Message) ([]entry, error) {
	sessions := map[session.ID]session.Session{}
	var entries []entry
	for i := range messages {
		m := &messages[i]
		content := searchableText(m)
		if content == "" {
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
		in := text.LanguageOf(content)
		entries = append(entries, entry{m, millisOf(m, &s), in, n.Tokenize(content, in, true), tagsOf(m, &s)})
	}
	return entries, nil
}

// searchableText returns the text that a message is found by: spoken text, reasoning, and the arguments
// and results of tool calls. Rows of the program itself, as its lists of skills, are the same in each session, and
// nobody looks for them.
func searchableText(m *session.Message) string { return textOf(m, false) }

// shownText is searchableText as people read it: a call looks like one, and texts are without the tags of programs.
func shownText(m *session.Message) string { return textOf(m, true) }

func textOf(m *session.Message, readable bool) string {
	if m.Talk == session.OfProgram || m.Kind == session.KindMarker {
		return ""
	}
	var texts []string
	size := 0
	for i := range m.Parts {
		if size > text.MaxText { // the rest is not indexed
			break
		}
		text := ""
		switch p := &m.Parts[i]; p.Kind {
		case session.PartText, session.PartRefusal, session.PartToolResult, session.PartReasoning:
			text = session.WithoutEcho(p.Content())
			switch {
			case readable && p.Kind == session.PartToolResult:
				text = session.ReadableResult(text)
			case readable && m.Role == session.User:
				text = session.ReadableText(text)
			}
		case session.PartToolCall:
			text = p.ToolName + " " + argumentWords(p.Arguments)
			if readable {
				text = namedArguments(p.ToolName, p.Arguments)
			}
		}
		if text != "" {
			texts = append(texts, text)
			size += len(text)
		}
	}
	return strings.Join(texts, "\n")
}

// saysNothing reports whether a message is only the call or the output of a tool.
func saysNothing(m *session.Message) bool {
	return m.Role == session.Tool || !slices.ContainsFunc(m.Parts, func(p session.Part) bool {
		return p.Kind == session.PartText || p.Kind == session.PartRefusal || p.Kind == session.PartReasoning
	})
}

// argumentWords returns the strings and numbers of a call's JSON arguments without escapes: the n of an
// escaped line break is no part of the next word.
func argumentWords(arguments string) string {
	var words []string
	dec := jsontext.NewDecoder(strings.NewReader(arguments), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return strings.Join(words, " ")
		}
		if err != nil {
			return arguments
		}
		if kind := token.Kind(); kind == jsontext.KindString || kind == jsontext.KindNumber {
			words = append(words, token.String())
		}
	}
}

// namedArguments returns a call with its arguments by name: Bash(command: git rebase --continue, description: Go on).
func namedArguments(tool, arguments string) string {
	dec := jsontext.NewDecoder(strings.NewReader(arguments), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
		return tool + " " + argumentWords(arguments)
	}
	var named []string
	for dec.PeekKind() == jsontext.KindString {
		name, err := dec.ReadToken()
		if err != nil {
			return tool + " " + argumentWords(arguments)
		}
		word := name.String() // the next reading overwrites the token
		value, err := dec.ReadValue()
		if err != nil {
			return tool + " " + argumentWords(arguments)
		}
		text := argumentWords(string(value))
		if kind := value.Kind(); kind == jsontext.KindTrue || kind == jsontext.KindFalse {
			text = string(value)
		}
		named = append(named, word+": "+text)
	}
	if _, err := dec.ReadToken(); err != nil { // it is cut
		return tool + " " + argumentWords(arguments)
	}
	return tool + "(" + strings.Join(named, ", ") + ")"
}

func insert(ctx context.Context, tx *sql.Tx, entries []entry) error {
	last, err := tx.PrepareContext(ctx, `SELECT MAX(docid) FROM docs WHERE docid BETWEEN ? AND ?`)
	if err != nil {
		return err
	}
	defer func() { _ = last.Close() }()
	doc, err := tx.PrepareContext(ctx, `INSERT INTO docs (docid, message_id, session_id, seq, words, tool) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (docid) DO NOTHING`)
	if err != nil {
		return err
	}
	defer func() { _ = doc.Close() }()
	words, err := tx.PrepareContext(ctx, `INSERT INTO words (rowid, stems, inflected, tags) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = words.Close() }()
	total, languages := 0, 0
	newest := map[int64]int64{} // the last docid of a time, of the rows that this transaction inserted
	stop, ctx := ctx, context.WithoutCancel(ctx)
	for _, e := range entries {
		if err := stop.Err(); err != nil {
			return err
		}
		docid, err := insertDoc(ctx, doc, last, &e, newest)
		if err != nil {
			return fmt.Errorf("message %d: %w", e.message.RowID, err)
		}
		if _, err := words.ExecContext(ctx, docid, e.norm.Stems, e.norm.Inflected+" "+e.norm.Symbols, e.tags); err != nil {
			return fmt.Errorf("message %d: %w", e.message.RowID, err)
		}
		total += e.norm.Count
		languages |= 1 << e.language
	}
	_, err = tx.ExecContext(ctx, `UPDATE state SET docs = docs + ?, words = words + ?, languages = languages | ?`, len(entries), total, languages)
	return err
}

// insertDoc inserts a message's row and returns its docid: the one behind the newest of its time, else the first one of
// its time. These are nearly always free, else it is the next free one.
func insertDoc(ctx context.Context, doc, last *sql.Stmt, e *entry, newest map[int64]int64) (docid int64, err error) {
	defer func() { newest[e.at] = docid }()
	docid = e.at << docBits
	if before, ok := newest[e.at]; ok {
		docid = before + 1
	}
	for {
		res, err := doc.ExecContext(ctx, docid, e.message.RowID, string(e.message.SessionID), e.message.Seq, e.norm.Count,
			saysNothing(e.message))
		if err != nil {
			return 0, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return docid, err
		}
		if docid, err = freeDocID(ctx, last, max(e.at, docid>>docBits)); err != nil {
			return 0, err
		}
	}
}

// freeDocID returns the next free docid of a time. More than 4,096 messages of one millisecond (of a
// source that knows only the day) overflow into the next ones.
func freeDocID(ctx context.Context, last *sql.Stmt, at int64) (int64, error) {
	for ms := at; ; ms++ {
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

// millisOf returns the place of a message in the order of time, in milliseconds. A message from the future, of a wrong
// clock, would be the newest for ever: it has the time of its session's last change, which it did not arrive after.
func millisOf(m *session.Message, of *session.Session) int64 {
	if !of.UpdatedAt.IsZero() && m.CreatedAt.After(of.UpdatedAt.Time) {
		return millis(of.UpdatedAt)
	}
	return millis(m.CreatedAt)
}

// millis returns milliseconds since 1970; 0 for earlier times.
func millis(t session.Time) int64 { return max(0, t.UnixMilli()) }

// languagesIn returns the languages of the texts that are indexed, but English.
func languagesIn(ctx context.Context, places []queryer) (found []text.Language, err error) {
	bits := 0
	for _, place := range places {
		n := 0
		if err := place.QueryRowContext(ctx, `SELECT languages FROM state`).Scan(&n); err != nil {
			return nil, err
		}
		bits |= n
	}
	for _, l := range []text.Language{text.German, text.French} {
		if bits&(1<<l) != 0 {
			found = append(found, l)
		}
	}
	return found, nil
}

// Package search finds messages: for people by GET /v1/search and `sessiond search`, for the context
// manager as recall. Its index is search.db beside sessions.db, an FTS5 table without a copy of the
// text. It is derived data: when it is missing, damaged or of another version, it is built again.
package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"sessiond/internal/session"
	"sessiond/internal/text"
)

// Source provides the messages: the store.
type Source interface {
	// MessagesAfter returns messages of all sessions with a row id above mark, in its order, with
	// their parts and the beginnings of blobs; fewer than limit when they are large.
	MessagesAfter(ctx context.Context, mark int64, limit int) ([]session.Message, error)
	LastMessageID(ctx context.Context) (int64, error)
	MessageByID(ctx context.Context, rowID int64) (session.Message, error)
	// MessagesByID returns the existing ones, in the order of rows.
	MessagesByID(ctx context.Context, rowIDs []int64) ([]session.Message, error)
	// EachHead yields the existing ones in the order of rows, one at a time, with the beginnings of large parts.
	EachHead(ctx context.Context, rowIDs []int64, head session.Head, yield func(*session.Message) error) error
	MessageHead(ctx context.Context, ref session.MessageRef, head session.Head) (session.Message, error)
	Session(ctx context.Context, id session.ID) (session.Session, error)
	// Outlines returns the existing ones of some sessions, without their settings, counts and metadata.
	Outlines(ctx context.Context, ids []session.ID) ([]session.Session, error)
	// SessionsNamed returns the sessions whose title, project or branch has one of the texts in it, in small
	// letters; the newest if there are very many.
	SessionsNamed(ctx context.Context, texts []string) ([]session.Session, error)
	// MarksWith returns the tags and notes that have one of the texts in them, in small letters; the newest if there
	// are very many.
	MarksWith(ctx context.Context, texts []string) ([]session.Mark, error)
	// Heir returns a fork that shares a message whose own session was purged. Codes: NotFound.
	Heir(ctx context.Context, ref session.MessageRef) (session.Session, error)
	// SharedPath returns the path that a fork shares, as runs from a first to a last message; none
	// for other sessions.
	SharedPath(ctx context.Context, id session.ID) ([][2]session.MessageRef, error)
}

// Index is an open search.db. It is safe for concurrent use, also by several processes.
type Index struct {
	path string
	src  Source
	tail tail

	mu     sync.RWMutex // write-locked while the file is replaced
	writer *sql.DB      // nil: opened read-only
	reader *sql.DB      // nil: no usable index
	reason string       // why not
	waits  bool         // for room on the disk, to be opened for writing

	tokenizer struct { // of CatchUp, one step at a time; it remembers stems between them
		sync.Mutex
		*text.Tokenizer
	}

	strays map[session.ID]int // what Strays returns
}

// Open opens the index at path. It creates an empty one, until CatchUp, when the index is missing,
// damaged, of another version or of another store. On a full disk it opens what is there read-only
// until CatchUp can write it.
func Open(ctx context.Context, path string, src Source) (*Index, error) {
	ix := &Index{path: path, src: apart{src}}
	err := ix.openToWrite(ctx)
	if isFull(err) {
		if ix, err = OpenReadOnly(ctx, path, src); err == nil {
			ix.waits = true
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the search index %s: %w", path, err)
	}
	return ix, nil
}

func (ix *Index) openToWrite(ctx context.Context) error {
	if err := ix.openFile(ctx); err != nil {
		return err
	}
	if err := ix.rewind(ctx); err != nil {
		return errors.Join(err, ix.closeFile())
	}
	return nil
}

// OpenReadOnly opens the index at path without writing anything. Without a usable index, searches
// read the newest part of the store instead, and Reason says why.
func OpenReadOnly(ctx context.Context, path string, src Source) (*Index, error) {
	ix := &Index{path: path, src: apart{src}}
	reader, err := openExisting(ctx, path)
	if err != nil {
		ix.reason = err.Error()
		return ix, nil
	}
	ix.reader = reader
	if fits, err := ix.fitsStore(ctx); err != nil || !fits {
		ix.reason = "it belongs to another store"
		if err != nil {
			ix.reason = err.Error()
		}
		ix.reader = nil
		return ix, reader.Close()
	}
	return ix, nil
}

// Reason returns the reason why a read-only index is not used; "" if it is used.
func (ix *Index) Reason() string { return ix.reason }

// Close closes the index and empties the write-ahead log, so that one file remains.
func (ix *Index) Close() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return errors.Join(ix.tail.close(), ix.closeFile())
}

func (ix *Index) closeFile() error {
	var errs []error
	if ix.reader != nil {
		errs = append(errs, ix.reader.Close())
	}
	if ix.writer != nil {
		// An index that is not sealed is complete for the next start, or built again.
		if err := seal(ix.writer); err != nil && !isDamage(err) && !isUnwritable(err) {
			errs = append(errs, err)
		}
		errs = append(errs, ix.writer.Close())
	}
	ix.reader, ix.writer = nil, nil
	return errors.Join(errs...)
}

// fitsStore reports whether the message at the mark, or else the newest one with a row, is still the store's.
// It is not after the database was replaced by another one or by an older backup.
func (ix *Index) fitsStore(ctx context.Context) (bool, error) {
	fits, err := ix.markFits(ctx)
	if fits || err != nil {
		return fits, err
	}
	_, stray, err := ix.newestShared(ctx)
	return len(stray) == 0, err
}

// markFits reports whether the message at the mark is still the store's.
func (ix *Index) markFits(ctx context.Context) (bool, error) {
	var mark int64
	var wanted string
	err := ix.reader.QueryRowContext(ctx, `SELECT mark, mark_message FROM state WHERE id = 1`).Scan(&mark, &wanted)
	if err != nil || mark == 0 {
		return err == nil, err
	}
	m, err := ix.src.MessageByID(ctx, mark)
	if session.CodeOf(err) == session.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("compare with the store: %w", err)
	}
	return identity(&m) == wanted, nil
}

// identity tells a message from another one with its row id. After a restore ids of sessions are used again, too.
func identity(m *session.Message) string { return fmt.Sprintf("%s %d", m.ID, m.CreatedAt.UnixMilli()) }

// rewind deletes the newest rows, up to one that is still the store's, if the message at the mark is not: the
// database was replaced by an older one, a server took over that lacks the last writes, or the message was
// purged. Row ids may be used again by now, with other messages. The caller holds mu.
func (ix *Index) rewind(ctx context.Context) error {
	if fits, err := ix.markFits(ctx); fits || err != nil {
		return err
	}
	shared, stray, err := ix.newestShared(ctx)
	if err != nil {
		return err
	}
	if ix.strays, err = ix.sessionsOf(ctx, stray); err != nil {
		return err
	}
	if shared == nil {
		err = ix.empty(ctx)
	} else {
		err = ix.deleteRows(ctx, stray, shared)
	}
	if err != nil {
		return err
	}
	return ix.tail.close()
}

// Strays returns how many messages of each session the index had that the store has no more, or has others in their
// places, when it was opened; of very many, the newest. It has dropped them.
func (ix *Index) Strays() map[session.ID]int { return ix.strays }

// sessionsOf counts rows by session.
func (ix *Index) sessionsOf(ctx context.Context, messages []int64) (map[session.ID]int, error) {
	counts := map[session.ID]int{}
	for rows := range slices.Chunk(messages, step) {
		marks := strings.TrimSuffix(strings.Repeat("?,", len(rows)), ",")
		args := make([]any, len(rows))
		for i := range rows {
			args[i] = rows[i]
		}
		ids, err := readRows(ctx, ix.reader, scanValue[session.ID],
			`SELECT session_id FROM docs WHERE message_id IN (`+marks+`)`, args...)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			counts[id]++
		}
	}
	return counts, nil
}

// strayLimit is the number of stray rows after which an index is taken for another store's: each costs a look-up.
const strayLimit = 10_000

// newestShared returns the newest message with a row that is still the store's, nil if there is none, and the
// newer rows: of messages that the store has no more, or that are others now.
func (ix *Index) newestShared(ctx context.Context) (shared *session.Message, stray []int64, err error) {
	for before := int64(math.MaxInt64); len(stray) < strayLimit; {
		docs, err := ix.docsBefore(ctx, before)
		if err != nil || len(docs) == 0 {
			return nil, stray, err
		}
		for _, d := range docs {
			m, err := ix.src.MessageByID(ctx, d.rowID)
			if err != nil && session.CodeOf(err) != session.NotFound {
				return nil, nil, fmt.Errorf("compare with the store: %w", err)
			}
			if err == nil && m.ID == d.ref() {
				of, err := ix.src.Session(ctx, m.SessionID)
				if err != nil && session.CodeOf(err) != session.NotFound {
					return nil, nil, fmt.Errorf("compare with the store: %w", err)
				}
				if d.isAt(millisOf(&m, &of)) {
					return &m, stray, nil
				}
			}
			stray = append(stray, d.rowID)
		}
		before = docs[len(docs)-1].rowID
	}
	return nil, stray, nil
}

// isAt reports whether a row is of a time in milliseconds. A full millisecond may have pushed it into a later one.
func (d doc) isAt(ms int64) bool {
	late := d.docid>>docBits - ms
	return late >= 0 && late < 1000
}

// docsBefore returns the rows of messages before a row id, newest first; at most step.
func (ix *Index) docsBefore(ctx context.Context, before int64) ([]doc, error) {
	return readRows(ctx, ix.reader, func(rows *sql.Rows, d *doc) error { return rows.Scan(&d.docid, &d.rowID, &d.session, &d.seq) }, `
		SELECT docid, message_id, session_id, seq FROM docs WHERE message_id < ? ORDER BY message_id DESC LIMIT ?`, before, step)
}

// Mark returns the row id of the last indexed message.
func (ix *Index) Mark(ctx context.Context) (int64, error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.reader == nil {
		return 0, nil
	}
	return readMark(ctx, ix.reader)
}

// beginRead begins a transaction on the index, if there is one, so that the mark fits the words: what
// is below it is in the index, what is above it in the tail. end ends it. The caller holds mu.
func (ix *Index) beginRead(ctx context.Context) (places []queryer, mark int64, end func(), err error) {
	if ix.reader == nil {
		return nil, 0, func() {}, nil
	}
	ctx = context.WithoutCancel(ctx) // the driver starts goroutines for each query that can be cancelled
	tx, err := ix.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, nil, err
	}
	if mark, err = readMark(ctx, tx); err != nil {
		return nil, 0, nil, errors.Join(err, tx.Rollback())
	}
	return []queryer{tx}, mark, func() { _ = tx.Rollback() }, nil
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readRows reads all rows of a query.
func readRows[T any](ctx context.Context, db queryer, scan func(*sql.Rows, *T) error, query string,
	args ...any,
) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var row T
		if err := scan(rows, &row); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// scanValue scans the only column of a row.
func scanValue[T any](rows *sql.Rows, value *T) error { return rows.Scan(value) }

func readMark(ctx context.Context, db queryer) (int64, error) {
	var mark int64
	err := db.QueryRowContext(ctx, `SELECT mark FROM state WHERE id = 1`).Scan(&mark)
	return mark, err
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// The writing connection of the store has these settings; a baseline must have them too.
func writerPragmas() []string {
	return []string{
		"busy_timeout(250)", "auto_vacuum(incremental)", "secure_delete(1)", "foreign_keys(1)", "synchronous(full)",
		"wal_autocheckpoint(4000)", "cache_size(-32768)", "temp_store(memory)",
	}
}

// floor is the least that an append can be: the statements that store message, part and
// session, prepared, straight on the driver, on a file with the same schema and settings.
type floor struct {
	db   *sql.DB
	conn *sql.Conn
	path string
	text string // of a message

	session            session.ID
	row, seq, pathSize int64

	stmts map[string]*sql.Stmt
}

const (
	bareMessage = `INSERT INTO messages (session_id, seq, parent_id, jump, depth, kind, role, origin, finish, author,
		tokens, path_tokens, in_context, display, provider, model, dialect, external_id, day, created_at, metadata, extra)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	barePart = `INSERT INTO parts (id, message_id, idx, kind, text, tool_name, call_id, call_part_id, arguments, is_error, duration_ms, blob, tokens, extra)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	bareSession = `UPDATE sessions SET head_id = ?, last_seq = ?, revision = ?, message_count = ?, total_tokens = ?, context_tokens = ?,
		turn_origin = ?, active_at = ?, inbound_at = ?, updated_at = ? WHERE id = ?`
	day    = "2026-02-11"
	moment = "2026-02-11 10:00:15.123"
)

// newFloor makes an empty database as the store makes it, with one session, changes its
// schema by ddl, and opens it with pragmas.
func (b *bench) newFloor(ctx context.Context, name string, pragmas []string, ddl ...string) (*floor, error) {
	path := filepath.Join(b.work, "floor-"+name, "sessions.db")
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, path, options())
	if err != nil {
		return nil, err
	}
	made, err := s.CreateSession(ctx, store.NewSession{Title: "A title"})
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	f := &floor{path: path, session: made.ID, stmts: map[string]*sql.Stmt{}, text: b.text}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": append([]string{"journal_mode(wal)"}, pragmas...)}.Encode()}
	if f.db, err = sql.Open("sqlite", dsn.String()); err != nil {
		return nil, err
	}
	if f.conn, err = f.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, f.db.Close())
	}
	for _, statement := range ddl {
		if _, err := f.conn.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", statement, err), f.close())
		}
	}
	return f, nil
}

func (f *floor) close() error {
	var errs []error
	for _, st := range f.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, f.conn.Close(), f.db.Close())...)
}

func (f *floor) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := f.stmts[query]; ok {
		return st, nil
	}
	st, err := f.conn.PrepareContext(ctx, query)
	if err == nil {
		f.stmts[query] = st
	}
	return st, err
}

func (f *floor) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := f.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

// part is what a bare message holds other than plain text.
type part struct {
	kind                    string
	tool, callID, arguments string
	answers                 bool // the part of the message before it
	external                bool // the message has an id of its source
}

// transact appends k messages in one transaction, with what also adds to each.
func (f *floor) transact(ctx context.Context, k int, p part, also func(context.Context, *floor) error) error {
	if _, err := f.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	for range k {
		err := f.message(ctx, p)
		if err == nil && also != nil {
			err = also(ctx, f)
		}
		if err != nil {
			_, _ = f.exec(ctx, `ROLLBACK`) // the first error is the one to tell
			return err
		}
	}
	_, err := f.exec(ctx, `COMMIT`)
	return err
}

func (f *floor) message(ctx context.Context, p part) error {
	var parent any
	if f.row > 0 {
		parent = f.row
	}
	f.seq++
	const tokens = 60
	f.pathSize += tokens
	external := ""
	if p.external {
		external = fmt.Sprintf("entry-%d", f.seq)
	}
	res, err := f.exec(ctx, bareMessage, string(f.session), f.seq, parent, false, f.seq-1, "message", "user", "person", "", "",
		tokens, f.pathSize, true, true, "", "", "openai.chat", external, day, moment, nil, nil)
	if err != nil {
		return err
	}
	if f.row, err = res.LastInsertId(); err != nil {
		return err
	}
	if p.kind == "" {
		p.kind = "text"
	}
	var callPart any
	if p.answers {
		callPart = (f.row - 1) << 10
	}
	if _, err := f.exec(ctx, barePart, f.row<<10, f.row, 0, p.kind, f.text, p.tool, p.callID, callPart, p.arguments, nil, nil, nil, tokens, nil); err != nil {
		return err
	}
	_, err = f.exec(ctx, bareSession, f.row, f.seq, f.seq, f.seq, f.pathSize, f.pathSize, "person", moment, moment, moment, string(f.session))
	return err
}

// appends is the variant that appends n messages, k to a transaction.
func (f *floor) appends(name string, k int) variant {
	return variant{name: name, run: func(ctx context.Context, n int) error {
		for done := 0; done < n; done += k {
			if err := f.transact(ctx, min(k, n-done), part{}, nil); err != nil {
				return err
			}
		}
		return nil
	}}
}

// script writes n appends as SQL text for the sqlite3 shell, and moves on as if done.
func (f *floor) script(n int) string {
	var b strings.Builder
	for _, p := range writerPragmas() {
		name, value, _ := strings.Cut(strings.TrimSuffix(p, ")"), "(")
		fmt.Fprintf(&b, "PRAGMA %s = %s;\n", name, value)
	}
	text := "'" + strings.ReplaceAll(f.text, "'", "''") + "'"
	for range n {
		parent := "NULL"
		if f.row > 0 {
			parent = fmt.Sprint(f.row)
		}
		f.row, f.seq, f.pathSize = f.row+1, f.seq+1, f.pathSize+60
		fmt.Fprintf(&b, `BEGIN IMMEDIATE;
			INSERT INTO messages (session_id, seq, parent_id, jump, depth, kind, role, origin, finish, author,
			tokens, path_tokens, in_context, display, provider, model, dialect, external_id, day, created_at, metadata, extra)
			VALUES ('%s', %d, %s, 0, %d, 'message', 'user', 'person', '', '', 60, %d, 1, 1, '', '', 'openai.chat', '', '%s', '%s', NULL, NULL);
			INSERT INTO parts (id, message_id, idx, kind, text, tool_name, call_id, call_part_id, arguments, is_error, duration_ms, blob, tokens, extra)
			VALUES (%d, %d, 0, 'text', %s, '', '', NULL, '', NULL, NULL, NULL, 60, NULL);
			UPDATE sessions SET head_id = %d, last_seq = %d, revision = %d, message_count = %d, total_tokens = %d, context_tokens = %d,
			turn_origin = 'person', active_at = '%s', inbound_at = '%s', updated_at = '%s' WHERE id = '%s';
			COMMIT;
`, f.session, f.seq, parent, f.seq-1, f.pathSize, day, moment, f.row<<10, f.row, text,
			f.row, f.seq, f.seq, f.seq, f.pathSize, f.pathSize, moment, moment, moment, f.session)
	}
	return b.String()
}

package bench_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver that the product uses

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// Settings of the store's connections, which a baseline must have too.
func writerPragmas() []string {
	return []string{
		"secure_delete(1)", "foreign_keys(1)", "synchronous(full)", "wal_autocheckpoint(4000)",
		"cache_size(-32768)", "temp_store(memory)",
	}
}

func readerPragmas() []string {
	return []string{"query_only(1)", "cache_size(-16384)", "temp_store(memory)"}
}

// bare runs prepared statements straight on the driver.
type bare struct {
	*sql.DB
	stmts map[string]*sql.Stmt
}

func openBare(tb testing.TB, path string, pragmas []string) *bare {
	tb.Helper()
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": append([]string{"busy_timeout(250)"},
		pragmas...)}.Encode()}
	db := testkit.Must(sql.Open("sqlite", dsn.String()))(tb)
	db.SetMaxOpenConns(1)
	f := &bare{db, map[string]*sql.Stmt{}}
	tb.Cleanup(func() { testkit.Check(tb, db.Close()) })
	return f
}

func (f *bare) prepared(query string) (*sql.Stmt, error) {
	if st, ok := f.stmts[query]; ok {
		return st, nil
	}
	st, err := f.Prepare(query)
	f.stmts[query] = st
	return st, err
}

func (f *bare) exec(query string, args ...any) error {
	st, err := f.prepared(query)
	if err == nil {
		_, err = st.Exec(args...)
	}
	return err
}

// read reads every column of every row and makes nothing of it.
func (f *bare) read(query string, args ...any) error {
	st, err := f.prepared(query)
	if err != nil {
		return err
	}
	rows, err := st.Query(args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	raw, dest := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
	for i := range raw {
		dest[i] = &raw[i]
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readMessages reads a session and its messages of seqs from … to.
func (f *bare) readMessages(id session.ID, from, to int64) error {
	for _, query := range []string{
		`SELECT m.id, m.session_id, m.seq, m.parent_id, m.jump, m.depth, m.kind, m.role, m.origin, m.finish, m.author,
			m.tokens, m.path_tokens, m.in_context, m.display, m.provider, m.model, m.dialect, m.external_id, m.day,
			m.created_at, m.metadata, m.extra FROM messages m WHERE m.session_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq`,
		`SELECT p.id, p.message_id, p.idx, p.kind, p.text, p.tool_name, p.call_id, p.call_part_id, p.arguments,
			p.is_error, p.duration_ms, p.blob, p.tokens, p.extra, b.size, b.media_type, b.data FROM messages m
			JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
			LEFT JOIN blobs b ON b.sha256 = p.blob
			WHERE m.session_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq, p.id`,
	} {
		if err := f.read(query, string(id), from, to); err != nil {
			return err
		}
	}
	return f.read(`SELECT * FROM sessions WHERE id = ?`, string(id))
}

// floor appends with the least that an append can be: the INSERTs of message and part and the UPDATE
// of the session, on a file with the schema and settings of the store.
type floor struct {
	*bare
	path    string
	text    string
	session session.ID
	row     int64 // of the last message
}

func openFloor(tb testing.TB, text string) *floor {
	tb.Helper()
	f := &floor{path: filepath.Join(tb.TempDir(), "sessions.db"), text: text}
	s := testkit.Must(store.Open(tb.Context(), f.path, options()))(tb)
	f.session = testkit.Must(s.CreateSession(tb.Context(), store.NewSession{Title: "A title"}))(tb).ID
	testkit.Check(tb, s.Close())
	f.bare = openBare(tb, f.path, append([]string{"journal_mode(wal)"}, writerPragmas()...))
	return f
}

type statement struct {
	query string
	args  []any
}

// next returns the statements that append one message.
func (f *floor) next() []statement {
	var parent any
	if f.row > 0 {
		parent = f.row
	}
	f.row++
	seq, path := f.row, f.row*floorTokens
	return appendStatements(place{string(f.session), seq, seq - 1, parent, path, f.row, f.row << 10}, f.text)
}

const floorTokens = 60

// place is where a message goes: numbers and texts, or variables of pgbench.
type place struct{ session, seq, depth, parent, path, row, part any }

func appendStatements(at place, text any) []statement {
	const day, moment = "2026-02-11", "2026-02-11 10:00:15.123"
	return []statement{
		{`INSERT INTO messages (session_id, seq, parent_id, jump, depth, kind, role, origin, finish, author,
			tokens, path_tokens, in_context, display, provider, model, dialect, external_id, day, created_at, metadata, extra)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, []any{
			at.session, at.seq, at.parent, 0, at.depth, "message", "user", "person", "", "",
			floorTokens, at.path, 1, 1, "", "", "openai.chat", "", day, moment, nil, nil,
		}},
		{`INSERT INTO parts (id, message_id, idx, kind, text, tool_name, call_id, call_part_id, arguments, is_error, duration_ms, blob, tokens, extra)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, []any{
			at.part, at.row, 0, "text", text, "", "", nil, "", nil, nil, nil, floorTokens, nil,
		}},
		{`UPDATE sessions SET head_id = ?, last_seq = ?, revision = ?, message_count = ?, total_tokens = ?, context_tokens = ?,
			turn_origin = ?, active_at = ?, inbound_at = ?, updated_at = ? WHERE id = ?`, []any{
			at.row, at.seq, at.seq, at.seq, at.path, at.path, "person", moment, moment, moment, at.session,
		}},
	}
}

// variable is a value in a script that is none of a statement's own.
type variable string

// text returns the statement with its values in it.
func (s statement) text() string {
	var b strings.Builder
	for i, piece := range strings.Split(s.query, "?") {
		b.WriteString(piece)
		if i == len(s.args) {
			break
		}
		switch v := s.args[i].(type) {
		case nil:
			b.WriteString("NULL")
		case string:
			b.WriteString("'" + strings.ReplaceAll(v, "'", "''") + "'")
		default:
			fmt.Fprint(&b, v)
		}
	}
	return b.String()
}

// transaction returns an op that appends k messages in one transaction.
func (f *floor) transaction(k int) func() error {
	return func() error {
		if err := f.exec(`BEGIN IMMEDIATE`); err != nil {
			return err
		}
		for range k {
			for _, s := range f.next() {
				if err := f.exec(s.query, s.args...); err != nil {
					return err
				}
			}
		}
		return f.exec(`COMMIT`)
	}
}

// script returns n appends as text for the sqlite3 shell, a transaction each.
func (f *floor) script(n int) string {
	var b strings.Builder
	for _, p := range writerPragmas() {
		fmt.Fprintf(&b, "PRAGMA %s;\n", p)
	}
	for range n {
		b.WriteString("BEGIN IMMEDIATE;\n")
		for _, s := range f.next() {
			b.WriteString(s.text() + ";\n")
		}
		b.WriteString("COMMIT;\n")
	}
	return b.String()
}

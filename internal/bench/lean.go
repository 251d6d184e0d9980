package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
)

// lean reads straight on the driver, with the settings of the store's reading connections.
type lean struct {
	db    *sql.DB
	stmts map[string]*sql.Stmt
}

func openLean(path string) (*lean, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"mode": {"rw"}, "_pragma": {"busy_timeout(250)", "query_only(1)", "cache_size(-16384)", "temp_store(memory)"},
	}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &lean{db: db, stmts: map[string]*sql.Stmt{}}, nil
}

func (l *lean) close() error {
	var errs []error
	for _, st := range l.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, l.db.Close())...)
}

// read runs a prepared SELECT and reads every column of every row.
func (l *lean) read(ctx context.Context, query string, args ...any) error {
	st, ok := l.stmts[query]
	if !ok {
		var err error
		if st, err = l.db.PrepareContext(ctx, query); err != nil {
			return err
		}
		l.stmts[query] = st
	}
	return scanAll(st.QueryContext(ctx, args...))
}

// scanAll reads rows without making anything of them.
func scanAll(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	raw := make([]sql.RawBytes, len(columns))
	dest := make([]any, len(columns))
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

const (
	bareReadMessages = `SELECT m.id, m.session_id, m.seq, m.parent_id, m.jump, m.depth, m.kind, m.role, m.origin, m.finish, m.author,
		m.tokens, m.path_tokens, m.in_context, m.display, m.provider, m.model, m.dialect, m.external_id, m.day,
		m.created_at, m.metadata, m.extra FROM messages m WHERE m.session_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq`
	bareReadParts = `SELECT p.id, p.message_id, p.idx, p.kind, p.text, p.tool_name, p.call_id, p.call_part_id, p.arguments,
		p.is_error, p.duration_ms, p.blob, p.tokens, p.extra, b.size, b.media_type, b.data FROM messages m
		JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
		LEFT JOIN blobs b ON b.sha256 = p.blob
		WHERE m.session_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq, p.id`
	bareReadSession = `SELECT * FROM sessions WHERE id = ?`
)

// messages reads a session and its messages of seqs from … to.
func (l *lean) messages(ctx context.Context, id string, from, to int64) error {
	return errors.Join(l.read(ctx, bareReadSession, id), l.read(ctx, bareReadMessages, id, from, to), l.read(ctx, bareReadParts, id, from, to))
}

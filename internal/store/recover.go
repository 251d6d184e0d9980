package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	sqlite3 "modernc.org/sqlite/lib"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Recovered says what Recover copied of one table and what it could not read.
type Recovered struct {
	Table string   `json:"table"`
	Rows  int64    `json:"rows"`           // copied
	Lost  []string `json:"lost,omitempty"` // what could not be read, in words: "rows 812 to 815"

	spans [][2]int64 // of row ids that could not be read
}

// Recover copies what can be read of the database at path, which it does not change, into a new one at
// out: rows by ranges of their ids, halved around damaged pages. Then it ties up what hung on lost rows:
// a message whose parent is lost follows the one before it, a session whose own row is lost gets one that
// its messages tell, and all counters are counted anew. Nobody should write to path meanwhile. Codes:
// Conflict (out exists), NotFound (its folder, or path), Forbidden, Invalid (the names of the tables
// cannot be read).
func Recover(ctx context.Context, path, out string, opt Options) ([]Recovered, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, session.Errorf(session.NotFound, "there is nothing to recover from: %w", err)
	}
	opt.ReadOnly = false
	r := &recovery{ctx: ctx}
	err := engine.WriteNew(out, func(tmp string) error {
		fresh, err := Open(ctx, tmp, opt)
		if err != nil {
			return err
		}
		if err := fresh.Close(); err != nil {
			return err
		}
		// A rollback journal holds little of a file that only grows, where a WAL would hold all of it.
		r.db, err = sqlx.Open("sqlite", engine.DSN(tmp, "rw", "foreign_keys(0)", "synchronous(off)", "journal_mode(delete)"))
		if err != nil {
			return err
		}
		defer r.db.Close() //nolint:errcheck // the last statement has written all
		r.db.SetMaxOpenConns(1)
		if err := r.attach(path); err != nil {
			return err
		}
		if err := r.withoutTriggers(r.copyTables, r.nameLost, r.tieUpMessages, r.tieUpSessions, r.count); err != nil {
			return err
		}
		if err := r.exec(`DETACH damaged`); err != nil {
			return err
		}
		if err := engine.StampCopy(ctx, tmp); err != nil {
			return err
		}
		return r.exec(`PRAGMA main.journal_mode = wal`)
	})
	return r.tables, err
}

type recovery struct {
	ctx    context.Context
	db     *sqlx.DB
	tables []Recovered
	names  map[int64]session.MessageRef // of lost messages, as far as an index tells them
}

func (r *recovery) attach(path string) error {
	// the second for a folder that cannot be written
	for _, source := range []string{engine.DSN(path, "ro"), engine.DSN(path, "ro") + "&immutable=1"} {
		n := 0
		err := r.exec(`ATTACH ? AS damaged`, source)
		if err == nil {
			err = r.db.GetContext(r.ctx, &n, `SELECT COUNT(*) FROM damaged.sqlite_schema`)
		}
		switch code := engine.SQLiteCode(err) & 0xff; {
		case engine.IsDamage(err), err == nil && n == 0:
			return session.Errorf(session.Invalid,
				"%s does not say which tables it has, so nothing can be copied; try `sqlite3 FILE .recover`", path)
		case code != sqlite3.SQLITE_CANTOPEN && code != sqlite3.SQLITE_READONLY:
			return err
		}
		_ = r.exec(`DETACH damaged`) // where it was attached
	}
	return session.Errorf(session.Forbidden, "%s cannot be read by this user", path)
}

// withoutTriggers lets the new file be changed freely: its triggers guard what was said.
func (r *recovery) withoutTriggers(steps ...func() error) error {
	var triggers []struct{ Name, SQL string }
	if err := r.db.SelectContext(r.ctx, &triggers, `SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger'`); err != nil {
		return err
	}
	for _, t := range triggers {
		if err := r.exec(`DROP TRIGGER main.` + t.Name); err != nil {
			return err
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	for _, t := range triggers {
		if err := r.exec(t.SQL); err != nil {
			return err
		}
	}
	return nil
}

func (r *recovery) exec(query string, args ...any) error {
	_, err := r.db.ExecContext(r.ctx, query, args...)
	return err
}

// copyTables leaves out what is counted or written anew.
func (r *recovery) copyTables() error {
	var tables []struct {
		Name    string
		Keyed   bool // WITHOUT ROWID
		Columns string
		Key     string
	}
	if err := r.db.SelectContext(r.ctx, &tables, `
		SELECT t.name, t.wr AS keyed, t.columns, t.key FROM (
			SELECT l.name, l.wr, GROUP_CONCAT(c.name, ', ') AS columns, GROUP_CONCAT(CASE WHEN c.pk THEN c.name || ' DESC' END, ', ' ORDER BY c.pk) AS key
			FROM pragma_table_list l, pragma_table_xinfo(l.name, 'main') c
			WHERE l.schema = 'main' AND l.type = 'table' AND c.hidden = 0 AND l.name NOT LIKE 'sqlite%' AND l.name NOT IN ('goose_db_version', 'daily_usage', 'models', 'prices')
			  AND EXISTS (SELECT 1 FROM pragma_table_xinfo(l.name, 'damaged') d WHERE d.name = c.name)
			GROUP BY l.name) t ORDER BY t.name`); err != nil {
		return err
	}
	for _, t := range tables {
		r.tables = append(r.tables, Recovered{Table: t.Name})
		verb := "INSERT"
		if t.Name == "store" {
			verb = "INSERT OR REPLACE" // a new file has its row
		}
		insert := fmt.Sprintf(`%[1]s INTO main.%[2]s (%[3]s) SELECT %[3]s FROM damaged.%[2]s NOT INDEXED WHERE rowid BETWEEN ? AND ?`, verb, t.Name, t.Columns)
		var err error
		if t.Keyed {
			err = r.copyByKey(t.Name, t.Columns, t.Key)
		} else if last, ok := r.lastRow(t.Name); ok {
			err = r.copyRange(insert, 1, last)
		} else {
			r.lost(1, allRows)
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		if err := r.db.GetContext(r.ctx, &r.at().Rows, `SELECT COUNT(*) FROM main.`+t.Name); err != nil {
			return err
		}
	}
	return nil
}

func (r *recovery) at() *Recovered { return &r.tables[len(r.tables)-1] }

const allRows = 1 << 62 // no id is greater

// lastRow bounds the ids of a table. Where its last page is damaged, it is the power of two after the
// last row that can be found.
func (r *recovery) lastRow(table string) (last int64, ok bool) {
	for bound := int64(allRows); bound > 1; bound >>= 1 {
		var id sql.NullInt64
		if r.db.GetContext(r.ctx, &id, `SELECT MAX(rowid) FROM damaged.`+table+` NOT INDEXED WHERE rowid < ?`, bound) == nil {
			if bound == allRows {
				return id.Int64, true
			}
			return 2 * bound, true
		}
	}
	return 0, false
}

// copyRange runs an INSERT for the rows from..to, or for what can be read of them.
func (r *recovery) copyRange(insert string, from, to int64) error {
	if from > to {
		return nil
	}
	err := r.exec(insert, from, to)
	if err == nil || !isLoss(err) {
		return err
	}
	if from == to || !r.someReadable(from, to) {
		r.lost(from, to)
		return nil
	}
	half := from + (to-from)/2
	if err := r.copyRange(insert, from, half); err != nil {
		return err
	}
	return r.copyRange(insert, half+1, to)
}

// someReadable looks at places spread over a range too long to try each of its rows.
func (r *recovery) someReadable(from, to int64) bool {
	const places = 64
	if to-from < 1<<14 {
		return true
	}
	for i := range int64(places) {
		var ids []int64
		if err := r.db.SelectContext(r.ctx, &ids,
			`SELECT rowid FROM damaged.`+r.at().Table+` NOT INDEXED WHERE rowid >= ? LIMIT 1`,
			from+(to-from)/places*i); err == nil || !isLoss(err) {
			return true
		}
	}
	return false
}

func (r *recovery) lost(from, to int64) {
	t := r.at()
	if n := len(t.spans); n > 0 && t.spans[n-1][1] == from-1 {
		t.spans[n-1][1] = to
	} else {
		t.spans = append(t.spans, [2]int64{from, to})
	}
}

// copyByKey copies a table without row ids: from its first key up to the damage, and from its last one
// back to it.
func (r *recovery) copyByKey(table, columns, key string) error {
	insert := fmt.Sprintf(`INSERT OR REPLACE INTO main.%s (%s) VALUES (?%s)`, table, columns,
		strings.Repeat(", ?", strings.Count(columns, ",")))
	var damage error
	for _, order := range []string{strings.ReplaceAll(key, " DESC", ""), key} {
		rows, err := r.readRows(`SELECT ` + columns + ` FROM damaged.` + table + ` ORDER BY ` + order)
		for _, row := range rows {
			if err := r.exec(insert, row...); err != nil && !isLoss(err) {
				return err
			}
		}
		if err != nil && !isLoss(err) {
			return err
		}
		if damage = err; damage == nil {
			break
		}
	}
	if damage != nil {
		r.at().Lost = append(r.at().Lost, "the rows in the middle")
	}
	return nil
}

// readRows returns the rows before an error, and the error.
func (r *recovery) readRows(query string) ([][]any, error) {
	rows, err := r.db.QueryxContext(r.ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var all [][]any
	for rows.Next() {
		row, err := rows.SliceScan()
		if err != nil {
			return all, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// isLoss reports whether rows could not be read, or hold what no row of the table may.
func isLoss(err error) bool {
	switch code := engine.SQLiteCode(err); code {
	case sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ:
		return true
	default:
		return engine.IsDamage(err) || code&0xff == sqlite3.SQLITE_CONSTRAINT || code&0xff == sqlite3.SQLITE_MISMATCH
	}
}

// nameLost says in words what was lost; of messages, by the index of their names where that can be read.
func (r *recovery) nameLost() error {
	r.names = map[int64]session.MessageRef{}
	for i := range r.tables {
		t := &r.tables[i]
		switch {
		case len(t.spans) == 0:
		case t.Table == "messages":
			r.nameMessages(t, "messages", 0, `damaged.messages INDEXED BY sqlite_autoindex_messages_1`)
		case t.Table == "parts":
			r.nameMessages(t, "something of messages", 10, `main.messages`)
		}
		for _, s := range t.spans {
			what := fmt.Sprintf("rows %d to %d", s[0], s[1])
			switch s[1] {
			case allRows:
				what = "all rows"
			case s[0]:
				what = fmt.Sprintf("row %d", s[0])
			}
			t.Lost = append(t.Lost, what)
		}
	}
	return nil
}

// nameMessages names the messages whose row, or one of whose rows in parts, is lost. shift makes a row's
// id a message's.
func (r *recovery) nameMessages(t *Recovered, what string, shift int, source string) {
	rows, err := r.readRows(`SELECT id, session_id, seq FROM ` + source + ` ORDER BY session_id, seq`)
	var first, last session.MessageRef
	tell := func() {
		if first == last && first.Seq > 0 {
			t.Lost = append(t.Lost, fmt.Sprintf("%s %s", what, first))
		} else if first.Seq > 0 {
			t.Lost = append(t.Lost, fmt.Sprintf("%s %s to %d", what, first, last.Seq))
		}
	}
	for _, row := range rows {
		id, _ := row[0].(int64)
		name, _ := row[1].(string)
		seq, _ := row[2].(int64)
		if !slices.ContainsFunc(t.spans, func(s [2]int64) bool { return s[0]>>shift <= id && id <= s[1]>>shift }) {
			continue
		}
		ref := session.MessageRef{Session: session.ID(name), Seq: seq}
		if shift == 0 {
			r.names[id] = ref
		}
		if last.Session != ref.Session || last.Seq != seq-1 {
			tell()
			first = ref
		}
		last = ref
	}
	tell()
	if err == nil { // every lost one has its name
		t.spans = nil
	}
}

// tieUpMessages puts messages whose parent is lost behind the one before it, and reckons anew what goes
// by the path.
func (r *recovery) tieUpMessages() error {
	type row struct {
		ID         int64
		SessionID  session.ID `db:"session_id"`
		Seq        int64
		ParentID   sql.NullInt64 `db:"parent_id"`
		Jump       bool
		Depth      int64
		PathTokens int64 `db:"path_tokens"`
		Tokens     int64
	}
	var all []row
	if err := r.db.SelectContext(r.ctx, &all, `SELECT id, session_id, seq, parent_id, jump, depth, path_tokens, tokens * in_context AS tokens FROM messages ORDER BY id`); err != nil {
		return err
	}
	known := map[int64]row{}
	own := map[session.ID][]int64{} // ids in order
	before := func(lost int64, of session.ID) sql.NullInt64 {
		if name, ok := r.names[lost]; ok {
			of = name.Session
		}
		ids := own[of]
		at, _ := slices.BinarySearch(ids, lost)
		if at == 0 {
			return sql.NullInt64{}
		}
		return sql.NullInt64{Int64: ids[at-1], Valid: true}
	}
	return r.inOne(func() error {
		for _, m := range all {
			was := m
			if m.ParentID.Valid {
				if _, ok := known[m.ParentID.Int64]; !ok {
					m.ParentID = before(m.ParentID.Int64, m.SessionID)
				}
			}
			parent := known[m.ParentID.Int64]
			m.Depth, m.PathTokens, m.Jump = 0, m.Tokens, m.Seq > 1
			if m.ParentID.Valid {
				m.Depth, m.PathTokens = parent.Depth+1, parent.PathTokens+m.Tokens
				m.Jump = parent.SessionID != m.SessionID || parent.Seq != m.Seq-1
			}
			if m != was {
				if err := r.exec(`UPDATE messages SET parent_id = ?, jump = ?, depth = ?, path_tokens = ? WHERE id = ?`, m.ParentID, m.Jump, m.Depth, m.PathTokens, m.ID); err != nil {
					return err
				}
			}
			known[m.ID] = m
			own[m.SessionID] = append(own[m.SessionID], m.ID)
		}
		var heads []struct {
			Table, ID string
			MessageID int64 `db:"message_id"`
		}
		if err := r.db.SelectContext(r.ctx, &heads, `
			SELECT 'sessions SET head_id' AS "table", id, head_id AS message_id FROM sessions WHERE head_id NOT IN (SELECT id FROM messages)
			UNION ALL SELECT 'links SET message_id', session_id, message_id FROM links WHERE message_id NOT IN (SELECT id FROM messages)`); err != nil {
			return err
		}
		for _, h := range heads {
			key := "id"
			if strings.HasPrefix(h.Table, "links") {
				key = "session_id"
			}
			if err := r.exec(`UPDATE `+h.Table+` = ? WHERE `+key+` = ?`, before(h.MessageID, session.ID(h.ID)),
				h.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// inOne makes one transaction of many small writes.
func (r *recovery) inOne(do func() error) error {
	if err := r.exec(`BEGIN`); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return r.exec(`COMMIT`)
}

// tieUpSessions gives messages and overlays without a session one, and removes what nothing holds any more.
func (r *recovery) tieUpSessions() error {
	const beforeFork = `(SELECT p.id FROM messages m JOIN messages p ON p.id = m.parent_id WHERE m.session_id = s.id AND p.session_id <> s.id ORDER BY m.seq LIMIT 1)`
	return r.all(`
		DELETE FROM parts WHERE message_id NOT IN (SELECT id FROM messages)`, `
		DELETE FROM blobs WHERE size <> LENGTH(data) + COALESCE((SELECT SUM(LENGTH(p.data)) FROM blob_pieces p WHERE p.sha256 = blobs.sha256), 0)`, `
		DELETE FROM blob_pieces WHERE sha256 NOT IN (SELECT sha256 FROM blobs)`, `
		UPDATE parts SET blob = NULL WHERE blob NOT IN (SELECT sha256 FROM blobs)`, `
		UPDATE parts SET call_part_id = NULL WHERE call_part_id IS NOT NULL AND NOT EXISTS
			(SELECT 1 FROM parts c WHERE c.id = parts.call_part_id AND c.kind = 'tool_call' AND c.id < parts.id)`, `
		DELETE FROM compactions WHERE through_id NOT IN (SELECT id FROM messages) OR first_kept_id NOT IN (SELECT id FROM messages)`, `
		DELETE FROM compaction_undos WHERE compaction_id NOT IN (SELECT id FROM compactions)`, `
		UPDATE compactions SET previous_id = NULL WHERE previous_id NOT IN (SELECT id FROM compactions)`, `
		UPDATE compactions SET hidden_tokens = (SELECT path_tokens FROM messages WHERE id = through_id) WHERE through_id IS NOT NULL AND hidden_tokens > 0`, `
		INSERT INTO sessions (id, day, head_id, created_at, updated_at, active_at, purged_at)
			SELECT session_id, SUBSTR(session_id, 1, 4) || '-' || SUBSTR(session_id, 5, 2) || '-' || SUBSTR(session_id, 7, 2), MAX(message_id), MIN(created_at), MAX(created_at), MAX(created_at),
				COALESCE((SELECT started_at FROM purging WHERE session_id = lost.session_id),
					(SELECT MAX(created_at) FROM events WHERE session_id = lost.session_id AND type = '`+EventSessionPurged+`'))
			FROM (SELECT session_id, id AS message_id, created_at FROM messages UNION ALL SELECT session_id, NULL, created_at FROM compactions) lost
			WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id`, `
		UPDATE sessions AS s SET parent_kind = 'fork', parent_id = (SELECT session_id FROM messages WHERE id = `+beforeFork+`) WHERE parent_id = '' AND `+beforeFork+` IS NOT NULL`, `
		UPDATE sessions SET parent_kind = '', parent_id = '' WHERE parent_id NOT IN (SELECT id FROM sessions)`, `
		INSERT OR IGNORE INTO links (session_id, message_id, root_id) SELECT s.id, `+beforeFork+`, CASE s.parent_kind WHEN 'fork' THEN s.parent_id ELSE '' END FROM sessions s WHERE s.parent_id <> ''`, `
		DELETE FROM links WHERE session_id NOT IN (SELECT id FROM sessions WHERE parent_id <> '')`, `
		DELETE FROM frozen WHERE message_id NOT IN (SELECT id FROM messages)`, `
		DELETE FROM marks WHERE message_id <> 0 AND message_id NOT IN (SELECT id FROM messages)`, `
		DELETE FROM touched_files WHERE message_id NOT IN (SELECT id FROM messages)`, `
		DELETE FROM imports WHERE session_id <> '' AND session_id NOT IN (SELECT id FROM sessions)`, `
		DELETE FROM source_sessions WHERE session_id NOT IN (SELECT id FROM sessions) OR transcript_id NOT IN (SELECT id FROM source_transcripts)`, `
		DELETE FROM source_lines WHERE transcript_id NOT IN (SELECT id FROM source_transcripts)`, `
		UPDATE source_transcripts AS t SET lines = COALESCE((SELECT MAX(n) FROM source_lines WHERE transcript_id = t.id), 0),
			bytes = COALESCE((SELECT SUM(OCTET_LENGTH(line) + 1) FROM source_lines WHERE transcript_id = t.id), 0)`, `
		UPDATE calls SET message_id = NULL WHERE message_id NOT IN (SELECT id FROM messages)`, `
		UPDATE calls SET session_id = '' WHERE session_id NOT IN (SELECT id FROM sessions)`, `
		UPDATE sessions SET compaction_id = NULL WHERE compaction_id IS NOT NULL AND (
			compaction_id NOT IN (SELECT c.id FROM compactions c WHERE c.status = 'done' AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = sessions.id AND u.compaction_id = c.id))
			OR (SELECT c.through_id IS NOT NULL AND NOT EXISTS (
				WITH RECURSIVE path (id, parent_id) AS (
					SELECT id, parent_id FROM messages WHERE id = sessions.head_id
					UNION ALL SELECT m.id, m.parent_id FROM path p JOIN messages m ON m.id = p.parent_id)
				SELECT 1 FROM path WHERE id = c.through_id) FROM compactions c WHERE c.id = sessions.compaction_id))`)
}

// count reckons every counter from what it counts, and sees to it that no id is given twice.
func (r *recovery) count() error {
	sequences, err := r.readRows(`SELECT seq, name FROM damaged.sqlite_sequence`)
	if err != nil && !isLoss(err) {
		return err
	}
	for _, row := range sequences {
		if err := r.exec(`UPDATE main.sqlite_sequence SET seq = MAX(seq, ?) WHERE name = ?`, row...); err != nil {
			return err
		}
	}
	return r.all(`
		UPDATE messages AS m SET talk = `+talkOfRow+` WHERE talk <> `+talkOfRow+``, `
		UPDATE sessions SET epoch = epoch + 1, revision = revision + 1,
			(message_count, said_count, total_tokens, last_seq) = (SELECT COUNT(*), COUNT(*) FILTER (WHERE talk = 'said'), COALESCE(SUM(tokens), 0), COALESCE(MAX(seq), 0)
				FROM messages WHERE session_id = sessions.id),
			compaction_count = (SELECT COUNT(*) FROM compactions c WHERE c.session_id = sessions.id AND c.status = 'done'
				AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = sessions.id AND u.compaction_id = c.id)),
			context_tokens = COALESCE((SELECT path_tokens FROM messages WHERE id = head_id), 0) + COALESCE((SELECT summary_tokens - hidden_tokens FROM compactions WHERE id = compaction_id), 0)`, `
		UPDATE sessions SET (input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nanousd, unpriced_calls) =
			(SELECT COALESCE(SUM(input_tokens), 0), COALESCE(SUM(output_tokens), 0), COALESCE(SUM(cache_read_tokens), 0), COALESCE(SUM(cache_write_tokens), 0), SUM(cost_nanousd), COALESCE(SUM(cost_nanousd IS NULL), 0)
			FROM calls WHERE session_id = sessions.id) WHERE purged_at IS NULL`, `
		INSERT OR REPLACE INTO session_days SELECT day, MAX(last) FROM (
			SELECT day, last FROM session_days UNION ALL SELECT SUBSTR(id, 1, 4) || '-' || SUBSTR(id, 5, 2) || '-' || SUBSTR(id, 7, 2), CAST(SUBSTR(id, 10) AS INTEGER) FROM sessions) GROUP BY day`, `
		INSERT INTO daily_usage (day, project, source, model, purpose, sessions, subagents, messages, prompts, calls, input_tokens,
			cache_read_tokens, cache_write_tokens, output_tokens, cost_nanousd, unpriced_calls) `+recountedUsage)
}

func (r *recovery) all(queries ...string) error {
	for _, q := range queries {
		if err := r.exec(q); err != nil {
			return fmt.Errorf("%w in %s", err, strings.TrimSpace(q))
		}
	}
	return nil
}

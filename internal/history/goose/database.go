package goose

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// The tables of Goose that are read. Others are counted by their names, never read:
// provider_inventory_* holds hashes made with secrets.
const (
	tableSessions       = "sessions"
	tableMessages       = "messages"
	tableLedger         = "usage_ledger"
	tableThreads        = "threads"
	tableThreadMessages = "thread_messages"
	tableVersion        = "schema_version"
)

// database is one sessions.db in one snapshot.
type database struct {
	*history.SQLite
	ctx     context.Context
	in      *history.Intake
	has     map[string][]string // columns by table
	version int64
	refused bool // by the store: the import ends

	rows     map[string]extent // messages by session
	ledger   map[string]extent
	order    []string            // sessions, oldest first
	begin    map[string]string   // the first message of each session; nil: not read yet
	starting map[string][]string // sessions by their first message, oldest first
}

// extent is how many rows a session has, and the newest one's id.
type extent struct {
	Count  int64 `db:"n"`
	Newest int64 `db:"newest"`
}

// readDatabase reads the sessions of a database that changed. Codes: Invalid (no Goose database).
func readDatabase(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	opened, err := history.OpenSQLite(ctx, found.Path)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	d := &database{SQLite: opened, ctx: ctx}
	if err := d.recognise(); err != nil {
		return nil, err
	}
	d.in, err = history.NewIntake(ctx, session.SourceGoose, found, nil, cursor, known, history.AlwaysQuiet(), func(b history.Batch) error {
		err := d.Check()
		if err == nil {
			err = emit(b)
		}
		d.refused = d.refused || err != nil
		return err
	})
	if err == nil {
		err = d.all()
	}
	if err != nil {
		return nil, err
	}
	return d.in.Finish()
}

// recognise reads which tables and columns there are: columns decide what is read, not the version.
func (d *database) recognise() error {
	var err error
	if d.has, err = d.Schema(d.ctx, tableSessions, tableMessages, tableLedger, tableThreads, tableThreadMessages, tableVersion); err != nil {
		return err
	}
	if !d.hasColumn(tableSessions, "id") || !d.hasColumn(tableMessages, "content_json") || !d.hasColumn(tableMessages, "session_id") {
		return session.Errorf(session.Invalid, "no Goose database: it has no tables of sessions and messages as Goose makes them")
	}
	if d.hasColumn(tableVersion, "version") {
		return d.GetContext(d.ctx, &d.version, `SELECT COALESCE(MAX(CAST(version AS INTEGER)), 0) FROM schema_version`)
	}
	return nil
}

func (d *database) hasColumn(table, column string) bool { return slices.Contains(d.has[table], column) }

// all reads the sessions, oldest first, then what belongs to none.
func (d *database) all() error {
	var err error
	if d.rows, err = d.extents(tableMessages); err != nil {
		return err
	}
	if len(d.has[tableLedger]) > 0 {
		if d.ledger, err = d.extents(tableLedger); err != nil {
			return err
		}
	}
	var sessions []about
	marks := map[string]string{}
	err = d.each(tableSessions, "", func(row columns) error {
		a := aboutRow(row, d.has[tableSessions])
		marks[a.id] = d.markOf(row)
		sessions = append(sessions, a)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(sessions, func(a, b about) int { return compareTimes(a.created, b.created) })
	for i := range sessions {
		d.order = append(d.order, sessions[i].id)
	}
	for _, a := range append(sessions, d.orphans(marks)...) {
		if err := d.session(a, marks[a.id]); err != nil {
			return err
		}
	}
	if err := d.threads(); err != nil {
		return err
	}
	d.countOthers()
	return d.in.EachGone(d.noteGone)
}

func compareTimes(a, b *session.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return a.Compare(b.Time)
}

// countOthers counts the tables beside the conversations.
func (d *database) countOthers() {
	for table := range d.has {
		switch table {
		case tableVersion:
			d.in.Skip(skipBookkeeping, 1)
		case tableSessions, tableMessages, tableLedger, tableThreads, tableThreadMessages:
		default:
			if !strings.HasPrefix(table, "sqlite_") {
				d.in.Skip(skipForeign, 1)
			}
		}
	}
}

// noteGone notes that Goose deleted a session. Its messages stay.
func (d *database) noteGone(s *session.Session) error {
	notes := notesOf(s)
	if notes.Get("gone") != nil {
		return nil
	}
	b := history.Batch{}
	b.ID = s.ID
	b.Fields = &history.Changes{Metadata: append(notes, field("gone", "deleted in Goose")).JSON()}
	return d.in.Emit(b)
}

// extents counts the rows of each session.
func (d *database) extents(table string) (map[string]extent, error) {
	var list []struct {
		Session *string `db:"session_id"`
		extent
	}
	err := d.SelectContext(d.ctx, &list, `SELECT CAST(session_id AS TEXT) AS session_id, COUNT(*) AS n, MAX(id) AS newest FROM `+table+` GROUP BY session_id`)
	all := map[string]extent{}
	for _, e := range list {
		if e.Session != nil {
			all[*e.Session] = e.extent
		}
	}
	return all, err
}

// each yields the rows of a table of small rows, all columns as text.
func (d *database) each(table, where string, yield func(columns) error, args ...any) error {
	var selected []string
	for _, name := range d.has[table] {
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		selected = append(selected, `CAST(`+quoted+` AS TEXT) AS `+quoted)
	}
	rows, err := d.QueryxContext(d.ctx, `SELECT `+strings.Join(selected, ", ")+` FROM `+table+` `+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c := columns{}
		if err := rows.MapScan(c); err != nil {
			return err
		}
		if err := yield(c); err != nil {
			return err
		}
	}
	return rows.Err()
}

// markOf returns what changes with a session: its row, and how many rows belong to it.
func (d *database) markOf(row columns) string {
	sum := sha256.New()
	for _, name := range d.has[tableSessions] {
		if v, ok := row[name].(string); ok {
			fmt.Fprintf(sum, "%s=%d:%s;", name, len(v), v)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// orphans are sessions whose row is gone, but not their messages, or their usage.
func (d *database) orphans(there map[string]string) []about {
	lost := map[string]bool{}
	for _, of := range []map[string]extent{d.rows, d.ledger} {
		for id := range of {
			if _, ok := there[id]; !ok {
				lost[id] = true
			}
		}
	}
	var found []about
	for id := range lost {
		a := about{id: history.Plain([]byte(id)), title: "recovered"}
		a.typed("")
		a.note("recovered", "its row is gone")
		found = append(found, a)
	}
	slices.SortFunc(found, func(a, b about) int { return strings.Compare(a.id, b.id) })
	return found
}

// session reads one session if it changed. What cannot be read or stored of it is a problem,
// and the next one is read.
func (d *database) session(a about, mark string) error {
	name := a.id
	if a.created != nil {
		name += "|" + strconv.FormatInt(a.created.Unix(), 10)
	}
	part, err := d.in.Part(name, fmt.Sprint(reads, d.version, mark, d.rows[a.id], d.ledger[a.id]))
	if err != nil || part == nil {
		return err
	}
	r := newReader(part, a)
	r.origins = func() ([]*session.Session, error) { return d.origins(a.id) }
	thread, isThread := strings.CutPrefix(a.id, threadPrefix)
	switch {
	case isThread:
		err = d.messages(r, tableThreadMessages, ofThread, thread)
	case d.rows[a.id].Count > 0:
		err = d.messages(r, tableMessages, ofSession, a.id)
	}
	if err == nil && d.ledger[a.id].Count > 0 {
		err = d.usage(r)
	}
	if err == nil {
		err = r.read()
	}
	if err == nil {
		err = d.in.FinishPart(part)
	}
	if err != nil && !d.refused && session.CodeOf(history.SQLiteError(err)) == session.Invalid {
		d.in.Problem(0, "session "+a.id+": "+history.Reason(err))
		return nil
	}
	return err
}

// maxOrigins bounds how many copies of one beginning are compared.
const maxOrigins = 16

// origins are the sessions that one may be a copy of: they begin with the same message, and
// are older.
func (d *database) origins(id string) ([]*session.Session, error) {
	if d.begin == nil {
		if err := d.beginnings(); err != nil {
			return nil, err
		}
	}
	alike := d.starting[d.begin[id]]
	at := slices.Index(alike, id)
	var found []*session.Session
	for _, older := range alike[:min(max(at, 0), maxOrigins)] {
		origin, err := d.in.Session(older)
		if err != nil {
			return nil, err
		}
		if origin != nil {
			found = append(found, origin)
		}
	}
	return found, nil
}

// beginnings reads when each session's first message was, and its id if Goose gave it one.
func (d *database) beginnings() error {
	d.begin, d.starting = map[string]string{}, map[string][]string{}
	id := `''`
	if d.hasColumn(tableMessages, "message_id") {
		id = `COALESCE(CAST(message_id AS TEXT), '')`
	}
	var list []struct {
		Session string  `db:"session_id"`
		Message string  `db:"message_id"`
		Created *string `db:"created"`
	}
	err := d.SelectContext(d.ctx, &list, `SELECT CAST(session_id AS TEXT) AS session_id, `+id+` AS message_id, CAST(created_timestamp AS TEXT) AS created
		FROM messages WHERE session_id IS NOT NULL AND id IN (SELECT MIN(id) FROM messages GROUP BY session_id)`)
	if err != nil {
		return err
	}
	for _, first := range list {
		if strings.HasPrefix(first.Message, "msg_"+first.Session+"_") {
			first.Message = "" // a migration gave it
		}
		at := session.Time{}
		if first.Created != nil {
			at, _ = timeOf([]byte(*first.Created))
		}
		d.begin[first.Session] = fmt.Sprint(first.Message, " ", at.Unix())
	}
	for _, id := range d.order {
		if begin, ok := d.begin[id]; ok {
			d.starting[begin] = append(d.starting[begin], id)
		}
	}
	return nil
}

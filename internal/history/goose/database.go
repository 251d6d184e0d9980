package goose

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// tables are those of Goose that are read. Others are counted by their names, never read:
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
	path    string
	found   history.Found
	utf8    bool // how its texts are written
	known   history.Known
	send    func(history.Batch) error
	has     map[string][]string // columns by table
	version int64
	refused bool // what was given: there is no going on
	again   bool // another reader or another version of Goose wrote the cursor
	before  state

	rows     map[string]extent // messages by session
	ledger   map[string]extent
	begin    map[string]string   // the first message of each session, once they were asked for
	starting map[string][]string // sessions by their first message, oldest first
	order    []string            // sessions, oldest first
	sessions int
	listed   []string
	records  history.Records // that need no storing
	problems []history.Problem
}

// extent tells how many rows a session has, and the newest one's id.
type extent struct {
	Count  int64 `db:"n"`
	Newest int64 `db:"newest"`
}

// state is what the cursor of a database remembers.
type state struct {
	Reads    int      `json:"reads"`
	Version  int64    `json:"version"`
	Sessions []string `json:"sessions"` // the cursors' names of those that were there
}

// mark is what the cursor of a session remembers, to see whether it changed.
type mark struct {
	Mark   string `json:"mark"`
	Copies int    `json:"copies,omitempty"`
	Of     string `json:"of,omitempty"` // what they are copies of
	Ledger int    `json:"ledger,omitempty"`
}

// readDatabase reads what is new in a database. Codes: Invalid (no Goose database).
func readDatabase(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	opened, err := history.OpenSQLite(ctx, found.Path)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	d := &database{SQLite: opened, ctx: ctx, path: found.Path, found: found, known: known}
	d.send = func(b history.Batch) error {
		err := d.Check()
		if err == nil {
			err = emit(b)
		}
		d.refused = d.refused || err != nil
		return err
	}
	if err := d.recognise(); err != nil {
		return nil, err
	}
	if cursor != nil {
		_ = json.Unmarshal(cursor.State, &d.before) // a damaged state: everything is read again
	}
	d.again = d.before.Reads != reads || d.before.Version != d.version
	if err := d.all(); err != nil {
		return d.problems, err
	}
	modified := session.At(found.ModifiedAt)
	d.aside()
	last := history.Batch{Sessions: d.sessions, Records: d.records}
	last.Cursor = &history.Cursor{
		Source: session.SourceGoose, Path: found.Path, Size: found.Size, ModifiedAt: &modified,
		State: session.JSONOf(state{reads, d.version, d.listed}),
	}
	return d.problems, d.send(last)
}

// recognise tells whether it is Goose's. Columns are trusted, not the version.
func (d *database) recognise() error {
	var err error
	if d.has, err = d.Schema(d.ctx, tableSessions, tableMessages, tableLedger, tableThreads, tableThreadMessages, tableVersion); err != nil {
		return err
	}
	if !slices.Contains(d.has[tableSessions], "id") || !slices.Contains(d.has[tableMessages], "content_json") || !slices.Contains(d.has[tableMessages], "session_id") {
		return session.Errorf(session.Invalid, "no Goose database: it has no tables of sessions and messages as Goose makes them")
	}
	var encoding string
	if err := d.GetContext(d.ctx, &encoding, `PRAGMA encoding`); err != nil {
		return err
	}
	d.utf8 = encoding == "UTF-8"
	if slices.Contains(d.has[tableVersion], "version") {
		var version *int64
		if err := d.GetContext(d.ctx, &version, `SELECT MAX(CAST(version AS INTEGER)) FROM schema_version`); err != nil {
			return err
		}
		if version != nil {
			d.version = *version
		}
	}
	return nil
}

// aside counts what is beside the conversations.
func (d *database) aside() {
	for table := range d.has {
		switch table {
		case tableVersion:
			d.records.Skip(skipBookkeeping, 1)
		case tableSessions, tableMessages, tableLedger, tableThreads, tableThreadMessages:
		default:
			if !strings.HasPrefix(table, "sqlite_") {
				d.records.Skip(skipForeign, 1)
			}
		}
	}
}

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
	found, err := d.list(tableSessions, "")
	if err != nil {
		return err
	}
	there := map[string]bool{}
	var sessions []about
	marks := map[string]string{}
	for _, row := range found {
		a := aboutRow(row, d.has[tableSessions])
		there[a.id] = true
		sessions = append(sessions, a)
		marks[a.id] = d.markOf(a.id, row)
	}
	slices.SortStableFunc(sessions, func(a, b about) int { return compareTimes(a.created, b.created) })
	for i := range sessions {
		d.order = append(d.order, sessions[i].id)
	}
	sessions = append(sessions, d.orphans(there)...)
	for i := range sessions {
		if err := d.session(sessions[i], marks[sessions[i].id]); err != nil {
			return err
		}
	}
	if err := d.threads(); err != nil {
		return err
	}
	return d.gone()
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

// list reads rows of a table of small rows, all columns as text.
func (d *database) list(table, where string, args ...any) (all []columns, err error) {
	err = d.each(table, where, func(c columns) error { all = append(all, c); return nil }, args...)
	return all, err
}

// each yields rows as list gives them.
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
		c, err := scanColumns(rows, d.has[table])
		if err != nil {
			return err
		}
		if err := yield(c); err != nil {
			return err
		}
	}
	return rows.Err()
}

func scanColumns(rows *sqlx.Rows, names []string) (columns, error) {
	values := make([]*string, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	c := columns{}
	for i, name := range names {
		c[name] = values[i]
	}
	return c, nil
}

// markOf tells whether a session changed: its row, and how many rows belong to it.
func (d *database) markOf(id string, row columns) string {
	sum := sha256.New()
	for _, name := range d.has[tableSessions] {
		if v := row[name]; v != nil {
			fmt.Fprintf(sum, "%s=%d:%s;", name, len(*v), *v)
		}
	}
	fmt.Fprintf(sum, "%v %v", d.rows[id], d.ledger[id])
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// orphans are sessions whose row is gone, but not their messages, or their usage.
func (d *database) orphans(there map[string]bool) []about {
	lost := map[string]bool{}
	for _, of := range []map[string]extent{d.rows, d.ledger} {
		for id := range of {
			lost[id] = lost[id] || !there[id]
		}
	}
	var found []about
	for id, is := range lost {
		if is {
			a := about{id: history.Plain([]byte(id)), title: "recovered"}
			a.typed("")
			a.note("recovered", "its row is gone")
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b about) int { return strings.Compare(a.id, b.id) })
	return found
}

// session reads one session if it changed. What cannot be read or stored of it is a problem,
// and the next one is read.
func (d *database) session(a about, changed string) error {
	name := a.id
	if a.created != nil {
		name += "|" + strconv.FormatInt(a.created.Unix(), 10)
	}
	path := d.path + "#" + name
	rows, calls := int(d.rows[a.id].Count), int(d.ledger[a.id].Count)
	if changed == "" {
		changed = fmt.Sprint(d.rows[a.id], d.ledger[a.id])
	}
	cursor, err := d.known.Cursor(d.ctx, session.SourceGoose, path)
	if err != nil {
		return err
	}
	var before mark
	if cursor != nil {
		_ = json.Unmarshal(cursor.State, &before) // a damaged one: read again
	}
	d.sessions++
	d.listed = append(d.listed, name)
	if cursor != nil && before.Mark == changed && !d.again {
		d.records.Skip(skipCopy+before.Of, before.Copies)
		d.records.Skip(history.SkipKnown, a.records+rows+calls-before.Copies)
		return nil
	}
	from := newRows(d, tableMessages, `session_id = ?`, a.id)
	if thread, ok := strings.CutPrefix(a.id, threadPrefix); ok {
		from = newRows(d, tableThreadMessages, ofThread, thread)
	}
	r := &reader{
		ctx: d.ctx, known: d.known, emit: d.send, path: d.path, about: a, from: from, cuts: from.cuts,
		counted: before.Ledger, origins: func() ([]*session.Session, error) { return d.origins(a.id) },
	}
	switch {
	case a.records == 0 && rows == 0: // only what it cost is left
		r.from, r.cuts = &lostUsage{d: d, of: a.id}, nil
	case calls > 0:
		r.ledger = ledger{d: d, of: a.id}
		if err := r.ledger.look(); err != nil {
			return err
		}
	}
	err = r.run(func() *history.Cursor {
		now := mark{Mark: changed, Copies: r.shared, Ledger: calls}
		if r.origin != nil {
			now.Of = r.origin.SourceID
		}
		return &history.Cursor{Source: session.SourceGoose, Path: path, State: session.JSONOf(now)}
	})
	d.problems = append(d.problems, r.problems...)
	if err != nil && !d.refused && session.CodeOf(history.SQLiteError(err)) == session.Invalid {
		d.problems = append(d.problems, history.Problem{Path: d.path, Error: "session " + a.id + ": " + history.Reason(err)})
		return nil
	}
	return err
}

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
	if at < 0 {
		return nil, nil
	}
	var found []*session.Session
	for _, older := range alike[:min(at, maxOrigins)] {
		origin, err := d.known.Session(d.ctx, session.SourceGoose, older)
		if err != nil {
			return nil, err
		}
		if origin != nil {
			found = append(found, origin)
		}
	}
	return found, nil
}

// maxOrigins bounds how many copies of one beginning are looked through.
const maxOrigins = 16

// beginnings reads when each session's first message was, and its id if Goose gave it one.
func (d *database) beginnings() error {
	d.begin, d.starting = map[string]string{}, map[string][]string{}
	id := `''`
	if slices.Contains(d.has[tableMessages], "message_id") {
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

// gone notes which sessions are no longer there. What was imported of them stays.
func (d *database) gone() error {
	there := map[string]bool{}
	for _, name := range d.listed {
		there[name] = true
	}
	for _, name := range d.before.Sessions {
		if there[name] {
			continue
		}
		cursor, err := d.known.Cursor(d.ctx, session.SourceGoose, d.path+"#"+name)
		if err != nil || cursor == nil || cursor.SessionID == "" {
			if err != nil {
				return err
			}
			continue
		}
		s, err := d.known.SessionByID(d.ctx, cursor.SessionID)
		if err != nil {
			return err
		}
		if s == nil || notesHas(s, "gone") {
			continue
		}
		b := history.Batch{}
		b.ID = s.ID
		b.Fields = &store.ImportFields{Metadata: notesOf(s).With("gone", raw(`"deleted in Goose"`)).JSON()}
		if err := d.send(b); err != nil {
			return err
		}
	}
	return nil
}

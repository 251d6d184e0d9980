package openclaw

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// The tables in which history lies, in the two layouts that there were. Which one a database
// has follows from its tables: its version numbers went up with every change.
const (
	tableEvents   = "transcript_events"
	tableNodes    = "session_nodes"   // layout 2: a row for each key
	tableWindows  = "session_windows" // layout 2: a row for each session
	tableSessions = "sessions"        // layout 1: the same
	tableEntries  = "session_entries" // layout 1: a row for each key
	tableCold     = "session_transcript_cold_archives"
	tableArchives = "session_transcript_archives"
	tablePending  = "session_pending_inputs"
	tableMarks    = "transcript_rewrite_watermarks"
)

// database is a snapshot of an agent's database with what its tables are.
type database struct {
	*history.SQLite
	path    string
	columns history.Schema // of the tables that are read; none for one that is not there
}

func openDatabase(ctx context.Context, path string) (*database, error) {
	opened, err := history.OpenSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	return newDatabase(ctx, path, opened)
}

func newDatabase(ctx context.Context, path string, opened *history.SQLite) (d *database, err error) {
	d = &database{SQLite: opened, path: path}
	d.columns, err = d.Schema(ctx, tableEvents, tableNodes, tableWindows, tableSessions, tableEntries, tableCold, tableArchives, tablePending, tableMarks)
	return d, history.SQLiteError(err)
}

func (d *database) has(table string, columns ...string) bool {
	lacks := func(column string) bool { return !d.columns.Has(table, column) }
	return len(d.columns[table]) > 0 && !slices.ContainsFunc(columns, lacks)
}

// windows returns the table that has a row for each session.
func (d *database) windows() string {
	if d.has(tableWindows, "session_id", "session_key") {
		return tableWindows
	}
	if d.has(tableSessions, "session_id", "session_key") {
		return tableSessions
	}
	return ""
}

// hasCold reports whether events can be read from cold storage.
func (d *database) hasCold() bool {
	return d.has(tableCold, "session_id", "archive_name", "archive_sha256")
}

// rows yields a table's rows as objects of their columns, texts and numbers as JSON; bytes
// are left out, as is what is NULL.
func (d *database) rows(ctx context.Context, table, order string, yield func(history.Object)) error {
	var list []string
	for _, c := range d.columns[table] {
		list = append(list, `CAST("`+c+`" AS TEXT), typeof("`+c+`")`)
	}
	texts := make([]sql.NullString, 2*len(d.columns[table]))
	into := make([]any, len(texts))
	for i := range texts {
		into[i] = &texts[i]
	}
	err := d.Each(ctx, func(rows *sqlx.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		var o history.Object
		for i, c := range d.columns[table] {
			value := history.Plain(texts[2*i].String)
			switch texts[2*i+1].String {
			case "integer", "real":
				if json.Valid([]byte(value)) {
					o = append(o, history.Field{Key: c, Raw: []byte(value)})
				}
			case "text":
				if _, ok := history.ParseObject([]byte(value)); ok && c == "entry_json" {
					o = append(o, history.Field{Key: c, Raw: []byte(value)})
					continue
				}
				o = append(o, history.Member(c, value))
			}
		}
		yield(o)
		return nil
	}, `SELECT `+strings.Join(list, ", ")+` FROM "`+table+`" ORDER BY `+order)
	return history.SQLiteError(err)
}

// fromDatabase takes what a database says of an agent's keys and sessions.
func (a *agent) fromDatabase(ctx context.Context, path string, opened *database) error {
	if opened != nil && sameFile(opened.path, path) {
		return a.take(ctx, opened)
	}
	d, err := openDatabase(ctx, path)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // a reader
	return a.take(ctx, d)
}

func sameFile(a, b string) bool {
	if real, err := filepath.EvalSymlinks(b); err == nil {
		b = real
	}
	return a == b
}

func (a *agent) take(ctx context.Context, d *database) error {
	if table := d.windows(); table != "" {
		err := d.rows(ctx, table, "session_id", func(o history.Object) {
			s := a.session(o.String("session_id"), timeOfColumn(o, "started_at", "created_at"))
			s.window, s.stored = o.Without("session_id"), true
			s.key = canonicalKey(o.String("session_key"), a.id, o.String("channel"))
		})
		if err != nil {
			return err
		}
	}
	for _, table := range []string{tableNodes, tableEntries} {
		if !d.has(table, "session_key") {
			continue
		}
		err := d.rows(ctx, table, "session_key", func(o history.Object) {
			key := o.String("session_key")
			entry := o.Inner("entry_json")
			a.entry(key, entry)
			if id := cmp.Or(o.String("current_session_id"), o.String("session_id"), entry.String("sessionId")); id != "" {
				a.session(id, timeOfColumn(o, "created_at", "updated_at")).node = o.Without("session_key", "entry_json")
			}
		})
		if err != nil {
			return err
		}
	}
	if d.has(tableArchives, "session_id", "session_key") {
		return d.keysOfArchives(ctx, a)
	}
	return nil
}

func (d *database) keysOfArchives(ctx context.Context, a *agent) error {
	return history.SQLiteError(d.EachRow(ctx, tableArchives, []string{"session_id", "session_key"}, "", func(r history.Row) error {
		if s := a.session(r.Get("session_id"), session.Time{}); s.key == "" {
			s.key = canonicalKey(r.Get("session_key"), a.id, "")
		}
		return nil
	}))
}

// readDatabase reads an agent's database: its sessions one after the other, each with a cursor
// of its own; then the transcripts that it put away; then it accounts for the rest.
func (s *source) readDatabase(in *history.Intake, opened *history.SQLite) error {
	d, err := newDatabase(in.Context(), in.Found.Path, opened)
	if err != nil {
		return err
	}
	x := &databaseReader{database: d, source: s, in: in, agent: s.agentFor(in.Context(), in.Found.Path, d)}
	return history.SQLiteError(x.read())
}

type databaseReader struct {
	*database
	source *source
	in     *history.Intake // of what belongs to no session
	agent  *agent
}

func (x *databaseReader) read() error {
	if !x.has(tableEvents, "session_id", "seq") {
		x.in.Problem(0, "it holds no conversations")
		return nil
	}
	if !x.has(tableEvents, "event_json") && !x.has(tableEvents, "event_zstd", "event_utf8_bytes") {
		x.in.Problem(0, "it holds no conversations: its table "+tableEvents+" has no column event_json")
		return nil
	}
	if x.has(tableCold) && !x.hasCold() {
		x.in.Problem(0, "its table "+tableCold+" lacks columns and was left out")
	}
	if x.windows() == "" {
		x.in.Problem(0, "unknown layout: its tables are not those that are known; only the transcripts are read")
	}
	ids, err := x.order()
	if err != nil {
		return err
	}
	for _, id := range ids {
		x.in.CountSession()
		if err := x.session(id); err != nil {
			return err
		}
	}
	if x.has(tableArchives, "session_id", "archive_blob") {
		if err := x.archives(); err != nil {
			return err
		}
	}
	if x.has(tablePending) {
		var n int
		if err := x.GetContext(x.in.Context(), &n, `SELECT COUNT(*) FROM `+tablePending); err != nil {
			return err
		}
		x.in.Skip(skipPending, n)
	}
	return nil
}

// order lists the sessions that have events or cold storage, by the time they began.
func (x *databaseReader) order() (ids []string, err error) {
	query := `SELECT session_id FROM ` + tableEvents + ` WHERE session_id IS NOT NULL GROUP BY session_id`
	if x.hasCold() {
		query += ` UNION SELECT session_id FROM ` + tableCold + ` WHERE session_id IS NOT NULL`
	}
	if table := x.windows(); table != "" {
		query += ` UNION SELECT session_id FROM ` + table
	}
	if err := x.SelectContext(x.in.Context(), &ids, query); err != nil {
		return nil, err
	}
	for id, s := range x.agent.sessions { // a key whose session has no transcript yet
		if s.node != nil && !s.stored && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	begun := func(id string) int64 {
		if s := x.agent.sessions[id]; s != nil {
			return s.begun.UnixMilli()
		}
		return 0
	}
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(begun(a), begun(b)) })
	return ids, nil
}

// session reads one session, if it changed since it was read last.
func (x *databaseReader) session(id string) error {
	about := x.agent.sessions[id]
	if about == nil {
		about = newAbout(id, "", nil)
	}
	stamp, err := x.stamp(id, about)
	if err != nil {
		return err
	}
	path := x.in.Found.Path + "#" + id
	cursor, err := x.in.Known.Cursor(x.in.Context(), session.SourceOpenClaw, path)
	if err != nil {
		return err
	}
	here, err := x.in.Session(x.agent.id + "/" + id)
	if err != nil {
		return err
	}
	if cursor != nil && here != nil && cursor.Hash == stamp {
		x.in.Skip(skipUnchanged, 1)
		return nil
	}
	s, err := newSpool()
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it has no name any more
	var early history.Records
	rows, err := x.events(s, id, &early)
	if err != nil {
		if err = history.SQLiteError(err); session.CodeOf(err) == session.Invalid {
			x.in.Problem(0, "session "+id+": "+history.Reason(err))
			return nil
		}
		return err
	}
	return x.run(path, s, rows, about, early, stamp)
}

// run imports the rows of one transcript of the database, in a spool. early counts its records that are
// no lines.
func (x *databaseReader) run(path string, s *spool, rows []row, about *about, early history.Records, stamp string) error {
	in := x.in.Beside(path)
	in.Found = history.Found{Path: path}
	in.Mark(stamp)
	r := &reader{source: x.source, agent: x.agent, about: about, sid: about.sid, name: fileName{id: about.sid}, rows: rows, bytes: s.bytes}
	here, err := x.in.Session(x.agent.id + "/" + about.sid)
	if err != nil {
		return err
	}
	if here == nil {
		early.Import(1) // the row of the session
	} else {
		early.Skip(history.SkipKnown, 1)
	}
	in.Count(early)
	err = r.read(in)
	problems := []history.Problem{}
	if err == nil {
		problems, err = in.Finish()
	}
	for _, p := range problems {
		x.in.Problem(p.Line, p.Error)
	}
	if session.CodeOf(err) == session.Invalid {
		x.in.Problem(0, fmt.Sprintf("session %s: %s", about.sid, history.Reason(err)))
		return nil
	}
	return err
}

// stamp changes when a session's transcript, or what is said of it, does. What its program
// updates first when it writes is asked, and the events are counted: seq is no identity.
func (x *databaseReader) stamp(id string, about *about) (string, error) {
	var n, last int64
	err := x.QueryRowContext(x.in.Context(), `SELECT COUNT(*), COALESCE(MAX(seq), -1) FROM `+tableEvents+` WHERE session_id = ?`, id).Scan(&n, &last)
	if err != nil {
		return "", err
	}
	var mark sql.NullString
	if x.has(tableMarks, "session_id", "generation") {
		err := x.QueryRowContext(x.in.Context(), `SELECT CAST(generation AS TEXT) FROM `+tableMarks+` WHERE session_id = ?`, id).Scan(&mark)
		if err != nil && err != sql.ErrNoRows {
			return "", err
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{
		strconv.FormatInt(n, 10), strconv.FormatInt(last, 10), mark.String, about.ended.SQL(), string(about.window.JSON()), string(about.node.JSON()), string(about.entry.JSON()),
	}, "\x00")))
	return hex.EncodeToString(sum[:]), nil
}

// timeOfColumn reads the first of some columns that holds milliseconds since 1970.
func timeOfColumn(o history.Object, columns ...string) session.Time {
	for _, c := range columns {
		if at, ok := pi.Time(o.Get(c)); ok {
			return at
		}
	}
	return session.Time{}
}

// coldFile finds an archive of cold storage.
func (x *databaseReader) coldFile(name string) string {
	folder := filepath.Join(filepath.Dir(filepath.Dir(x.in.Found.Path)), "sessions", "cold")
	return filepath.Join(folder, filepath.Base(name))
}

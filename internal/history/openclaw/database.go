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
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/jsonx"
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

func openDatabase(path string, opened *history.SQLite) *database {
	columns := opened.Schema(tableEvents, tableNodes, tableWindows, tableSessions, tableEntries, tableCold, tableArchives,
		tablePending, tableMarks)
	return &database{SQLite: opened, path: path, columns: columns}
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
func (d *database) rows(table, order string, yield func(jsonx.Object)) {
	var list []string
	for _, c := range d.columns[table] {
		list = append(list, `CAST("`+c+`" AS TEXT), typeof("`+c+`")`)
	}
	texts := make([]sql.NullString, 2*len(d.columns[table]))
	into := make([]any, len(texts))
	for i := range texts {
		into[i] = &texts[i]
	}
	d.Each(func(rows *sqlx.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		var o jsonx.Object
		for i, c := range d.columns[table] {
			value := history.Plain(texts[2*i].String)
			switch texts[2*i+1].String {
			case "integer", "real":
				if json.Valid([]byte(value)) {
					o = append(o, jsonx.Member{Key: c, Value: []byte(value)})
				}
			case "text":
				if _, ok := jsonx.ReadObject([]byte(value)); ok && c == "entry_json" {
					o = append(o, jsonx.Member{Key: c, Value: []byte(value)})
					continue
				}
				o = append(o, jsonx.MemberOf(c, value))
			}
		}
		yield(o)
		return nil
	}, `SELECT `+strings.Join(list, ", ")+` FROM "`+table+`" ORDER BY `+order)
}

// fromDatabase takes what a database says of an agent's keys and sessions. opened is that which is open
// anyway, nil for none.
func (a *agent) fromDatabase(ctx context.Context, path string, opened *database) error {
	if opened != nil && sameFile(opened.path, path) {
		return a.take(opened)
	}
	db, err := history.OpenSQLite(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // a reader
	return a.take(openDatabase(path, db))
}

func sameFile(a, b string) bool {
	if real, err := filepath.EvalSymlinks(b); err == nil {
		b = real
	}
	return a == b
}

func (a *agent) take(d *database) error {
	if table := d.windows(); table != "" {
		d.rows(table, "session_id", func(o jsonx.Object) {
			s := a.session(o.String("session_id"), timeOfColumn(o, "started_at", "created_at"))
			s.window, s.stored = o.Without("session_id"), true
			s.key = canonicalKey(o.String("session_key"), a.id, o.String("channel"))
		})
	}
	for _, table := range []string{tableNodes, tableEntries} {
		if !d.has(table, "session_key") {
			continue
		}
		d.rows(table, "session_key", func(o jsonx.Object) {
			entry := o.Inner("entry_json")
			a.entry(o.String("session_key"), entry)
			if id := cmp.Or(o.String("current_session_id"), o.String("session_id"), entry.String("sessionId")); id != "" {
				a.session(id, timeOfColumn(o, "created_at", "updated_at")).node = o.Without("session_key", "entry_json")
			}
		})
	}
	if d.has(tableArchives, "session_id", "session_key") {
		d.EachRow(tableArchives, []string{"session_id", "session_key"}, "", func(r history.Row) {
			if s := a.session(r.Get("session_id"), session.Time{}); s.key == "" {
				s.key = canonicalKey(r.Get("session_key"), a.id, "")
			}
		})
	}
	return d.TakeErr()
}

// readDatabase reads an agent's database: its sessions one after the other, each with a cursor
// of its own; then the transcripts that it put away; then it accounts for the rest.
func (s *source) readDatabase(in *history.Intake, opened *history.SQLite) {
	d := openDatabase(in.Found.Path, opened)
	if in.Fail(d.TakeErr()); in.Err() == nil {
		x := &databaseReader{database: d, source: s, in: in, agent: s.agentFor(in.Context(), in.Found.Path, d)}
		x.read()
	}
}

type databaseReader struct {
	*database
	source *source
	in     *history.Intake // of what belongs to no session
	agent  *agent
}

func (x *databaseReader) read() {
	if !x.has(tableEvents, "session_id", "seq") {
		x.in.Problem(0, "it holds no conversations")
		return
	}
	if !x.has(tableEvents, "event_json") && !x.has(tableEvents, "event_zstd", "event_utf8_bytes") {
		x.in.Problem(0, "it holds no conversations: its table "+tableEvents+" has no column event_json")
		return
	}
	if x.has(tableCold) && !x.hasCold() {
		x.in.Problem(0, "its table "+tableCold+" lacks columns and was left out")
	}
	if x.windows() == "" {
		x.in.Problem(0, "unknown layout: its tables are not those that are known; only the transcripts are read")
	}
	ids := x.order()
	x.in.Fail(x.TakeErr())
	for _, id := range ids {
		x.in.CountSession()
		if x.in.Err() == nil {
			x.session(id)
		}
	}
	if x.has(tableArchives, "session_id", "archive_blob") {
		x.archives()
	}
	if x.has(tablePending) {
		var n int
		x.Get(&n, `SELECT COUNT(*) FROM `+tablePending)
		x.in.Skip(skipPending, n)
	}
}

// order lists the sessions that have events or cold storage, by the time they began.
func (x *databaseReader) order() (ids []string) {
	query := `SELECT session_id FROM ` + tableEvents + ` WHERE session_id IS NOT NULL GROUP BY session_id`
	if x.hasCold() {
		query += ` UNION SELECT session_id FROM ` + tableCold + ` WHERE session_id IS NOT NULL`
	}
	if table := x.windows(); table != "" {
		query += ` UNION SELECT session_id FROM ` + table
	}
	x.Select(&ids, query)
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
	return ids
}

// session reads one session, if it changed since it was read last.
func (x *databaseReader) session(id string) {
	about := x.agent.sessions[id]
	if about == nil {
		about = newAbout(id, "", nil)
	}
	stamp := x.stamp(id, about)
	path := x.in.Found.Path + "#" + id
	cursor := x.in.Cursor(path)
	if cursor != nil && cursor.Hash == stamp && x.in.Session(x.agent.id+"/"+id) != nil {
		x.in.Skip(skipUnchanged, 1)
		return
	}
	var early history.Records
	l := x.events(id, &early)
	if err := x.TakeErr(); session.CodeOf(err) == session.Invalid {
		x.in.Problem(0, "session "+id+": "+history.Reason(err))
	} else if x.in.Fail(err); err == nil {
		if about.file != "" {
			l = x.withLent(l, about.file)
		}
		x.run(path, l, about, early, stamp)
	}
}

// run imports one transcript of the database. early counts its records that are no lines.
func (x *databaseReader) run(path string, l *lines, about *about, early history.Records, stamp string) {
	in := x.in.Beside(path)
	in.Found = history.Found{Path: path}
	in.Mark(stamp)
	if x.in.Session(x.agent.id+"/"+about.sid) == nil {
		early.Import(1) // the row of the session
	} else {
		early.Skip(history.SkipKnown, 1)
	}
	in.Count(early)
	r := &reader{
		source: x.source, agent: x.agent, about: about, sid: about.sid, name: fileName{id: about.sid},
		rows: l.rows, bytes: l.bytes,
	}
	x.in.ReadBeside(in, about.sid, r.read)
}

// stamp changes when a session's transcript, or what is said of it, does. What its program
// updates first when it writes is asked, and the events are counted: seq is no identity.
func (x *databaseReader) stamp(id string, about *about) string {
	var events struct{ N, Last int64 }
	x.Get(&events, `SELECT COUNT(*) AS n, COALESCE(MAX(seq), -1) AS last FROM `+tableEvents+` WHERE session_id = ?`, id)
	var marks []string
	if x.has(tableMarks, "session_id", "generation") {
		x.Select(&marks, `SELECT COALESCE(CAST(generation AS TEXT), '') FROM `+tableMarks+` WHERE session_id = ?`, id)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s\x00%s\x00%s\x00%s\x00%s",
		events.N, events.Last, strings.Join(marks, " "), about.ended.SQL(), about.window.Column(), about.node.Column(),
		about.entry.Column()))
	return hex.EncodeToString(sum[:])
}

// timeOfColumn reads the first of some columns that holds milliseconds since 1970.
func timeOfColumn(o jsonx.Object, columns ...string) session.Time {
	for _, c := range columns {
		if at, ok := pi.Time(o.Get(c)); ok {
			return at
		}
	}
	return session.Time{}
}

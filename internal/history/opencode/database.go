package opencode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// The tables that are read. Others are counted by their names, never read: account,
// control_account, credential and the like hold credentials, session_share a secret.
const (
	tableSession   = "session"
	tableMessage   = "message"
	tablePart      = "part"
	tableSessionV2 = "session_v2" // since 2.0.3
	tableMessageV2 = "session_message"
	tableTodo      = "todo"
	tableEvent     = "event"
	tableProject   = "project"
)

// database is one opencode.db in one snapshot.
type database struct {
	*history.SQLite
	in       *history.Intake
	has      history.Schema
	extents  map[string]map[string]history.Extent // by table, by session
	starting map[int64][]string                   // sessions that were passed, by the time of their first message
	parts    *sqlx.Stmt                           // nil: no such table
}

// perSession are the tables whose rows belong to a session.
var perSession = []string{tableMessage, tablePart, tableTodo, tableMessageV2}

// required are the columns without which a table is not read.
var required = map[string][]string{
	tableSession: {"id", "project_id"}, tableSessionV2: {"id", "project_id"}, tableProject: {"id", "worktree"},
	tableMessage: {"id", "session_id", "data"}, tablePart: {"id", "message_id", "session_id", "data"},
	tableMessageV2: {"id", "session_id", "type", "data"}, tableTodo: {"session_id", "content"},
}

func readDatabase(in *history.Intake, opened *history.SQLite) {
	d := &database{SQLite: opened, in: in, extents: map[string]map[string]history.Extent{}, starting: map[int64][]string{}}
	if d.has = d.Schema(append(perSession, tableSession, tableSessionV2, tableProject)...); !d.ok() {
		return
	}
	var missing []string
	for table, columns := range required {
		if why := d.has.Require(table, columns...); why != "" {
			missing = append(missing, why)
		}
	}
	sessions := d.has.Has(tableSession, "id") || d.has.Has(tableSessionV2, "id")
	hasParts := d.has.Has(tablePart, "id")
	if !sessions || !(hasParts && d.has.Has(tableMessage, "id")) && !d.has.Has(tableMessageV2, "id") {
		in.Fail(session.Errorf(session.Invalid,
			"no %s database: it has no tables of sessions, messages and parts as %[1]s makes them", in.Source()))
		return
	}
	slices.Sort(missing)
	for _, why := range missing {
		in.Problem(0, why)
	}
	if hasParts {
		var err error
		if d.parts, err = d.PreparexContext(in.Context(), partsOfMessage); err != nil {
			in.Fail(err)
			return
		}
		defer d.parts.Close()
	}
	for _, table := range perSession {
		if d.has.Has(table, "session_id") {
			newest := `COALESCE(MAX(CAST(` + d.has.Column(table, "time_updated", "NULL") + ` AS INTEGER)), 0)`
			first := `COALESCE(MIN(CAST(` + d.has.Column(table, "time_created", "NULL") + ` AS INTEGER)), 0)`
			d.extents[table] = d.Extents(table, newest, first)
		}
	}
	d.sessions()
	d.countOthers()
}

// ok reports whether the queries until now found what they asked for.
func (d *database) ok() bool {
	d.in.Fail(d.TakeErr())
	return d.in.Err() == nil
}

// credentials are names of tables that are not even counted by their rows.
var credentials = pattern.New(`(?i)auth|token|secret|credential|account|share`)

// countOthers counts what is beside the conversations.
func (d *database) countOthers() {
	for table := range d.has {
		switch {
		case slices.Contains(perSession, table), table == tableSession, table == tableSessionV2,
			strings.HasPrefix(table, "sqlite_"):
		case table == tableEvent:
			var n int
			d.Get(&n, `SELECT COUNT(*) FROM event`)
			d.in.Skip(skipEvent, n)
		case credentials.MatchString(table):
			d.in.Skip(skipForeign, 1)
		default:
			d.in.Skip(skipBookkeeping, 1)
		}
	}
}

// sessions reads the sessions, oldest first, then messages whose session is gone.
func (d *database) sessions() {
	all, worktrees := d.list(), d.worktrees()
	if !d.ok() {
		return
	}
	listed := map[string]bool{}
	for _, a := range all {
		a.worktree, listed[a.id] = worktrees[a.project], true
		d.session(a)
	}
	for _, table := range []string{tableMessage, tablePart, tableMessageV2} {
		for id := range d.extents[table] {
			if !listed[id] {
				listed[id] = true
				d.session(recovered(id, inDatabase, "its row is gone"))
			}
		}
	}
}

// worktrees returns the folders of the projects; that of no project is the root.
func (d *database) worktrees() map[string]string {
	folders := map[string]string{}
	if d.has.Has(tableProject, "id") {
		d.EachRow(tableProject, []string{"id", "worktree"}, "", func(r history.Row) {
			if folder := r.Get("worktree"); folder != "/" {
				folders[r.Get("id")] = folder
			}
		})
	}
	return folders
}

// list reads the sessions of both versions, oldest first. Of a session in both, version 2's row
// counts, which may have no title.
func (d *database) list() (all []about) {
	places := map[string]int{}
	for _, table := range []string{tableSession, tableSessionV2} {
		columns := slices.DeleteFunc(slices.Clone(d.has[table]), func(name string) bool { return name == "summary_diffs" })
		if len(columns) == 0 {
			continue
		}
		d.EachRow(table, columns, "", func(r history.Row) {
			a := aboutRow(objectOf(r))
			i, twice := places[a.id]
			if !twice {
				places[a.id], all = len(all), append(all, a)
				return
			}
			a.older, a.title = true, cmp.Or(a.title, all[i].title)
			all[i] = a
		})
	}
	slices.SortStableFunc(all, func(a, b about) int {
		return cmp.Or(a.created.Compare(b.created.Time), strings.Compare(a.id, b.id))
	})
	return all
}

// valued are columns that hold JSON or numbers.
var valued = pattern.New(`^(revert|permission|metadata|model|cost|summary_.*|tokens_.*)$`)

// objectOf brings a session's row into the form of a file.
func objectOf(r history.Row) jsonx.Object {
	var o, times jsonx.Object
	for _, c := range r {
		name, isTime := strings.CutPrefix(c.Name, "time_")
		isValue := valued.MatchString(c.Name) && jsonx.Valid([]byte(c.Text))
		switch {
		case c.Text == "", isValue && (c.Text == "0" || c.Text == "0.0"):
		case isTime:
			times = append(times, jsonx.MemberOf(name, c.Text))
		case isValue:
			o = append(o, jsonx.Member{Key: cmp.Or(fieldNames[c.Name], c.Name), Value: raw(c.Text)})
		default:
			o = append(o, jsonx.MemberOf(cmp.Or(fieldNames[c.Name], c.Name), c.Text))
		}
	}
	return o.With("time", times.Value())
}

// markOf returns a mark that changes with a session: with its row, its messages and its parts.
func (d *database) markOf(a *about) string {
	sum := sha256.New()
	fmt.Fprint(sum, reads, string(a.row.Column()), a.title)
	for _, table := range perSession {
		fmt.Fprint(sum, d.extents[table][a.id])
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// session reads one session if it changed. One that is damaged is a problem, and the next one is
// read.
func (d *database) session(a about) {
	first := d.extents[tableMessage][a.id].First
	if second := d.extents[tableMessageV2][a.id].First; first == 0 || second > 0 && second < first {
		first = second
	}
	alike := d.starting[first]
	if first > 0 {
		d.starting[first] = append(alike, a.id)
	}
	part := d.in.Part(a.id, d.markOf(&a))
	if part == nil {
		return
	}
	for _, table := range []string{tableMessage, tablePart, tableMessageV2} {
		if at := millis(d.extents[table][a.id].Newest); at.After(a.updated.Time) && !at.After(d.in.Now) {
			a.updated = at
		}
	}
	if a.older {
		part.Skip(skipOlder, 1)
	}
	r := &reader{in: part, about: a, older: func(int64) []string { return alike }}
	d.todo(&r.about)
	d.messages(r)
	d.in.ReadPart(part, a.id, d.SQLite, r.run)
}

// todo notes the session's list of things to do.
func (d *database) todo(a *about) {
	if d.extents[tableTodo][a.id].Count == 0 {
		return
	}
	type item struct {
		Content  string `db:"content" json:"content"`
		Status   string `db:"status" json:"status"`
		Priority string `db:"priority" json:"priority"`
	}
	var list []item
	column := func(name string) string { return d.has.Column(tableTodo, name, "NULL") }
	d.Select(&list, `SELECT COALESCE(CAST(content AS TEXT), '') AS content, COALESCE(CAST(`+column("status")+` AS TEXT), '') AS status,
		COALESCE(CAST(`+column("priority")+` AS TEXT), '') AS priority FROM todo WHERE session_id = ? ORDER BY `+column("position"), a.id)
	for i := range list {
		list[i] = item{clean(list[i].Content), clean(list[i].Status), clean(list[i].Priority)}
	}
	a.note("todos", session.JSONOf(list))
	a.todos = len(list)
}

// The statements of a conversation. A value over ?2 bytes is not read. They sort nothing: there
// may be much to sort.
const (
	valueOfRow     = `CASE WHEN octet_length(data) <= ?2 THEN CAST(data AS TEXT) END AS data`
	messagesOf     = `SELECT CAST(id AS TEXT) AS id, COALESCE(CAST(time_created AS INTEGER), 0) AS created, ` + valueOfRow + ` FROM message WHERE session_id = ?1`
	partsOfMessage = `SELECT CAST(id AS TEXT) AS id, ` + valueOfRow + ` FROM part WHERE message_id = ?1`
	partMessages   = `SELECT DISTINCT message_id FROM part p WHERE session_id = ?1 AND message_id IS NOT NULL`
	lostMessages   = partMessages + `
		AND NOT EXISTS (SELECT 1 FROM message m WHERE m.id = p.message_id AND m.session_id = ?1)`
)

// timed returns a statement for a table that may lack the column time_created: then it reads NULL.
func (d *database) timed(table, statement string) string {
	return strings.ReplaceAll(statement, "time_created", d.has.Column(table, "time_created", "NULL"))
}

// row is a row of message, or of session_message.
type row struct {
	ID      string `db:"id"`
	Type    string `db:"type"` // of version 2
	Created int64  `db:"created"`
	Data    []byte `db:"data"`
}

// start begins the message of a row.
func (r *row) start() *message {
	return &message{id: r.ID, created: r.Created, data: parse(r.Data), records: 1, large: r.Data == nil}
}

// messages reads the messages of both versions.
func (d *database) messages(r *reader) {
	id := r.about.id
	if d.extents[tableMessage][id].Count > 0 {
		d.Each(func(rows *sqlx.Rows) error {
			var of row
			if err := rows.StructScan(&of); err != nil {
				return err
			}
			in := of.start()
			err := d.readParts(in)
			r.add(in)
			return err
		}, d.timed(tableMessage, messagesOf), id, history.MaxLine)
	}
	slices.SortStableFunc(r.records, compareRecords)
	if d.extents[tablePart][id].Count > 0 { // lost messages have the time of the last one
		var lost []string
		statement := lostMessages
		if d.has[tableMessage] == nil { // it is not there, or was left out
			statement = partMessages
		}
		d.Select(&lost, statement, id)
		for _, id := range lost {
			in := &message{id: id, data: body{why: "its message is gone"}}
			d.Fail(d.readParts(in))
			r.add(in)
		}
	}
	if d.extents[tableMessageV2][id].Count > 0 {
		d.addVersion2(r)
	}
}

// readParts reads the parts of a message.
func (d *database) readParts(in *message) error {
	if d.parts == nil {
		return nil
	}
	rows, err := d.parts.QueryContext(d.in.Context(), in.id, history.MaxLine)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var data []byte
		if err := rows.Scan(&id, &data); err != nil {
			return err
		}
		in.large = in.large || data == nil
		in.parts = append(in.parts, part{id, parse(data)})
		in.records++
	}
	inOrder(in.parts)
	return rows.Err()
}

func inOrder(parts []part) {
	slices.SortStableFunc(parts, func(a, b part) int { return compareIDs(a.id, b.id) })
}

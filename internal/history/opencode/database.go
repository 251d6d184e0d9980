package opencode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
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
	has      map[string][]string          // columns by table
	extents  map[string]map[string]extent // by table, by session
	starting map[int64][]string           // sessions that were passed, by the time of their first message
	parts    *sqlx.Stmt                   // nil: no such table
}

// extent tells how many rows a session has, and when the newest was changed.
type extent struct {
	Count  int64 `db:"n"`
	Newest int64 `db:"newest"`
	First  int64 `db:"first"`
}

func readDatabase(in *history.Intake, opened *history.SQLite) (err error) {
	d := &database{SQLite: opened, in: in, extents: map[string]map[string]extent{}, starting: map[int64][]string{}}
	ctx := in.Context()
	if d.has, err = d.Schema(ctx, tableSession, tableMessage, tablePart, tableSessionV2, tableMessageV2, tableTodo, tableProject); err != nil {
		return err
	}
	sessions := slices.Contains(d.has[tableSession], "project_id") || slices.Contains(d.has[tableSessionV2], "project_id")
	hasParts := slices.Contains(d.has[tablePart], "message_id")
	if !sessions || !(hasParts && slices.Contains(d.has[tableMessage], "data")) && !slices.Contains(d.has[tableMessageV2], "data") {
		return session.Errorf(session.Invalid, "no opencode database: it has no tables of sessions, messages and parts as opencode makes them")
	}
	if hasParts {
		if d.parts, err = d.PreparexContext(ctx, partsOfMessage); err != nil {
			return err
		}
		defer d.parts.Close()
	}
	if err := d.sessions(); err != nil {
		return err
	}
	return d.countOthers()
}

// credentials are names of tables that are not even counted by their rows.
var credentials = regexp.MustCompile(`(?i)auth|token|secret|credential|account|share`)

// countOthers counts what is beside the conversations.
func (d *database) countOthers() error {
	for table := range d.has {
		switch {
		case slices.Contains([]string{tableSession, tableMessage, tablePart, tableSessionV2, tableMessageV2, tableTodo}, table), strings.HasPrefix(table, "sqlite_"):
		case table == tableEvent:
			var n int
			if err := d.GetContext(d.in.Context(), &n, `SELECT COUNT(*) FROM event`); err != nil {
				return err
			}
			d.in.Skip(skipEvent, n)
		case credentials.MatchString(table):
			d.in.Skip(skipForeign, 1)
		default:
			d.in.Skip(skipBookkeeping, 1)
		}
	}
	return nil
}

// sessions reads the sessions, oldest first, then messages whose session is gone.
func (d *database) sessions() error {
	for _, table := range []string{tableMessage, tablePart, tableTodo, tableMessageV2} {
		if err := d.countRows(table); err != nil {
			return err
		}
	}
	rows, older, err := d.list()
	if err != nil {
		return err
	}
	worktrees, err := d.worktrees()
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, row := range rows {
		a := aboutRow(row)
		a.worktree, listed[a.id] = worktrees[a.project], true
		if err := d.session(a, row, older[a.id]); err != nil {
			return err
		}
	}
	for _, table := range []string{tableMessage, tablePart, tableMessageV2} {
		for id := range d.extents[table] {
			if listed[id] {
				continue
			}
			a := about{id: id, title: "recovered", store: inDatabase}
			a.note("recovered", raw(`"its row is gone"`))
			listed[id] = true
			if err := d.session(a, nil, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// worktrees returns the folders of the projects; that of no project is the root.
func (d *database) worktrees() (map[string]string, error) {
	folders := map[string]string{}
	if !slices.Contains(d.has[tableProject], "worktree") {
		return folders, nil
	}
	var list []struct {
		ID       string `db:"id"`
		Worktree string `db:"worktree"`
	}
	err := d.SelectContext(d.in.Context(), &list, `SELECT CAST(id AS TEXT) AS id, COALESCE(CAST(worktree AS TEXT), '') AS worktree FROM project WHERE id IS NOT NULL`)
	for _, p := range list {
		if p.Worktree != "/" {
			folders[p.ID] = clean(p.Worktree)
		}
	}
	return folders, err
}

// countRows counts the rows of each session.
func (d *database) countRows(table string) error {
	all := map[string]extent{}
	d.extents[table] = all
	if !slices.Contains(d.has[table], "session_id") {
		return nil
	}
	var list []struct {
		Session *string `db:"session_id"`
		extent
	}
	err := d.SelectContext(d.in.Context(), &list, `SELECT session_id, COUNT(*) AS n, COALESCE(MAX(CAST(time_updated AS INTEGER)), 0) AS newest,
		COALESCE(MIN(CAST(time_created AS INTEGER)), 0) AS first FROM `+table+` GROUP BY session_id`)
	for _, e := range list {
		if e.Session != nil {
			all[*e.Session] = e.extent
		}
	}
	return err
}

// list reads the sessions of both versions, oldest first, in the form of files. Of a session in
// both, version 2's row counts, which may have no title; older has the ids of such.
func (d *database) list() (all []history.Object, older map[string]bool, err error) {
	if all, err = d.sessionRows(tableSession); err != nil {
		return nil, nil, err
	}
	places := map[string]int{}
	for i, row := range all {
		places[row.String("id")] = i
	}
	second, err := d.sessionRows(tableSessionV2)
	older = map[string]bool{}
	for _, row := range second {
		id := row.String("id")
		i, twice := places[id]
		if !twice {
			all = append(all, row)
			continue
		}
		if title := all[i].Get("title"); row.String("title") == "" && title != nil {
			row = row.With("title", title)
		}
		all[i], older[id] = row, true
	}
	created := func(row history.Object) int64 {
		times, _ := history.Fields(row.Get("time"))
		return history.Count(times.Get("created"))
	}
	slices.SortStableFunc(all, func(a, b history.Object) int {
		return cmp.Or(cmp.Compare(created(a), created(b)), strings.Compare(a.String("id"), b.String("id")))
	})
	return all, older, err
}

// valued are columns that hold JSON or numbers.
var valued = regexp.MustCompile(`^(revert|permission|metadata|model|cost|summary_.*|tokens_.*)$`)

// sessionRows reads a table of sessions, all columns but the diffs; no rows if there is no such table.
func (d *database) sessionRows(table string) (all []history.Object, err error) {
	names := slices.DeleteFunc(slices.Clone(d.has[table]), func(name string) bool { return name == "summary_diffs" })
	if len(names) == 0 {
		return nil, nil
	}
	selected := make([]string, len(names))
	for i, name := range names {
		selected[i] = `CAST("` + strings.ReplaceAll(name, `"`, `""`) + `" AS TEXT)`
	}
	err = d.each(func(rows *sqlx.Rows) error {
		values, err := rows.SliceScan()
		var row, times history.Object
		for i, value := range values {
			text, _ := value.(string)
			if text == "" {
				continue // NULL, mostly
			}
			encoded := raw(session.JSONOf(clean(text)))
			if name, ok := strings.CutPrefix(names[i], "time_"); ok {
				times = append(times, history.Field{Key: name, Raw: encoded})
				continue
			}
			if valued.MatchString(names[i]) && history.Valid([]byte(text)) {
				if encoded = raw(text); text == "0" || text == "0.0" {
					continue
				}
			}
			row = append(row, history.Field{Key: cmp.Or(fieldNames[names[i]], names[i]), Raw: encoded})
		}
		all = append(all, row.With("time", objectJSON(times)))
		return err
	}, `SELECT `+strings.Join(selected, ", ")+` FROM `+table)
	return all, err
}

// markOf returns a mark that changes with a session: with its row, its messages and its parts.
func (d *database) markOf(id string, row history.Object) string {
	sum := sha256.New()
	sum.Write(row.JSON())
	fmt.Fprint(sum, reads)
	for _, table := range []string{tableMessage, tablePart, tableTodo, tableMessageV2} {
		fmt.Fprint(sum, d.extents[table][id])
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// session reads one session if it changed. One that is damaged is a problem, and the next one is
// read. older: version 2's row replaces another one.
func (d *database) session(a about, row history.Object, older bool) error {
	first := d.extents[tableMessage][a.id].First
	if second := d.extents[tableMessageV2][a.id].First; first == 0 || second > 0 && second < first {
		first = second
	}
	alike := d.starting[first]
	if first > 0 {
		d.starting[first] = append(alike, a.id)
	}
	part, err := d.in.Part(a.id, d.markOf(a.id, row))
	if err != nil || part == nil {
		return err
	}
	for _, table := range []string{tableMessage, tablePart, tableMessageV2} {
		if at, ok := history.UnixMilli(strconv.AppendInt(nil, d.extents[table][a.id].Newest, 10)); ok && at.After(a.updated.Time) && !at.After(d.in.Now) {
			a.updated = at
		}
	}
	if older {
		part.Skip(skipOlder, 1)
	}
	r := &reader{in: part, about: a, older: func(int64) []string { return alike }}
	if err = d.todo(&r.about); err == nil {
		err = d.messages(r)
	}
	if err != nil && session.CodeOf(history.SQLiteError(err)) == session.Invalid {
		d.in.Problem(0, "session "+a.id+": "+history.Reason(err))
		return nil
	}
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return err
	}
	return d.in.FinishPart(part)
}

// todo notes the session's list of things to do.
func (d *database) todo(a *about) error {
	if d.extents[tableTodo][a.id].Count == 0 {
		return nil
	}
	type item struct {
		Content  string `db:"content" json:"content"`
		Status   string `db:"status" json:"status"`
		Priority string `db:"priority" json:"priority"`
	}
	var list []item
	err := d.SelectContext(d.in.Context(), &list, `SELECT COALESCE(CAST(content AS TEXT), '') AS content, COALESCE(CAST(status AS TEXT), '') AS status,
		COALESCE(CAST(priority AS TEXT), '') AS priority FROM todo WHERE session_id = ? ORDER BY position`, a.id)
	for i := range list {
		list[i] = item{clean(list[i].Content), clean(list[i].Status), clean(list[i].Priority)}
	}
	a.note("todos", session.JSONOf(list))
	a.todos = len(list)
	return err
}

// The statements of a conversation. A value over ?2 bytes is not read. They sort nothing: there
// may be much to sort.
const (
	valueOfRow     = `CASE WHEN octet_length(data) <= ?2 THEN CAST(data AS TEXT) END AS data`
	messageColumns = `SELECT rowid, CAST(id AS TEXT) AS id, COALESCE(CAST(time_created AS INTEGER), 0) AS created, ` + valueOfRow + ` FROM message `
	messagesOf     = messageColumns + `WHERE session_id = ?1`
	messageAt      = messageColumns + `WHERE rowid = ?1`
	partsOfMessage = `SELECT CAST(id AS TEXT) AS id, ` + valueOfRow + ` FROM part WHERE message_id = ?1`
	lostMessages   = `SELECT DISTINCT message_id FROM part p WHERE session_id = ?1 AND message_id IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM message m WHERE m.id = p.message_id AND m.session_id = ?1)`
)

// messages reads the messages of both versions.
func (d *database) messages(r *reader) error {
	id := r.about.id
	if d.extents[tableMessage][id].Count > 0 {
		err := d.each(func(rows *sqlx.Rows) error {
			in, err := d.message(rows)
			if err == nil {
				r.add(in)
			}
			return err
		}, messagesOf, id, history.MaxLine)
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(r.records, compareRecords)
	if d.extents[tablePart][id].Count > 0 { // lost messages have the time of the last one
		var lost []string
		if err := d.SelectContext(d.in.Context(), &lost, lostMessages, id); err != nil {
			return err
		}
		for _, id := range lost {
			in := &message{id: id, data: []byte("{}"), broken: "its message is gone"}
			if err := d.readParts(in); err != nil {
				return err
			}
			r.add(in)
		}
	}
	if d.extents[tableMessageV2][id].Count > 0 {
		return d.addVersion2(r)
	}
	return nil
}

// each visits the rows of a statement.
func (d *database) each(visit func(*sqlx.Rows) error, statement string, args ...any) error {
	rows, err := d.QueryxContext(d.in.Context(), statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// message reads a row of messageColumns and its parts.
func (d *database) message(rows *sqlx.Rows) (*message, error) {
	in := &message{records: 1}
	var row int64
	if err := rows.Scan(&row, &in.id, &in.created, &in.data); err != nil {
		return nil, err
	}
	in.large = in.data == nil
	in.load = func() (again *message, err error) {
		err = d.each(func(rows *sqlx.Rows) error {
			again, err = d.message(rows)
			return err
		}, messageAt, row, history.MaxLine)
		return again, err
	}
	return in, d.readParts(in)
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
		var p part
		if err := rows.Scan(&p.id, &p.data); err != nil {
			return err
		}
		in.large = in.large || p.data == nil
		in.parts = append(in.parts, p)
		in.records++
	}
	inOrder(in.parts)
	return rows.Err()
}

func inOrder(parts []part) {
	slices.SortStableFunc(parts, func(a, b part) int { return compareIDs(a.id, b.id) })
}

package opencode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	rows, err := d.list()
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
		if err := d.session(a, row); err != nil {
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
			if err := d.session(a, sessionRow{}); err != nil {
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

// sessionRow is a session's row, its columns as text in their order, without those that are NULL.
type sessionRow struct {
	columns []column
	older   int // rows that it replaces: of version 1, where version 2 has the session, too
}

type column struct{ name, text string }

func (row *sessionRow) text(name string) string {
	for _, c := range row.columns {
		if c.name == name {
			return clean(c.text)
		}
	}
	return ""
}

// list reads the sessions of both versions, oldest first. Of a session in both, version 2's row
// counts; it may have no title.
func (d *database) list() ([]sessionRow, error) {
	all, err := d.sessionRows(tableSession)
	if err != nil {
		return nil, err
	}
	second, err := d.sessionRows(tableSessionV2)
	if err != nil {
		return nil, err
	}
	places := map[string]int{}
	for i := range all {
		places[all[i].text("id")] = i
	}
	for _, row := range second {
		i, twice := places[row.text("id")]
		if !twice {
			all = append(all, row)
			continue
		}
		if row.text("title") == "" {
			row.columns = append(row.columns, column{"title", all[i].text("title")})
		}
		row.older = 1
		all[i] = row
	}
	slices.SortStableFunc(all, func(a, b sessionRow) int {
		x, _ := strconv.ParseInt(a.text("time_created"), 10, 64) // else as the oldest
		y, _ := strconv.ParseInt(b.text("time_created"), 10, 64)
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a.text("id"), b.text("id")))
	})
	return all, nil
}

// sessionRows reads a table of sessions, all columns but the diffs; no rows if there is no such table.
func (d *database) sessionRows(table string) (all []sessionRow, err error) {
	var names, selected []string
	for _, name := range d.has[table] {
		if name == "summary_diffs" {
			continue
		}
		names = append(names, name)
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		selected = append(selected, `CAST(`+quoted+` AS TEXT)`)
	}
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := d.QueryContext(d.in.Context(), `SELECT `+strings.Join(selected, ", ")+` FROM `+table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		values := make([]*string, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		var row sessionRow
		for i, name := range names {
			if values[i] != nil {
				row.columns = append(row.columns, column{name, *values[i]})
			}
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// aboutRow reads a session's row.
func aboutRow(row sessionRow) about {
	a := about{
		id: row.text("id"), title: row.text("title"), directory: row.text("directory"), parent: row.text("parent_id"), project: row.text("project_id"),
		forked: row.text("fork_session_id"), records: 1, store: inDatabase,
	}
	a.created, _ = history.UnixMilli([]byte(row.text("time_created")))
	a.updated, _ = history.UnixMilli([]byte(row.text("time_updated")))
	if at, ok := history.UnixMilli([]byte(row.text("time_archived"))); ok {
		a.archived = &at
	}
	if model := []byte(row.text("model")); json.Valid(model) {
		a.said(model)
	}
	if revert := []byte(row.text("revert")); json.Valid(revert) {
		a.reverted(revert)
	}
	var unknown history.Object
	for _, c := range row.columns {
		if c.text == "" {
			continue
		}
		name, text := c.name, clean(c.text)
		encoded := raw(session.JSONOf(text))
		switch name {
		case "id", "title", "directory", "time_created", "time_updated", "time_archived", "time_compacting", "model":
		case "time_suspended", "resume_attempts", "time_idle", "time_viewed", "idle_outcome": // of version 2's scheduler
		case "slug", "version", "project_id", "parent_id", "workspace_id", "path", "agent", "share_url", "fork_session_id", "fork_boundary":
			a.note(name, encoded)
		case "revert", "permission", "metadata":
			if json.Valid([]byte(text)) {
				encoded = raw(text)
			}
			a.note(name, encoded)
		case "cost", "summary_additions", "summary_deletions", "summary_files", "tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write":
			if _, ok := history.Number([]byte(text)); ok && json.Valid([]byte(text)) && text != "0" && text != "0.0" {
				a.note(name, raw(text))
			}
		default:
			if credentials.MatchString(name) {
				encoded = raw(`"[masked]"`)
			}
			unknown = append(unknown, history.Field{Key: name, Raw: encoded})
		}
	}
	if len(unknown) > 0 {
		a.note("unknown_columns", unknown.JSON())
	}
	return a
}

// markOf returns a mark that changes with a session: with its row, its messages and its parts.
func (d *database) markOf(id string, row sessionRow) string {
	sum := sha256.New()
	for _, c := range row.columns {
		fmt.Fprintf(sum, "%s=%d:%s;", c.name, len(c.text), c.text)
	}
	fmt.Fprint(sum, reads)
	for _, table := range []string{tableMessage, tablePart, tableTodo, tableMessageV2} {
		fmt.Fprint(sum, d.extents[table][id])
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// session reads one session if it changed. One that is damaged is a problem, and the next one is
// read.
func (d *database) session(a about, row sessionRow) error {
	first := d.extents[tableMessage][a.id].First
	if second := d.extents[tableMessageV2][a.id].First; first == 0 || second > 0 && second < first {
		first = second
	}
	older := d.starting[first]
	if first > 0 {
		d.starting[first] = append(older, a.id)
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
	part.Skip(skipOlder, row.older)
	r := &reader{in: part, about: a, older: func(int64) []string { return older }}
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
	if in.large = in.large || in.size() > history.MaxLine; in.large {
		in.data, in.parts = nil, nil
	}
	return rows.Err()
}

func inOrder(parts []part) {
	slices.SortStableFunc(parts, func(a, b part) int { return compareIDs(a.id, b.id) })
}

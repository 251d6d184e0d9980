package opencode

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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
	ctx     context.Context
	path    string
	found   history.Found
	utf8    bool // how its texts are written
	now     time.Time
	known   history.Known
	send    func(history.Batch) error
	refused bool                // what was given: there is no going on
	has     map[string][]string // columns by table

	messages, parts, todos, messagesV2 map[string]extent
	starting                           map[int64][]string // sessions by the time of their first message, oldest first
	begin                              map[string]int64
	order                              []string
	waits                              bool // something is unfinished: look again
	sessions                           int
	records                            history.Records
	problems                           []history.Problem
}

// extent tells how many rows a session has, and when the newest was changed.
type extent struct {
	Count  int64 `db:"n"`
	Newest int64 `db:"newest"`
	First  int64 `db:"first"`
}

func (s *Source) readDatabase(ctx context.Context, found history.Found, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	opened, err := history.OpenSQLite(ctx, found.Path)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	d := &database{SQLite: opened, ctx: ctx, path: found.Path, found: found, now: s.now(), known: known}
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
	if err := d.all(); err != nil {
		return d.problems, err
	}
	if err := d.aside(); err != nil {
		return d.problems, err
	}
	return d.problems, d.send(lastBatch(found, d.sessions, d.records, d.waits))
}

// lastBatch carries the cursor of a found thing. One that must be looked at again, though
// nothing changes, has no time.
func lastBatch(found history.Found, sessions int, records history.Records, again bool) history.Batch {
	last := history.Batch{Sessions: sessions, Records: records}
	last.Cursor = &history.Cursor{Source: session.SourceOpencode, Path: found.Path, Size: found.Size}
	if modified := session.At(found.ModifiedAt); !again {
		last.Cursor.ModifiedAt = &modified
	}
	return last
}

// recognise tells whether it is opencode's.
func (d *database) recognise() error {
	var err error
	if d.has, err = d.Schema(d.ctx, tableSession, tableMessage, tablePart, tableSessionV2, tableMessageV2, tableTodo, tableProject); err != nil {
		return err
	}
	sessions := slices.Contains(d.has[tableSession], "project_id") || slices.Contains(d.has[tableSessionV2], "project_id")
	messages := slices.Contains(d.has[tableMessage], "data") && slices.Contains(d.has[tablePart], "message_id") ||
		slices.Contains(d.has[tableMessageV2], "data")
	if !sessions || !messages {
		return session.Errorf(session.Invalid, "no opencode database: it has no tables of sessions, messages and parts as opencode makes them")
	}
	var encoding string
	if err := d.GetContext(d.ctx, &encoding, `PRAGMA encoding`); err != nil {
		return err
	}
	d.utf8 = encoding == "UTF-8"
	return nil
}

// credentials are names of tables that are not even counted by their rows.
var credentials = regexp.MustCompile(`(?i)auth|token|secret|credential|account|share`)

// aside counts what is beside the conversations.
func (d *database) aside() error {
	for table := range d.has {
		switch {
		case slices.Contains([]string{tableSession, tableMessage, tablePart, tableSessionV2, tableMessageV2, tableTodo}, table), strings.HasPrefix(table, "sqlite_"):
		case table == tableEvent:
			var n int
			if err := d.GetContext(d.ctx, &n, `SELECT COUNT(*) FROM event`); err != nil {
				return err
			}
			d.records.Skip(skipEvent, n)
		case credentials.MatchString(table):
			d.records.Skip(skipForeign, 1)
		default:
			d.records.Skip(skipBookkeeping, 1)
		}
	}
	return nil
}

// all reads the sessions, oldest first, then messages whose session is gone.
func (d *database) all() error {
	for table, into := range map[string]*map[string]extent{tableMessage: &d.messages, tablePart: &d.parts, tableTodo: &d.todos, tableMessageV2: &d.messagesV2} {
		var err error
		if *into, err = d.extents(table); err != nil {
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
	var sessions []about
	marks := map[string]string{}
	for _, row := range rows {
		a := aboutRow(row)
		a.worktree = worktrees[a.project]
		sessions, marks[a.id] = append(sessions, a), d.markOf(a.id, row)
		d.order = append(d.order, a.id)
	}
	for _, of := range []map[string]extent{d.messages, d.parts, d.messagesV2} {
		for id := range of {
			if _, ok := marks[id]; !ok {
				a := about{id: id, title: "recovered", store: inDatabase}
				a.note("recovered", raw(`"its row is gone"`))
				sessions, marks[id] = append(sessions, a), d.markOf(id, sessionRow{})
			}
		}
	}
	d.beginnings()
	for i := range sessions {
		if err := d.session(sessions[i], marks[sessions[i].id]); err != nil {
			return err
		}
	}
	return nil
}

// worktrees gives the folders of the projects; that of no project is the root.
func (d *database) worktrees() (map[string]string, error) {
	folders := map[string]string{}
	if !slices.Contains(d.has[tableProject], "worktree") {
		return folders, nil
	}
	var list []struct {
		ID       string `db:"id"`
		Worktree string `db:"worktree"`
	}
	err := d.SelectContext(d.ctx, &list, `SELECT CAST(id AS TEXT) AS id, COALESCE(CAST(worktree AS TEXT), '') AS worktree FROM project WHERE id IS NOT NULL`)
	for _, p := range list {
		if p.Worktree != "/" {
			folders[p.ID] = clean(p.Worktree)
		}
	}
	return folders, err
}

// extents counts the rows of each session.
func (d *database) extents(table string) (map[string]extent, error) {
	all := map[string]extent{}
	if !slices.Contains(d.has[table], "session_id") {
		return all, nil
	}
	var list []struct {
		Session *string `db:"session_id"`
		extent
	}
	err := d.SelectContext(d.ctx, &list, `SELECT session_id, COUNT(*) AS n, COALESCE(MAX(CAST(time_updated AS INTEGER)), 0) AS newest,
		COALESCE(MIN(CAST(time_created AS INTEGER)), 0) AS first FROM `+table+` GROUP BY session_id`)
	for _, e := range list {
		if e.Session != nil {
			all[*e.Session] = e.extent
		}
	}
	return all, err
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
	rows, err := d.QueryContext(d.ctx, `SELECT `+strings.Join(selected, ", ")+` FROM `+table)
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
		forked: row.text("fork_session_id"), records: 1, older: row.older, store: inDatabase,
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

// markOf tells whether a session changed: its row, and its messages and parts.
func (d *database) markOf(id string, row sessionRow) string {
	sum := sha256.New()
	for _, c := range row.columns {
		fmt.Fprintf(sum, "%s=%d:%s;", c.name, len(c.text), c.text)
	}
	fmt.Fprintf(sum, "%v %v %v %v", d.messages[id], d.parts[id], d.todos[id], d.messagesV2[id])
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// session reads one session if it changed. What cannot be read of it is a problem, and the
// next one is read.
func (d *database) session(a about, changed string) error {
	path := d.path + "#" + a.id
	before, err := markAt(d.ctx, d.known, path)
	if err != nil {
		return err
	}
	d.sessions++
	all := a.records + a.older + int(d.messages[a.id].Count+d.parts[a.id].Count+d.messagesV2[a.id].Count+d.todos[a.id].Count)
	if before.Mark == changed && before.Reads == reads {
		d.records.Skip(skipCopy+before.Of, before.Copies)
		d.records.Skip(history.SkipKnown, all-before.Copies)
		return nil
	}
	if newest := max(d.messages[a.id].Newest, d.parts[a.id].Newest, d.messagesV2[a.id].Newest); newest > 0 {
		if at, ok := history.UnixMilli(session.JSONOf(newest)); ok && at.After(a.updated.Time) && !at.After(d.now) {
			a.updated = at
		}
	}
	from := newRows(d, a.id)
	r := &reader{
		ctx: d.ctx, known: d.known, emit: d.send, path: d.path, now: d.now, about: a, before: before,
		from: from, cuts: from.cuts, origins: func() ([]*session.Session, error) { return d.origins(a.id) },
	}
	if d.messagesV2[a.id].Count > 0 {
		from.cuts, r.cuts = nil, nil
		if d.messages[a.id].Count+d.parts[a.id].Count == 0 {
			from = nil
		}
		r.from = newTwoVersions(d, a.id, from, &r.extra)
	}
	r.extra.Skip(skipOlder, a.older)
	if err := d.todo(r); err != nil {
		return err
	}
	err = r.run(func(r *reader) *history.Cursor {
		return &history.Cursor{Source: session.SourceOpencode, Path: path, State: r.state(changed)}
	})
	d.waits = d.waits || r.waits
	d.problems = append(d.problems, r.problems...)
	if err != nil && !d.refused && session.CodeOf(history.SQLiteError(err)) == session.Invalid {
		d.problems = append(d.problems, history.Problem{Path: d.path, Error: "session " + a.id + ": " + history.Reason(err)})
		return nil
	}
	return err
}

// todo notes the session's list of things to do.
func (d *database) todo(r *reader) error {
	n := int(d.todos[r.about.id].Count)
	if n == 0 {
		return nil
	}
	type item struct {
		Content  string `db:"content" json:"content"`
		Status   string `db:"status" json:"status"`
		Priority string `db:"priority" json:"priority"`
	}
	var list []item
	err := d.SelectContext(d.ctx, &list, `SELECT COALESCE(CAST(content AS TEXT), '') AS content, COALESCE(CAST(status AS TEXT), '') AS status,
		COALESCE(CAST(priority AS TEXT), '') AS priority FROM todo WHERE session_id = ? ORDER BY position`, r.about.id)
	if err != nil {
		return err
	}
	for i := range list {
		list[i] = item{clean(list[i].Content), clean(list[i].Status), clean(list[i].Priority)}
	}
	r.about.note("todos", session.JSONOf(list))
	r.todos(n)
	return nil
}

// todos counts a list of things to do: it stands in the session's notes.
func (r *reader) todos(n int) {
	if r.before.Reads > 0 {
		r.extra.Skip(history.SkipKnown, n)
	} else {
		r.extra.Import(n)
	}
}

// beginnings notes when each session's first message was: a fork's is its origin's.
func (d *database) beginnings() {
	d.starting, d.begin = map[int64][]string{}, map[string]int64{}
	for _, id := range d.order {
		first := d.messages[id].First
		if second := d.messagesV2[id].First; first == 0 || second > 0 && second < first {
			first = second
		}
		if first > 0 {
			d.begin[id] = first
			d.starting[first] = append(d.starting[first], id)
		}
	}
}

// maxOrigins bounds how many copies of one beginning are looked through.
const maxOrigins = 16

// origins are the sessions that one may be a copy of: they begin at the same millisecond, and
// are older.
func (d *database) origins(id string) ([]*session.Session, error) {
	alike := d.starting[d.begin[id]]
	at := slices.Index(alike, id)
	if at < 0 {
		return nil, nil
	}
	var found []*session.Session
	for _, older := range alike[:min(at, maxOrigins)] {
		origin, err := d.known.Session(d.ctx, session.SourceOpencode, older)
		if err != nil {
			return nil, err
		}
		if origin != nil {
			found = append(found, origin)
		}
	}
	return found, nil
}

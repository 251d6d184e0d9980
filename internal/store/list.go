package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Filter says which sessions are listed. Zero fields do not filter; archived and trashed
// sessions are listed only when they are asked for.
type Filter struct {
	Query      string // part of the title, of the id or of the source's id
	Source     session.Source
	Key        string
	Model      string
	Directory  string
	Project    string
	Among      map[Column][]string // of a column: one of these values
	Roots      []string            // the directory or the project is one of these folders; nil: any
	Owner      string
	Host       string
	ParentID   session.ID
	ParentKind string        // fork or child; "": both
	Since      *session.Time // active at or after
	Until      *session.Time // active before
	Archived   bool
	AnyState   bool // archived ones, too
	Trash      bool
	Starred    bool
	Errors     bool              // with a reply or a call that failed
	Prompted   *Between          // with a prompt of a person in this time; nil: any
	People     bool              // without sub-agents and automated sessions
	Metadata   map[string]string // names under metadata → text; a.b is the field "a.b", or b in a

	byProject bool // sessions are found by the index of projects, not newest first
}

// Between is a time from one moment to another, which is not in it, and the days that it touches.
type Between struct {
	From, To          session.Time
	FirstDay, LastDay string // in the store's zone
}

// Page says which piece of a list is read.
type Page struct {
	Limit     int    // 0: 50; at most 1000
	Cursor    string // next_cursor of the piece before
	Ascending bool
}

func (p Page) limit() int {
	switch {
	case p.Limit <= 0:
		return 50
	case p.Limit > 1000:
		return 1000
	}
	return p.Limit
}

// order returns the comparison with the cursor and the direction of the page.
func (p Page) order() (cmp, dir string) {
	if p.Ascending {
		return ">", "ASC"
	}
	return "<", "DESC"
}

// after returns the time and the session of the page's cursor, "" without one. Codes: Invalid.
func (p Page) after() (at, id string, err error) {
	if p.Cursor == "" {
		return "", "", nil
	}
	at, id, ok := decodeCursor(p.Cursor)
	if !ok {
		err = p.invalidCursor()
	}
	return at, id, err
}

func (p Page) invalidCursor() error {
	return session.Errorf(session.Invalid, "cursor %q is none of this list's: begin without one", p.Cursor).
		At("cursor", "not a next_cursor of this list")
}

// endPage cuts a list that was read one item beyond the page's limit, and returns the cursor of the
// next page.
func endPage[T any](data []T, p Page, sess func(*T) *session.Session) (page []T, next string) {
	limit := p.limit()
	if len(data) <= limit {
		return data, ""
	}
	return data[:limit], CursorAfter(sess(&data[limit-1]))
}

// CursorAfter returns the cursor with which a list goes on after a session.
func CursorAfter(s *session.Session) string { return encodeCursor(s.ActiveAt.SQL(), string(s.ID)) }

// Sessions lists sessions, newest active first. next is "" at the end. Codes: Invalid (cursor).
func (s *Store) Sessions(ctx context.Context, f Filter, p Page) (data []session.Session, next string, err error) {
	if f.byProject, err = s.isSmallProject(ctx, f); err != nil {
		return nil, "", err
	}
	query, args, err := listQuery(ctx, f, p)
	if err != nil {
		return nil, "", err
	}
	if data, err = readSessions(ctx, s, query, args...); err != nil {
		return nil, "", fmt.Errorf("list sessions: %w", err)
	}
	data, next = endPage(data, p, func(s *session.Session) *session.Session { return s })
	return data, next, nil
}

func listQuery(ctx context.Context, f Filter, p Page) (query string, args []any, err error) {
	clauses, args, err := f.conditions().within(ctx).page(p)
	if f.byProject { // sorts ids, and reads whole rows of the page alone
		clauses = `WHERE s.id IN (SELECT s.id FROM sessions s ` + clauses + `) ` + p.orderBy()
	}
	return `SELECT ` + sessionColumns + fromSessions + clauses, args, err
}

// smallProject is the number of sessions up to which those of a project are read and sorted. Those of a larger one are
// found among all, newest first, until the page is full.
const smallProject = 3000

// isSmallProject reports whether a filter names projects that have few sessions together.
func (s *Store) isSmallProject(ctx context.Context, f Filter) (bool, error) {
	projects := f.Among[ColumnProject]
	if f.Project != "" {
		projects = []string{f.Project}
	}
	if projects == nil {
		return false, nil
	}
	counts, err := engine.List[int](ctx, s, countOfProjects, string(session.JSONOf(projects)), smallProject+1)
	return err == nil && counts[0] <= smallProject, session.Wrap(err, "count the sessions of a project")
}

const countOfProjects = `SELECT COUNT(*) FROM (SELECT 1 FROM sessions s WHERE s.project IN (SELECT value FROM json_each(?)) LIMIT +?) few`

// FiltersNothing reports whether every session outside of the trash passes the filter.
func (f Filter) FiltersNothing() bool {
	any := Filter{AnyState: true}
	return len(f.conditions().where) == len(any.conditions().where)
}

// conditions say which sessions are listed.
type conditions struct {
	where []string
	args  []any
	err   error // of an invalid one
}

func (c *conditions) add(cond string, args ...any) {
	c.where, c.args = append(c.where, cond), append(c.args, args...)
}

// maxQueryBytes is the longest text that lists look for; LIKE fails on much longer ones.
const maxQueryBytes = 1000

// contains asks that one of the columns contains a text; "": anything.
func (c *conditions) contains(text string, columns ...string) {
	if text == "" {
		return
	}
	if len(text) > maxQueryBytes {
		c.err = session.Errorf(session.Invalid, "q has %d bytes, at most %d are searched for", len(text),
			maxQueryBytes).At("q", "too long")
		return
	}
	likes, args := make([]string, len(columns)), make([]any, len(columns))
	for i, column := range columns {
		likes[i], args[i] = column+` LIKE ? ESCAPE '\'`, "%"+escapeLike(text)+"%"
	}
	c.add("("+strings.Join(likes, " OR ")+")", args...)
}

// page returns the clauses that end the statement of a list: its conditions, those of the page, and
// the order by when sessions were active. One more is read than the page has. Codes: Invalid (cursor, q).
func (c conditions) page(p Page) (clauses string, args []any, err error) {
	cmp, _ := p.order()
	if c.err != nil {
		return "", nil, c.err
	}
	at, id, err := p.after()
	if at != "" {
		c.add("(s.active_at, s.id) "+cmp+" (?, ?)", at, id)
	}
	return `WHERE ` + strings.Join(c.where, " AND ") + ` ` + p.orderBy() + ` LIMIT +?`, append(c.args, p.limit()+1), err
}

func (p Page) orderBy() string {
	_, dir := p.order()
	return `ORDER BY s.active_at ` + dir + `, s.id ` + dir
}

func (f Filter) conditions() (c conditions) {
	add := c.add
	add("s.draft = 0 AND s.purged_at IS NULL")
	if f.Trash {
		add("s.deleted_at IS NOT NULL")
	} else {
		add("s.deleted_at IS NULL")
		switch {
		case f.Archived:
			add("s.archived_at IS NOT NULL")
		case !f.AnyState:
			add("s.archived_at IS NULL")
		}
	}
	for _, eq := range []struct{ column, value string }{
		{"source", string(f.Source)},
		{"key", f.Key},
		{"model", f.Model},
		{"directory", f.Directory},
		{"owner", f.Owner},
		{"host", f.Host},
		{"parent_id", string(f.ParentID)},
		{"parent_kind", f.ParentKind},
	} {
		if eq.value != "" {
			add("s."+eq.column+" = ?", eq.value)
		}
	}
	project := "s.project || ''" // which no index has
	if f.byProject {
		project = "s.project"
	}
	if f.Project != "" {
		add(project+" = ?", f.Project)
	}
	for _, column := range slices.Sorted(maps.Keys(f.Among)) {
		is := "s." + column.column() + " IN (SELECT value FROM json_each(?))"
		switch column {
		case ColumnProject:
			is = project + " IN (SELECT value FROM json_each(?))"
		case ColumnTag:
			is = "s.id IN (SELECT session_id FROM marks WHERE kind = 'tag' AND text IN (SELECT value FROM json_each(?)))"
		}
		add(is, string(session.JSONOf(f.Among[column])))
	}
	if f.Roots != nil {
		roots := string(session.JSONOf(f.Roots))
		add("(s.directory IN (SELECT value FROM json_each(?)) OR s.project IN (SELECT value FROM json_each(?)))", roots,
			roots)
	}
	c.contains(f.Query, "s.title", "s.id", "s.source_id")
	if f.Starred {
		add("s.starred_at IS NOT NULL")
	}
	if f.Errors {
		add(`(s.id IN (SELECT session_id FROM calls WHERE status = 'failed') OR
			s.id IN (SELECT session_id FROM messages WHERE finish = 'error'))`)
	}
	if b := f.Prompted; b != nil {
		add(`s.id IN (SELECT session_id FROM messages WHERE origin = 'person' AND day BETWEEN ? AND ?
			AND created_at >= ? AND created_at < ?)`, b.FirstDay, b.LastDay, b.From, b.To)
	}
	if f.People {
		add("s.kind = 'chat' AND s.parent_kind <> 'child'")
	}
	if f.Since != nil {
		add("s.active_at >= ?", *f.Since)
	}
	if f.Until != nil {
		add("s.active_at < ?", *f.Until)
	}
	for path, value := range f.Metadata {
		whole := "$." + string(session.JSONOf(path))
		nested := "$." + strings.ReplaceAll(string(session.JSONOf(path)), ".", `"."`)
		add("CAST(COALESCE(json_extract(s.metadata, ?), json_extract(s.metadata, ?)) AS TEXT) = ?", whole, nested, value)
	}
	return c
}

// InTrash tells of some sessions which are there, and of those which are in the trash.
func (s *Store) InTrash(ctx context.Context, ids []session.ID) (map[session.ID]bool, error) {
	trashed := make(map[session.ID]bool, len(ids))
	type found struct {
		ID      session.ID `db:"id"`
		Trashed bool       `db:"trashed"`
	}
	in, args := scopeOf(ctx)
	err := engine.Each(ctx, s, func(f *found) error {
		trashed[f.ID] = f.Trashed
		return nil
	}, sessionsInTrash+in, append([]any{string(session.JSONOf(ids))}, args...)...)
	return trashed, session.Wrap(err, "which sessions are in the trash")
}

const sessionsInTrash = `
	SELECT id, deleted_at IS NOT NULL AS trashed FROM sessions s WHERE id IN (SELECT value FROM json_each(?)) AND purged_at IS NULL`

// Outlines returns the existing ones of some sessions, without their settings, counts and metadata.
func (s *Store) Outlines(ctx context.Context, ids []session.ID) ([]session.Session, error) {
	in, args := scopeOf(ctx)
	all, err := engine.List[session.Session](ctx, s, sessionOutlines+in,
		append([]any{string(session.JSONOf(ids))}, args...)...)
	return all, session.Wrap(err, "read sessions")
}

const sessionOutlines = `
	SELECT s.id, s.title, s.title_source, s.kind, s.source, s.source_id, s.key, s.directory, s.project, s.git_branch, s.owner, s.host,
	       s.foreign_from, s.model, s.parent_id, s.parent_kind, s.active_at, s.archived_at, s.starred_at, s.deleted_at
	FROM sessions s WHERE s.id IN (SELECT value FROM json_each(?)) AND s.purged_at IS NULL`

// Listed returns those of some sessions that a filter lists. Codes: Invalid.
func (s *Store) Listed(ctx context.Context, f Filter, ids []session.ID) ([]session.ID, error) {
	c := f.conditions().within(ctx)
	if c.err != nil {
		return nil, c.err
	}
	c.add("s.id IN (SELECT value FROM json_each(?))", string(session.JSONOf(ids)))
	all, err := engine.List[session.ID](ctx, s, `SELECT s.id `+fromSessions+`WHERE `+strings.Join(c.where, " AND "),
		c.args...)
	return all, session.Wrap(err, "filter sessions")
}

// SessionsNamed returns the sessions whose title, project or branch has one of the texts in it, in small letters: a
// thousand of the newest ten thousand. Of each it reads the names only.
func (s *Store) SessionsNamed(ctx context.Context, texts []string) ([]session.Session, error) {
	in, args := scopeOf(ctx)
	all, err := engine.List[session.Session](ctx, s, fmt.Sprintf(sessionsNamedLike, in),
		append([]any{string(session.JSONOf(texts))}, args...)...)
	return all, session.Wrap(err, "sessions by their names")
}

const sessionsNamedLike = `
	WITH wanted AS MATERIALIZED (SELECT value FROM json_each(?))
	SELECT s.id, s.title, s.title_source, s.project, s.git_branch
	FROM (SELECT *, LOWER(title || ' ' || project || ' ' || git_branch) AS names FROM sessions s
	      WHERE deleted_at IS NULL AND purged_at IS NULL%s ORDER BY active_at DESC LIMIT 10000) s
	WHERE EXISTS (SELECT 1 FROM wanted t WHERE INSTR(s.names, t.value) > 0) LIMIT 1000`

// Neighbours returns the sessions of a person in the same project that were active before and after one, each nil where
// none is among the next two thousand.
func (s *Store) Neighbours(ctx context.Context, of *session.Session) (before, after *session.Session, err error) {
	if of.Project == "" {
		return nil, nil, nil
	}
	in, args := scopeOf(ctx)
	for _, side := range []struct {
		statement string
		to        **session.Session
	}{{sessionBefore, &before}, {sessionAfter, &after}} {
		found, err := engine.List[session.Session](ctx, s, fmt.Sprintf(side.statement, in),
			append(append([]any{of.ActiveAt, of.ID}, args...), of.Project)...)
		if err != nil {
			return nil, nil, fmt.Errorf("sessions beside %s: %w", of.ID, err)
		}
		if len(found) > 0 {
			*side.to = &found[0]
		}
	}
	return before, after, nil
}

const (
	sessionBefore = `SELECT id, title, title_source, project FROM (SELECT s.id, s.title, s.title_source, s.project, s.kind, s.parent_kind, s.active_at FROM sessions s
		WHERE (s.active_at, s.id) < (?, ?) AND s.draft = 0 AND s.deleted_at IS NULL AND s.purged_at IS NULL%s ORDER BY s.active_at DESC, s.id DESC LIMIT 2000) near
		WHERE project = ? AND kind = 'chat' AND parent_kind <> 'child' ORDER BY active_at DESC, id DESC LIMIT 1`
	sessionAfter = `SELECT id, title, title_source, project FROM (SELECT s.id, s.title, s.title_source, s.project, s.kind, s.parent_kind, s.active_at FROM sessions s
		WHERE (s.active_at, s.id) > (?, ?) AND s.draft = 0 AND s.deleted_at IS NULL AND s.purged_at IS NULL%s ORDER BY s.active_at, s.id LIMIT 2000) near
		WHERE project = ? AND kind = 'chat' AND parent_kind <> 'child' ORDER BY active_at, id LIMIT 1`
)

func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

func encodeCursor(fields ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(fields, "|")))
}

func decodeCursor(cursor string) (at, id string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", "", false
	}
	at, id, ok = strings.Cut(string(b), "|")
	var when session.Time
	if _, err := session.ParseID(id); err != nil || !ok || when.Scan(at) != nil {
		return "", "", false
	}
	return at, id, true
}

package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sessiond/internal/session"
)

const sessionColumns = `id, day, title, title_source, kind, draft, settings, key, generation, source, source_id,
	directory, project, git_branch, provider, model, window, parent_id, parent_kind, head_id, last_seq,
	compaction_id, epoch, revision, message_count, total_tokens, context_tokens, compaction_count,
	input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nanousd, cost_usd,
	unpriced_calls, turn_origin, created_at, updated_at, active_at, inbound_at, archived_at, deleted_at,
	ended_at, end_reason, metadata`

// NewSession says what a session begins with. The zero value is an ordinary chat.
type NewSession struct {
	Title       string
	TitleSource string
	Kind        string // "": chat
	Draft       bool
	Settings    session.JSON
	Key         string
	Generation  int64
	Source      session.Source // "": sessiond
	SourceID    string
	Directory   string
	Project     string // "": the git root of the directory, else the directory
	GitBranch   string
	Provider    string
	Model       string
	Window      *int64
	ParentID    session.ID
	ParentKind  string
	Metadata    session.JSON
	CreatedAt   *session.Time // nil: now; its local day is the ID's
	Idem        *Idempotency
}

// CreateSession makes an empty session. Codes: NotFound (the parent), Conflict (source and
// source id are taken), Invalid.
func (s *Store) CreateSession(ctx context.Context, in NewSession) (session.Session, error) {
	if in.Project == "" {
		in.Project = projectOf(in.Directory)
	}
	var made session.Session
	err := s.write(ctx, func(t *tx) error {
		if in.Idem != nil {
			earlier, err := t.recall(in.Idem)
			if err != nil {
				return err
			}
			if earlier != nil {
				made, err = readSession(t.ctx, t, session.ID(earlier.SessionID))
				return err
			}
		}
		var err error
		if made, err = t.createSession(in); err != nil || in.Idem == nil {
			return err
		}
		return t.remember(in.Idem, outcome{SessionID: string(made.ID), Revision: made.Revision, Status: 201})
	})
	return made, err
}

func (t *tx) createSession(in NewSession) (session.Session, error) {
	if in.ParentID != "" {
		if _, err := readSession(t.ctx, t, in.ParentID); err != nil {
			return session.Session{}, err
		}
		if in.ParentKind == "" {
			in.ParentKind = session.ParentChild
		}
	}
	at := t.now
	if in.CreatedAt != nil {
		at = *in.CreatedAt
	}
	day := at.Day(t.opt.Zone)
	var n int64
	if err := t.row(`INSERT INTO session_days (day, last) VALUES (?, 1)
		ON CONFLICT (day) DO UPDATE SET last = last + 1 RETURNING last`, []any{day}, &n); err != nil {
		return session.Session{}, fmt.Errorf("count the day's sessions: %w", err)
	}
	if in.Metadata == nil {
		in.Metadata = session.JSON(`{}`)
	}
	if in.Title != "" && in.TitleSource == "" {
		in.TitleSource = "given"
	}
	id, source := session.NewID(day, n), orElse(in.Source, session.SourceSessiond)
	_, err := t.exec(`INSERT INTO sessions (id, day, title, title_source, kind, draft, settings, key, generation,
		source, source_id, directory, project, git_branch, provider, model, window, parent_id, parent_kind,
		created_at, updated_at, active_at, metadata)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		id, day, in.Title, in.TitleSource, orElse(in.Kind, "chat"), in.Draft, in.Settings, in.Key, in.Generation,
		source, in.SourceID, in.Directory, in.Project, in.GitBranch, in.Provider, in.Model, in.Window, in.ParentID, in.ParentKind,
		at, t.now, at, in.Metadata)
	if isUnique(err) {
		return session.Session{}, session.Errorf(session.Conflict, "a session of source %s with source_id %q exists already", source, in.SourceID)
	}
	if err != nil {
		return session.Session{}, fmt.Errorf("insert session: %w", err)
	}
	t.usage.at(day, source, "").sessions++
	if err := t.event(id, EventSessionCreated, 0, nil); err != nil {
		return session.Session{}, err
	}
	return readSession(t.ctx, t, id)
}

// Session reads one session. Codes: NotFound.
func (s *Store) Session(ctx context.Context, id session.ID) (session.Session, error) {
	return readSession(ctx, s, id)
}

func readSession(ctx context.Context, q queryer, id session.ID) (session.Session, error) {
	var sess session.Session
	err := q.get(ctx, &sess, `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, id)
	if noRows(err) {
		return sess, session.Errorf(session.NotFound, "there is no session %s", id)
	}
	if err != nil {
		return sess, fmt.Errorf("session %s: %w", id, err)
	}
	return sess, fillHead(ctx, q, &sess)
}

// fillHead names the head outside the database.
func fillHead(ctx context.Context, q queryer, sess *session.Session) error {
	if sess.HeadID == nil {
		return nil
	}
	ref, err := refOf(ctx, q, *sess.HeadID)
	sess.Head = &ref
	return err
}

// SessionPatch changes what is not nil.
type SessionPatch struct {
	Title      *string
	Metadata   *session.JSON // whole, already merged
	Settings   *session.JSON // whole, already merged
	Provider   *string
	Model      *string
	Window     **int64 // to nil: back to the catalogue's
	Archived   *bool
	IfRevision *int64
	Idem       *Idempotency
}

// PatchSession changes a session's own fields. Codes: NotFound, PreconditionFailed.
func (s *Store) PatchSession(ctx context.Context, id session.ID, p SessionPatch) (session.Session, error) {
	var sess session.Session
	err := s.changeSession(ctx, id, p.IfRevision, p.Idem, &sess, func(t *tx) error {
		if p.Title != nil {
			sess.Title, sess.TitleSource = *p.Title, "given"
			if *p.Title == "" {
				sess.TitleSource = ""
			}
		}
		if p.Metadata != nil {
			sess.Metadata = *p.Metadata
		}
		if p.Settings != nil {
			sess.Settings = *p.Settings
		}
		if p.Provider != nil {
			sess.Provider = *p.Provider
		}
		if p.Model != nil {
			sess.Model = *p.Model
		}
		if p.Window != nil {
			sess.Window = *p.Window
		}
		if p.Archived != nil {
			sess.ArchivedAt = switchTime(sess.ArchivedAt, *p.Archived, t.now)
		}
		_, err := t.exec(`UPDATE sessions SET title = ?, title_source = ?, metadata = ?, settings = ?, provider = ?,
			model = ?, window = ?, archived_at = ?, revision = revision + 1, updated_at = ? WHERE id = ?`,
			sess.Title, sess.TitleSource, sess.Metadata, sess.Settings, sess.Provider, sess.Model, sess.Window, sess.ArchivedAt, t.now, id)
		return err
	})
	return sess, err
}

// SetTrash puts a session into the trash, or takes it out. Codes: NotFound, PreconditionFailed.
func (s *Store) SetTrash(ctx context.Context, id session.ID, trashed bool, ifRevision *int64, idem *Idempotency) (session.Session, error) {
	var sess session.Session
	err := s.changeSession(ctx, id, ifRevision, idem, &sess, func(t *tx) error {
		_, err := t.exec(`UPDATE sessions SET deleted_at = ?, revision = revision + 1, updated_at = ? WHERE id = ?`,
			switchTime(sess.DeletedAt, trashed, t.now), t.now, id)
		return err
	})
	return sess, err
}

// changeSession runs change on a session that is still at the wanted revision, tells it in
// an event, and reads the session anew into sess.
func (s *Store) changeSession(ctx context.Context, id session.ID, ifRevision *int64, idem *Idempotency, sess *session.Session, change func(*tx) error) error {
	return s.write(ctx, func(t *tx) error {
		var err error
		if *sess, err = readSession(t.ctx, t, id); err != nil {
			return err
		}
		if idem != nil {
			if earlier, err := t.recall(idem); err != nil || earlier != nil {
				return err
			}
		}
		if ifRevision != nil && *ifRevision != sess.Revision {
			return session.Errorf(session.PreconditionFailed, "session %s is at revision %d, not %d: read it again and decide anew", id, sess.Revision, *ifRevision)
		}
		if err := change(t); err != nil {
			return err
		}
		if err := t.event(id, EventSessionChanged, 0, nil); err != nil {
			return err
		}
		if *sess, err = readSession(t.ctx, t, id); err != nil || idem == nil {
			return err
		}
		return t.remember(idem, outcome{SessionID: string(id), Revision: sess.Revision, Status: 200})
	})
}

func switchTime(had *session.Time, on bool, now session.Time) *session.Time {
	switch {
	case !on:
		return nil
	case had != nil:
		return had
	}
	return &now
}

// Filter says which sessions are listed. Zero fields do not filter; archived and trashed
// sessions are listed only when they are asked for.
type Filter struct {
	Query     string // part of the title, of the id or of the source's id
	Source    session.Source
	Key       string
	Model     string
	Directory string
	Project   string
	ParentID  session.ID
	Since     *session.Time // active at or after
	Until     *session.Time // active before
	Archived  bool
	Trash     bool
	Metadata  map[string]string // JSON paths under metadata → text
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

// Sessions lists sessions, newest active first. next is "" at the end. Codes: Invalid (cursor).
func (s *Store) Sessions(ctx context.Context, f Filter, p Page) (data []session.Session, next string, err error) {
	where, args := f.conditions()
	cmp, dir := "<", "DESC"
	if p.Ascending {
		cmp, dir = ">", "ASC"
	}
	if p.Cursor != "" {
		at, id, ok := decodeCursor(p.Cursor)
		if !ok {
			return nil, "", session.Errorf(session.Invalid, "cursor %q is none of this list's: begin without one", p.Cursor).At("cursor", "not a next_cursor of this list")
		}
		where = append(where, "(active_at, id) "+cmp+" (?, ?)")
		args = append(args, at, id)
	}
	limit := p.limit()
	query := `SELECT ` + sessionColumns + ` FROM sessions WHERE ` + strings.Join(where, " AND ") +
		` ORDER BY active_at ` + dir + `, id ` + dir + ` LIMIT ?`
	data = make([]session.Session, 0, limit)
	if err := s.list(ctx, &data, query, append(args, limit+1)...); err != nil {
		return nil, "", fmt.Errorf("list sessions: %w", err)
	}
	if len(data) > limit {
		data = data[:limit]
		last := data[limit-1]
		next = encodeCursor(last.ActiveAt.SQL(), string(last.ID))
	}
	return data, next, fillHeads(ctx, s, data)
}

func (f Filter) conditions() (where []string, args []any) {
	where = []string{"draft = 0"}
	add := func(cond string, arg ...any) { where, args = append(where, cond), append(args, arg...) }
	if f.Trash {
		add("deleted_at IS NOT NULL")
	} else {
		add("deleted_at IS NULL")
		if f.Archived {
			add("archived_at IS NOT NULL")
		} else {
			add("archived_at IS NULL")
		}
	}
	for _, eq := range []struct{ column, value string }{
		{"source", string(f.Source)}, {"key", f.Key}, {"model", f.Model}, {"directory", f.Directory},
		{"project", f.Project}, {"parent_id", string(f.ParentID)},
	} {
		if eq.value != "" {
			add(eq.column+" = ?", eq.value)
		}
	}
	if f.Query != "" {
		like := "%" + escapeLike(f.Query) + "%"
		add(`(title LIKE ? ESCAPE '\' OR id LIKE ? ESCAPE '\' OR source_id LIKE ? ESCAPE '\')`, like, like, like)
	}
	if f.Since != nil {
		add("active_at >= ?", *f.Since)
	}
	if f.Until != nil {
		add("active_at < ?", *f.Until)
	}
	for path, value := range f.Metadata {
		add("CAST(json_extract(metadata, ?) AS TEXT) = ?", `$."`+strings.ReplaceAll(path, `"`, ``)+`"`, value)
	}
	return where, args
}

// fillHeads names the heads of a list in one statement.
func fillHeads(ctx context.Context, q queryer, data []session.Session) error {
	for i := range data {
		if data[i].HeadID == nil {
			continue
		}
		// The head is nearly always the session's own last message.
		if err := fillHead(ctx, q, &data[i]); err != nil {
			return err
		}
	}
	return nil
}

// Resolve finds the session that a person means by name: an id, its id in the source
// program, a unique beginning of either (at least 6 characters), or @ (the newest of this
// folder), @2 and so on. Codes: NotFound, Invalid (ambiguous).
func (s *Store) Resolve(ctx context.Context, name, directory string) (session.ID, error) {
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		return s.resolveNth(ctx, name, rest, directory)
	}
	var found []session.ID
	if err := s.list(ctx, &found, `SELECT id FROM sessions WHERE id = ? OR source_id = ? LIMIT 2`, name, name); err != nil {
		return "", fmt.Errorf("find session %q: %w", name, err)
	}
	if len(found) == 0 && len(name) >= 6 {
		like := escapeLike(name) + "%"
		if err := s.list(ctx, &found, `SELECT id FROM sessions WHERE id LIKE ? ESCAPE '\' OR source_id LIKE ? ESCAPE '\' ORDER BY id LIMIT 4`, like, like); err != nil {
			return "", fmt.Errorf("find session %q: %w", name, err)
		}
	}
	switch len(found) {
	case 0:
		return "", session.Errorf(session.NotFound, "there is no session %q: `sessiond ls` lists them, and @ names the newest of this folder", name)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, id := range found {
		names[i] = string(id)
	}
	return "", session.Errorf(session.Invalid, "%q begins several sessions (%s …): write more of it", name, strings.Join(names, ", "))
}

func (s *Store) resolveNth(ctx context.Context, name, rest, directory string) (session.ID, error) {
	n := 1
	if rest != "" {
		var err error
		if n, err = strconv.Atoi(rest); err != nil || n < 1 {
			return "", session.Errorf(session.Invalid, "%q names no session: @ is the newest of this folder, @2 the one before", name)
		}
	}
	var id session.ID
	err := s.get(ctx, &id, `SELECT id FROM sessions WHERE directory = ? AND deleted_at IS NULL AND archived_at IS NULL
		ORDER BY active_at DESC, id DESC LIMIT 1 OFFSET ?`, directory, n-1)
	if noRows(err) {
		return "", session.Errorf(session.NotFound, "no session %s belongs to %s: `sessiond ls` lists all", name, directory)
	}
	return id, err
}

// projectOf gives the git root above a directory, else the directory itself.
func projectOf(directory string) string {
	if !filepath.IsAbs(directory) {
		return directory
	}
	for dir := filepath.Clean(directory); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return directory
		}
	}
}

func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

func encodeCursor(fields ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(fields, "|")))
}

func decodeCursor(cursor string) (first, second string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(b), "|")
}

func orElse[T ~string](v, otherwise T) T {
	if v == "" {
		return otherwise
	}
	return v
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// NewSession says what a session begins with. The zero value is an ordinary chat.
type NewSession struct {
	Title       string
	TitleSource string
	Kind        string // "": chat
	Draft       bool
	Settings    session.JSON
	Key         string
	Generation  int64          // 0: the key's next one, and its current one ends
	Source      session.Source // "": sessiond
	SourceID    string
	Owner       string // "": the parent's, the key's, the token's or the daemon's
	Directory   string
	Project     string // its repository counts; "": that of the directory
	GitBranch   string
	ForeignFrom string // a file that was given by hand: it is not known to be the user's own history
	Provider    string
	Model       string
	Window      *int64
	ParentID    session.ID
	ParentKind  string              // "": child
	Started     *session.MessageRef // of a child: the parent's message that started it; nil: not known
	StartedCall string              // of a child: which call of that message, "": not known
	Metadata    session.JSON
	CreatedAt   *session.Time // nil: now; its local day is the ID's
	WrittenOf   *WrittenOf    // of an import: what sessiond wrote its file of; nil: it did not
	// of an imported fork: when the newest overlay that it inherits took effect, zero: it inherits none; nil: CreatedAt
	Inherits *session.Time
	Idem     *Idempotency
}

// WrittenOf names the session that sessiond wrote a file of, for another program. If it was purged here, the file stays
// away, too.
type WrittenOf struct {
	ID        session.ID
	Source    session.Source
	SourceID  string
	CreatedAt session.Time
}

// CreateSession makes an empty session. Codes: NotFound (the parent), Conflict (source and
// source id are taken), Invalid.
func (s *Store) CreateSession(ctx context.Context, in NewSession) (session.Session, error) {
	if err := checkStorable([]field{
		{"title", in.Title},
		{"key", in.Key},
		{"source", string(in.Source)},
		{"source_id", in.SourceID},
		{"directory", in.Directory},
		{"project", in.Project},
		{"git_branch", in.GitBranch},
		{"foreign_from", in.ForeignFrom},
		{"provider", in.Provider},
		{"model", in.Model},
		{"settings", string(in.Settings)},
		{"metadata", string(in.Metadata)},
	}); err != nil {
		return session.Session{}, err
	}
	in.Project = folders.Project(orElse(in.Project, in.Directory))
	return writeOnce(ctx, s, in.Idem, (*tx).replaySession, func(t *tx) (session.Session, outcome, error) {
		made, err := t.createSession(in)
		if err == nil && made.ParentKind == session.ParentFork {
			err = t.forkFromHead(&made)
		}
		return made, outcome{SessionID: string(made.ID), Revision: made.Revision, Status: 201}, err
	})
}

// forkFromHead makes a new session the fork of its parent at the parent's head.
func (t *tx) forkFromHead(made *session.Session) error {
	parent, err := readSession(t.Ctx, t, made.ParentID)
	if err != nil {
		return err
	}
	family, err := t.family(parent)
	if err != nil {
		return err
	}
	return t.beginFork(made, parent, family, parent.Head, parent.HeadID)
}

func (t *tx) createSession(in NewSession) (session.Session, error) {
	var hangs link
	owner := orElse(in.Owner, t.owner())
	if in.ParentID != "" {
		parent, err := readSession(t.Ctx, t, in.ParentID)
		if err != nil {
			return session.Session{}, err
		}
		in.ParentKind, owner = orElse(in.ParentKind, session.ParentChild), parent.Owner
		if hangs, err = t.newLink(parent, in); err != nil {
			return session.Session{}, err
		}
	}
	if in.Key != "" && in.Generation == 0 && (in.Source == "" || in.Source == session.SourceSessiond) {
		next, keys, err := t.nextGeneration(in.Key)
		if err != nil {
			return session.Session{}, err
		}
		in.Generation = next
		if in.ParentID == "" {
			owner = orElse(keys, owner)
		}
	}
	source := orElse(in.Source, session.SourceSessiond)
	if err := t.mayCreate(&session.Session{
		Owner: owner, Source: source, Key: in.Key,
		Generation: in.Generation,
	}); err != nil {
		return session.Session{}, err
	}
	at := t.Now
	if in.CreatedAt != nil {
		at = *in.CreatedAt
	}
	day := at.Day(t.opt.Zone)
	id, err := t.newID(day)
	if err != nil {
		return session.Session{}, err
	}
	if in.Metadata == nil {
		in.Metadata = session.JSON(`{}`)
	}
	if in.Title != "" && in.TitleSource == "" {
		in.TitleSource = "given"
	}
	_, err = t.Changed(`INSERT INTO sessions (id, day, title, title_source, kind, draft, settings, key, generation,
		source, source_id, owner, host, directory, project, git_branch, foreign_from, provider, model, "window", parent_id, parent_kind,
		created_at, updated_at, active_at, metadata)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		id, day, in.Title, in.TitleSource, orElse(in.Kind, "chat"), in.Draft, in.Settings, in.Key, in.Generation,
		source, in.SourceID, owner, t.opt.Host, in.Directory, in.Project, in.GitBranch, in.ForeignFrom,
		in.Provider, in.Model, in.Window, in.ParentID, in.ParentKind, at, t.Now, earlier(at, t.Now), in.Metadata)
	if engine.IsTaken(err) && in.SourceID != "" {
		return session.Session{}, session.Errorf(session.Conflict, "a session of source %s with source_id %q exists already",
			source, in.SourceID)
	}
	if err != nil {
		return session.Session{}, fmt.Errorf("insert session: %w", err)
	}
	if in.ParentID != "" {
		if err := t.saveLink(id, hangs); err != nil {
			return session.Session{}, err
		}
	}
	if err := t.event(id, EventSessionCreated, 0, nil); err != nil {
		return session.Session{}, err
	}
	made, err := readSession(t.Ctx, t, id)
	if err != nil {
		return made, err
	}
	return made, t.countSession(&made, 1)
}

// IsGone reports whether name is the id of a session that was here and was purged: its number was
// given, and ids are never given twice.
func (s *Store) IsGone(ctx context.Context, name string) (bool, error) {
	id, err := session.ParseID(name)
	if err != nil {
		return false, nil //nolint:nilerr // it names a session in another way
	}
	day, n, _ := strings.Cut(string(id), "_")
	return engine.Get[bool](ctx, s, `SELECT EXISTS (SELECT 1 FROM session_days WHERE day = ? AND last >= CAST(? AS INTEGER))
		AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = ? AND purged_at IS NULL)`, day[:4]+"-"+day[4:6]+"-"+day[6:], n, id)
}

// newID returns the next id of a day.
func (t *tx) newID(day string) (session.ID, error) {
	n, err := engine.Get[int64](t.Ctx, t, `INSERT INTO session_days (day, last) VALUES (?, 1)
		ON CONFLICT (day) DO UPDATE SET last = session_days.last + 1 RETURNING last`, day)
	return session.NewID(day, n), session.Wrap(err, "count the day's sessions")
}

const sessionColumns = `s.id, s.day, s.title, s.title_source, s.kind, s.draft, s.settings, s.key, s.generation, s.source, s.source_id,
	s.owner, s.host, s.directory, s.project, s.git_branch, s.foreign_from, s.provider, s.model, s.window, s.parent_id, s.parent_kind, s.head_id,
	s.last_seq, s.compaction_id, s.epoch, s.revision, s.message_count, s.said_count, s.total_tokens, s.context_tokens,
	s.compaction_count, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.cost_nanousd,
	s.cost_usd, s.unpriced_calls, s.turn_origin, s.created_at, s.updated_at, s.active_at, s.inbound_at, s.archived_at,
	s.starred_at, s.deleted_at, s.ended_at, s.end_reason, s.metadata,
	h.session_id || '.' || h.seq AS head,
	(SELECT string_agg(k.place || ' ' || k.text, '` + session.TagSeparator + `') FROM marks k
	 WHERE k.session_id = s.id AND k.message_id = 0 AND k.kind = 'tag') AS tags`

// A session is read with the name of its head.
const fromSessions = ` FROM sessions s LEFT JOIN messages h ON h.id = s.head_id `

const (
	sessionByID = anySession + ` AND s.purged_at IS NULL`
	anySession  = `SELECT ` + sessionColumns + fromSessions + `WHERE s.id = ?`
	// What a page of messages needs of a session: SQLite and the driver work for each column.
	headOfSession = `SELECT s.id, s.head_id, s.last_seq, h.session_id || '.' || h.seq AS head` + fromSessions + `WHERE s.id = ? AND s.purged_at IS NULL`
)

// Session reads one session. Codes: NotFound.
func (s *Store) Session(ctx context.Context, id session.ID) (session.Session, error) {
	return readSession(ctx, s, id)
}

func readSession(ctx context.Context, q engine.Queryer, id session.ID) (session.Session, error) {
	sess, err := sessionBy(ctx, q, sessionByID, id)
	return sess, cmp.Or(err, checkVisible(ctx, &sess, id))
}

// checkVisible answers a session that the scope of the context does not allow as one that does not exist. Codes:
// NotFound.
func checkVisible(ctx context.Context, sess *session.Session, id session.ID) error {
	if !visible(ctx, sess) {
		return noSession(id)
	}
	return nil
}

func noSession(id session.ID) error {
	return session.Errorf(session.NotFound, "there is no session %s", id)
}

// readAncestor reads a session also when it was purged and only its forks are left.
func readAncestor(ctx context.Context, q engine.Queryer, id session.ID) (session.Session, error) {
	return sessionBy(ctx, q, anySession, id)
}

func sessionBy(ctx context.Context, q engine.Queryer, query string, id session.ID) (session.Session, error) {
	found, err := engine.First[session.Session](ctx, q, query, id)
	if err != nil {
		return session.Session{}, fmt.Errorf("session %s: %w", id, err)
	}
	return foundSession(found, id)
}

// foundSession returns a session that was read; nil: there is none. Codes: NotFound.
func foundSession(found *session.Session, id session.ID) (session.Session, error) {
	switch {
	case found == nil:
		return session.Session{}, noSession(id)
	case found.HeadID != nil && found.Head == nil:
		return *found, missingRow(*found.HeadID)
	}
	return *found, nil
}

// readSessions reads the sessions that a query of sessionColumns lists.
func readSessions(ctx context.Context, q engine.Queryer, query string, args ...any) ([]session.Session, error) {
	all, err := engine.List[session.Session](ctx, q, query, args...)
	if all == nil {
		all = []session.Session{} // an empty list in JSON, not null
	}
	return all, err
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
	Starred    *bool
	IfRevision *int64
	Idem       *Idempotency
}

// PatchSession changes a session's own fields. Codes: NotFound, PreconditionFailed.
func (s *Store) PatchSession(ctx context.Context, id session.ID, p SessionPatch) (session.Session, error) {
	for _, f := range []struct {
		path string
		text *string
	}{{"title", p.Title}, {"provider", p.Provider}, {"model", p.Model}} {
		if f.text == nil {
			continue
		}
		if err := checkStorable([]field{{f.path, *f.text}}); err != nil {
			return session.Session{}, err
		}
	}
	return s.changeSession(ctx, id, p.IfRevision, p.Idem,
		func(t *tx, sess session.Session) (changed session.JSON, err error) {
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
				sess.ArchivedAt = switchTime(sess.ArchivedAt, *p.Archived, t.Now)
			}
			if p.Starred != nil {
				sess.StarredAt = switchTime(sess.StarredAt, *p.Starred, t.Now)
			}
			if p.Settings != nil {
				changed = session.JSON(`{"changed":["settings"]}`)
			}
			return changed, t.Exec(`UPDATE sessions SET title = ?, title_source = ?, metadata = ?, settings = ?, provider = ?,
			model = ?, "window" = ?, archived_at = ?, starred_at = ?, revision = revision + 1, updated_at = ? WHERE id = ?`,
				sess.Title, sess.TitleSource, sess.Metadata, sess.Settings, sess.Provider, sess.Model, sess.Window, sess.ArchivedAt,
				sess.StarredAt, t.Now, id)
		})
}

// SetTrash puts a session into the trash, or takes it out. Codes: NotFound, PreconditionFailed.
func (s *Store) SetTrash(ctx context.Context, id session.ID, trashed bool, ifRevision *int64,
	idem *Idempotency,
) (session.Session, error) {
	return s.changeSession(ctx, id, ifRevision, idem, func(t *tx, sess session.Session) (session.JSON, error) {
		return nil, t.Exec(`UPDATE sessions SET deleted_at = ?, revision = revision + 1, updated_at = ? WHERE id = ?`,
			switchTime(sess.DeletedAt, trashed, t.Now), t.Now, id)
	})
}

// changeSession runs change on a session that is still at the wanted revision, writes an event with the data
// that change returns, and reads the session anew.
func (s *Store) changeSession(ctx context.Context, id session.ID, ifRevision *int64, idem *Idempotency,
	change func(*tx, session.Session) (session.JSON, error),
) (session.Session, error) {
	return writeOnce(ctx, s, idem, (*tx).replaySession, func(t *tx) (sess session.Session, o outcome, err error) {
		if sess, err = readSession(t.Ctx, t, id); err != nil {
			return sess, o, err
		}
		if ifRevision != nil && *ifRevision != sess.Revision {
			return sess, o, staleRevision(sess, *ifRevision)
		}
		data, err := change(t, sess)
		if err != nil {
			return sess, o, err
		}
		if err := t.event(id, EventSessionChanged, 0, data); err != nil {
			return sess, o, err
		}
		sess, err = readSession(t.Ctx, t, id)
		return sess, outcome{SessionID: string(id), Revision: sess.Revision, Status: 200}, err
	})
}

func staleRevision(sess session.Session, wanted int64) error {
	return session.Errorf(session.PreconditionFailed,
		"session %s is at revision %d, not %d: read it again and decide anew", sess.ID, sess.Revision, wanted)
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

func orElse[T ~string](v, otherwise T) T {
	if v == "" {
		return otherwise
	}
	return v
}

// SetModelTitle stores a title of a session that a model made, unless somebody gave it one.
func (s *Store) SetModelTitle(ctx context.Context, id session.ID, title string) error {
	if err := checkStorable([]field{{"title", title}}); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		n, err := t.Changed(`UPDATE sessions SET title = ?, title_source = 'model', revision = revision + 1, updated_at = ?
			WHERE id = ? AND title_source = 'first_message' AND deleted_at IS NULL`, title, t.Now, id)
		if err != nil || n == 0 {
			return session.Wrap(err, "set the title")
		}
		return t.event(id, EventSessionChanged, 0, nil)
	})
}

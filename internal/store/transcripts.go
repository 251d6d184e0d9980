package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jmoiron/sqlx"

	"sessiond/internal/engine"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// A program's SDK can send its transcripts here line by line. They are kept as they came, and the importer reads them
// as it reads files: messages, calls and costs are made of them.

// TranscriptKey names a transcript of a program, in the program's own words. A sub-agent's has the subpath under which
// its program would keep its file.
type TranscriptKey struct {
	Source  session.Source `db:"source"`
	Project string         `db:"project"`
	Session string         `db:"session"`
	Subpath string         `db:"subpath"`
}

// Transcript is what is known of a transcript without its lines.
type Transcript struct {
	ID    int64  `db:"id"`
	Path  string `db:"path"`
	Owner string `db:"owner"`
	TranscriptKey
	Lines    int64        `db:"lines"`
	Bytes    int64        `db:"bytes"`
	Summary  session.JSON `db:"state"`
	StoredAt session.Time `db:"stored_at"`
}

const transcriptColumns = `id, path, owner, source, project, session, subpath, lines, bytes, state, stored_at`

// TranscriptPaths is how the paths of stored transcripts begin. No file's path does.
const TranscriptPaths = "lines:/"

// path returns what names the transcript in imports. It looks as the program's own file would: readers learn the
// session and the sub-agent from it.
func (k *TranscriptKey) path(owner string) string {
	path := TranscriptPaths
	if owner != "" {
		path += "@" + url.PathEscape(owner) + "/"
	}
	path += string(k.Source) + "/" + pathName(k.Project) + "/" + pathName(k.Session)
	if k.Subpath != "" {
		for name := range strings.SplitSeq(k.Subpath, "/") {
			path += "/" + pathName(name)
		}
	}
	return path + ".jsonl"
}

// pathName writes a name as one of a path. No two names are written alike.
func pathName(name string) string {
	switch name {
	case "":
		return "%"
	case ".", "..":
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

const maxKeyBytes = 1024 // of each part of a key

// check rejects keys that cannot be stored. Codes: Invalid, Forbidden.
func (k *TranscriptKey) check(ctx context.Context) error {
	for _, part := range []struct {
		name, text string
		optional   bool
	}{{"project", k.Project, false}, {"session", k.Session, false}, {"subpath", k.Subpath, true}} {
		switch {
		case part.text == "" && !part.optional:
			return session.Errorf(session.Invalid, "%s is missing: it names the transcript", part.name).At(part.name, "required")
		case len(part.text) > maxKeyBytes:
			return session.Errorf(session.Invalid, "%s has %d bytes; the limit is %d", part.name, len(part.text), maxKeyBytes).
				At(part.name, "too long")
		case !isStorableText(bytesOf(part.text)):
			return session.Errorf(session.Invalid, "%s must be UTF-8 without NUL", part.name).
				At(part.name, "not UTF-8 without NUL")
		}
	}
	scope, limited := session.ScopeOf(ctx)
	switch {
	case limited && scope.Key != "":
		return session.Errorf(session.Forbidden, "this token is limited to routing keys that begin with %s: "+
			"transcripts have no routing key", scope.Key)
	case limited && scope.Source != "" && scope.Source != k.Source:
		return session.Errorf(session.Forbidden, "this token is limited to %s", scope.Source)
	}
	return nil
}

// ownerOf returns whose transcripts a request reads and writes.
func (o *Options) ownerOf(ctx context.Context) string {
	if scope, limited := session.ScopeOf(ctx); limited {
		return scope.Owner
	}
	return o.Owner
}

// AsOwner returns a context that sees and makes what the owner of a transcript does.
func (s *Store) AsOwner(ctx context.Context, owner string) context.Context {
	if owner == s.opt.Owner {
		return ctx
	}
	return session.WithScope(ctx, session.Scope{Owner: owner})
}

// LinesAppend are lines for the end of a transcript.
type LinesAppend struct {
	TranscriptKey
	Lines []session.JSON // objects
	// Summary replaces the client's summary of the transcript; nil: that stays.
	Summary session.JSON
	// ExpectLines is how many lines the transcript must have; nil: any.
	ExpectLines *int64
	Idem        *Idempotency
}

// AppendLines stores lines at the end of a transcript, which the first ones make. A line whose uuid the transcript has
// is left out; the others are never taken for doubles. Codes: Invalid, Forbidden, Conflict (ExpectLines; the session
// was purged).
func (s *Store) AppendLines(ctx context.Context, in LinesAppend) (done Transcript, stored int, err error) {
	if err := in.check(ctx); err != nil {
		return done, 0, err
	}
	if in.Summary != nil && in.Subpath != "" {
		return done, 0, session.Errorf(session.Invalid, "summary: only a session's own transcript has one").
			At("summary", "not with a subpath")
	}
	lines, err := uuidLines(in.Lines)
	if err != nil {
		return done, 0, err
	}
	type result struct {
		Transcript
		stored int
	}
	path := in.path(s.opt.ownerOf(ctx))
	out, err := writeOnce(ctx, s, in.Idem, func(t *tx, o *outcome) (result, error) {
		tr, err := t.transcript(path)
		if err == nil && tr == nil {
			tr = &Transcript{Path: path, TranscriptKey: in.TranscriptKey, StoredAt: t.Now} // deleted since
		}
		if err != nil {
			return result{}, err
		}
		return result{*tr, int(o.N)}, nil
	}, func(t *tx) (result, outcome, error) {
		tr, n, err := t.appendLines(&in, path, lines)
		return result{tr, n}, outcome{ObjectID: path, N: int64(n), Status: 201}, err
	})
	return out.Transcript, out.stored, session.Wrap(err, "append to %s", path)
}

// rawLine is a line with what it is known by; "": nothing.
type rawLine struct{ uuid, text string }

// uuidLines puts lines into a form for storing: an object each, on one line. Codes: Invalid.
func uuidLines(raw []session.JSON) ([]rawLine, error) {
	lines := make([]rawLine, len(raw))
	for i, r := range raw {
		text := bytes.TrimSpace(r)
		o, ok := jsonx.ReadFields(text)
		if !ok {
			return nil, session.Errorf(session.Invalid, "lines[%d] must be an object, not %s", i, jsonx.Describe(text)).
				At(fmt.Sprintf("lines[%d]", i), "must be an object")
		}
		if bytes.ContainsAny(text, "\r\n") {
			compact := jsontext.Value(bytes.Clone(text))
			_ = compact.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // it is valid
			text = compact
		}
		lines[i].text = string(text)
		if lines[i].uuid = o.String("uuid"); len(lines[i].uuid) > 64 || !isStorableText(bytesOf(lines[i].uuid)) {
			lines[i].uuid = hash(bytesOf(lines[i].uuid))
		}
	}
	return lines, nil
}

func (t *tx) transcript(path string) (*Transcript, error) {
	return engine.First[Transcript](t.Ctx, t, `SELECT `+transcriptColumns+` FROM source_transcripts WHERE path = ?`, path)
}

func (t *tx) appendLines(in *LinesAppend, path string, lines []rawLine) (Transcript, int, error) {
	tr, err := t.transcript(path)
	if err != nil {
		return Transcript{}, 0, err
	}
	there := int64(0)
	if tr != nil {
		there = tr.Lines
	}
	if in.ExpectLines != nil && *in.ExpectLines != there {
		return Transcript{}, 0, session.Errorf(session.Conflict,
			"the transcript has %d lines, not %d: read its summary again and send one that continues it", there, *in.ExpectLines)
	}
	if len(lines) == 0 && in.Summary == nil {
		if tr == nil {
			tr = &Transcript{Path: path, TranscriptKey: in.TranscriptKey, StoredAt: t.Now}
		}
		return *tr, 0, nil
	}
	if tr == nil {
		if tr, err = t.createTranscript(in.TranscriptKey, path); err != nil {
			return Transcript{}, 0, err
		}
	}
	stored, err := t.insertLines(tr, lines)
	if err != nil {
		return Transcript{}, 0, err
	}
	if in.Summary != nil {
		tr.Summary = in.Summary
	}
	if tr.StoredAt = t.Now; stored > 0 || in.Summary != nil {
		err = t.Exec(`UPDATE source_transcripts SET lines = ?, bytes = ?, state = ?, stored_at = ? WHERE id = ?`,
			tr.Lines, tr.Bytes, tr.Summary, tr.StoredAt, tr.ID)
	}
	return *tr, stored, err
}

// createTranscript makes an empty transcript. Codes: Conflict (its session was purged here).
func (t *tx) createTranscript(key TranscriptKey, path string) (*Transcript, error) {
	purged, err := t.purgedHere(sourceTombstones(key.Source, key.Session, nil), false)
	if err != nil {
		return nil, err
	}
	if purged {
		return nil, session.Errorf(session.Conflict,
			"session %s of %s was purged here, so that its lines are not kept: begin another session", key.Session, key.Source)
	}
	tr := &Transcript{Path: path, Owner: t.opt.ownerOf(t.Ctx), TranscriptKey: key, StoredAt: t.Now}
	tr.ID, err = t.Insert(`INSERT INTO source_transcripts (path, owner, source, project, session, subpath, stored_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		tr.Path, tr.Owner, key.Source, key.Project, key.Session, key.Subpath, tr.StoredAt)
	return tr, err
}

const (
	linesAtOnce = 25 // in one statement; the rest go one by one
	insertLine  = `INSERT INTO source_lines (transcript_id, n, uuid, line) VALUES (?, ?, ?, ?)`
)

var insertManyLines = insertLine + strings.Repeat(`, (?, ?, ?, ?)`, linesAtOnce-1)

// insertLines stores the lines that are new, and returns how many.
func (t *tx) insertLines(tr *Transcript, lines []rawLine) (int, error) {
	fresh, err := t.newLines(tr, lines)
	if err != nil {
		return 0, err
	}
	args := make([]any, 0, 4*linesAtOnce)
	for at := 0; at < len(fresh); {
		query, n := insertLine, 1
		if len(fresh)-at >= linesAtOnce {
			query, n = insertManyLines, linesAtOnce
		}
		args = args[:0]
		for _, l := range fresh[at : at+n] {
			tr.Lines++
			tr.Bytes += int64(len(l.text)) + 1
			args = append(args, tr.ID, tr.Lines, l.uuid, l.text)
		}
		if err := t.Exec(query, args...); err != nil {
			return 0, err
		}
		at += n
	}
	return len(fresh), nil
}

// newLines returns the lines whose uuid neither the transcript has nor a line before.
func (t *tx) newLines(tr *Transcript, lines []rawLine) ([]rawLine, error) {
	var named []string
	for _, l := range lines {
		if l.uuid != "" {
			named = append(named, l.uuid)
		}
	}
	seen := map[string]bool{}
	if len(named) > 0 && tr.Lines > 0 {
		known, err := engine.List[string](t.Ctx, t, `SELECT uuid FROM source_lines WHERE transcript_id = ? AND uuid <> ''
			AND uuid IN (SELECT value FROM json_each(?))`, tr.ID, string(session.JSONOf(named)))
		if err != nil {
			return nil, err
		}
		for _, uuid := range known {
			seen[uuid] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l rawLine) bool {
		again := seen[l.uuid]
		seen[l.uuid] = l.uuid != ""
		return again
	}), nil
}

// Transcript reads what is known of a transcript. Codes: NotFound, Invalid, Forbidden.
func (s *Store) Transcript(ctx context.Context, key TranscriptKey) (Transcript, error) {
	if err := key.check(ctx); err != nil {
		return Transcript{}, err
	}
	tr, err := s.TranscriptAt(ctx, key.path(s.opt.ownerOf(ctx)))
	if err == nil && tr == nil {
		err = session.Errorf(session.NotFound, "no lines of %s are stored under this project, session and subpath",
			key.Source)
	}
	if err != nil {
		return Transcript{}, err
	}
	return *tr, nil
}

// TranscriptAt returns the transcript of a path, nil if there is none.
func (s *Store) TranscriptAt(ctx context.Context, path string) (*Transcript, error) {
	return engine.First[Transcript](ctx, s, `SELECT `+transcriptColumns+` FROM source_transcripts WHERE path = ?`, path)
}

// TranscriptLines reads lines of a transcript in their order, those after a number: at most so many, and no more once
// they have about so many bytes. last is the number of the newest one.
func (s *Store) TranscriptLines(ctx context.Context, tr *Transcript, after int64, most, bytes int,
) (lines []session.JSON, last int64, err error) {
	last = after
	err = s.Read(ctx, engine.NewReading(`SELECT n, line FROM source_lines WHERE transcript_id = ? AND n > ? AND n <= ? ORDER BY n LIMIT +?`,
		[]any{tr.ID, after, tr.Lines, most}, func(row *sqlx.Rows) error {
			var line sql.RawBytes
			if err := row.Scan(&last, &line); err != nil {
				return err
			}
			lines = append(lines, session.JSON(slices.Clone([]byte(line))))
			if bytes -= len(line); bytes <= 0 {
				return engine.ErrEnough
			}
			return nil
		}))
	return lines, last, session.Wrap(err, "read lines of %s", tr.Path)
}

// WriteTranscript writes the lines that a transcript has, each with a line feed.
func (s *Store) WriteTranscript(ctx context.Context, tr *Transcript, w io.Writer) error {
	err := s.Read(ctx, engine.NewReading(`SELECT line FROM source_lines WHERE transcript_id = ? AND n <= ? ORDER BY n`,
		[]any{tr.ID, tr.Lines}, func(row *sqlx.Rows) error {
			var line sql.RawBytes
			if err := row.Scan(&line); err != nil {
				return err
			}
			if _, err := w.Write(line); err != nil {
				return err
			}
			_, err := w.Write([]byte{'\n'})
			return err
		}))
	return session.Wrap(err, "read lines of %s", tr.Path)
}

// Transcripts lists the transcripts of a program, of every owner, the oldest first.
func (s *Store) Transcripts(ctx context.Context, source session.Source) ([]Transcript, error) {
	return engine.List[Transcript](ctx, s, `SELECT `+transcriptColumns+` FROM source_transcripts WHERE source = ? ORDER BY stored_at, id`, source)
}

// TranscriptsUnder lists the paths of the transcripts under a folder of their paths.
func (s *Store) TranscriptsUnder(ctx context.Context, folder string) ([]string, error) {
	folder = strings.TrimSuffix(folder, "/") + "/"
	return engine.List[string](ctx, s, `SELECT path FROM source_transcripts WHERE SUBSTR(path, 1, LENGTH(?1)) = ?1 ORDER BY path`, folder)
}

// Subpaths lists the subpaths under the session of a key that have lines. Codes: Invalid, Forbidden.
func (s *Store) Subpaths(ctx context.Context, key TranscriptKey) ([]string, error) {
	key.Subpath = ""
	if err := key.check(ctx); err != nil {
		return nil, err
	}
	return engine.List[string](ctx, s, `SELECT subpath FROM source_transcripts
		WHERE source = ? AND owner = ? AND project = ? AND session = ? AND subpath <> '' ORDER BY subpath`,
		key.Source, s.opt.ownerOf(ctx), key.Project, key.Session)
}

// TranscriptSessions lists the transcripts of a project that are those of sessions, by the program's ids of these.
// Codes: Invalid, Forbidden.
func (s *Store) TranscriptSessions(ctx context.Context, source session.Source, project string, p Page,
) (all []Transcript, next string, err error) {
	key := TranscriptKey{Source: source, Project: project, Session: "any"}
	if err := key.check(ctx); err != nil {
		return nil, "", err
	}
	all, err = engine.List[Transcript](ctx, s, `SELECT `+transcriptColumns+` FROM source_transcripts
		WHERE source = ? AND owner = ? AND project = ? AND session > ? AND subpath = '' ORDER BY session LIMIT +?`,
		source, s.opt.ownerOf(ctx), project, p.Cursor, p.limit()+1)
	if len(all) > p.limit() {
		all = all[:p.limit()]
		next = all[len(all)-1].Session
	}
	return all, next, err
}

// SessionsOfTranscripts lists the sessions that were imported from a transcript, and without a subpath from those under
// it. A session of which another transcript has lines, too, is not in the list. Codes: Invalid, Forbidden.
func (s *Store) SessionsOfTranscripts(ctx context.Context, key TranscriptKey) ([]session.Session, error) {
	if err := key.check(ctx); err != nil {
		return nil, err
	}
	ids, err := engine.List[session.ID](ctx, s, `SELECT DISTINCT i.session_id FROM source_sessions i JOIN source_transcripts t ON t.id = i.transcript_id
		WHERE `+ofKey+` AND NOT EXISTS (
			SELECT 1 FROM source_sessions j JOIN source_transcripts o ON o.id = j.transcript_id WHERE j.session_id = i.session_id
				AND (o.source <> t.source OR o.owner <> t.owner OR o.project <> t.project OR o.session <> t.session
					OR o.subpath <> ? AND ? <> ''))
		ORDER BY i.session_id`, append(s.argsOfKey(ctx, key), key.Subpath, key.Subpath)...)
	if err != nil {
		return nil, err
	}
	var all []session.Session
	for _, id := range ids {
		sess, err := s.Session(ctx, id)
		if session.CodeOf(err) == session.NotFound {
			continue // purged by another request
		}
		if err != nil {
			return nil, err
		}
		all = append(all, sess)
	}
	return all, nil
}

// ofKey finds the transcript of a key, and without a subpath those under it.
const ofKey = `t.source = ? AND t.owner = ? AND t.project = ? AND t.session = ? AND (t.subpath = ? OR ? = '')`

func (s *Store) argsOfKey(ctx context.Context, key TranscriptKey) []any {
	return []any{key.Source, s.opt.ownerOf(ctx), key.Project, key.Session, key.Subpath, key.Subpath}
}

// DeleteTranscripts deletes a transcript, and without a subpath those under it.
// Sessions that were imported from them stay: they are to be purged before. purged are those that were: the program may
// begin them anew. Codes: Invalid, Forbidden.
func (s *Store) DeleteTranscripts(ctx context.Context, key TranscriptKey, purged []session.Session) error {
	if err := key.check(ctx); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		all, err := engine.List[int64](t.Ctx, t, `SELECT t.id FROM source_transcripts t WHERE `+ofKey, s.argsOfKey(ctx, key)...)
		if err != nil {
			return err
		}
		for i := range purged {
			if _, err := t.purgedHere(sourceTombstones(purged[i].Source, purged[i].SourceID, nil), true); err != nil {
				return err
			}
		}
		for _, id := range all {
			if err := t.deleteTranscript(id); err != nil {
				return err
			}
		}
		return nil
	})
}

// deleteTranscript deletes a transcript with its lines.
func (t *tx) deleteTranscript(id int64) error {
	if err := t.ExecEach([]string{
		`DELETE FROM source_lines WHERE transcript_id = ?`,
		`DELETE FROM source_sessions WHERE transcript_id = ?`,
		`DELETE FROM imports WHERE path = (SELECT path FROM source_transcripts WHERE id = ?)`,
		`DELETE FROM source_transcripts WHERE id = ?`,
	}, id); err != nil {
		return err
	}
	return t.Exec(`UPDATE store SET unscrubbed_at = COALESCE(unscrubbed_at, ?) WHERE id = 1`, t.Now)
}

// forgetTranscripts deletes the transcripts from which a session was imported.
func (t *tx) forgetTranscripts(id session.ID) error {
	all, err := engine.List[int64](t.Ctx, t, `SELECT transcript_id FROM source_sessions WHERE session_id = ?`, id)
	for _, transcript := range all {
		if err == nil {
			err = t.deleteTranscript(transcript)
		}
	}
	return session.Wrap(err, "forget transcripts of %s", id)
}

// checkTranscript rejects a batch that was read from a stored transcript which was deleted since. Codes: Conflict.
func (im *importer) checkTranscript() error {
	if im.batch.Transcript == 0 {
		return nil
	}
	here, err := im.Exists(`SELECT 1 FROM source_transcripts WHERE id = ?`, im.batch.Transcript)
	if err == nil && !here {
		err = session.Errorf(session.Conflict, "its lines were deleted while they were read")
	}
	return err
}

// noteTranscript remembers that the batch's session came from a stored transcript.
func (im *importer) noteTranscript() error {
	if im.batch.Transcript == 0 {
		return nil
	}
	return im.Exec(`INSERT INTO source_sessions (session_id, transcript_id) VALUES (?, ?) ON CONFLICT DO NOTHING`,
		im.sess.ID, im.batch.Transcript)
}

package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// Named is what a name on a command line means: a session, or one of its messages.
type Named struct {
	Session session.ID
	Message *session.MessageRef // nil: the session
}

// Resolve finds the session of what a person names, as Named does.
func (s *Store) Resolve(ctx context.Context, name, directory string) (session.ID, error) {
	found, err := s.Named(ctx, name, directory)
	return found.Session, err
}

// Named finds what a person names: a session by its id, its id in the source program, or a unique beginning of
// either (at least 6 characters); a message by SESSION.SEQ, with any name of the session; a compaction (cmp_12) or
// stored context (ctx_12), which mean their session; @ for the newest conversation of a person in the directory's
// project, @2 for the one before; @@ and @@2 for those of all projects. It does not check that the message exists.
// Codes: NotFound, Invalid, Conflict (ambiguous).
func (s *Store) Named(ctx context.Context, name, directory string) (Named, error) {
	id, err := s.sessionNamed(ctx, name, directory)
	if session.CodeOf(err) != session.NotFound {
		return Named{Session: id}, err
	}
	before, digits, ok := cutLast(name, ".")
	seq, wrong := strconv.ParseInt(digits, 10, 64)
	if !ok || wrong != nil || seq < 1 {
		return Named{}, err
	}
	if id, err = s.sessionNamed(ctx, before, directory); err != nil {
		return Named{}, err
	}
	return Named{Session: id, Message: &session.MessageRef{Session: id, Seq: seq}}, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (s *Store) sessionNamed(ctx context.Context, name, directory string) (session.ID, error) {
	if strings.HasPrefix(name, "@") {
		return s.nthNewest(ctx, name, directory)
	}
	for prefix, query := range map[string]string{"cmp": sessionOfCompaction, "ctx": sessionOfContext} {
		if row, err := session.ParseName(prefix, name); err == nil {
			id, err := engine.Get[session.ID](ctx, s, query, row)
			if engine.NoRows(err) {
				err = session.Errorf(session.NotFound, "there is no %s", name)
			}
			return id, err
		}
	}
	found, err := engine.List[session.ID](ctx, s, sessionsNamed, name, name)
	if err == nil && len(found) == 0 && len(name) >= 6 {
		found, err = engine.List[session.ID](ctx, s, sessionsBeginning, name, name+"\U0010FFFF")
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("find session %q: %w", name, err)
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", session.Errorf(session.Conflict, "%q begins the ids of several sessions (%s …): write more of it", name,
			joined(found))
	}
	switch gone, err := s.IsGone(ctx, name); {
	case err != nil:
		return "", err
	case gone:
		return "", session.Errorf(session.NotFound, "session %s was purged", name)
	}
	return "", session.Errorf(session.NotFound,
		"there is no session %q: `sessiond ls` lists them, and @ names the newest of this project", name)
}

func joined(ids []session.ID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return strings.Join(names, ", ")
}

const (
	sessionsNamed = `
	SELECT id FROM sessions WHERE id = ? AND purged_at IS NULL UNION SELECT id FROM sessions WHERE source_id = ? AND source_id <> '' LIMIT 2`

	// The ends are bytes, not a pattern: an index finds them.
	sessionsBeginning = `
	SELECT id FROM sessions WHERE id BETWEEN ?1 AND ?2 AND purged_at IS NULL
	UNION SELECT id FROM sessions WHERE source_id BETWEEN ?1 AND ?2 AND source_id <> '' LIMIT 4`

	sessionOfCompaction = `SELECT s.id FROM compactions c JOIN sessions s ON s.id = c.session_id WHERE c.id = ? AND s.purged_at IS NULL`
	sessionOfContext    = `SELECT s.id FROM contexts c JOIN sessions s ON s.id = c.session_id WHERE c.id = ? AND s.purged_at IS NULL`
)

// nthNewest finds @, @2, @@ and @@2. Outside a git repository @ also means the nearest folder above that has a
// conversation.
func (s *Store) nthNewest(ctx context.Context, name, directory string) (session.ID, error) {
	digits, anywhere := strings.CutPrefix(name[1:], "@")
	n := 1
	if digits != "" {
		var err error
		if n, err = strconv.Atoi(digits); err != nil || n < 1 {
			code := session.Invalid
			if strings.Contains(digits, ".") { // perhaps a message
				code = session.NotFound
			}
			return "", session.Errorf(code,
				"%q names no session: @ is the newest of this project, @2 the one before, @@ the newest of all projects", name)
		}
	}
	query, args := nthOfAll, []any{n - 1}
	if !anywhere {
		query, args = nthOfProject, []any{string(session.JSONOf(folders.Roots(directory))), n - 1}
	}
	id, err := engine.Get[session.ID](ctx, s, query, args...)
	if engine.NoRows(err) && !anywhere && !folders.HasRepository(directory) {
		var folder string
		if folder, err = engine.Get[string](ctx, s, nearestAbove,
			string(session.JSONOf(foldersAbove(directory)))); err == nil {
			id, err = engine.Get[session.ID](ctx, s, nthOfProject, string(session.JSONOf([]string{folder})), n-1)
		}
	}
	switch {
	case engine.NoRows(err) && anywhere:
		return "", session.Errorf(session.NotFound, "there is no conversation %s", name)
	case engine.NoRows(err):
		return "", session.Errorf(session.NotFound,
			"no conversation %s belongs to %s: `sessiond ls` lists all, and @@ is the newest of all projects", name, directory)
	}
	return id, err
}

// foldersAbove returns the folders above a directory, below the home folder and the root, which are no project.
func foldersAbove(directory string) (folders []string) {
	if !filepath.IsAbs(directory) {
		return nil
	}
	home, _ := os.UserHomeDir() // "" is no folder above
	for dir := filepath.Dir(filepath.Clean(directory)); dir != filepath.Dir(dir) && dir != home; dir = filepath.Dir(dir) {
		folders = append(folders, dir)
	}
	return folders
}

// ofPeople are conversations, without sub-agents and automated sessions.
const ofPeople = `kind = 'chat' AND parent_kind <> 'child'`

// The newest come first, so these end early; by itself SQLite would read and sort them all.
const (
	conversations = ` FROM sessions INDEXED BY sessions_active
	WHERE ` + ofPeople + ` AND draft = 0 AND deleted_at IS NULL AND archived_at IS NULL`

	nthOfAll     = `SELECT id` + conversations + ` ORDER BY active_at DESC, id DESC LIMIT 1 OFFSET ?`
	nthOfProject = `SELECT id` + conversations + `
	AND (directory IN (SELECT value FROM json_each(?1)) OR project IN (SELECT value FROM json_each(?1)))
	ORDER BY active_at DESC, id DESC LIMIT 1 OFFSET ?2`
	nearestAbove = `SELECT directory` + conversations + `
	AND directory IN (SELECT value FROM json_each(?)) ORDER BY LENGTH(directory) DESC LIMIT 1`
)

// Titled is a session that words of its title name.
type Titled struct {
	ID       session.ID   `db:"id"`
	Title    string       `db:"title"`
	ActiveAt session.Time `db:"active_at"`
	Person   bool         `db:"person"`
}

// Titled returns the sessions whose title has all the words, in any case: those of people, or else sub-agents and
// automated sessions, newest active first. Sessions whose whole title is the words come alone.
func (s *Store) Titled(ctx context.Context, words string) ([]Titled, error) {
	words = strings.Join(strings.Fields(words), " ")
	if len(words) < 3 || len(words) > maxQueryBytes {
		return nil, nil
	}
	var c conditions
	for word := range strings.FieldsSeq(words) {
		c.contains(word, "title")
	}
	found, err := engine.List[Titled](ctx, s, `SELECT id, title, active_at, `+ofPeople+` AS person FROM sessions
		WHERE draft = 0 AND deleted_at IS NULL AND purged_at IS NULL AND `+strings.Join(c.where, " AND ")+`
		ORDER BY person DESC, active_at DESC LIMIT 200`, c.args...)
	if err != nil {
		return nil, session.Wrap(err, "find sessions by title")
	}
	pick := func(fits func(Titled) bool) (some []Titled) {
		for _, t := range found {
			if fits(t) {
				some = append(some, t)
			}
		}
		return some
	}
	if same := pick(func(t Titled) bool {
		return strings.EqualFold(strings.Join(strings.Fields(t.Title), " "), words)
	}); len(same) > 0 {
		return same, nil
	}
	if people := pick(func(t Titled) bool { return t.Person }); len(people) > 0 {
		return people, nil
	}
	return found, nil
}

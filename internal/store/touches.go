package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// FileFilter says whose work on which files is wanted.
type FileFilter struct {
	Paths []string         // absolute: files, or folders with all that is below them
	Ops   []session.FileOp // empty: all
}

// FileSession is a session that read or changed one of the wanted files. Sessions in the
// trash are not among them.
type FileSession struct {
	Session session.Session        `json:"session"`
	Ops     map[session.FileOp]int `json:"ops" doc:"Number of messages for each operation: read, write, edit, delete"`
	Files   []string               `json:"files" doc:"The files that it read or changed"`
	More    int                    `json:"more_files,omitempty" doc:"Number of further files, which files does not name"`
	First   FileTouch              `json:"first" doc:"The first operation"`
	Last    FileTouch              `json:"last" doc:"The last operation"`

	Changes []FileTouch `json:"-"` // the last messages that changed one of them, newest first

	files       map[string]bool
	first, last touchRow
	changes     []touchRow
}

// FileTouch is one message that read or changed a file.
type FileTouch struct {
	Message session.MessageRef `json:"message_id"`
	Op      session.FileOp     `json:"op" doc:"read, write, edit or delete"`
	Path    string             `json:"path"`
	At      session.Time       `json:"at"`

	came session.Time // At, of a message from the future the time of its session's last change
}

// touchRow is a row of touched_files.
type touchRow struct {
	Path    string         `db:"path"`
	Op      session.FileOp `db:"op"`
	Session session.ID     `db:"session_id"`
	Message int64          `db:"message_id"`
}

// Limits of what is told of one session: a folder may hold many files.
const (
	maxFilesTold = 20
	maxChanges   = 3 // of one session, in Changes
)

// FileSessions lists the sessions that read or changed files, those that did so last first.
// next is "" at the end. Codes: Invalid (cursor).
func (s *Store) FileSessions(ctx context.Context, f FileFilter, p Page) (data []FileSession, next string, err error) {
	at, id, err := p.after()
	if err != nil {
		return nil, "", err
	}
	found, err := s.touches(ctx, f)
	if err != nil {
		return nil, "", fmt.Errorf("look up who touched %s: %w", strings.Join(f.Paths, ", "), err)
	}
	order := func(a, b *FileSession) int {
		n := cmp.Or(b.Last.came.Compare(a.Last.came.Time), cmp.Compare(b.Session.ID, a.Session.ID))
		if p.Ascending {
			return -n
		}
		return n
	}
	all := slices.SortedFunc(maps.Values(found), order)
	if at != "" {
		cursor := FileSession{Session: session.Session{ID: session.ID(id)}}
		if err := cursor.Last.came.Scan(at); err != nil {
			return nil, "", err
		}
		all = slices.DeleteFunc(all, func(one *FileSession) bool { return order(one, &cursor) <= 0 })
	}
	data = []FileSession{}
	for _, one := range all {
		if len(data) == p.limit() {
			last := data[len(data)-1]
			return data, encodeCursor(last.Last.came.SQL(), string(last.Session.ID)), nil
		}
		one.Session, err = s.Session(ctx, one.Session.ID)
		if session.CodeOf(err) == session.NotFound { // what a purge left of it for its forks
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if one.Session.DeletedAt == nil {
			data = append(data, *one)
		}
	}
	return data, "", nil
}

// touched_files alone tells who touched what; the messages, which are many and large, are read only
// for the first and the last touch of a session. The paths below a folder are between the folder's
// name with a slash and its name with the character after the slash.
const (
	touchesOfFile = `SELECT path, op, session_id, message_id FROM touched_files WHERE path = ?`
	touchesBelow  = `SELECT path, op, session_id, message_id FROM touched_files WHERE path >= ? AND path < ?`
	placesOfRows  = `SELECT m.id, m.session_id || '.' || m.seq AS message, m.created_at, s.updated_at FROM json_each(?) k
		CROSS JOIN messages m ON m.id = CAST(k.value AS BIGINT) CROSS JOIN sessions s ON s.id = m.session_id`
)

// touches gathers by session what was done to the wanted files.
func (s *Store) touches(ctx context.Context, f FileFilter) (map[session.ID]*FileSession, error) {
	found, seen := map[session.ID]*FileSession{}, map[touchRow]bool{}
	for _, path := range f.Paths {
		path = folders.Clean(path)
		folder := strings.TrimSuffix(path, "/")
		rows, err := engine.List[touchRow](ctx, s, touchesOfFile, path)
		if err != nil {
			return nil, err
		}
		below, err := engine.List[touchRow](ctx, s, touchesBelow, folder+"/", folder+"0")
		if err != nil {
			return nil, err
		}
		for _, t := range append(rows, below...) {
			if seen[t] || len(f.Ops) > 0 && !slices.Contains(f.Ops, t.Op) {
				continue
			}
			seen[t] = true
			one := found[t.Session]
			if one == nil {
				one = &FileSession{
					Session: session.Session{ID: t.Session}, Ops: map[session.FileOp]int{}, files: map[string]bool{},
					first: t, last: t,
				}
				found[t.Session] = one
			}
			one.addTouch(t)
		}
	}
	return found, s.placeTouches(ctx, found)
}

// FilePaths returns the paths by which tools may have touched some files or folders: as they are named, without
// symbolic links, and at the same place in each worktree of their project, also in one that is gone.
func (s *Store) FilePaths(ctx context.Context, names ...string) ([]string, error) {
	var paths []string
	add := func(path string) {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, name := range names {
		for _, path := range slices.Compact([]string{folders.Clean(name), folders.Resolved(name)}) {
			add(path)
			roots, err := s.worktrees(ctx, path)
			if err != nil {
				return nil, err
			}
			nearest := ""
			for _, root := range roots {
				if folders.Within(path, root) && len(root) > len(nearest) {
					nearest = root
				}
			}
			if nearest == "" {
				continue
			}
			for _, root := range roots {
				add(folders.Clean(root + "/" + path[len(nearest):]))
			}
		}
	}
	return paths, nil
}

// worktrees returns the worktrees of a path's project: those that git knows, and those in which sessions were. Of a
// repository that is gone the project is the nearest one above that has sessions.
func (s *Store) worktrees(ctx context.Context, path string) ([]string, error) {
	roots := append(folders.Worktrees(path), folders.WorktreeRoot(path))
	above := []string{roots[0]}
	for at := path; strings.LastIndexByte(at, '/') > 0; {
		at = at[:strings.LastIndexByte(at, '/')]
		above = append(above, at)
	}
	type place struct {
		Project   string `db:"project"`
		Directory string `db:"directory"`
	}
	places, err := engine.List[place](ctx, s, directoriesOfProjects, string(session.JSONOf(above)))
	if err != nil {
		return nil, session.Wrap(err, "worktrees of %s", path)
	}
	project := roots[0]
	if project == path {
		for _, p := range places {
			if folders.Within(path, p.Project) && (project == path || len(p.Project) > len(project)) {
				project = p.Project
			}
		}
	}
	for _, p := range places {
		if p.Project == project && folders.Worktree(p.Directory, project) != "" {
			roots = append(roots, folders.WorktreeRoot(p.Directory))
		}
	}
	if project != roots[0] {
		roots = slices.DeleteFunc(roots, func(root string) bool { return root == path })
	}
	roots = append(roots, project)
	for i := range roots {
		roots[i] = folders.Clean(roots[i])
	}
	slices.Sort(roots)
	return slices.Compact(roots), nil
}

const directoriesOfProjects = `
	SELECT DISTINCT project, directory FROM sessions WHERE project IN (SELECT value FROM json_each(?)) AND purged_at IS NULL`

// PathEnding is a path that tools touched, and a session that did so.
type PathEnding struct {
	Path    string     `db:"path"`
	Session session.ID `db:"session_id"`
}

// FilesEnding returns files whose path ends in a name, as a person writes one that lies elsewhere, with the last
// session that touched each: the newest first, at most 200. Sessions in the trash do not count.
func (s *Store) FilesEnding(ctx context.Context, name string) ([]PathEnding, error) {
	for name = folders.Clean(name); strings.HasPrefix(name, "../"); {
		name = name[len("../"):]
	}
	for {
		name = strings.Trim(name, "/")
		if name == "" || name == "." || name == ".." {
			return nil, nil
		}
		found, err := engine.List[PathEnding](ctx, s, pathsEnding, "%/"+escapeLike(name))
		if err != nil || len(found) > 0 {
			return found, session.Wrap(err, "files that end in %s", name)
		}
		_, shorter, ok := strings.Cut(name, "/")
		if !ok {
			return nil, nil
		}
		name = shorter
	}
}

const pathsEnding = `
	SELECT path, MAX(f.session_id) AS session_id FROM touched_files f JOIN sessions s ON s.id = f.session_id
	WHERE path LIKE ? ESCAPE '\' AND s.deleted_at IS NULL AND s.purged_at IS NULL GROUP BY path ORDER BY MAX(message_id) DESC, path LIMIT 200`

// addTouch counts a touch. Within a session rows are in the order in which they came.
func (one *FileSession) addTouch(t touchRow) {
	one.Ops[t.Op]++
	if t.Message > one.last.Message {
		one.last = t
	}
	if t.Message < one.first.Message {
		one.first = t
	}
	if t.Op != session.OpRead {
		one.changes = append(one.changes, t)
	}
	if one.files[t.Path] {
		return
	}
	one.files[t.Path] = true
	if len(one.Files) < maxFilesTold {
		one.Files = append(one.Files, t.Path)
	} else {
		one.More++
	}
}

// placeTouches looks up the messages of each session's first and last touch.
func (s *Store) placeTouches(ctx context.Context, found map[session.ID]*FileSession) error {
	rows := make([]int64, 0, 2*len(found))
	for _, one := range found {
		slices.SortStableFunc(one.changes, func(a, b touchRow) int { return cmp.Compare(b.Message, a.Message) })
		one.changes = one.changes[:min(len(one.changes), maxChanges)]
		rows = append(rows, one.first.Message, one.last.Message)
		for _, t := range one.changes {
			rows = append(rows, t.Message)
		}
	}
	places := make(map[int64]FileTouch, len(rows))
	type placed struct {
		ID      int64              `db:"id"`
		Message session.MessageRef `db:"message"`
		At      session.Time       `db:"created_at"`
		Changed session.Time       `db:"updated_at"`
	}
	err := engine.Each(ctx, s, func(m *placed) error {
		places[m.ID] = FileTouch{Message: m.Message, At: m.At, came: earlier(m.At, m.Changed)}
		return nil
	}, placesOfRows, string(session.JSONOf(rows)))
	place := func(t touchRow) FileTouch {
		at := places[t.Message]
		at.Op, at.Path = t.Op, t.Path
		return at
	}
	for _, one := range found {
		one.First, one.Last = place(one.first), place(one.last)
		for _, t := range one.changes {
			one.Changes = append(one.Changes, place(t))
		}
	}
	return err
}

// OpsNamed returns the operations of a word: one of them, or changed for all but reading. ""
// is every one.
func OpsNamed(word string) []session.FileOp {
	switch word {
	case "":
		return nil
	case "changed":
		return []session.FileOp{session.OpWrite, session.OpEdit, session.OpDelete}
	}
	return []session.FileOp{session.FileOp(word)}
}

// FileOfSession is a file that a session read or changed.
type FileOfSession struct {
	Path    string
	Reads   int
	Changes []int64 // rows of the messages that changed it, oldest first
}

// FilesOfSession returns the files that a session's own messages read or changed, those that it changed first, each in
// the order in which it was touched first.
func (s *Store) FilesOfSession(ctx context.Context, id session.ID) (files []FileOfSession, err error) {
	places := map[string]int{}
	err = engine.Each(ctx, s, func(t *touchRow) error {
		at, known := places[t.Path]
		if !known {
			at, places[t.Path] = len(files), len(files)
			files = append(files, FileOfSession{Path: t.Path})
		}
		switch f := &files[at]; {
		case t.Op == session.OpRead:
			f.Reads++
		case len(f.Changes) == 0 || f.Changes[len(f.Changes)-1] != t.Message:
			f.Changes = append(f.Changes, t.Message)
		}
		return nil
	}, touchesOfSession, id)
	slices.SortStableFunc(files, func(a, b FileOfSession) int {
		return cmp.Compare(min(1, len(b.Changes)), min(1, len(a.Changes)))
	})
	return files, session.Wrap(err, "files of %s", id)
}

const touchesOfSession = `
	SELECT f.path, f.op, f.session_id, f.message_id FROM messages m CROSS JOIN touched_files f ON f.message_id = m.id
	WHERE m.session_id = ? ORDER BY m.seq`

package store

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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
	Ops     map[session.FileOp]int `json:"ops"` // messages that did it
	Files   []string               `json:"files"`
	More    int                    `json:"more_files,omitempty"` // besides those in files
	First   FileTouch              `json:"first"`
	Last    FileTouch              `json:"last"`

	files       map[string]bool
	first, last touchRow
}

// touchRow is a touch whose message is known by its row only.
type touchRow struct {
	message int64
	path    string
	op      session.FileOp
}

// FileTouch is one message that read or changed a file.
type FileTouch struct {
	Message session.MessageRef `json:"message_id"`
	Op      session.FileOp     `json:"op"`
	Path    string             `json:"path"`
	At      session.Time       `json:"at"`
}

// maxFilesTold bounds the files that are named of one session: a folder may hold many.
const maxFilesTold = 20

// FileSessions lists the sessions that read or changed files, those that did so last first.
// next is "" at the end. Codes: Invalid (cursor).
func (s *Store) FileSessions(ctx context.Context, f FileFilter, p Page) (data []FileSession, next string, err error) {
	after, id := "", ""
	if p.Cursor != "" {
		var ok bool
		if after, id, ok = decodeCursor(p.Cursor); !ok {
			return nil, "", session.Errorf(session.Invalid, "cursor %q is none of this list's: begin without one", p.Cursor).At("cursor", "not a next_cursor of this list")
		}
	}
	found, err := s.touches(ctx, f)
	if err != nil {
		return nil, "", fmt.Errorf("look up who touched %s: %w", strings.Join(f.Paths, ", "), err)
	}
	order := func(a, b *FileSession) int {
		return cmp.Or(b.Last.At.Compare(a.Last.At.Time), cmp.Compare(b.Session.ID, a.Session.ID))
	}
	if p.Ascending {
		newest := order
		order = func(a, b *FileSession) int { return newest(b, a) }
	}
	all := make([]*FileSession, 0, len(found))
	for _, one := range found {
		all = append(all, one)
	}
	slices.SortFunc(all, order)
	if after != "" {
		mark := FileSession{Session: session.Session{ID: session.ID(id)}}
		if err := mark.Last.At.Scan(after); err != nil {
			return nil, "", err
		}
		all = slices.DeleteFunc(all, func(one *FileSession) bool { return order(one, &mark) <= 0 })
	}
	data = []FileSession{}
	for _, one := range all {
		if len(data) == p.limit() {
			last := data[len(data)-1]
			return data, encodeCursor(last.Last.At.SQL(), string(last.Session.ID)), nil
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

// The table alone tells who touched what; the messages, which are many and large, are asked only
// for the first and the last touch of a session. What is below a folder lies between the
// folder's name with a slash and with the character after the slash.
const (
	touchesOfFile = `SELECT f.path, f.op, f.session_id, f.message_id FROM touched_files f WHERE f.path = ?`
	touchesBelow  = `SELECT f.path, f.op, f.session_id, f.message_id FROM touched_files f WHERE f.path >= ? AND f.path < ?`
	placesOfRows  = `SELECT m.id, m.session_id, m.seq, m.created_at FROM json_each(?) k CROSS JOIN messages m ON m.id = k.value`
)

// touches gathers by session what was done to the wanted files.
func (s *Store) touches(ctx context.Context, f FileFilter) (map[session.ID]*FileSession, error) {
	found := map[session.ID]*FileSession{}
	seen := map[touchRow]bool{}
	take := func(row scanner) error {
		var t touchRow
		var id session.ID
		if err := row.Scan(&t.path, &t.op, &id, &t.message); err != nil {
			return err
		}
		if len(f.Ops) > 0 && !slices.Contains(f.Ops, t.op) || len(f.Paths) > 1 && seen[t] {
			return nil
		}
		if len(f.Paths) > 1 {
			seen[t] = true
		}
		one := found[id]
		if one == nil {
			one = &FileSession{Session: session.Session{ID: id}, Ops: map[session.FileOp]int{}, files: map[string]bool{}, first: t, last: t}
			found[id] = one
		}
		one.add(t)
		return nil
	}
	for _, path := range f.Paths {
		path = filepath.Clean(path)
		below := strings.TrimSuffix(path, "/") + "/"
		if err := s.each(ctx, take, touchesOfFile, path); err != nil {
			return nil, err
		}
		if err := s.each(ctx, take, touchesBelow, below, strings.TrimSuffix(below, "/")+"0"); err != nil {
			return nil, err
		}
	}
	return found, s.placeTouches(ctx, found)
}

// placeTouches looks up the messages of each session's first and last touch.
func (s *Store) placeTouches(ctx context.Context, found map[session.ID]*FileSession) error {
	rows := make([]int64, 0, 2*len(found))
	for _, one := range found {
		rows = append(rows, one.first.message, one.last.message)
	}
	places := make(map[int64]FileTouch, len(rows))
	err := s.each(ctx, func(row scanner) error {
		var id int64
		var t FileTouch
		err := row.Scan(&id, &t.Message.Session, &t.Message.Seq, &t.At)
		places[id] = t
		return err
	}, placesOfRows, string(session.JSONOf(rows)))
	for _, one := range found {
		one.First, one.Last = one.first.at(places), one.last.at(places)
	}
	return err
}

func (t touchRow) at(places map[int64]FileTouch) FileTouch {
	told := places[t.message]
	told.Op, told.Path = t.op, t.path
	return told
}

// add counts a touch. Within a session rows are in the order in which they came.
func (one *FileSession) add(t touchRow) {
	one.Ops[t.op]++
	if t.message > one.last.message {
		one.last = t
	}
	if t.message < one.first.message {
		one.first = t
	}
	if one.files[t.path] {
		return
	}
	one.files[t.path] = true
	if len(one.Files) < maxFilesTold {
		one.Files = append(one.Files, t.path)
	} else {
		one.More++
	}
}

// OpsNamed gives the operations of a word: one of them, or changed for all but reading. ""
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

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

	files map[string]bool
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
		if one.Session, err = s.Session(ctx, one.Session.ID); err != nil {
			return nil, "", err
		}
		if one.Session.DeletedAt == nil {
			data = append(data, *one)
		}
	}
	return data, "", nil
}

// The table is WITHOUT ROWID: a path leads to its messages and from there to their times, by
// keys alone. What is below a folder lies between the folder's name with a slash and with the
// character after the slash.
const (
	touchesOfFile = `SELECT f.path, f.op, m.session_id, m.seq, m.created_at FROM touched_files f JOIN messages m ON m.id = f.message_id
		WHERE f.path = ?`
	touchesBelow = `SELECT f.path, f.op, m.session_id, m.seq, m.created_at FROM touched_files f JOIN messages m ON m.id = f.message_id
		WHERE f.path >= ? AND f.path < ?`
)

// touches gathers by session what was done to the wanted files.
func (s *Store) touches(ctx context.Context, f FileFilter) (map[session.ID]*FileSession, error) {
	found := map[session.ID]*FileSession{}
	seen := map[FileTouch]bool{}
	take := func(row scanner) error {
		var t FileTouch
		if err := row.Scan(&t.Path, &t.Op, &t.Message.Session, &t.Message.Seq, &t.At); err != nil {
			return err
		}
		if len(f.Ops) > 0 && !slices.Contains(f.Ops, t.Op) || len(f.Paths) > 1 && seen[t] {
			return nil
		}
		if len(f.Paths) > 1 {
			seen[t] = true
		}
		one := found[t.Message.Session]
		if one == nil {
			one = &FileSession{Session: session.Session{ID: t.Message.Session}, Ops: map[session.FileOp]int{}, First: t, Last: t, files: map[string]bool{}}
			found[t.Message.Session] = one
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
	return found, nil
}

func (one *FileSession) add(t FileTouch) {
	one.Ops[t.Op]++
	if newer(t, one.Last) {
		one.Last = t
	}
	if newer(one.First, t) {
		one.First = t
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

func newer(a, b FileTouch) bool {
	return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.Message.Seq, b.Message.Seq)) > 0
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

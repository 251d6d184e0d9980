package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// Program is the Source of a program that keeps sessions in files, folders or SQLite databases.
type Program struct {
	Source  session.Source
	Folders func() []string // its places, as Places returns them
	// nil: nothing needs to be quiet, a line that parses is whole
	Now    func() time.Time
	Search func(f *Finder, folder string) // lists what a folder holds
	// lists a file that is named; nil: as Finder.File
	File     func(f *Finder, path string)
	Order    func([]Found) []Found                                         // orders what was found; nil: by time
	Sessions func(ctx context.Context, f Found) (ids []string, known bool) // as SessionIDs; nil: none is known
	Slot     func(path string) int64                                       // returns Found.Slot; nil: 0
	// as Running looks for them in the names of processes
	Commands []string
	// reports whether a thing can be read early, as Early says; nil: none can
	EarlyToo func(path string) bool

	Replay   func(*Intake)          // reads a file
	Tree     func(*Intake)          // reads a folder; nil: none is found
	Database func(*Intake, *SQLite) // reads an SQLite database; nil: none is found
}

// InFolders returns places that do not change, without those that are not known.
func InFolders(places ...string) func() []string {
	places = slices.DeleteFunc(places, func(place string) bool { return place == "" })
	return func() []string { return places }
}

// FolderIn returns the folder of a name in a home, "" where that is not known.
func FolderIn(home, name string) string {
	if !folders.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, name)
}

// SortedBy returns an Order.
func SortedBy(compare func(a, b Found) int) func([]Found) []Found {
	return func(found []Found) []Found {
		slices.SortStableFunc(found, compare)
		return found
	}
}

// ByName orders files by their names, which in many programs begin with the time of creation.
func ByName(a, b Found) int {
	return strings.Compare(filepath.Base(a.Path), filepath.Base(b.Path))
}

// ByBeginning returns an Order for programs whose forks begin with copies and whose file names say no time. Files of
// rank 0 come by the time of their first record, which in a fork is that of the fork: a conversation comes before its
// forks, also if it went on after them. Older forks begin with the same record: those come in the order of their last
// change, as all other files do.
func ByBeginning(rank func(Found) int) func([]Found) []Found {
	var known sync.Map // beginnings, by path
	return func(found []Found) []Found {
		begun := make(map[string]time.Time, len(found))
		for _, f := range found {
			if rank(f) == 0 && len(found) > 1 {
				begun[f.Path] = knownBeginning(&known, f)
			}
		}
		slices.SortStableFunc(found, func(a, b Found) int {
			return cmp.Or(rank(a)-rank(b), begun[a.Path].Compare(begun[b.Path]), a.ModifiedAt.Compare(b.ModifiedAt),
				cmp.Compare(a.Size, b.Size), strings.Compare(a.Path, b.Path))
		})
		return found
	}
}

// knownBeginning returns the beginning of a file, and reads it only if the file is new or changed.
func knownBeginning(known *sync.Map, f Found) time.Time {
	type begun struct{ changed, at time.Time }
	if got, ok := known.Load(f.Path); ok && got.(begun).changed.Equal(f.ModifiedAt) {
		return got.(begun).at
	}
	at := beginning(f)
	known.Store(f.Path, begun{f.ModifiedAt, at})
	return at
}

// headBytes is how much of a file is searched for its first time.
const headBytes = 16 << 10

// beginning returns the time of the first record of a file that has one, else of its last change.
func beginning(f Found) time.Time {
	var head []byte
	if f.head != nil {
		head = f.head(headBytes)
	} else {
		head, _ = Head(f.Path, headBytes) // what could be read
	}
	for l := range EachRecord(bytes.NewReader(head), int64(len(head))) {
		o, _, _ := ParseLine(l.Bytes)
		if at, ok := ParseTime(o.String("timestamp")); ok {
			return at.Time
		}
	}
	return f.ModifiedAt
}

// Name implements Source.
func (p *Program) Name() session.Source { return p.Source }

// Places implements Source.
func (p *Program) Places() []string { return p.Folders() }

// Find implements Source.
func (p *Program) Find(ctx context.Context, roots []string) ([]Found, []Problem, error) {
	f := Finder{Usual: len(roots) == 0}
	if f.Usual {
		roots = p.Places()
	}
	f.Confine(roots, p.Places())
	err := f.roots(ctx, roots, p.Search, p.File)
	f.End()
	order := p.Order
	if order == nil {
		order = SortedBy(func(a, b Found) int { return a.ModifiedAt.Compare(b.ModifiedAt) })
	}
	return order(f.Found), f.Problems, err
}

// SessionIDs implements Lister.
func (p *Program) SessionIDs(ctx context.Context, found Found) (ids []string, known bool) {
	if p.Sessions == nil {
		return nil, false
	}
	return p.Sessions(ctx, found)
}

// CanBeEarly implements Early.
func (p *Program) CanBeEarly(found Found) bool { return p.EarlyToo != nil && p.EarlyToo(found.Path) }

// Running implements Runner.
func (p *Program) Running() (running, known bool) { return isRunning(p.Commands) }

// Read implements Source.
func (p *Program) Read(ctx context.Context, found Found, cursor *Cursor, known Known,
	emit func(Batch) error,
) ([]Problem, error) {
	in := newIntake(ctx, p.Source, found, cursor, known, emit)
	if p.Now != nil {
		in.Now = p.Now()
	}
	if p.Slot != nil {
		in.Found.Slot = p.Slot(found.Path)
	}
	switch {
	case p.Tree != nil && IsFolder(found.Path):
		in.read(p.Tree)
	case p.Database != nil && IsDatabase(found.Path):
		in.database(p.Database)
	default:
		in.replay(cursor, p.Replay)
	}
	return in.problems, in.Err()
}

// read adds what a found thing holds, and stores it.
func (in *Intake) read(read func(*Intake)) {
	if read(in); in.Err() == nil {
		in.finish()
	}
}

// replay opens the found file, and reads it once from its beginning. Codes: Invalid (it is no file,
// or empty, or compressed and damaged).
func (in *Intake) replay(cursor *Cursor, read func(*Intake)) {
	text, err := in.Found.openText()
	if err == nil && text.Size == 0 {
		err = errors.Join(session.Errorf(session.Invalid, "the file is empty"), text.Close())
	}
	if err != nil {
		in.Fail(err)
		return
	}
	defer text.Close()
	in.Found.Size, in.Found.ModifiedAt = text.Stored, text.ModifiedAt
	in.open(text, text.Size, cursor)
	if in.early {
		read = (*Intake).WaitWhole
	}
	in.read(read)
}

// database reads an SQLite database in one snapshot. Nothing more is stored once its owner changes
// the database meanwhile. Codes: OpenSQLite's.
func (in *Intake) database(read func(*Intake, *SQLite)) {
	db, err := OpenSQLite(in.ctx, in.Found.Path)
	if err != nil {
		in.Fail(err)
		return
	}
	defer db.Close() //nolint:errcheck // nothing was written
	emit := in.emit
	in.emit = func(b Batch) error {
		if err := db.Check(); err != nil {
			return err
		}
		return emit(b)
	}
	in.read(func(in *Intake) {
		read(in, db)
		in.Fail(db.TakeErr())
	})
}

package history

import (
	"context"
	"os"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Source reads the histories of one program. A found thing is one file of a program that
// keeps a file per session, and one database of a program that keeps them all together.
type Source interface {
	// Name gives the program's word: pi, codex, …
	Name() session.Source

	// Places returns the folders and files in which the program keeps its histories on this
	// host, as absolute paths, whether they are there or not: where Find searches without
	// roots, and what is watched. None if the home folder is not known.
	Places() []string

	// Find lists what there is under roots, each a folder or a file, oldest first, so that a fork comes
	// after its origin; without roots in Places, of which each may be missing. A folder that cannot be
	// read is a problem, not an error. It opens no file that may hold credentials.
	Find(ctx context.Context, roots []string) ([]Found, []Problem, error)

	// Read emits what found holds and the cursor, nil for a first reading, does not have yet: in order,
	// in batches of at most MaxBatch messages or some MaxBatchBytes, each with the count of the records
	// that it stands for. The batch that completes the reading carries the new
	// cursor, whose Counts are those of the old one if the reading went on from there. The
	// problems are lines that were kept raw because they could not be read; an error says
	// that the rest of found could not be read, and concerns no other found thing.
	//
	// A state that has "awaits", the source id of a session that was missing, has the file read
	// again when that session is here, though it did not change.
	Read(ctx context.Context, found Found, cursor *Cursor, known Known, emit func(Batch) error) ([]Problem, error)
}

// Lister is a Source that can tell which sessions a found thing holds.
type Lister interface {
	// SessionIDs names the sessions that found holds, by their ids in the program. known is false
	// where they cannot be told.
	SessionIDs(ctx context.Context, found Found) (ids []string, known bool)
}

// Runner is a Source that can tell whether its program runs.
type Runner interface {
	// Running reports whether a process of the program runs on this host. known is false where that
	// cannot be told.
	Running() (running, known bool)
}

// Found is a file or database that a Source can read. Path is absolute, links resolved.
type Found struct {
	Path       string
	Size       int64 // bytes
	ModifiedAt time.Time
	Slot       int64 // bytes at the beginning of a file that its program rewrites in place

	Alone bool        // read early: nothing of it is stored if it needs something that is not in the store
	Held  *os.File    // the opened file, where Path names it no more; nil: Path is opened
	Last  bool        // this reading may be the only one: an unfinished reply is imported as it is
	Over  func() bool // reports whether nothing more comes, since its program has ended; nil: not known

	transcript int64                                 // of the store, whose lines these are; 0: it is a file
	asOwner    func(context.Context) context.Context // limits a context to the owner of the transcript
	head       func(size int) []byte                 // returns its first bytes; nil: Head does
	shelf      shelf                                 // where it lies; nil: among the host's files
}

// Known is what a reading asks of the store. Codes: NotFound.
type Known interface {
	SessionBySource(ctx context.Context, source session.Source, sourceID string) (session.Session, error)
	Session(ctx context.Context, id session.ID) (session.Session, error)
	ImportCursor(ctx context.Context, source session.Source, path string) (*store.ImportCursor, error)
	Untitled(ctx context.Context, source session.Source, project string) ([]session.ID, error)
	MessageByKey(ctx context.Context, id session.ID, externalID string) (*session.MessageRef, error)
	SessionOfCall(ctx context.Context, source session.Source, externalID string) (session.ID, error)
	Message(ctx context.Context, ref session.MessageRef) (session.Message, error)
	ExternalIDs(ctx context.Context, id session.ID, yield func(externalID string)) error
	Messages(ctx context.Context, id session.ID, p store.MessagePage) ([]session.Message, bool, error)
	Calls(ctx context.Context, id session.ID, p store.Page) (calls []session.Call, next string, err error)
}

// MaxBatch is how many messages one transaction stores: live appends wait behind it.
const MaxBatch = 1000

// MaxBatchBytes is the size from which a batch is given even with fewer messages.
const MaxBatchBytes = 4 << 20

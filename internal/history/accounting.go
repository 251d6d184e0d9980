package history

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/session"
)

// Accounting says what became of the records of one source and path.
type Accounting struct {
	Source   session.Source `json:"source,omitempty"`
	Path     string         `json:"path,omitempty"`
	Sessions Sessions       `json:"sessions"`
	Records  Records        `json:"records"`
	Errors   []Problem      `json:"errors"`
}

// Sessions counts sessions by what the import did to them.
type Sessions struct {
	New       int `json:"new"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
}

// tally collects what an import does to sessions. One that lies in several found things counts
// once.
type tally struct {
	touched map[session.ID]touch
	others  int // unchanged sessions that are known by number only
}

type touch struct{ created, changed bool }

func (t *tally) add(b tally) {
	for id, touch := range b.touched {
		t.touch(id, touch)
	}
	t.others += b.others
}

func (t *tally) touch(id session.ID, now touch) {
	if t.touched == nil {
		t.touched = map[session.ID]touch{}
	}
	before := t.touched[id]
	t.touched[id] = touch{before.created || now.created, before.changed || now.changed}
}

func (t *tally) sessions() Sessions {
	s := Sessions{Unchanged: t.others}
	for _, touch := range t.touched {
		switch {
		case touch.created:
			s.New++
		case touch.changed:
			s.Updated++
		default:
			s.Unchanged++
		}
	}
	return s
}

// Records counts records of the source: lines, rows. Read is Imported + Raw + the sum over
// Skipped + Waiting. Raw records are stored whole as messages of kind unknown, out of the
// context. Waiting ones belong to a reply or a line that is not finished: they are read again.
type Records struct {
	Read     int            `json:"read"`
	Imported int            `json:"imported"`
	Raw      int            `json:"raw"`
	Skipped  map[string]int `json:"skipped"`
	Waiting  int            `json:"waiting"`
}

// Problem is something that could not be read: a file, or one line of it (from 1; 0 when
// the whole file is meant).
type Problem struct {
	Path  string `json:"path"`
	Line  int    `json:"line,omitempty"`
	Error string `json:"error"`
}

// Reasons to skip a record, of several sources.
const (
	SkipKnown     = "already imported"
	SkipDuplicate = "duplicate line"
	SkipBlank     = "blank line"
	SkipPurged    = "purged here"
	SkipCopied    = "copied from the session it was forked from"
	SkipTooLarge  = "too_large"
	SkipNULs      = "NUL bytes"
	SkipRubbish   = "bytes before the first record"
)

// MaxProblems is how many problems of one file a report names at most.
const MaxProblems = 20

// Skip counts n records as read and skipped.
func (r *Records) Skip(reason string, n int) {
	if n == 0 {
		return
	}
	if r.Skipped == nil {
		r.Skipped = map[string]int{}
	}
	r.Read += n
	r.Skipped[reason] += n
}

// Import counts n records as read and imported.
func (r *Records) Import(n int) { r.Read += n; r.Imported += n }

// Wait counts n records as read and waiting.
func (r *Records) Wait(n int) { r.Read += n; r.Waiting += n }

// KeepRaw counts n records as read and kept raw.
func (r *Records) KeepRaw(n int) { r.Read += n; r.Raw += n }

// skipImported moves the stored records to the skipped ones, with a reason.
func (r *Records) skipImported(reason string) {
	n := r.Imported + r.Raw
	r.Read -= n
	r.Imported, r.Raw = 0, 0
	r.Skip(reason, n)
}

// purged moves the stored records to the skipped ones: their session was purged here.
func (r *Records) purged() { r.skipImported(SkipPurged) }

// alreadyKnown moves n records, which the store had before, to the skipped ones.
func (r *Records) alreadyKnown(n int) {
	imported := min(n, r.Imported)
	raw := min(n-imported, r.Raw)
	r.Imported -= imported
	r.Raw -= raw
	r.Read -= imported + raw
	r.Skip(SkipKnown, imported+raw)
}

// Reason returns why something could not be read, without its path, which a Problem names. It
// says so where a temporary file failed and nothing is wrong with that path.
func Reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		if isTemporary(err) {
			return "not read: temporary files in " + os.TempDir() + " fail: " + at.Err.Error() +
				"; set TMPDIR to a folder with room and import again"
		}
		return at.Op + ": " + at.Err.Error()
	}
	return SQLiteError(err).Error()
}

// isTemporary reports whether a temporary file failed.
func isTemporary(err error) bool {
	var at *fs.PathError
	dir := os.TempDir()
	return errors.As(err, &at) && (at.Path == dir || strings.HasPrefix(at.Path, filepath.Join(dir, tempNames)))
}

// Add adds the counts and problems of b.
func (a *Accounting) Add(b Accounting) {
	a.Sessions.New += b.Sessions.New
	a.Sessions.Updated += b.Sessions.Updated
	a.Sessions.Unchanged += b.Sessions.Unchanged
	a.Records.Add(b.Records)
	a.Errors = append(a.Errors, b.Errors...)
}

// Add adds the counts of b.
func (r *Records) Add(b Records) {
	r.Read += b.Read
	r.Imported += b.Imported
	r.Raw += b.Raw
	r.Waiting += b.Waiting
	if r.Skipped == nil {
		r.Skipped = map[string]int{}
	}
	for reason, n := range b.Skipped {
		r.Skipped[reason] += n
	}
}

// Balanced reports whether every record that was read is accounted for.
func (r Records) Balanced() bool {
	sum := r.Imported + r.Raw + r.Waiting
	for _, n := range r.Skipped {
		sum += n
	}
	return sum == r.Read
}

// Package opencode reads what opencode leaves on a host: its databases (of versions 1.x and 2,
// often in one file), the trees of JSON files from before (two generations of them), exported
// sessions and share downloads.
//
// All of them become the same form first: messages with parts, as the database holds them.
// A conversation is read twice. The first pass learns of every message when it was, whether it
// is finished and what it says (as a hash), so that copies, edits, compactions and reverts are
// known before anything is stored; the second one decodes what is new, a batch at a time.
package opencode

import (
	"path/filepath"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Source is opencode's history.Source.
type Source struct {
	places []string
	now    func() time.Time
}

// New makes the source, with opencode's data folder from the environment:
// $XDG_DATA_HOME/opencode, else ~/.local/share/opencode, and the database of $OPENCODE_DB.
func New(env func(string) string, now func() time.Time) *Source {
	s := &Source{now: now}
	data := env("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		data = history.Expand("~/.local/share", env)
	}
	if data != "" {
		data = filepath.Join(data, "opencode")
		s.places = append(s.places, data)
	}
	if db := env("OPENCODE_DB"); db != "" && db != ":memory:" {
		if !filepath.IsAbs(db) && data != "" {
			db = filepath.Join(data, db)
		}
		if filepath.IsAbs(db) {
			s.places = append(s.places, db)
		}
	}
	return s
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return session.SourceOpencode }

// Places implements history.Source.
func (s *Source) Places() []string { return s.places }

// Reasons to skip that only opencode's histories have. A copy names the session it is of.
const (
	skipCopy        = "copy of "
	skipNewer       = "in a newer store already"
	skipEvent       = "event log"
	skipTwin        = "same in both versions of opencode"
	skipOlder       = "changed in version 2 of opencode"
	skipBookkeeping = "bookkeeping"
	skipForeign     = "not history" // counted by table, never read
	skipDiff        = "file diffs"
	skipUnreadable  = "unreadable file"
	skipLarge       = "larger than 64 MiB"
)

// reads is the version of this reader. Another one reads everything again.
const reads = 3

// quietAfter is how long nothing must have changed for an unfinished reply to count as all
// that there will be.
const quietAfter = 10 * time.Minute

// store ranks where a session is kept, by how much it is trusted.
type store int

const (
	inOldTree store = iota // files with a message in each
	inTree
	inExport
	inDatabase
)

func (s store) String() string {
	return [...]string{"old files", "files", "export", "database"}[s]
}

func storeOf(name string) store {
	for s := inOldTree; s < inDatabase; s++ {
		if s.String() == name {
			return s
		}
	}
	return inDatabase
}

// Package continuedev reads the sessions of Continue: those of its CLI and of its extensions for editors, which share
// one folder.
//
// A session is one JSON file, written anew at each change. The CLI names no message, records no time and replaces the
// whole conversation by a summary when it compacts; the extension names its messages and removes nothing.
package continuedev

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// New makes the source, with Continue's folder from the environment.
func New(env func(string) string, now func() time.Time) *history.Program {
	root := env("CONTINUE_GLOBAL_DIR")
	if !filepath.IsAbs(root) {
		root = history.Expand("~/.continue", env)
	}
	r := &reader{}
	return &history.Program{
		Source: session.SourceContinue, Folders: history.InFolders(history.FolderIn(root, "sessions")), Now: now,
		Search: search, Order: history.SortedBy(r.compare), Replay: r.read, Commands: []string{"cn"},
	}
}

// fileName matches the files of sessions alone: beside their folder lie configurations, which may hold keys.
var fileName = pattern.New(`^[0-9a-f]{8}-[0-9A-Za-z-]+\.json$`)

// indexName is a list of the sessions in the same folder. Editors that write it at once lose entries of it.
const indexName = "sessions.json"

// maxDepth reaches from a home to a session.
const maxDepth = 4

func search(f *history.Finder, folder string) { f.Folder(folder, maxDepth, fileName.MatchString) }

// reader remembers what it read of files beside the one that it reads.
type reader struct {
	created    sync.Map // listed, by the folder of an index
	beginnings sync.Map // begun, by the path of a session
	families   sync.Map // family, by folder
}

// compare orders sessions by their creation, so that a fork comes after its origin.
func (r *reader) compare(a, b history.Found) int {
	return cmp.Or(r.begun(a).Compare(r.begun(b)), a.ModifiedAt.Compare(b.ModifiedAt), strings.Compare(a.Path, b.Path))
}

func (r *reader) begun(f history.Found) time.Time {
	if at := r.createdAt(filepath.Dir(f.Path), strings.TrimSuffix(filepath.Base(f.Path), ".json")); at != nil {
		return at.Time
	}
	return f.ModifiedAt
}

// listed is what an index says of when sessions were created, and when it was written.
type listed struct {
	written time.Time
	created map[string]*session.Time
}

// createdAt returns when a session was created, nil where the index of its folder does not say it.
func (r *reader) createdAt(folder, id string) *session.Time {
	path, written := filepath.Join(folder, indexName), time.Time{}
	if info, err := os.Stat(path); err == nil {
		written = info.ModTime()
	}
	if got, ok := r.created.Load(folder); ok && got.(listed).written.Equal(written) {
		return got.(listed).created[id]
	}
	all := listed{written, map[string]*session.Time{}}
	text, _ := history.ReadFile(path) // without it, files have the time of their last change
	for _, o := range jsonx.ReadObjects(history.Unmarked(text)) {
		all.created[o.String("sessionId")] = history.KnownTime(o.Get("dateCreated"))
	}
	r.created.Store(folder, all)
	return all.created[id]
}

// Package antigravity reads the conversations of Google Antigravity: of its command line, its app and its editor.
//
// A transcript has a step a line. What a conversation used stands in a database of the program, of which only the
// table of calls of models is read: the rest has no public form. Conversations of older builds are encrypted; they
// are counted.
package antigravity

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// New makes the source, with the folders of the three programs. Logins, which lie beside these, are never opened.
func New(env func(string) string, now func() time.Time) *history.Program {
	gemini := history.FolderIn(history.Expand("~", env), ".gemini")
	r := &reader{}
	return &history.Program{
		Source: session.SourceAntigravity, Now: now, Search: search, File: (*history.Finder).FileOrDatabase,
		Folders: history.InFolders(history.FolderIn(gemini, "antigravity-cli"), history.FolderIn(gemini, "antigravity"),
			history.FolderIn(gemini, "antigravity-ide")),
		Replay: r.read, Database: readDatabase, Commands: []string{"agy", "antigravity"},
		Order: history.SortedBy(func(a, b history.Found) int {
			return cmp.Or(rank(a)-rank(b), a.ModifiedAt.Compare(b.ModifiedAt), strings.Compare(a.Path, b.Path))
		}),
	}
}

const (
	fullName  = "transcript_full.jsonl"
	shortName = "transcript.jsonl" // its long contents are cut
	sealedEnd = ".pb"
)

// rank puts what a conversation used behind the conversations.
func rank(f history.Found) int {
	if history.IsDatabaseName(f.Path) {
		return 1
	}
	return 0
}

// search lists what a program's folder holds, or a folder that holds such folders.
func search(f *history.Finder, folder string) {
	roots := []string{folder}
	for _, pattern := range []string{"antigravity*", ".gemini/antigravity*"} {
		more, _ := filepath.Glob(filepath.Join(folder, pattern)) // the pattern is good
		roots = append(roots, more...)
	}
	before := len(f.Found)
	for _, root := range roots {
		logs, _ := filepath.Glob(filepath.Join(root, "brain", "*", ".system_generated", "logs"))
		for _, folder := range logs {
			f.Folder(folder, 1, isTranscript)
		}
		for _, name := range []string{"conversations", "implicit"} {
			if folder := filepath.Join(root, name); history.IsFolder(folder) {
				f.Folder(folder, 1, func(name string) bool { return isDatabase(name) || isSealed(name) })
			}
		}
	}
	if len(f.Found) == before {
		f.Folder(folder, 1, isTranscript)
	}
	full := map[string]bool{}
	for _, found := range f.Found[before:] {
		full[found.Path] = true
	}
	f.Found = slices.DeleteFunc(f.Found, func(found history.Found) bool {
		return filepath.Base(found.Path) == shortName && full[filepath.Join(filepath.Dir(found.Path), fullName)]
	})
	f.WithLogs(min(before, len(f.Found)), isDatabase)
}

func isTranscript(name string) bool { return name == fullName || strings.HasSuffix(name, shortName) }
func isDatabase(name string) bool   { return filepath.Ext(name) == ".db" && uuid.MatchString(name) }
func isSealed(name string) bool     { return filepath.Ext(name) == sealedEnd }

var uuid = pattern.New(`^[0-9a-f]{8}-[0-9a-f-]{27}`)

// idOf returns the conversation of a transcript: the name of its folder, else its own name.
func idOf(path string) string {
	folder := filepath.Dir(path)
	if above := filepath.Dir(folder); filepath.Base(above) == ".system_generated" {
		return filepath.Base(filepath.Dir(above))
	}
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".jsonl"), "-transcript")
}

// rootOf returns the folder of the program that a transcript lies in, "" if it lies elsewhere.
func rootOf(path string) string {
	brain := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(path))))
	if filepath.Base(brain) != "brain" {
		return ""
	}
	return filepath.Dir(brain)
}

// reader knows what the files beside the conversations said of their folders when they were read last.
type reader struct{ known sync.Map }

// noted is what such a file said: folders, by conversation.
type noted struct {
	at      time.Time
	size    int64
	folders map[string]string
}

// directory returns the folder of a conversation: of the list of typed prompts, else of the program's logs.
func (r *reader) directory(path, id string) string {
	root := rootOf(path)
	if root == "" {
		return ""
	}
	if folder := r.folders(filepath.Join(root, "history.jsonl"), promptFolders)[id]; folder != "" {
		return folder
	}
	logs, _ := filepath.Glob(filepath.Join(root, "log", "*.log")) // the pattern is good
	for _, file := range slices.Backward(logs) {
		if folder := r.folders(file, logFolders)[id]; folder != "" {
			return folder
		}
	}
	return ""
}

// folders reads a file unless it is as it was at the last time.
func (r *reader) folders(path string, read func(text string) map[string]string) map[string]string {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if got, ok := r.known.Load(path); ok {
		if n := got.(noted); n.at.Equal(info.ModTime()) && n.size == info.Size() {
			return n.folders
		}
	}
	text, _ := history.ReadFile(path) // what cannot be read says nothing
	n := noted{info.ModTime(), info.Size(), read(string(text))}
	r.known.Store(path, n)
	return n.folders
}

// promptFolders reads the list of prompts that were typed.
func promptFolders(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		o, _, _ := history.ParseLine([]byte(line))
		if id, folder := o.String("conversationId"), o.String("workspace"); id != "" && folders.IsAbs(folder) {
			found[id] = history.Plain(folder)
		}
	}
	return found
}

var (
	usedProject = pattern.New(`using project "([^"]+)"`)
	madeHere    = pattern.New(`Created conversation ([0-9a-f-]{36})`)
)

// logFolders reads a log, which names the project before the conversations that it has made in it.
func logFolders(text string) map[string]string {
	found, folder := map[string]string{}, ""
	for line := range strings.Lines(text) {
		if m := usedProject.FindStringSubmatch(line); m != nil {
			folder = history.Plain(m[1])
		}
		if m := madeHere.FindStringSubmatch(line); m != nil && folder != "" {
			found[m[1]] = folder
		}
	}
	return found
}

// sealed counts a conversation that cannot be read. Its transcript, if there is one, is read for itself.
func sealed(in *history.Intake) { in.Skip("encrypted conversation of an older build", 1) }

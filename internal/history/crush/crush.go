// Package crush reads the sessions of Crush.
//
// Each project has a database of its own; projects.json lists them. Its columns of tokens have the size of the last
// call and are no usage: only the cost is a sum, with that of sub-agents.
package crush

import (
	"path/filepath"
	"slices"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// New makes the source, with the folder of Crush's list of projects from the environment.
func New(user folders.User, now func() time.Time) *history.Program {
	global := user.Getenv("CRUSH_GLOBAL_DATA")
	switch {
	case folders.IsAbs(global):
	case user.IsOn("windows"):
		global = history.FolderIn(user.Data(), "crush")
	default:
		global = history.FolderIn(history.DataHome(user.Getenv), "crush")
	}
	r := &reader{list: filepath.Join(global, "projects.json")}
	return &history.Program{
		Source: session.SourceCrush, Now: now, Folders: r.places, Search: search,
		File: (*history.Finder).FileOrDatabase, Replay: refuse, Database: r.readDatabase, Commands: []string{"crush"},
	}
}

const (
	databaseName = "crush.db"
	folderName   = ".crush"
)

// maxDepth reaches from a project to its database.
const maxDepth = 3

// reader knows where Crush lists its projects.
type reader struct{ list string }

// project is an entry of that list.
type project struct{ path, data string }

func (r *reader) projects() (all []project) {
	text, _ := history.ReadFile(r.list) // none: nothing was started yet
	o, _ := jsonx.ReadFields(history.Unmarked(text))
	for _, entry := range jsonx.ReadObjects(o.Get("projects")) {
		if p := (project{entry.String("path"), entry.String("data_dir")}); folders.IsAbs(p.data) {
			all = append(all, p)
		}
	}
	return all
}

// places returns the folders of the projects' data.
func (r *reader) places() (places []string) {
	for _, p := range r.projects() {
		if !slices.Contains(places, p.data) {
			places = append(places, p.data)
		}
	}
	return places
}

// directory returns the project of a database; "" if there are several.
func (r *reader) directory(database string) string {
	data := filepath.Dir(database)
	var paths []string
	for _, p := range r.projects() {
		if real, err := filepath.EvalSymlinks(p.data); p.data == data || err == nil && real == data {
			paths = append(paths, p.path)
		}
	}
	switch {
	case len(paths) == 1:
		return paths[0]
	case len(paths) == 0 && filepath.Base(data) == folderName:
		return filepath.Dir(data)
	}
	return ""
}

// search lists the databases below a folder. crush.json, which may hold keys, has another name.
func search(f *history.Finder, folder string) {
	before := len(f.Found)
	f.Folder(folder, maxDepth, isOurs)
	f.WithLogs(before, isOurs)
}

func isOurs(name string) bool { return name == databaseName }

func refuse(in *history.Intake) {
	in.Fail(session.Errorf(session.Invalid, "no sessions of Crush: these are in a database, %s", databaseName))
}

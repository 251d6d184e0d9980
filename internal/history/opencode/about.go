package opencode

import (
	"regexp"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// about is what a source says of a session as a whole.
type about struct {
	id        string
	created   session.Time
	updated   session.Time
	title     string
	directory string
	parent    string // the session that started it
	forked    string // the session that it is a copy of; known in version 2 only
	project   string // opencode's id of it
	worktree  string // the project's folder, "" when it is not known
	archived  *session.Time
	provider  string
	model     string
	revert    string // the message from which on everything was taken back
	notes     history.Object
	records   int // of the source: the session's own
	todos     int // of the source: its list of things to do, which the notes hold
	store     store
	redacted  bool
}

// aboutObject reads a session as the files and exports hold it.
func aboutObject(o history.Object) about {
	times, _ := history.Fields(o.Get("time"))
	a := about{
		id: o.String("id"), title: o.String("title"), directory: o.String("directory"), parent: o.String("parentID"),
		project: o.String("projectID"), records: 1,
	}
	a.created, _ = history.UnixMilli(times.Get("created"))
	a.updated, _ = history.UnixMilli(times.Get("updated"))
	if at, ok := history.UnixMilli(times.Get("archived")); ok {
		a.archived = &at
	}
	a.said(o.Get("model"))
	if a.directory == "" { // of generation 0
		path, _ := history.Fields(o.Get("path"))
		a.directory = path.String("cwd")
	}
	if share, ok := history.Fields(o.Get("share")); ok {
		a.note("share_url", session.JSONOf(share.String("url")))
	}
	for _, name := range []string{"slug", "version", "projectID", "parentID", "path", "agent", "summary", "permission", "revert", "metadata", "cost", "tokens", "workspaceID"} {
		value := o.Get(name)
		if name == "summary" {
			value = withoutDiffs(value)
		}
		a.note(noteName(name), value)
	}
	a.reverted(o.Get("revert"))
	a.redacted = strings.HasPrefix(a.title, "[redacted:")
	return a
}

func noteName(name string) string {
	switch name {
	case "projectID":
		return "project_id"
	case "parentID":
		return "parent_id"
	case "workspaceID":
		return "workspace_id"
	}
	return name
}

// said takes the model that the session used last.
func (a *about) said(model []byte) {
	o, _ := history.Fields(model)
	a.provider, a.model = clean(o.String("providerID")), clean(o.String("id"))
	if a.model == "" {
		a.model = clean(o.String("modelID"))
	}
}

func (a *about) reverted(value []byte) {
	o, _ := history.Fields(value)
	a.revert = o.String("messageID")
}

// named gives the session's title; "" for the one that opencode gives before it knows a better
// one: then the first message tells more.
func (a *about) named() string {
	if unnamed.MatchString(a.title) {
		return ""
	}
	return clean(a.title)
}

var unnamed = regexp.MustCompile(`^(New|Child) session - \d{4}-\d\d-\d\dT`)

// mostNote bounds what is noted of a session beside its conversation.
const mostNote = 64 << 10

func (a *about) note(name string, value []byte) {
	switch string(value) {
	case "", "null", `""`, "{}", "[]":
		return
	}
	if len(value) > mostNote || history.Depth(value) > maxDepth {
		value = session.JSONOf("left out: " + strconv.Itoa(len(value)) + " bytes")
	}
	if o, ok := history.Fields(value); ok && name == "revert" {
		value = objectJSON(o.Without("diff", "files"))
	}
	a.notes = append(a.notes, history.Field{Key: name, Raw: raw(value)})
}

// notesOf gives what was noted of a session when it was imported.
func notesOf(s *session.Session) history.Object {
	o, _ := history.ParseObject(s.Metadata)
	notes, _ := history.Fields(o.Get("opencode"))
	return notes
}

package opencode

import (
	"cmp"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
	"sessiond/internal/store"
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
	notes     jsonx.Object
	records   int // of the source: the session's own
	todos     int // of the source: its list of things to do, which the notes hold
	store     string
	row       jsonx.Object // of a database, in the form of a file
	older     bool         // there is another row, of version 1
}

// noted are the names of a session's notes: of fields of files, then of columns only.
var noted = strings.Fields(`slug version project_id parent_id path agent summary permission revert metadata cost tokens workspace_id
	share_url fork_session_id fork_boundary summary_additions summary_deletions summary_files
	tokens_input tokens_output tokens_reasoning tokens_cache_read tokens_cache_write`)

// fieldNames are the names in files of notes and columns that are called otherwise there.
var fieldNames = map[string]string{"project_id": "projectID", "parent_id": "parentID", "workspace_id": "workspaceID"}

// aboutObject reads a session as files and exports hold it.
func aboutObject(o jsonx.Object) about {
	times := o.Inner("time")
	a := about{
		id: o.String("id"), title: o.String("title"), directory: o.String("directory"), parent: o.String("parentID"),
		project: o.String("projectID"), forked: o.String("fork_session_id"), records: 1,
	}
	a.created, _ = history.UnixMilli(times.Get("created"))
	a.updated, _ = history.UnixMilli(times.Get("updated"))
	if at, ok := history.UnixMilli(times.Get("archived")); ok {
		a.archived = &at
	}
	a.provider, a.model = modelOf(o.Get("model"))
	if a.directory == "" { // of generation 0
		a.directory = o.Inner("path").String("cwd")
	}
	if share, ok := jsonx.ReadFields(o.Get("share")); ok {
		a.note("share_url", session.JSONOf(share.String("url")))
	}
	for _, name := range noted {
		value := o.Get(cmp.Or(fieldNames[name], name))
		if name == "summary" {
			value = withoutDiffs(value)
		}
		a.note(name, value)
	}
	revert := o.Inner("revert")
	a.revert = revert.String("messageID")
	return a
}

// states returns the notes that are documents of the session: its list of things to do, and its permissions.
func (a *about) states() map[string]session.JSON {
	documents := map[string]session.JSON{}
	for _, name := range []string{"todos", "permission"} {
		if value := a.notes.Get(name); len(value) > 0 && len(value) <= store.MaxStateBytes {
			documents["opencode."+name] = session.JSON(value)
		}
	}
	return documents
}

// aboutRow reads a session's row, in the form of a file. Columns that are not known are noted.
func aboutRow(row jsonx.Object) about {
	a := aboutObject(row)
	a.store, a.row = inDatabase, row
	var unknown jsonx.Object
	known := append(strings.Fields("id title directory time model projectID parentID workspaceID resume_attempts "+
		"idle_outcome"), noted...)
	for _, f := range row.Without(known...) {
		if credentials.MatchString(f.Key) {
			f.Value = raw(`"[masked]"`)
		}
		unknown = append(unknown, f)
	}
	a.note("unknown_columns", unknown.Column())
	return a
}

// recovered is a session of which only messages are left.
func recovered(id, in, why string) about {
	a := about{id: id, title: "recovered", store: in}
	a.note("recovered", session.JSONOf(why))
	return a
}

// modelOf returns the provider and the model that a session used last.
func modelOf(value []byte) (provider, model string) {
	o, _ := jsonx.ReadFields(value)
	return clean(o.String("providerID")), clean(cmp.Or(o.String("id"), o.String("modelID")))
}

// named returns the session's title; "" for the one that opencode gives before it knows a better
// one: then the first message tells more.
func (a *about) named() string {
	if unnamed.MatchString(a.title) {
		return ""
	}
	return clean(a.title)
}

var unnamed = pattern.New(`^(New|Child) session - \d{4}-\d\d-\d\dT`)

// mostNote bounds what is noted of a session beside its conversation.
const mostNote = 64 << 10

func (a *about) note(name string, value []byte) {
	switch string(value) {
	case "", "null", `""`, "{}", "[]":
		return
	}
	if len(value) > mostNote || jsonx.DeeperThan(value, history.MaxDepth) {
		value = session.JSONOf("left out: " + strconv.Itoa(len(value)) + " bytes")
	}
	if o, ok := jsonx.ReadFields(value); ok && name == "revert" {
		value = o.Without("diff", "files").Value()
	}
	a.notes = append(a.notes, jsonx.Member{Key: name, Value: raw(value)})
}

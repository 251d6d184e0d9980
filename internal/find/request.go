// Package find is the one request for sessions and messages: commands, API, page, MCP, picker and hooks fill in what
// was written, and it resolves the names, parses the times, checks and runs the request.
package find

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"sessiond/internal/search"
	"sessiond/internal/session"
)

// Request says which sessions or messages are wanted. Its texts are as people and programs write them; empty ones
// filter nothing.
type Request struct {
	Text string // of a search: words in its grammar; of a list: a part of a title or an id

	Source, Project, Model, Directory string // a name as lists have it, or a part of one; folders also as a path
	Session, Key, Role                string
	Owner, Host, Tag, Branch          string
	Parent, Children, Forks           string // a session: forks and children of it, or one kind of them
	Since, Until                      string // of a search: of its messages; of a list: when a session was active
	On                                string // when a person wrote in the session: a day, or a time, which means its hour
	Starred, Archived, Trash, Errors  bool
	Metadata                          map[string]string

	// People leaves out sub-agents and automated sessions.
	People bool
	// AsWritten reads no word of the text as a time: summer is a word.
	AsWritten bool
	// SkipArchived leaves archived sessions out of a search. A list has either them or the others.
	SkipArchived bool

	Order, Group  string // of a search
	Limit, Expand int

	Scope
}

// Scope limits a request to what its front end may show. Code sets it, never a user.
type Scope struct {
	Projects []string                    // a search: only of these folders
	Roots    []string                    // directory or project is one of these folders
	Exact    string                      // directory
	Hide     func(*session.Session) bool // a search leaves out sessions
	Mask     func(string) string         // of a message's text before its snippet is cut
	TimeIn   string                      // text of a person that Text was made of
	Rare     bool                        // rank by rare words alone and explain nothing
	Private  bool                        // errors and notes name nothing that is stored
}

// Uses says which requests a filter narrows.
type Uses int

// The uses.
const (
	Lists Uses = 1 << iota
	Searches
)

// Filter is a filter of requests, by its name in flags, in addresses and in the API.
type Filter struct {
	Name string
	Uses Uses
	Help string // of the flag
	// Words are all values; nil: there are others.
	Words []string
	text  func(*Request) *string
	on    func(*Request) *bool
}

// Filters are all filters. A new one is a line here, a field of Request, and what it does in Finder.facts; the API
// documents it in its inputs (a test asks for that).
var Filters = []Filter{
	{
		Name: "source", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Source },
		Help: "only from this `PROGRAM` (claude, codex, pi, …), or a part of its name",
	},
	{
		Name: "project", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Project },
		Help: "only in this `PROJECT`: a path, the name in lists, or a part of it",
	},
	{
		Name: "model", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Model },
		Help: "only with this `MODEL`, or a part of its name (opus)",
	},
	{
		Name: "directory", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Directory },
		Help: "only in this `FOLDER` and below: a path, its last name, or a part of it",
	},
	{
		Name: "session", Uses: Searches, text: func(r *Request) *string { return &r.Session },
		Help: "only in this `SESSION`",
	},
	{
		Name: "key", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Key },
		Help: "only with this routing `KEY`",
	},
	{
		Name: "role", Uses: Searches, text: func(r *Request) *string { return &r.Role },
		Help: "only this role: user, assistant, tool, system", Words: []string{"user", "assistant", "tool", "system"},
	},
	{
		Name: "owner", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Owner },
		Help: "only of this `OWNER`",
	},
	{
		Name: "host", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Host },
		Help: "only those that began on this `HOST`",
	},
	{
		Name: "parent", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Parent },
		Help: "only forks and children of this `SESSION`",
	},
	{
		Name: "children", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Children },
		Help: "only sub-agents that this `SESSION` started",
	},
	{
		Name: "forks", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Forks },
		Help: "only forks of this `SESSION`",
	},
	{
		Name: "since", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Since },
		Help: "only since this `TIME`: yesterday, \"last week\", \"7 October\", 7d, 12h, 2026-02-11",
	},
	{
		Name: "until", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Until },
		Help: "only before this `TIME`",
	},
	{
		Name: "tag", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Tag },
		Help: "only with this `TAG`, on the session or on one of its messages",
	},
	{
		Name: "on", Uses: Lists | Searches, text: func(r *Request) *string { return &r.On },
		Help: "only with a prompt on this `DAY` or in this week or month; of a time (2026-02-11T10:00) in the hour from then",
	},
	{
		Name: "branch", Uses: Lists | Searches, text: func(r *Request) *string { return &r.Branch },
		Help: "only on this git `BRANCH`, or a part of its name",
	},
	{
		Name: "errors", Uses: Lists | Searches, on: func(r *Request) *bool { return &r.Errors },
		Help: "only with a reply or a model call that failed",
	},
	{
		Name: "starred", Uses: Lists | Searches, on: func(r *Request) *bool { return &r.Starred },
		Help: "only starred sessions",
	},
	{
		Name: "archived", Uses: Lists | Searches, on: func(r *Request) *bool { return &r.Archived },
		Help: "only archived sessions, which lists leave out",
	},
	{
		Name: "trash", Uses: Lists, on: func(r *Request) *bool { return &r.Trash },
		Help: "list sessions in the trash instead",
	},
}

// Of returns where a request has the filter: its text, or whether it is on.
func (f Filter) Of(r *Request) (text *string, on *bool) {
	if f.text != nil {
		return f.text(r), nil
	}
	return nil, f.on(r)
}

// MetadataName returns the field of the metadata that a parameter filters by: metadata.NAME=VALUE, or, as OpenAPI's
// deepObject has it, metadata[NAME]=VALUE. A name in a name is metadata.NAME.NAME or metadata[NAME][NAME].
func MetadataName(parameter string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(parameter, "metadata."); ok {
		return name, name != ""
	}
	if name, ok = strings.CutPrefix(parameter, "metadata["); ok {
		name, ok = strings.CutSuffix(name, "]")
	}
	return strings.ReplaceAll(name, "][", "."), ok && name != ""
}

// FromQuery returns the request that an address describes. An empty parameter filters nothing, as in a form. Codes:
// Invalid.
func FromQuery(q url.Values) (r Request, err error) {
	r.Text = q.Get("q")
	for _, f := range Filters {
		text, on := f.Of(&r)
		value := q.Get(f.Name)
		switch {
		case text != nil:
			*text = value
		case value != "":
			if *on, err = strconv.ParseBool(value); err != nil {
				return r, session.Errorf(session.Invalid, "%s is true or false, not %.40q", f.Name, value).
					At(f.Name, "not true or false")
			}
		}
	}
	for name, values := range q {
		if field, ok := MetadataName(name); ok {
			if r.Metadata == nil {
				r.Metadata = map[string]string{}
			}
			r.Metadata[field] = values[0]
		}
	}
	return r, nil
}

// Names returns the names of the filters for a use.
func Names(uses Uses) (names []string) {
	for _, f := range Filters {
		if f.Uses&uses != 0 {
			names = append(names, f.Name)
		}
	}
	return names
}

// Folds reports whether a list leaves out sub-agents and automated sessions where nobody asks for all: not below a
// session, not of a key or of metadata, which a program chose, and not in the trash.
func (r *Request) Folds() bool {
	return !r.Trash && r.Parent+r.Children+r.Forks+r.Key == "" && len(r.Metadata) == 0
}

// query returns the search of a request, with its texts as they are.
func (r *Request) query(meant func(context.Context, string, string) ([]string, error)) search.Query {
	return search.Query{
		Text: r.Text, Session: session.ID(r.Session), Key: r.Key, Source: session.Source(r.Source), Project: r.Project,
		Role: session.Role(r.Role), Order: search.Order(r.Order), Group: search.Group(r.Group), Limit: r.Limit,
		Expand:   r.Expand,
		Projects: r.Projects, Hide: r.Hide, Mask: r.Mask, TimeIn: r.TimeIn, Untimed: r.AsWritten, Rare: r.Rare, Meant: meant,
	}
}

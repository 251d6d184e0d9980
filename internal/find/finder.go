package find

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sessiond/internal/folders"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/when"
)

// Finder runs requests. Store and Now are needed, and Index to search.
type Finder struct {
	Store *store.Store
	Index *search.Index
	Now   func() time.Time

	// Key returns the stored form of a routing key; nil: it is as written.
	Key func(text string) (string, error)
	// Session finds the session of a name; nil: the store does.
	Session func(ctx context.Context, name string) (session.ID, error)
	// Folder is where relative paths begin, and Home is ~; "": paths are absolute.
	Folder, Home string
}

// List lists the sessions of a request, newest active first. Codes: Invalid, NotFound (a name), Conflict (ambiguous).
func (f *Finder) List(ctx context.Context, r Request, page store.Page) (all []session.Session, next string, err error) {
	filter, err := f.Filter(ctx, r)
	if err != nil {
		return nil, "", err
	}
	return f.Store.Sessions(ctx, filter, page)
}

// Filter returns the store's filter for a list. Codes: Invalid, NotFound (a name), Conflict (ambiguous).
func (f *Finder) Filter(ctx context.Context, r Request) (store.Filter, error) {
	out, err := f.facts(ctx, &r)
	if err != nil {
		return out, err
	}
	out.Query, out.Trash = r.Text, r.Trash
	if err := f.among(ctx, &out, "source", r.Source); err != nil {
		return out, err
	}
	if err := f.among(ctx, &out, "project", r.Project); err != nil {
		return out, err
	}
	if r.Key != "" {
		keys, err := f.meant(ctx, "key", r.Key)
		if err != nil {
			return out, err
		}
		out.Key = keys[0]
	}
	if out.Since, err = f.Moment("since", r.Since); err != nil {
		return out, err
	}
	out.Until, err = f.Moment("until", r.Until)
	return out, err
}

// facts returns the part of the filter that a search does not have in its index.
func (f *Finder) facts(ctx context.Context, r *Request) (store.Filter, error) {
	out := store.Filter{
		Owner: r.Owner, Host: r.Host, Archived: r.Archived, Starred: r.Starred, People: r.People, Metadata: r.Metadata,
		Roots: r.Roots, Directory: r.Exact, Errors: r.Errors, Among: map[store.Column][]string{},
	}
	var err error
	if out.Prompted, err = f.prompted(r.On); err != nil {
		return out, err
	}
	if err := f.among(ctx, &out, "model", r.Model); err != nil {
		return out, err
	}
	if err := f.among(ctx, &out, "directory", r.Directory); err != nil {
		return out, err
	}
	if err := f.among(ctx, &out, "tag", r.Tag); err != nil {
		return out, err
	}
	if err := f.among(ctx, &out, "branch", r.Branch); err != nil {
		return out, err
	}
	for _, link := range []struct{ kind, text string }{
		{"", r.Parent}, {session.ParentChild, r.Children}, {session.ParentFork, r.Forks},
	} {
		switch {
		case link.text == "":
			continue
		case out.ParentID != "":
			return out, session.Errorf(session.Invalid, "parent, children and forks exclude one another").
				At("parent", "only one of them")
		}
		ids, err := f.meant(ctx, "session", link.text)
		if err != nil {
			return out, err
		}
		out.ParentID, out.ParentKind = session.ID(ids[0]), link.kind
	}
	return out, nil
}

// columns are the filters whose texts are names of values.
var columns = map[string]store.Column{
	"source": store.ColumnSource, "project": store.ColumnProject, "model": store.ColumnModel,
	"directory": store.ColumnDirectory, "tag": store.ColumnTag, "branch": store.ColumnBranch,
}

// among adds the values that the text of a filter names; "" adds none.
func (f *Finder) among(ctx context.Context, out *store.Filter, name, text string) error {
	if text == "" {
		return nil
	}
	values, err := f.meant(ctx, name, text)
	if err == nil {
		out.Among[columns[name]] = values
	}
	return err
}

// meant returns the values that the text of a filter names. Codes: Invalid, NotFound, Conflict (ambiguous).
func (f *Finder) meant(ctx context.Context, name, text string) ([]string, error) {
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return nil, session.Errorf(session.Invalid, "%s has a NUL or is not UTF-8, and no stored value is like that", name).
			At(name, "has a NUL or is not UTF-8")
	}
	switch name {
	case "session":
		return f.session(ctx, text)
	case "key":
		if f.Key == nil {
			return []string{text}, nil
		}
		key, err := f.Key(text)
		return []string{key}, err
	case "source":
		if p, ok := session.ProgramNamed(text); ok {
			return []string{string(p.Name)}, nil
		}
	}
	column := columns[name]
	return f.Store.Meant(ctx, column, text, f.roots(column, text)...)
}

// One returns the only value that the text of a filter names; "" for "". Codes: Invalid (several), NotFound.
func (f *Finder) One(ctx context.Context, name, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	values, err := f.meant(ctx, name, text)
	switch {
	case err != nil:
		return "", err
	case len(values) == 1:
		return values[0], nil
	case folders.IsAbs(text): // its spellings and worktrees
		return folders.Project(text), nil
	}
	return "", columns[name].Several(text, values)
}

// MeantOne returns the only one of some values that a text names, as in a filter. Codes: Invalid (several), NotFound.
func (f *Finder) MeantOne(of store.Column, text string, values []store.Value) (string, error) {
	if p, ok := session.ProgramNamed(text); ok && of == store.ColumnSource {
		text = string(p.Name)
	}
	return of.MatchingOne(values, text, f.roots(of, text)...)
}

func (f *Finder) session(ctx context.Context, name string) ([]string, error) {
	if f.Session != nil {
		id, err := f.Session(ctx, name)
		return []string{string(id)}, err
	}
	id, err := f.Store.Resolve(ctx, name, f.Folder)
	if err == nil {
		_, err = f.Store.Session(ctx, id) // of the scope
	}
	if session.CodeOf(err) == session.NotFound {
		err = session.Errorf(session.NotFound, "there is no session %q", name)
	}
	return []string{string(id)}, err
}

// roots returns the spellings of a folder that is written as a path; of a project also those of its repository.
func (f *Finder) roots(of store.Column, text string) []string {
	if of != store.ColumnProject && of != store.ColumnDirectory {
		return nil
	}
	if f.Home != "" && (text == "~" || strings.HasPrefix(text, "~/")) {
		text = f.Home + text[1:]
	}
	isPath := strings.HasPrefix(text, ".") || strings.ContainsAny(text, `/\`)
	switch {
	case isPath && f.Folder != "":
		text = folders.Join(f.Folder, text)
	case !folders.IsAbs(text):
		return nil
	}
	if of == store.ColumnProject {
		return folders.Roots(folders.Clean(text))
	}
	return []string{folders.Clean(text), folders.Resolved(text)}
}

// Moment parses the time of a filter, in the store's zone; nil for "". Codes: Invalid.
func (f *Finder) Moment(name, text string) (*session.Time, error) {
	return Moment(name, text, f.Now().In(f.Store.Zone()))
}

// Moment parses the time of a filter, in the zone of now; nil for "". Codes: Invalid.
func Moment(name, text string, now time.Time) (*session.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, ok := when.Moment(text, now)
	if !ok {
		return nil, session.Errorf(session.Invalid, "%s %.40q is not a time: write %s", name, text, when.Forms).
			At(name, "not a time")
	}
	return new(session.At(at)), nil
}

// prompted parses the filter on, in the store's zone; nil for "". Codes: Invalid.
func (f *Finder) prompted(text string) (*store.Between, error) {
	if text == "" {
		return nil, nil
	}
	span, ok := when.Parse(text, f.Now().In(f.Store.Zone()))
	if !ok {
		return nil, session.Errorf(session.Invalid, "on %.40q is not a time: write %s", text, when.Forms).
			At("on", "not a time")
	}
	switch {
	case span.To.IsZero() && strings.Contains(text, ":"):
		span.To = span.From.Add(time.Hour)
	case span.To.IsZero():
		span.To = f.Now()
	}
	in := store.Between{From: session.At(span.From), To: session.At(span.To)}
	in.FirstDay, in.LastDay = in.From.Day(f.Store.Zone()), in.To.Day(f.Store.Zone())
	return &in, nil
}

// Found is the answer to a search.
type Found struct {
	search.Result
	Request Request
	reason  string // why the index is not used
}

// mostPushed is how many sessions of a filter the index looks for by their names. Of more it asks, when it found some,
// which of them the filter lists.
const mostPushed = 200

// Search finds messages, or sessions. Codes: Invalid, NotFound (a name), Conflict (ambiguous).
func (f *Finder) Search(ctx context.Context, r Request) (Found, error) {
	q := r.query(f.meantIn(&r))
	q.Now = f.Now().In(f.Store.Zone())
	var err error
	if q.Since, err = f.Moment("since", r.Since); err != nil {
		return Found{}, err
	}
	if q.Until, err = f.Moment("until", r.Until); err != nil {
		return Found{}, err
	}
	filter, err := f.facts(ctx, &r)
	if err != nil {
		return Found{}, err
	}
	filter.AnyState = !r.SkipArchived
	if err := f.narrow(ctx, &q, filter); err != nil {
		return Found{}, err
	}
	found, err := f.Index.Search(ctx, q)
	if err != nil {
		return Found{}, err
	}
	if r.Private { // these name words and filters of sessions that are hidden
		found.Missing, found.Elsewhere = nil, nil
	}
	return Found{Result: found, Request: r, reason: f.Index.Reason()}, nil
}

// narrow lets a search find only what a filter lists.
func (f *Finder) narrow(ctx context.Context, q *search.Query, filter store.Filter) error {
	if filter.FiltersNothing() {
		return nil
	}
	q.Listed = func(ctx context.Context, ids []session.ID) ([]session.ID, error) {
		return f.Store.Listed(ctx, filter, ids)
	}
	some, next, err := f.Store.Sessions(ctx, filter, store.Page{Limit: mostPushed})
	if err != nil || next != "" {
		return err
	}
	q.Sessions = []session.ID{} // none is another filter than any
	for i := range some {
		q.Sessions = append(q.Sessions, some[i].ID)
	}
	return nil
}

// meantIn returns meant for the filters of a search and of its text. There, what names no session, key or project may
// be pasted: it is the value itself, which finds nothing, and the search says where its words are. If the request is
// private, errors name nothing that is stored.
func (f *Finder) meantIn(r *Request) func(ctx context.Context, name, text string) ([]string, error) {
	return func(ctx context.Context, name, text string) ([]string, error) {
		values, err := f.meant(ctx, name, text)
		switch {
		case err == nil:
			return values, nil
		case name == "session" && text != r.Session, name == "key" && text != r.Key, name == "project" && text != r.Project:
			return []string{text}, nil
		case r.Private && session.CodeOf(err) == session.NotFound:
			err = session.Errorf(session.NotFound, "no session matches %s %q", name, text).At(name, "no session has it")
		}
		return nil, err
	}
}

// Notes say in words what a search did not find and what it did not search. quote quotes a word.
func (f *Found) Notes(quote func(string) string) []string {
	notes := f.Result.Notes(quote)
	if f.Stopped {
		notes = append(notes, "the search took too long and was stopped; to find more, "+search.StoppedAdvice)
	}
	if len(f.Elsewhere) > 0 {
		notes = append(notes, "other filters find something: "+strings.Join(f.Elsewhere, " "))
	}
	if f.reason != "" {
		notes = append(notes, "searched without the index: "+f.reason)
	}
	if f.Partial {
		notes = append(notes,
			"not everything was searched: the search index is behind; the daemon or the next append updates it")
	}
	return notes
}

// TimeNote says that messages of a named time are preferred; only are the words that require it. "": no time is named.
func (f *Found) TimeNote(only func(*search.NamedTime) string) string {
	if f.Time == nil {
		return ""
	}
	return fmt.Sprintf("messages of the time “%s” are preferred; only these: %s", f.Time.Text, only(f.Time))
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sessiond/internal/connect"
	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/spelling"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/when"
)

// scopeFlags adds --source and --project.
func scopeFlags(fl *pflag.FlagSet, source, project *string) {
	fl.StringVar(source, "source", "", "only from this `PROGRAM` (claude, codex, pi, …), or a part of its name")
	fl.StringVar(project, "project", "", "only in this `PROJECT`: a path, the name in lists, or a part of it")
}

// filterFlags adds the flags that filter sessions, before any other flag.
func (f *lsFlags) filterFlags(fl *pflag.FlagSet) {
	scopeFlags(fl, &f.source, &f.project)
	fl.StringVar(&f.model, "model", "", "only with this `MODEL`, or a part of its name (opus)")
	fl.StringVar(&f.directory, "directory", "", "only in this `FOLDER` and below: a path, its last name, or a part of it")
	fl.StringVar(&f.owner, "owner", "", "only of this `OWNER`")
	fl.StringVar(&f.host, "host", "", "only those that began on this `HOST`")
	fl.StringVar(&f.key, "key", "", "only with this routing `KEY`")
	fl.StringVar(&f.parent, "parent", "", "only forks and children of this `SESSION`")
	fl.StringVar(&f.children, "children", "", "only sub-agents that this `SESSION` started")
	fl.StringVar(&f.forks, "forks", "", "only forks of this `SESSION`")
	fl.StringVar(&f.since, "since", "", "only active since this `TIME`: yesterday, \"last week\", \"7 October\", 7d, 12h, 2026-02-11")
	fl.StringVar(&f.until, "until", "", "only active before this `TIME`")
	fl.StringToStringVar(&f.metadata, "metadata", nil, "only with this metadata: `NAME=VALUE`")
	fl.Lookup("metadata").DefValue = "" // help would print []
	fl.BoolVar(&f.starred, "starred", false, "only starred sessions")
	fl.BoolVar(&f.archived, "archived", false, "list archived sessions instead")
	fl.BoolVar(&f.trash, "trash", false, "list sessions in the trash instead")
	fl.VisitAll(func(flag *pflag.Flag) { f.filters = append(f.filters, flag) })
}

// filter makes the store's filter. Sub-agents and automated sessions are folded unless the flags ask for them.
func (a *app) filter(ctx context.Context, s *store.Store, f *lsFlags) (store.Filter, error) {
	out := store.Filter{
		Query: f.query, Owner: f.owner, Host: f.host, Archived: f.archived, Trash: f.trash, Starred: f.starred, Metadata: f.metadata, Among: map[store.Column][]string{},
	}
	out.People = !f.all && !f.trash && f.parent+f.children+f.forks+f.key == "" && len(f.metadata) == 0
	var err error
	if out.Key, err = a.key(f.key); err != nil {
		return out, err
	}
	for kind, name := range map[string]string{"": f.parent, session.ParentChild: f.children, session.ParentFork: f.forks} {
		if name == "" {
			continue
		}
		if out.ParentID != "" {
			return out, usagef("--parent, --children and --forks exclude one another")
		}
		parent, err := a.resolve(ctx, s, name)
		if err != nil {
			return out, err
		}
		out.ParentID, out.ParentKind = parent.ID, kind
	}
	for _, m := range []struct {
		flag  string
		given string
		of    store.Column
	}{
		{"--source", f.source, store.ColumnSource},
		{"--model", f.model, store.ColumnModel},
		{"--directory", f.directory, store.ColumnDirectory},
		{"--project", f.project, store.ColumnProject},
	} {
		if m.given == "" {
			continue
		}
		values, err := s.Values(ctx, m.of)
		if err != nil {
			return out, err
		}
		meant := a.meant(m.given, m.of, values)
		if len(meant) == 0 && f.nearest == "" {
			f.nearest = nearestText(m.flag, m.given, m.of, values)
		}
		out.Among[m.of] = append([]string{}, meant...)
	}
	if out.Since, err = a.moment("--since", f.since); err != nil {
		return out, err
	}
	out.Until, err = a.moment("--until", f.until)
	return out, err
}

// meant returns the values that a person means: the one that is written so, else those of a path, else those whose last
// folder or whole name is written so in any case, else those with such a part.
func (a *app) meant(given string, of store.Column, values []store.Value) []string {
	pick := func(fits func(value string) bool) (texts []string) {
		for _, v := range values {
			if fits(v.Text) {
				texts = append(texts, v.Text)
			}
		}
		return texts
	}
	ofFolders := of == store.ColumnDirectory || of == store.ColumnProject
	if ofFolders && (strings.HasPrefix(given, ".") || given == "~" || strings.ContainsAny(given, `/\`)) {
		roots := a.foldersMeant(given, of)
		if found := pick(func(value string) bool {
			return slices.ContainsFunc(roots, func(root string) bool {
				return folders.Clean(value) == root || of == store.ColumnDirectory && folders.Within(folders.Clean(value), root)
			})
		}); len(found) > 0 {
			return found
		}
	}
	given = strings.ToLower(given)
	name := func(value string) string {
		if ofFolders {
			value = transcript.LastFolder(value)
		}
		return strings.ToLower(value)
	}
	for _, fits := range []func(string) bool{
		func(value string) bool { return strings.ToLower(value) == given },
		func(value string) bool { return ofFolders && folders.EndsIn(value, given) },
		func(value string) bool { return strings.Contains(name(value), given) },
		func(value string) bool { return strings.Contains(strings.ToLower(value), given) },
	} {
		if found := pick(fits); len(found) > 0 {
			return found
		}
	}
	return nil
}

// theMeant returns the only value that a person means. Codes: Invalid (several), NotFound.
func (a *app) theMeant(flag, given string, of store.Column, values []store.Value) (string, error) {
	switch meant := a.meant(given, of, values); len(meant) {
	case 0:
		return "", session.Errorf(session.NotFound, "no session matches %s %s; %s", flag, given, cmp.Or(nearestText(flag, given, of, values), "there are none"))
	case 1:
		return meant[0], nil
	default:
		return "", usagef("%s %s matches %s; write one of them whole", flag, given, strings.Join(meant, ", "))
	}
}

// foldersMeant returns the spellings of a folder; of a project also those of its repository.
func (a *app) foldersMeant(given string, of store.Column) []string {
	if given == "~" || strings.HasPrefix(given, "~/") {
		given = a.getenv("HOME") + given[1:]
	}
	given = folders.Join(a.dir, given)
	if of == store.ColumnProject {
		return folders.Roots(given)
	}
	return []string{given, folders.Resolved(given)}
}

// mostNearest limits the values that are offered instead of one that matches nothing.
const mostNearest = 5

// nearestText lists the values of a column, those that are written most like the given one first.
func nearestText(flag, given string, of store.Column, values []store.Value) string {
	if len(values) == 0 {
		return ""
	}
	if of == store.ColumnDirectory || of == store.ColumnProject {
		values = byName(values)
	}
	given = strings.ToLower(filepath.Base(given))
	far := func(v store.Value) int { // many values are equally far: those of the most sessions come first
		d := spelling.Distance(strings.ToLower(v.Text), given)
		if d > (len(given)+1)/2 {
			return 1000
		}
		return d
	}
	slices.SortStableFunc(values, func(a, b store.Value) int { return cmp.Compare(far(a), far(b)) })
	var offers []string
	for _, v := range values[:min(len(values), mostNearest)] {
		offers = append(offers, fmt.Sprintf("%s (%s)", connect.QuoteShell(printable(v.Text)), transcript.Count(v.Sessions)))
	}
	if len(values) > mostNearest {
		offers = append(offers, "…")
	}
	return flag + " has: " + strings.Join(offers, ", ")
}

// byName names folders as lists do.
func byName(values []store.Value) []store.Value {
	paths := make([]string, len(values))
	for i, v := range values {
		paths[i] = v.Text
	}
	names, named := folders.NamesOf(paths), slices.Clone(values)
	for i := range named {
		named[i].Text = names.Of(named[i].Text)
	}
	return named
}

// moment parses a time that a person writes, in the configured time zone. The database is open.
func (a *app) moment(flag, s string) (*session.Time, error) {
	if s == "" {
		return nil, nil
	}
	at, ok := when.Moment(s, a.now().In(a.cfg.Zone()))
	if !ok {
		return nil, usagef("%s %q is not a time: write %s", flag, s, when.Forms)
	}
	return new(session.At(at)), nil
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/spelling"
)

// Column names a text of a session by which people filter.
type Column int

// The columns of Values and Filter.Among.
const (
	ColumnSource Column = iota
	ColumnModel
	ColumnDirectory
	ColumnProject
	ColumnTag // of the session or one of its messages
	ColumnBranch
)

func (c Column) name() string {
	return [...]string{"source", "model", "directory", "project", "tag", "branch"}[c]
}

func (c Column) plural() string {
	return [...]string{"sources", "models", "directories", "projects", "tags", "branches"}[c]
}

// column is where sessions have it.
func (c Column) column() string {
	if c == ColumnBranch {
		return "git_branch"
	}
	return c.name()
}

// isChosen reports whether people give sessions the column's values, so that a name that no session has is mistyped
// even where none has any.
func (c Column) isChosen() bool { return c == ColumnTag || c == ColumnBranch }

func (c Column) isFolder() bool { return c == ColumnDirectory || c == ColumnProject }

// Value is a text that sessions have in a column.
type Value struct {
	Text     string `db:"text"`
	Sessions int64  `db:"n"` // how many have it, without the trash
}

// Values returns the different texts of a column, those of the most sessions first. It reads all sessions of the scope,
// on the connections of reports.
func (s *Store) Values(ctx context.Context, of Column) ([]Value, error) {
	var values []Value
	in, args := scopeOf(ctx)
	if of == ColumnTag {
		err := s.Reader().SelectContext(ctx, &values, fmt.Sprintf(tagsInUse, in), args...)
		return values, session.Wrap(err, "list the tags")
	}
	err := s.Reader().SelectContext(ctx, &values, `SELECT s.`+of.column()+` AS text, COUNT(*) AS n FROM sessions s
		WHERE s.draft = 0 AND s.deleted_at IS NULL AND s.purged_at IS NULL AND s.`+of.column()+` <> ''`+in+` GROUP BY 1 ORDER BY n DESC, text`, args...)
	return values, session.Wrap(err, "values of %s", of.name())
}

const tagsInUse = `
	SELECT k.text, COUNT(DISTINCT k.session_id) AS n FROM marks k JOIN sessions s ON s.id = k.session_id
	WHERE k.kind = 'tag' AND s.draft = 0 AND s.deleted_at IS NULL AND s.purged_at IS NULL%s
	GROUP BY k.text ORDER BY n DESC, k.text`

// projects returns the folders of the roll-up, which is small.
func (s *Store) projects(ctx context.Context) ([]string, error) {
	all, err := engine.List[string](ctx, s, `SELECT DISTINCT project FROM daily_usage WHERE project <> '' ORDER BY project`)
	return all, session.Wrap(err, "list the projects")
}

// ProjectNames returns the names by which lists call the projects.
func (s *Store) ProjectNames(ctx context.Context) (folders.Names, error) {
	projects, err := s.projects(ctx)
	return folders.NamesOf(projects), err
}

// Meant returns the values of a column that a text names, as Matching does. roots are the folders that the text is as a
// path: where none of them has sessions, they are the answer. Where no session has any value, the text itself is.
// Codes: NotFound (no session has such a value).
func (s *Store) Meant(ctx context.Context, of Column, text string, roots ...string) ([]string, error) {
	if _, limited := session.ScopeOf(ctx); of == ColumnProject && !limited {
		projects, err := s.projects(ctx)
		if err != nil {
			return nil, err
		}
		values := make([]Value, len(projects))
		for i, project := range projects {
			values[i].Text = project
		}
		if found := of.Matching(values, text, roots...); len(found) > 0 {
			return found, nil
		}
	}
	values, err := s.Values(ctx, of)
	if err != nil {
		return nil, err
	}
	if found := of.Matching(values, text, roots...); len(found) > 0 {
		return found, nil
	}
	switch {
	case len(roots) > 0:
		return roots, nil
	case len(values) == 0 && !of.isChosen(): // there is nothing to mistype: the answer is empty, not wrong
		return []string{text}, nil
	}
	return nil, of.Unknown(values, text)
}

// Matching returns the values that a text names: those of one of the roots, else the one that is written so in any
// case, else those whose path ends so, else those with such a part in their name, else in their path.
func (c Column) Matching(values []Value, text string, roots ...string) []string {
	text = strings.ToLower(text)
	for _, fits := range []func(string) bool{
		func(value string) bool {
			value = folders.Clean(value)
			return slices.ContainsFunc(roots, func(root string) bool {
				return value == root || c == ColumnDirectory && folders.Within(value, root)
			})
		},
		func(value string) bool { return strings.ToLower(value) == text },
		func(value string) bool { return c.isFolder() && folders.EndsIn(value, text) },
		func(value string) bool {
			if c.isFolder() {
				value = value[strings.LastIndexAny(value, `/\`)+1:]
			}
			return strings.Contains(strings.ToLower(value), text)
		},
		func(value string) bool { return strings.Contains(strings.ToLower(value), text) },
	} {
		var found []string
		for _, v := range values {
			if fits(v.Text) {
				found = append(found, v.Text)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// MatchingOne is Matching where only one value can be used. Without values the text itself is the one.
// Codes: NotFound, Invalid (several).
func (c Column) MatchingOne(values []Value, text string, roots ...string) (string, error) {
	switch found := c.Matching(values, text, roots...); {
	case len(values) == 0 && !c.isChosen():
		return text, nil
	case len(found) == 0:
		return "", c.Unknown(values, text)
	case len(found) == 1:
		return found[0], nil
	default:
		return "", c.Several(text, found)
	}
}

// Several returns the error for a text that names several values where only one can be used.
func (c Column) Several(text string, values []string) error {
	return session.Errorf(session.Invalid, "%s %q matches %s; write one of them whole", c.name(), text,
		strings.Join(values, ", ")).At(c.name(), "matches several")
}

// Unknown returns the error for a text that names no value, with the values that are written most like it.
func (c Column) Unknown(values []Value, text string) error {
	return session.Errorf(session.NotFound, "no session matches %s %q; %s", c.name(), text, c.Nearest(values, text)).
		At(c.name(), "no session has it")
}

// mostNearest limits the values that are offered instead of one that matches nothing.
const mostNearest = 5

// Nearest lists values with their numbers of sessions, those that are written most like a text first.
func (c Column) Nearest(values []Value, text string) string {
	if len(values) == 0 {
		return "there are no " + c.plural()
	}
	values = slices.Clone(values)
	if c.isFolder() {
		nameAsListed(values)
	}
	text = strings.ToLower(text[strings.LastIndexAny(text, `/\`)+1:])
	far := func(v Value) int { // many values are equally far: those of the most sessions come first
		d := spelling.Distance(strings.ToLower(v.Text), text)
		if d > (len(text)+1)/2 {
			return 1000
		}
		return d
	}
	slices.SortStableFunc(values, func(a, b Value) int { return cmp.Compare(far(a), far(b)) })
	var offers []string
	for _, v := range values[:min(len(values), mostNearest)] {
		name := v.Text
		if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' }) {
			name = strconv.Quote(name)
		}
		offers = append(offers, fmt.Sprintf("%s (%d)", name, v.Sessions))
	}
	if len(values) > mostNearest {
		offers = append(offers, "…")
	}
	return c.plural() + ": " + strings.Join(offers, ", ")
}

// nameAsListed replaces folders by the names that lists have for them.
func nameAsListed(values []Value) {
	paths := make([]string, len(values))
	for i, v := range values {
		paths[i] = v.Text
	}
	names := folders.NamesOf(paths)
	for i := range values {
		values[i].Text = names.Of(values[i].Text)
	}
}

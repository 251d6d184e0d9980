package analytics

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"sessiond/internal/session"
	"sessiond/queries"
)

// Query is a named query.
type Query struct {
	Name        string  `json:"name" doc:"The query's name"`
	Description string  `json:"description" doc:"The question that it answers"`
	Params      []Param `json:"params" doc:"Its parameters"`
	SQL         string  `json:"sql" doc:"Its SQL"`
}

// Param is an optional parameter of a named query.
type Param struct {
	Name        string `json:"name" doc:"The parameter's name"`
	Description string `json:"description"` // meaning and default
}

// Queries returns the named queries, by name, as SQLite or PostgreSQL reads them.
func Queries(postgres bool) ([]Query, error) {
	files, err := fs.Glob(queries.FS, "*.sql")
	if err != nil {
		return nil, err
	}
	found := make([]Query, 0, len(files))
	for _, file := range files {
		q, err := readQuery(strings.TrimSuffix(file, ".sql"), postgres)
		if err != nil {
			return nil, err
		}
		found = append(found, q)
	}
	return found, nil
}

// Queries returns the named queries, by name, as the database reads them.
func (r *Reports) Queries() ([]Query, error) { return Queries(!r.file) }

// lookup returns a named query. Codes: NotFound, with similar names.
func (r *Reports) lookup(name string) (Query, error) {
	all, err := r.Queries()
	if err != nil {
		return Query{}, err
	}
	if i := slices.IndexFunc(all, func(q Query) bool { return q.Name == name }); i >= 0 {
		return all[i], nil
	}
	var near []string
	for _, q := range all {
		if name != "" && (strings.Contains(q.Name, name) ||
			strings.Contains(strings.ToLower(q.Description), strings.ToLower(name))) {
			near = append(near, q.Name)
		}
	}
	if len(near) == 0 {
		return Query{}, session.Errorf(session.NotFound, "no query is named %q; `sessiond query` lists them", clip(name))
	}
	return Query{}, session.Errorf(session.NotFound, "no query is named %q; did you mean %s?", clip(name),
		strings.Join(near, ", "))
}

// readQuery parses a file: a line with the question, an empty comment line, and one line
// ":name  meaning" for each parameter, all before the SELECT.
func readQuery(name string, postgres bool) (Query, error) {
	text, err := queries.Text(name, postgres)
	if err != nil {
		return Query{}, err
	}
	q := Query{Name: name, Params: []Param{}, SQL: text}
	for i, line := range strings.Split(q.SQL, "\n") {
		comment, ok := strings.CutPrefix(line, "--")
		if !ok {
			break
		}
		comment = strings.TrimSpace(comment)
		switch param, isParam := strings.CutPrefix(comment, ":"); {
		case i == 0:
			q.Description = comment
		case isParam:
			name, meaning, _ := strings.Cut(param, " ")
			q.Params = append(q.Params, Param{Name: name, Description: strings.TrimSpace(meaning)})
		case comment != "":
			return Query{}, fmt.Errorf("queries/%s.sql: line %d of its head is not a parameter", name, i+1)
		}
	}
	return q, nil
}

// Run runs a named query. Absent parameters have their defaults; an empty value is a value. Codes:
// NotFound (the name), Invalid (an unknown parameter, an invalid value), Busy.
func (r *Reports) Run(ctx context.Context, name string, params map[string]string) (Result, error) {
	q, err := r.lookup(name)
	if err != nil {
		return Result{}, err
	}
	if err := q.check(params); err != nil {
		return Result{}, err
	}
	s, err := parseStatement(q.SQL)
	if err != nil {
		return Result{}, fmt.Errorf("query %s: %w", name, err)
	}
	run := r.runSQLite
	if !r.file {
		run = r.runPostgres
	}
	res, err := run(ctx, &s, params, Limits{Rows: maxRows, value: maxNamedBytes}.orDefaults())
	if err != nil {
		return Result{}, fmt.Errorf("query %s: %w", name, err)
	}
	return res, nil
}

// check rejects unknown parameters, and values that would silently compare as another type.
func (q *Query) check(params map[string]string) error {
	known := make([]string, len(q.Params))
	for i, p := range q.Params {
		known[i] = p.Name
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !slices.Contains(known, name) {
			if len(known) == 0 {
				return session.Errorf(session.Invalid, "query %s has no parameters, so no %q", q.Name, clip(name)).
					At(name, "unknown parameter")
			}
			return session.Errorf(session.Invalid, "query %s has no parameter %q; it has %s", q.Name, clip(name),
				strings.Join(known, ", ")).At(name, "unknown parameter")
		}
		if err := checkValue(name, params[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkValue checks a parameter by its name, which means the same in every query.
func checkValue(name, value string) error {
	switch name {
	case "since", "day":
		if _, err := time.Parse(time.DateOnly, value); err != nil {
			return session.Errorf(session.Invalid, "%s %q is not a day; use the form 2026-02-11", name, clip(value)).
				At(name, "not a day")
		}
	}
	if isWhole(name) && (value == "" || len(value) > 18 || strings.Trim(value, "0123456789") != "") {
		return session.Errorf(session.Invalid, "%s %q is not a whole number", name, clip(value)).
			At(name, "not a whole number")
	}
	return nil
}

// isWhole reports whether a parameter is a whole number.
func isWhole(name string) bool {
	return slices.Contains([]string{"limit", "seq", "after", "times", "tokens", "percent"}, name)
}

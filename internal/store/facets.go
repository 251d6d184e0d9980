package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Facets counts the sessions that pass a filter, in all and by the values of columns.
type Facets struct {
	Sessions int64
	More     bool // there are older ones, which are not counted
	Values   map[Column][]Value
}

// Facets counts the newest sessions that pass a filter, at most so many, by source, model, project and branch: of each
// column the values of the most sessions first. Codes: Invalid (q).
func (s *Store) Facets(ctx context.Context, f Filter, most int) (Facets, error) {
	out := Facets{Values: map[Column][]Value{}}
	c := f.conditions().within(ctx)
	if c.err != nil {
		return out, c.err
	}
	type group struct {
		Source  string `db:"source"`
		Model   string `db:"model"`
		Project string `db:"project"`
		Branch  string `db:"git_branch"`
		N       int64  `db:"n"`
	}
	sums := map[Column]map[string]int64{ColumnSource: {}, ColumnModel: {}, ColumnProject: {}, ColumnBranch: {}}
	err := engine.Each(ctx, s, func(g *group) error {
		out.Sessions += g.N
		for column, value := range map[Column]string{
			ColumnSource: g.Source, ColumnModel: g.Model, ColumnProject: g.Project, ColumnBranch: g.Branch,
		} {
			if value != "" {
				sums[column][value] += g.N
			}
		}
		return nil
	}, facetsOf+`
		WHERE `+strings.Join(c.where, " AND ")+` ORDER BY s.active_at DESC, s.id DESC LIMIT +?) counted GROUP BY 1, 2, 3, 4`,
		append(c.args, most+1)...)
	for column, sum := range sums {
		for text, n := range sum {
			out.Values[column] = append(out.Values[column], Value{text, n})
		}
		slices.SortFunc(out.Values[column], func(a, b Value) int {
			return cmp.Or(cmp.Compare(b.Sessions, a.Sessions), cmp.Compare(a.Text, b.Text))
		})
	}
	if out.More = out.Sessions > int64(most); out.More {
		out.Sessions = int64(most)
	}
	return out, session.Wrap(err, "count sessions")
}

const facetsOf = `SELECT source, model, project, git_branch, COUNT(*) AS n FROM (
		SELECT s.source, s.model, s.project, s.git_branch FROM sessions s`

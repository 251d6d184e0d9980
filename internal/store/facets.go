package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Facets counts the sessions that pass a filter, in all and by the values of columns.
type Facets struct {
	Sessions int64
	More     bool // there are older sessions, which were not looked at
	Values   map[Column][]Value
}

// Facets counts those of the newest sessions that pass a filter, by source, model, project and branch: of each column
// the values of the most sessions first. A filter among the values of such a column does not narrow its own values:
// they are counted as other choices. Codes: Invalid (q).
func (s *Store) Facets(ctx context.Context, f Filter, newest int) (Facets, error) {
	among := f.Among
	f.Among = maps.Clone(among)
	columns := []Column{ColumnSource, ColumnModel, ColumnProject, ColumnBranch}
	for _, column := range columns {
		delete(f.Among, column)
	}
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
		values := [...]string{g.Source, g.Model, g.Project, g.Branch}
		missed, misses := 0, 0
		for i, column := range columns {
			if chosen, narrowed := among[column]; narrowed && !slices.Contains(chosen, values[i]) {
				missed, misses = i, misses+1
			}
		}
		for i, column := range columns {
			if values[i] != "" && (misses == 0 || misses == 1 && missed == i) {
				sums[column][values[i]] += g.N
			}
		}
		if misses == 0 {
			out.Sessions += g.N
		}
		return nil
	}, facetsOf+` WHERE `+strings.Join(c.where, " AND ")+` GROUP BY 1, 2, 3, 4`, append([]any{newest}, c.args...)...)
	if err == nil {
		var beyond []session.ID
		beyond, err = engine.List[session.ID](ctx, s,
			`SELECT id FROM sessions ORDER BY active_at DESC, id DESC LIMIT 1 OFFSET +?`, newest)
		out.More = len(beyond) > 0
	}
	for column, sum := range sums {
		for text, n := range sum {
			out.Values[column] = append(out.Values[column], Value{text, n})
		}
		slices.SortFunc(out.Values[column], func(a, b Value) int {
			return cmp.Or(cmp.Compare(b.Sessions, a.Sessions), cmp.Compare(a.Text, b.Text))
		})
	}
	return out, session.Wrap(err, "count sessions")
}

const facetsOf = `SELECT s.source, s.model, s.project, s.git_branch, COUNT(*) AS n
	FROM (SELECT * FROM sessions ORDER BY active_at DESC, id DESC LIMIT +?) s`

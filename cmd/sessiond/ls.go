package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sessiond/internal/connect"
	"sessiond/internal/contextmgr"
	"sessiond/internal/find"
	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type lsFlags struct {
	pageFlags
	find.Request
	sort    string
	all     bool          // also sub-agents and automated sessions
	filters []*pflag.Flag // those of filterFlags
}

func (a *app) lsCommand() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use: "ls [TEXT]", Short: "List sessions, newest active first", Args: arguments(0, 1), Aliases: []string{"list"},
		Long: "Lists sessions, newest active first. TEXT matches a part of the title, the id, or the id in\n" +
			"the source program. Sub-agents are folded under the session that started them (+12), and\n" +
			"automated sessions are left out; --all lists them, too. The context is what the provider\n" +
			"reported last and the messages since, else an estimate; its column is empty where the model's\n" +
			"window is not known. The cost is that with the sub-agents which are folded.",
		Example: "  sessiond ls --since yesterday\n  sessiond ls --project demo --sort cost\n" +
			"  sessiond ls parser --source pi\n  sessiond ls --directory .",
		RunE: a.onPagedStore(func(ctx context.Context, s *store.Store, args []string) error {
			if len(args) == 1 {
				f.Text = args[0]
			}
			return a.ls(ctx, s, f)
		}),
	}
	fl := cmd.Flags()
	f.filters = filterFlags(cmd, &f.Request, find.Lists)
	fl.BoolVarP(&f.all, "all", "a", false, "also list sub-agents and automated sessions")
	fl.BoolVar(&f.oldest, "oldest", false, "reverse the order: oldest or smallest first")
	wordFlag(cmd, &f.sort, "sort", "sort by "+strings.Join(sortWords(), ", ")+"; newest or largest first", sortWords()...)
	f.pageFlags.add(fl, defaultLimit)
	a.completeFilters(cmd)
	return cmd
}

func (a *app) ls(ctx context.Context, s *store.Store, f lsFlags) error {
	filter, err := a.filter(ctx, s, &f)
	if err != nil {
		return err
	}
	limit, order, byCost := a.lengthOfList(f.pageFlags), orders[f.sort], f.sort == "cost"
	sorted := order != nil || byCost
	if sorted && f.cursor != "" {
		return usagef("--cursor continues a list by activity and cannot be combined with --sort")
	}
	length := limit
	if sorted { // all are sorted before the list is cut
		length = 0
	}
	data, next, err := readPages(length, store.Page{Cursor: f.cursor, Ascending: f.oldest && !sorted},
		func(page store.Page) ([]session.Session, string, error) {
			return s.Sessions(ctx, filter, page)
		})
	if err != nil {
		return err
	}
	if byCost {
		if order, err = orderByCost(ctx, s, data, filter.People); err != nil {
			return err
		}
	}
	if sorted {
		slices.SortStableFunc(data, order)
		if f.oldest {
			slices.Reverse(data)
		}
		if limit > 0 && len(data) > limit {
			data = data[:limit]
		}
	}
	rows, err := a.listed(ctx, s, data, filter.People)
	if err != nil {
		return err
	}
	if err := a.printAlarm(ctx); err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(api.ListOf(rows, next))
	}
	given := f.given()
	if len(rows) == 0 {
		return a.printNone(ctx, s, filter, &f, given)
	}
	if err := a.printSessions(ctx, s, rows, next); err != nil {
		return err
	}
	if given == "" && f.cursor == "" {
		a.tellNewer(ctx, s)
	}
	return nil
}

// listedSession is a session in a list, with what is folded under it.
type listedSession struct {
	session.Session
	session.Measure
	SubAgents int64 `json:"sub_agents,omitempty"` // that it started, at any depth, if they are folded under it
}

// listed adds what a list shows of sessions beside their own fields.
func (a *app) listed(ctx context.Context, s *store.Store, data []session.Session,
	folded bool,
) ([]listedSession, error) {
	catalogue, err := a.catalogue()
	if err != nil {
		return nil, err
	}
	measures, err := s.Measures(ctx, data, catalogue.Model)
	if err != nil {
		return nil, err
	}
	rows := make([]listedSession, len(data))
	for i := range data {
		rows[i] = listedSession{Session: data[i], Measure: measures[data[i].ID]}
		if r := rows[i].Rollup; folded && r != nil {
			rows[i].SubAgents = r.Children
		}
	}
	return rows, nil
}

// orderByCost compares sessions by what a list shows: the dearest first, then those without a known cost.
func orderByCost(ctx context.Context, s *store.Store, data []session.Session,
	folded bool,
) (func(a, b session.Session) int, error) {
	costs := make(map[session.ID]int64, len(data))
	note := func(id session.ID, nano *int64) {
		if costs[id] = -1; nano != nil {
			costs[id] = *nano
		}
	}
	for i := range data {
		note(data[i].ID, data[i].CostNanoUSD)
	}
	if folded {
		sums, err := s.Rollups(ctx, sessionIDs(data))
		if err != nil {
			return nil, err
		}
		for id, sum := range sums {
			note(id, sum.CostNanoUSD)
		}
	}
	return func(a, b session.Session) int { return cmp.Compare(costs[b.ID], costs[a.ID]) }, nil
}

// printNone says that nothing matches the filters, and what would.
func (a *app) printNone(ctx context.Context, s *store.Store, filter store.Filter, f *lsFlags, given string) error {
	folded := false
	if filter.People {
		all := filter
		all.People = false
		hidden, _, err := s.Sessions(ctx, all, store.Page{Limit: 1})
		if err != nil {
			return err
		}
		folded = len(hidden) > 0
	}
	var line string
	switch {
	case folded && given == "":
		line = "Only sub-agents and automated sessions are here. --all lists them."
	case folded:
		line = "Only sub-agents and automated sessions match " + given + ". --all lists them."
	case given == "":
		line = "No sessions yet. `sessiond import` imports the histories of your agents; " +
			"`sessiond append --new user 'hello'` begins a session."
	default:
		nearest, err := f.nearest(ctx, s, filter)
		if err != nil {
			return err
		}
		line = "No session matches " + given + "." + cmp.Or(nearest, f.hint())
		if filter.Since != nil || filter.Until != nil {
			filter.Since, filter.Until = nil, nil
			others, _, err := s.Sessions(ctx, filter, store.Page{Limit: 1})
			if err != nil {
				return err
			}
			for _, other := range others {
				line += fmt.Sprintf(" At any time: %s was active last, on %s.", other.ID, other.ActiveAt.Day(s.Zone()))
			}
		}
	}
	_, err := fmt.Fprintln(a.out, a.fit(line, ""))
	return err
}

func sortWords() []string {
	return []string{"active", "created", "title", "messages", "tokens", "cost"}
}

// orders are those that words name, but the default, by activity, and that by cost, which reads what is folded.
var orders = map[string]func(a, b session.Session) int{
	"created": func(a, b session.Session) int { return b.CreatedAt.Compare(a.CreatedAt.Time) },
	"title": func(a, b session.Session) int {
		return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title))
	},
	"messages": func(a, b session.Session) int { return cmp.Compare(b.SaidCount, a.SaidCount) },
	"tokens":   func(a, b session.Session) int { return cmp.Compare(b.TotalTokens, a.TotalTokens) },
}

// contextColumns is the width of the bar of a context and its percentage.
const contextColumns = 13

// contextCell draws how much of a window a context fills; "" if that is unknown. Above the threshold the next turn gets
// a summary, and `context` shows the context with it.
func (a *app) contextCell(used, window int64) string {
	if used == 0 || window <= 0 {
		return ""
	}
	n, err := contextmgr.Resolve([]contextmgr.Layer{{Source: "file", Settings: a.cfg.Compaction}}, window, 0)
	if err == nil && !n.Off && used > n.Threshold {
		return "compacts next"
	}
	return transcript.Bar(float64(used)/float64(window), contextColumns)
}

// leastTitle is the width of a title for which other columns than the first are dropped.
func (a *app) leastTitle(first int) int {
	const enough = 40
	if w := a.columns(); w > 0 {
		return min(enough, max(4, w-first-2))
	}
	return enough
}

func (a *app) printSessions(ctx context.Context, st *store.Store, data []listedSession, next string) error {
	projects, err := st.ProjectNames(ctx)
	if err != nil {
		return err
	}
	rows := make([][]string, len(data))
	var unpriced int64
	folds := false
	for i := range data {
		s := &data[i]
		cost, without := transcript.CostCell(&s.Session, &s.Measure, s.SubAgents > 0)
		unpriced += without
		title, folded := cmp.Or(s.Title, "–"), ""
		if s.StarredAt != nil {
			title = "★ " + title
		}
		if s.SubAgents > 0 {
			folds, folded = true, "+"+transcript.Count(s.SubAgents)
		}
		rows[i] = []string{
			string(s.ID), title, folded, string(s.Source), cmp.Or(projects.With(s.Project, s.Directory), "–"),
			cmp.Or(s.Model, "–"),
			fmt.Sprint(s.SaidCount), a.contextCell(s.Context.Tokens, s.Context.Window), cost,
			transcript.Ago(s.ActiveAt.Time, a.now().In(a.cfg.Zone())),
		}
	}
	cols := []column{
		{name: "id"},
		{name: "title", grow: true},
		{name: "", right: true, keep: 7},
		{name: "source", keep: 3},
		{name: "project", keep: 4, grow: true, least: 10},
		{name: "model", keep: 1},
		{name: "messages", right: true, keep: 2},
		{name: "context", keep: 5},
		{name: "cost", right: true, keep: 6},
		{name: "active", keep: 8},
	}
	cols[1].least = a.leastTitle(len(rows[0][0]))
	if !folds {
		cols = slices.Delete(cols, 2, 3)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 2, 3)
		}
	}
	a.printTable(cols, rows)
	if folds {
		fmt.Fprintln(a.out, a.dim(a.fit("+N: so many sub-agents, and the cost is that with them", "")))
	}
	a.explainPlus(unpriced)
	a.printMore(next)
	return nil
}

// given writes the filters as the user may have typed them; "" without any.
func (f *lsFlags) given() string {
	var words []string
	if f.Text != "" {
		words = append(words, strconv.Quote(f.Text))
	}
	for _, filter := range f.filters {
		value := filter.Value.String()
		switch {
		case !filter.Changed:
		case filter.Value.Type() == "bool":
			words = append(words, "--"+filter.Name)
		case filter.Value.Type() == "stringToString":
			words = append(words, "--"+filter.Name+" "+connect.QuoteShell(strings.Trim(value, "[]")))
		default:
			words = append(words, "--"+filter.Name+" "+connect.QuoteShell(value))
		}
	}
	return printable(strings.Join(words, " "))
}

// nearest names what sessions have instead of a value that none has, of the first such filter; "" without one.
func (f *lsFlags) nearest(ctx context.Context, s *store.Store, filter store.Filter) (string, error) {
	for column, text := range map[store.Column]string{
		store.ColumnSource: f.Source, store.ColumnProject: f.Project, store.ColumnDirectory: f.Directory,
		store.ColumnModel: f.Model,
	} {
		if text == "" {
			continue
		}
		values, err := s.Values(ctx, column)
		if err != nil {
			return "", err
		}
		has := func(v store.Value) bool { return slices.Contains(filter.Among[column], v.Text) }
		if len(values) > 0 && !slices.ContainsFunc(values, has) {
			return " There are " + column.Nearest(values, text) + ".", nil
		}
	}
	return "", nil
}

// hint says what would match, or names a command that lists it.
func (f *lsFlags) hint() string {
	switch {
	case f.Key != "":
		return " `sessiond keys` lists the keys."
	case f.Text != "":
		return " `sessiond search` searches the messages, too."
	}
	return ""
}

// newerPatience limits how long a list on a terminal scans the folders of other programs.
const newerPatience = 150 * time.Millisecond

// tellNewer names, below a list, the programs with histories that are not imported and not
// followed. It says nothing if the scan takes too long.
func (a *app) tellNewer(ctx context.Context, s *store.Store) {
	if a.outTTY {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, newerPatience)
		defer cancel()
	}
	var newer []string
	follows, asked := false, false
	im := history.Importer{Store: s, Now: a.now}
	for _, src := range a.sources() {
		found, _, err := src.Find(ctx, nil)
		if err != nil || len(found) == 0 {
			continue
		}
		followed, err := s.ImportedPaths(ctx, src.Name())
		if err != nil {
			return
		}
		if len(followed) > 0 && !asked {
			follows, asked = a.daemonFollows(ctx), true
		}
		if follows {
			found = slices.DeleteFunc(found, func(f history.Found) bool {
				return slices.ContainsFunc(followed, func(root string) bool { return history.Within(f.Path, root) })
			})
		}
		n, err := im.Unread(ctx, src, found)
		if err != nil {
			return
		}
		if n > 0 {
			newer = append(newer, fmt.Sprintf("%s (%d)", src.Name(), n))
		}
	}
	if len(newer) > 0 && ctx.Err() == nil {
		line := "Not imported yet: " + strings.Join(newer, ", ") +
			". `sessiond import` imports them; `sessiond serve` follows imported histories."
		fmt.Fprintln(a.err, a.dim(a.fit(line, "")))
	}
}

// daemonFollows reports whether a daemon runs that follows imported histories.
func (a *app) daemonFollows(ctx context.Context) bool {
	return a.cfg.Import.Follow && a.daemonServes(ctx)
}

// daemonServes reports whether a daemon answers at the configured address.
func (a *app) daemonServes(ctx context.Context) bool {
	status, _ := readiness(ctx, nearestListener(a.cfg), newerPatience)
	return status != 0
}

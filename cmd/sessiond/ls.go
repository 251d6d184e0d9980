package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sessiond/internal/config"
	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type lsFlags struct {
	pageFlags
	source, key, model, directory, project, query, parent, since, until, sort string
	children, forks                                                           string
	archived, trash                                                           bool
	metadata                                                                  map[string]string
	filters                                                                   []*pflag.Flag // those of filterFlags
}

func (a *app) lsCommand() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use: "ls [TEXT]", Short: "List sessions, newest active first", Args: arguments(0, 1), Aliases: []string{"list"},
		Long: "Lists sessions, newest active first. TEXT matches a part of the title, the id, or the id in\n" +
			"the source program.",
		Example: "  sessiond ls --since 7d\n  sessiond ls --project ~/src/demo --sort cost\n  sessiond ls parser --source pi",
		RunE: a.onStore(func(ctx context.Context, s *store.Store, args []string) error {
			if len(args) == 1 {
				f.query = args[0]
			}
			return a.ls(ctx, s, f)
		}),
	}
	fl := cmd.Flags()
	f.filterFlags(fl)
	fl.BoolVar(&f.oldest, "oldest", false, "reverse the order: oldest or smallest first")
	wordFlag(cmd, &f.sort, "sort", "sort by "+strings.Join(sortWords(), ", ")+"; newest or largest first", sortWords()...)
	f.pageFlags.add(fl, "default: 30 on a terminal, else all")
	return cmd
}

// filterFlags adds the flags that filter sessions, before any other flag.
func (f *lsFlags) filterFlags(fl *pflag.FlagSet) {
	fl.StringVar(&f.source, "source", "", "only from this `PROGRAM` (sessiond, pi, …)")
	fl.StringVar(&f.model, "model", "", "only with this `MODEL`")
	fl.StringVar(&f.directory, "directory", "", "only in this `FOLDER`")
	fl.StringVar(&f.project, "project", "", "only in this project `FOLDER`")
	fl.StringVar(&f.key, "key", "", "only with this routing `KEY`")
	fl.StringVar(&f.parent, "parent", "", "only forks and children of this `SESSION`")
	fl.StringVar(&f.children, "children", "", "only sub-agents that this `SESSION` started")
	fl.StringVar(&f.forks, "forks", "", "only forks of this `SESSION`")
	fl.StringVar(&f.since, "since", "", "only active since this `TIME`: 2026-02-11, 2026-02-11T10:00, 7d, 12h")
	fl.StringVar(&f.until, "until", "", "only active before this `TIME`")
	fl.StringToStringVar(&f.metadata, "metadata", nil, "only with this metadata: `NAME=VALUE`")
	fl.Lookup("metadata").DefValue = "" // help would print []
	fl.BoolVar(&f.archived, "archived", false, "list archived sessions instead")
	fl.BoolVar(&f.trash, "trash", false, "list sessions in the trash instead")
	fl.VisitAll(func(flag *pflag.Flag) { f.filters = append(f.filters, flag) })
}

func (a *app) ls(ctx context.Context, s *store.Store, f lsFlags) error {
	filter, err := a.filter(ctx, s, f)
	if err != nil {
		return err
	}
	limit, order := a.lengthOfList(f.pageFlags), sortBy(f.sort)
	if order != nil && f.cursor != "" {
		return usagef("--cursor continues a list by activity and cannot be combined with --sort")
	}
	length := limit
	if order != nil { // all are sorted before the list is cut
		length = 0
	}
	data, next, err := readPages(length, store.Page{Cursor: f.cursor, Ascending: f.oldest && order == nil}, func(page store.Page) ([]session.Session, string, error) {
		return s.Sessions(ctx, filter, page)
	})
	if err != nil {
		return err
	}
	if order != nil {
		slices.SortStableFunc(data, order)
		if f.oldest {
			slices.Reverse(data)
		}
		if limit > 0 && len(data) > limit {
			data = data[:limit]
		}
	}
	if a.flags.json {
		return a.printJSON(api.ListOf(data, next))
	}
	given := f.given()
	if len(data) == 0 && given != "" {
		_, err := fmt.Fprintln(a.out, a.fit("No session matches "+given+"."+f.hint(), ""))
		return err
	}
	if err := a.printSessions(data, next); err != nil {
		return err
	}
	if given == "" && f.cursor == "" {
		a.tellNewer(ctx, s)
	}
	return nil
}

func sortWords() []string {
	return []string{"active", "created", "title", "messages", "tokens", "cost"}
}

// sortBy returns the order that a word names; nil for the default, by activity.
func sortBy(word string) func(a, b session.Session) int {
	cost := func(s session.Session) int64 {
		if s.CostNanoUSD == nil {
			return -1 // unknown, below free
		}
		return *s.CostNanoUSD
	}
	switch word {
	case "created":
		return func(a, b session.Session) int { return b.CreatedAt.Compare(a.CreatedAt.Time) }
	case "title":
		return func(a, b session.Session) int {
			return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title))
		}
	case "messages":
		return func(a, b session.Session) int { return cmp.Compare(b.MessageCount, a.MessageCount) }
	case "tokens":
		return func(a, b session.Session) int { return cmp.Compare(b.TotalTokens, a.TotalTokens) }
	case "cost":
		return func(a, b session.Session) int { return cmp.Compare(cost(b), cost(a)) }
	}
	return nil
}

func (a *app) filter(ctx context.Context, s *store.Store, f lsFlags) (store.Filter, error) {
	out := store.Filter{
		Query: f.query, Source: session.Source(f.source), Key: f.key, Model: f.model, Directory: f.directory, Project: f.project,
		Archived: f.archived, Trash: f.trash, Metadata: f.metadata,
	}
	var err error
	if out.Key, err = a.key(out.Key); err != nil {
		return out, err
	}
	for kind, name := range map[string]string{"": f.parent, session.ParentChild: f.children, session.ParentFork: f.forks} {
		if name == "" {
			continue
		}
		if out.ParentID != "" {
			return out, usagef("--parent, --children and --forks exclude one another")
		}
		if out.ParentID, err = s.Resolve(ctx, name, a.dir); err != nil {
			return out, err
		}
		out.ParentKind = kind
	}
	if out.Since, err = a.moment("--since", f.since); err != nil {
		return out, err
	}
	out.Until, err = a.moment("--until", f.until)
	return out, err
}

// moment parses a time: a day, a day and a time in the configured time zone, RFC 3339, or an age.
func (a *app) moment(flag, s string) (*session.Time, error) {
	if s == "" {
		return nil, nil
	}
	cfg, err := a.load(nil)
	if err != nil {
		return nil, err
	}
	if at, ok := session.ParseMoment(s, a.now().In(cfg.Zone())); ok {
		return &at, nil
	}
	return nil, usagef("%s %q is not a time: write a day (2026-02-11), a time (2026-02-11T10:00) or an age (30m, 12h, 7d, 2w)", flag, s)
}

// contextColumns is the width of the bar of a context and its percentage.
const contextColumns = 13

func (a *app) printSessions(data []session.Session, next string) error {
	if len(data) == 0 {
		_, err := fmt.Fprintln(a.out, a.fit("No sessions yet. `sessiond import` imports the histories of your agents; `sessiond append --new user 'hello'` begins a session.", ""))
		return err
	}
	catalogue, err := a.catalogue()
	if err != nil {
		return err
	}
	rows := make([][]string, len(data))
	var unpriced int64
	for i, s := range data {
		unpriced += s.UnpricedCalls
		var window int64
		if s.Window != nil {
			window = *s.Window
		} else if m, known := catalogue.Model(s.Model); known {
			window = m.Window
		}
		rows[i] = []string{
			string(s.ID), orDash(s.Title), string(s.Source), orDash(lastElement(s.Project)), orDash(s.Model),
			fmt.Sprint(s.MessageCount), transcript.ContextBar(&s, window, contextColumns), transcript.ShortMoney(s.CostNanoUSD, s.UnpricedCalls),
			transcript.Ago(s.ActiveAt.Time, a.now().In(a.cfg.Zone())),
		}
	}
	a.printTable([]column{
		{name: "id"},
		{name: "title", least: 16, grow: true},
		{name: "source", keep: 3},
		{name: "project", keep: 2},
		{name: "model", keep: 1},
		{name: "messages", right: true, keep: 5},
		{name: "context", keep: 6},
		{name: "cost", right: true, keep: 4},
		{name: "active"},
	}, rows)
	a.explainPlus(unpriced)
	a.printMore(next)
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func lastElement(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// given writes the filters as the user may have typed them; "" without any.
func (f *lsFlags) given() string {
	var words []string
	if f.query != "" {
		words = append(words, strconv.Quote(f.query))
	}
	for _, filter := range f.filters {
		value := filter.Value.String()
		switch {
		case !filter.Changed:
		case filter.Value.Type() == "bool":
			words = append(words, "--"+filter.Name)
		case filter.Value.Type() == "stringToString":
			words = append(words, "--"+filter.Name+" "+quoted(strings.Trim(value, "[]")))
		default:
			words = append(words, "--"+filter.Name+" "+quoted(value))
		}
	}
	return printable(strings.Join(words, " "))
}

// hint names a command that lists the values of a filter that matched nothing.
func (f *lsFlags) hint() string {
	switch {
	case f.project != "" || f.directory != "":
		return " `sessiond query projects` lists the projects."
	case f.key != "":
		return " `sessiond keys` lists the keys."
	case f.query != "":
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
		n := 0
		for _, f := range found {
			if follows && slices.ContainsFunc(followed, func(root string) bool { return history.Within(f.Path, root) }) {
				continue
			}
			if unread, err := im.Unread(ctx, src, f); err != nil {
				return
			} else if unread {
				n++
			}
		}
		if n > 0 {
			newer = append(newer, fmt.Sprintf("%s (%d)", src.Name(), n))
		}
	}
	if len(newer) > 0 && ctx.Err() == nil {
		line := "Not imported yet: " + strings.Join(newer, ", ") + ". `sessiond import` imports them; `sessiond serve` follows imported histories."
		fmt.Fprintln(a.err, a.dim(a.fit(line, "")))
	}
}

// daemonFollows reports whether a daemon runs that follows imported histories.
func (a *app) daemonFollows(ctx context.Context) bool {
	cfg, err := a.load(nil)
	return err == nil && cfg.Import.Follow && a.daemonServes(ctx, cfg)
}

// daemonServes reports whether a daemon accepts connections at the configured address.
func (a *app) daemonServes(ctx context.Context, cfg *config.Config) bool {
	network, address := "unix", cfg.Socket
	if cfg.Socket == config.SocketOff || cfg.Socket == "" {
		network, address = daemonAddress(cfg)
	}
	dialer := net.Dialer{Timeout: newerPatience}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

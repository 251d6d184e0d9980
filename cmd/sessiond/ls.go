package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

type lsFlags struct {
	source, key, model, directory, project, query, parent, since, until, cursor, sort string
	children, forks                                                                   string
	limit                                                                             int64
	archived, trash, oldest                                                           bool
	metadata                                                                          map[string]string
}

func (a *app) lsCommand() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use: "ls [TEXT]", Short: "List sessions, newest active first", Args: arguments(0, 1), Aliases: []string{"list"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.query = args[0]
			}
			return a.read(cmd.Context(), func(s *store.Store) error { return a.ls(cmd.Context(), s, f) })
		},
	}
	fl := cmd.Flags()
	f.filterFlags(fl)
	fl.BoolVar(&f.oldest, "oldest", false, "the other way round: oldest active first")
	wordFlag(cmd, &f.sort, "sort", "by active, created, title, messages, tokens or cost; the largest or newest first", sortWords()...)
	numberFlag(fl, &f.limit, "limit", "n", 1, "how many (default: 30 on a terminal, else all)")
	fl.StringVar(&f.cursor, "cursor", "", "next_cursor of the list before")
	return cmd
}

// filterFlags adds the flags that choose sessions.
func (f *lsFlags) filterFlags(fl *pflag.FlagSet) {
	fl.StringVar(&f.source, "source", "", "only of this program (sessiond, pi, …)")
	fl.StringVar(&f.model, "model", "", "only with this model")
	fl.StringVar(&f.directory, "directory", "", "only of this folder")
	fl.StringVar(&f.project, "project", "", "only of this project")
	fl.StringVar(&f.key, "key", "", "only with this routing key")
	fl.StringVar(&f.parent, "parent", "", "only forks and children of this session")
	fl.StringVar(&f.children, "children", "", "only what this session started (sub-agents)")
	fl.StringVar(&f.forks, "forks", "", "only forks of this session")
	fl.StringVar(&f.since, "since", "", "active since: 2026-02-11, 2026-02-11T10:00, 7d, 12h")
	fl.StringVar(&f.until, "until", "", "active before")
	fl.StringToStringVar(&f.metadata, "metadata", nil, "only with this metadata, name=value")
	fl.BoolVar(&f.archived, "archived", false, "the archived ones")
	fl.BoolVar(&f.trash, "trash", false, "those in the trash")
}

func (a *app) ls(ctx context.Context, s *store.Store, f lsFlags) error {
	filter, err := a.filter(ctx, s, f)
	if err != nil {
		return err
	}
	limit := int(f.limit)
	if limit == 0 && a.outTTY {
		limit = 30
	}
	order := sortBy(f.sort)
	if order != nil && f.cursor != "" {
		return usageError{errors.New("--cursor goes on with a list by time; it cannot be combined with --sort")}
	}
	page := store.Page{Limit: limit, Cursor: f.cursor, Ascending: f.oldest && order == nil}
	all := limit == 0 || order != nil
	if all {
		page.Limit = 1000
	}
	data, next, err := s.Sessions(ctx, filter, page)
	for err == nil && all && next != "" {
		var more []session.Session
		page.Cursor = next
		more, next, err = s.Sessions(ctx, filter, page)
		data = append(data, more...)
	}
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
		return a.printJSON(listOf(data, next))
	}
	if len(data) == 0 && !reflect.DeepEqual(filter, store.Filter{}) {
		_, err := fmt.Fprintln(a.out, "No session is like that.")
		return err
	}
	if err := a.printSessions(data, next); err != nil {
		return err
	}
	if reflect.DeepEqual(filter, store.Filter{}) && f.cursor == "" {
		a.tellNewer(ctx, s)
	}
	return nil
}

func sortWords() []string {
	return []string{"active", "created", "title", "messages", "tokens", "cost"}
}

// sortBy gives the order that a word names; nil for the list's own, by activity.
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

type list[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

func listOf[T any](data []T, next string) list[T] {
	l := list[T]{Data: data}
	if data == nil {
		l.Data = []T{}
	}
	if next != "" {
		l.NextCursor = &next
	}
	return l
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
			return out, usageError{fmt.Errorf("--parent, --children and --forks each name a session: give one of them")}
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

// moment reads a time as people write it: a day, a day and a time in the service's zone,
// RFC 3339, or how long ago.
func (a *app) moment(flag, s string) (*session.Time, error) {
	if s == "" {
		return nil, nil
	}
	cfg, err := a.load(nil)
	if err != nil {
		return nil, err
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, s, cfg.Zone()); err == nil {
			at := session.At(t)
			return &at, nil
		}
	}
	var n int
	var unit string
	if _, err := fmt.Sscanf(s, "%d%s", &n, &unit); err == nil && n >= 0 {
		if d, ok := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[unit]; ok {
			at := session.At(a.now().Add(-time.Duration(n) * d))
			return &at, nil
		}
	}
	return nil, usageError{fmt.Errorf("%s %q: a day (2026-02-11), a time (2026-02-11T10:00), or how long ago (30m, 12h, 7d, 2w)", flag, s)}
}

// contextColumns is how wide the bar of a context and its percentage are.
const contextColumns = 13

func (a *app) printSessions(data []session.Session, next string) error {
	if len(data) == 0 {
		_, err := fmt.Fprintln(a.out, "No sessions. `sessiond import` brings in a history, `sessiond append --new user 'hello'` begins one.")
		return err
	}
	catalogue, err := a.catalogue()
	if err != nil {
		return err
	}
	rows := make([][]string, len(data))
	for i, s := range data {
		var window int64
		if s.Window != nil {
			window = *s.Window
		} else if m, known := catalogue.Model(s.Model); known {
			window = m.Window
		}
		rows[i] = []string{
			string(s.ID), orDash(s.Title), string(s.Source), orDash(lastElement(s.Project)), orDash(s.Model),
			fmt.Sprint(s.MessageCount), transcript.ContextBar(&s, window, contextColumns), transcript.Money(s.CostNanoUSD, s.UnpricedCalls),
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
	if next != "" {
		fmt.Fprintln(a.out, a.dim("… and more: --limit shows them"))
	}
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

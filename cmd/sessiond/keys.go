package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type keysFlags struct {
	pageFlags
	query, active string
	all           bool
}

func (a *app) keysCommand() *cobra.Command {
	var f keysFlags
	cmd := &cobra.Command{
		Use: "keys [KEY]", Short: "List routing keys, or the sessions of one", Args: arguments(0, 1),
		Long: "A routing key names a conversation of an agent (agent:main:telegram:group:-100123). A reset,\n" +
			"a daily boundary or an idle time ends its session. The next message begins a new session\n" +
			"with the same key: the next generation. `ls --key` and `search --key` find all generations.",
		Example: "  sessiond keys\n  sessiond keys main\n  sessiond search --key agent:main:main 'the plan'",
		RunE: a.onStore(func(ctx context.Context, s *store.Store, args []string) error {
			if len(args) == 1 {
				return a.generations(ctx, s, args[0], f)
			}
			return a.keys(ctx, s, f)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.query, "find", "", "only keys with this `TEXT` in the key, a name or the title")
	fl.StringVar(&f.active, "active", "", "only keys active in this last `TIME`: 30m, 12h, 7d")
	fl.BoolVar(&f.all, "all", false, "include the keys global and unknown")
	f.pageFlags.add(fl, "default 50")
	return cmd
}

// key returns a key in its stored form; "" stays "". The database is open.
func (a *app) key(given string) (string, error) {
	if given == "" {
		return "", nil
	}
	rules := a.cfg.Rules()
	return rules.Canonical(given)
}

func (a *app) keys(ctx context.Context, s *store.Store, f keysFlags) error {
	filter := store.KeyFilter{Query: f.query, All: f.all}
	var err error
	if filter.Since, err = a.moment("active", f.active); err != nil {
		return err
	}
	data, next, err := s.Keys(ctx, filter, store.Page{Limit: int(f.limit), Cursor: f.cursor})
	if err != nil {
		return err
	}
	catalogue, err := a.catalogue()
	if err != nil {
		return err
	}
	rules := a.cfg.Rules()
	rows, err := api.Keys(ctx, s, &rules, catalogue, a.now(), data)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(api.ListOf(rows, next))
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out,
			a.fit("No routing keys yet. An agent creates one with POST /v1/route, or with a key in POST /v1/sessions.", ""))
		return err
	}
	table := make([][]string, len(rows))
	for i, r := range rows {
		context := "–"
		if r.Context.PercentUsed != nil {
			context = fmt.Sprintf("%d%%", *r.Context.PercentUsed)
		}
		state := ""
		if r.Stale {
			state = "stale"
		}
		table[i] = []string{
			r.Key, cmp.Or(r.Title, "–"), string(r.SessionID), fmt.Sprint(r.Generation), fmt.Sprint(r.Messages), context,
			transcript.Ago(r.ActiveAt.Time, a.now().In(a.cfg.Zone())), state,
		}
	}
	a.printTable([]column{
		{name: "key", least: 24, grow: true},
		{name: "name", least: 16, grow: true, keep: 3},
		{name: "session"},
		{name: "gen", right: true, keep: 4},
		{name: "messages", right: true, keep: 1},
		{name: "context", right: true, keep: 2},
		{name: "active"},
		{name: "", keep: 5},
	}, table)
	a.printMore(next)
	return nil
}

func (a *app) generations(ctx context.Context, s *store.Store, given string, f keysFlags) error {
	key, err := a.key(given)
	if err != nil {
		return err
	}
	label, data, next, err := s.Generations(ctx, key, store.Page{Limit: int(f.limit), Cursor: f.cursor})
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(struct {
			Key   string `json:"key"`
			Label string `json:"label,omitempty"`
			api.List[session.Session]
		}{key, label, api.ListOf(data, next)})
	}
	fmt.Fprintln(a.out, printable(strings.TrimSpace(key+"  "+label)))
	rules := a.cfg.Rules()
	class := routing.Classify(key)
	fmt.Fprintln(a.out, a.dim(policyLine(rules.Reset.Policy(class.Type, class.Channel), a.cfg.Timezone)))
	table := make([][]string, len(data))
	zone := a.cfg.Zone()
	for i := range data {
		g := &data[i]
		ended := "current"
		if g.EndedAt != nil {
			ended = g.EndedAt.In(zone).Format("2006-01-02 15:04") + "  " + g.EndReason
		}
		table[i] = []string{
			fmt.Sprint(g.Generation), string(g.ID), cmp.Or(g.Title, "–"), fmt.Sprint(g.SaidCount),
			g.CreatedAt.In(zone).Format("2006-01-02 15:04"), ended,
		}
	}
	a.printTable([]column{
		{name: "gen", right: true},
		{name: "session"},
		{name: "title", least: 16, grow: true},
		{name: "messages", right: true, keep: 2},
		{name: "began", keep: 1},
		{name: "ended"},
	}, table)
	a.printMore(next)
	return nil
}

// policyLine describes what ends a key's session.
func policyLine(p routing.Policy, zone string) string {
	daily := fmt.Sprintf("every day at %02d:00 (%s)", p.AtHour, zone)
	idle := ""
	if p.IdleMinutes != nil {
		idle = "after " + (time.Duration(*p.IdleMinutes) * time.Minute).String() + " without a message"
	}
	switch {
	case p.Mode == routing.ModeOff:
		return "a new session only on request"
	case p.Mode == routing.ModeIdle:
		return "a new session " + idle
	case idle != "":
		return "a new session " + daily + ", and " + idle
	}
	return "a new session " + daily
}

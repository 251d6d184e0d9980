package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

func (a *app) statsCommand() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use: "stats", Short: "Show totals of sessions, tokens, cost and savings by compaction",
		Long: "Shows totals of sessions, tokens, cost and savings by compaction: over all, by model, by\n" +
			"program, and for the last 14 days with activity. A cost with + lacks the calls of unknown price.",
		RunE: a.onPagedStore(func(ctx context.Context, s *store.Store, _ []string) error { return a.stats(ctx, s, f) }),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.source, "source", "", "only this `PROGRAM` (pi, codex, …)")
	fl.StringVar(&f.project, "project", "", "only this project `FOLDER`")
	fl.StringVar(&f.since, "since", "", "only since this `DAY`: 2026-02-11, 7d")
	fl.StringVar(&f.until, "until", "", "only before this `DAY`")
	return cmd
}

func (a *app) stats(ctx context.Context, s *store.Store, f lsFlags) error {
	filter, err := a.statsFilter(f)
	if err != nil {
		return err
	}
	st, err := analytics.New(s.Reader(), s.Zone()).Stats(ctx, filter)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(st)
	}
	cost := money(st.CostUSD, st.UnpricedCalls)
	for _, line := range [][2]string{
		{"sessions", humanize.Comma(st.Sessions)},
		{"messages", humanize.Comma(st.Messages)},
		{"input tokens", humanize.Comma(allInput(st.Tokens))},
		{"  from cache", humanize.Comma(st.Tokens.CacheRead)},
		{"  into cache", humanize.Comma(st.Tokens.CacheWrite)},
		{"output tokens", humanize.Comma(st.Tokens.Output)},
		{"cost", cost},
		{"compactions", fmt.Sprintf("%s, which saved %s tokens", humanize.Comma(st.Compactions.Count), humanize.Comma(st.Compactions.TokensSaved))},
	} {
		if _, err := fmt.Fprintf(a.out, "%-14s %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return a.printStatsTables(st)
}

// allInput is all input of the models, cached or not.
func allInput(t analytics.Tokens) int64 { return t.Input + t.CacheRead + t.CacheWrite }

// statsFilter parses the flags. Statistics count whole days of the configured time zone.
func (a *app) statsFilter(f lsFlags) (analytics.Filter, error) {
	out := analytics.Filter{Source: session.Source(f.source), Project: f.project}
	for _, d := range []struct {
		flag, value string
		to          *string
		whole       time.Duration
	}{{"--since", f.since, &out.Since, 0}, {"--until", f.until, &out.Until, -time.Millisecond}} {
		at, err := a.moment(d.flag, d.value)
		if err != nil {
			return out, err
		}
		if at != nil {
			*d.to = session.At(at.Add(d.whole)).Day(a.cfg.Zone())
		}
	}
	return out, nil
}

// printStatsTables prints the totals by model, by source and by the last days. Sessions and
// messages have no single model.
func (a *app) printStatsTables(st analytics.Stats) error {
	const lastDays = 14
	days := st.ByDay
	if len(days) > lastDays {
		days = days[len(days)-lastDays:]
	}
	var models []analytics.Bucket
	for _, b := range st.ByModel {
		if b.Calls > 0 {
			models = append(models, b)
		}
	}
	for _, t := range []struct {
		name    string
		buckets []analytics.Bucket
		label   func(analytics.Bucket) string
		talk    bool // with sessions and messages
	}{
		{"model", models, func(b analytics.Bucket) string { return b.Model }, false},
		{"source", st.BySource, func(b analytics.Bucket) string { return string(b.Source) }, true},
		{"day", days, func(b analytics.Bucket) string { return b.Day }, true},
	} {
		if len(t.buckets) == 0 {
			continue
		}
		cols := []column{{name: t.name, least: 12, grow: true}}
		if t.talk {
			cols = append(cols, column{name: "sessions", right: true, keep: 1}, column{name: "messages", right: true, keep: 3})
		}
		cols = append(cols, column{name: "calls", right: true, keep: 2}, column{name: "input", right: true, keep: 4},
			column{name: "output", right: true, keep: 5}, column{name: "cost", right: true})
		var rows [][]string
		for _, b := range t.buckets {
			row := []string{orDash(t.label(b))}
			if t.talk {
				row = append(row, humanize.Comma(b.Sessions), humanize.Comma(b.Messages))
			}
			rows = append(rows, append(row, humanize.Comma(b.Calls), humanize.Comma(allInput(b.Tokens)),
				humanize.Comma(b.Tokens.Output), orDash(money(b.CostUSD, b.UnpricedCalls))))
		}
		if _, err := fmt.Fprintln(a.out); err != nil {
			return err
		}
		a.printTable(cols, rows)
	}
	return nil
}

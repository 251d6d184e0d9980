package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/find"
	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

type statsFlags struct {
	lsFlags
	by  []string
	csv bool
}

func (a *app) statsCommand() *cobra.Command {
	var f statsFlags
	cmd := &cobra.Command{
		Use: "stats", Short: "Show tokens and cost, by day, project, program and model",
		Long: "Shows the totals of sessions, tokens and cost, and the same by project, program, model and day, newest day\n" +
			"first. A sub-agent counts for the project of the session that started it. --by chooses the groups. The " +
			"budget of\nthe configuration is compared with this month. --tag counts the sessions with a tag, on them " +
			"or on one of their\nmessages, and their sub-agents.",
		Example: "  sessiond stats --since 7d\n  sessiond stats --by project,day --since 30d --csv\n" +
			"  sessiond stats --by model --project ~/src/shop\n  sessiond stats --tag release",
		RunE: a.onPagedStore(func(ctx context.Context, s *store.Store, _ []string) error { return a.stats(ctx, s, f) }),
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.by, "by", nil, "group by these `COLUMNS`: day, week, month, project, program, model, purpose")
	fl.BoolVar(&f.csv, "csv", false, "print CSV; by day, unless --by says otherwise")
	filterFlags(cmd, &f.Request, find.Lists, "source", "project", "tag")
	fl.StringVar(&f.Since, "since", "", "only since this `DAY`: 2026-02-11, 2026-02, 7d")
	fl.StringVar(&f.Until, "until", "", "only before this `DAY`")
	return cmd
}

func (a *app) stats(ctx context.Context, s *store.Store, f statsFlags) error {
	by, err := parseDimensions(f.by)
	if err != nil {
		return err
	}
	filter, err := a.statsFilter(f.lsFlags)
	if err != nil {
		return err
	}
	reports := analytics.New(s.Reader(), s.Zone())
	if err := a.resolveFilter(ctx, reports, a.finder(s, nil), f.lsFlags, &filter); err != nil {
		return err
	}
	if f.csv && by == nil {
		by = []analytics.Dimension{analytics.ByDay}
	}
	projects, err := s.ProjectNames(ctx)
	if err != nil {
		return err
	}
	if by == nil {
		return a.printStats(ctx, reports, projects, filter)
	}
	usage, err := reports.Usage(ctx, filter, by...)
	switch {
	case err != nil:
		return err
	case a.flags.json:
		return a.printJSON(map[string]any{"by": by, "rows": usage})
	case f.csv:
		return a.printUsageCSV(by, usage)
	}
	return a.printUsage(projects, by, usage)
}

// parseDimensions parses --by. Codes: Invalid.
func parseDimensions(names []string) (by []analytics.Dimension, err error) {
	for _, name := range names {
		d := analytics.Dimension(strings.ToLower(strings.TrimSpace(name)))
		if d == "program" {
			d = analytics.BySource
		}
		if !slices.Contains(analytics.Groups(), d) {
			return nil,
				usagef("--by %q is not a column: use day, week, month, project, program, model, purpose, or several with commas",
					name)
		}
		if slices.Contains(by, d) {
			return nil, usagef("--by names %s twice", name)
		}
		by = append(by, d)
	}
	return by, nil
}

// statsFilter parses the times of the flags. Statistics count whole days of the configured time zone.
func (a *app) statsFilter(f lsFlags) (out analytics.Filter, err error) {
	for _, d := range []struct {
		flag, value string
		to          *string
		whole       time.Duration
	}{{"since", f.Since, &out.Since, 0}, {"until", f.Until, &out.Until, -time.Millisecond}} {
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

// resolveFilter replaces the names of a program and a project by those that are meant. Values are those of the usage,
// which also has that of deleted sessions.
func (a *app) resolveFilter(ctx context.Context, reports *analytics.Reports, finder *find.Finder, f lsFlags,
	filter *analytics.Filter,
) error {
	tag, err := finder.One(ctx, "tag", f.Tag)
	if err != nil {
		return orUsage(err)
	}
	filter.Tag = tag
	for _, m := range []struct {
		text string
		by   analytics.Dimension
		of   store.Column
	}{{f.Source, analytics.BySource, store.ColumnSource}, {f.Project, analytics.ByProject, store.ColumnProject}} {
		if m.text == "" {
			continue
		}
		usage, err := reports.Usage(ctx, analytics.Filter{}, m.by)
		if err != nil {
			return err
		}
		var values []store.Value
		for i := range usage {
			if text := usage[i].Of(m.by); text != "" {
				values = append(values, store.Value{Text: text, Sessions: usage[i].Sessions})
			}
		}
		value, err := finder.MeantOne(m.of, m.text, values)
		if err != nil {
			return orUsage(err)
		}
		if m.of == store.ColumnSource {
			filter.Source = session.Source(value)
		} else {
			filter.Project = value
		}
	}
	return nil
}

// Rows of the tables without --by.
const (
	mostProjects = 10
	mostDays     = 14
)

// printStats prints the totals, and tables by project, program, model and day.
func (a *app) printStats(ctx context.Context, reports *analytics.Reports, projects folders.Names,
	filter analytics.Filter,
) error {
	st, err := reports.Stats(ctx, filter)
	if err != nil {
		return err
	}
	spent, err := reports.Spent(ctx, a.cfg.Budget.Limits(), a.now())
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(struct {
			analytics.Stats
			Budget []analytics.Spent `json:"budget,omitempty"`
		}{st, spent})
	}
	sessions := humanize.Comma(st.Sessions - st.Subagents)
	if st.Subagents > 0 {
		sessions += ", and " + transcript.Counted(st.Subagents, "sub-agent")
	}
	for _, line := range [][2]string{
		{"sessions", sessions},
		{"prompts", humanize.Comma(st.Prompts)},
		{"input tokens", humanize.Comma(st.Tokens.AllInput())},
		{"  from cache", humanize.Comma(st.Tokens.CacheRead)},
		{"  into cache", humanize.Comma(st.Tokens.CacheWrite)},
		{"output tokens", humanize.Comma(st.Tokens.Output)},
		{"cost", cmp.Or(transcript.Money(st.NanoUSD(), st.UnpricedCalls), "–")},
		{"compactions", fmt.Sprintf("%s, which saved %s tokens", humanize.Comma(st.Compactions.Count),
			humanize.Comma(st.Compactions.TokensSaved))},
	} {
		if _, err := fmt.Fprintf(a.out, "%-14s %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	for i := range spent {
		s := &spent[i]
		fmt.Fprintf(a.out, "%-14s %s, %s in %s\n", "budget", s, s.Title(), s.Month)
	}
	slices.Reverse(st.ByDay)
	for _, t := range []struct {
		by      analytics.Dimension
		buckets []analytics.Bucket
		most    int
	}{
		{analytics.ByProject, st.ByProject, mostProjects},
		{analytics.BySource, st.BySource, len(st.BySource)},
		{analytics.ByModel, st.ByModel, len(st.ByModel)},
		{analytics.ByDay, st.ByDay, mostDays},
	} {
		if len(t.buckets) == 0 {
			continue
		}
		fmt.Fprintln(a.out)
		if err := a.printUsage(projects, []analytics.Dimension{t.by}, t.buckets[:min(len(t.buckets), t.most)]); err != nil {
			return err
		}
		if more := len(t.buckets) - t.most; more > 0 {
			fmt.Fprintln(a.out, a.dim(fmt.Sprintf("%d more: --by %s", more, t.by)))
		}
	}
	return nil
}

// valueName returns a value of a dimension as people call it.
func valueName(projects folders.Names, d analytics.Dimension, value string) string {
	switch {
	case value == "" && d == analytics.ByProject:
		return "(no project)"
	case value == "" && d == analytics.ByModel:
		return "(unknown)"
	case d == analytics.ByProject:
		value = projects.Of(value)
	}
	return cmp.Or(value, "–")
}

// columnName is a dimension as people call it.
func columnName(d analytics.Dimension) string {
	if d == analytics.BySource {
		return "program"
	}
	return string(d)
}

// printUsage prints a table with a row and a bar for each group.
func (a *app) printUsage(projects folders.Names, by []analytics.Dimension, usage []analytics.Bucket) error {
	if len(usage) == 0 {
		_, err := fmt.Fprintln(a.out, "Nothing was used in this time and by these filters.")
		return err
	}
	cols := make([]column, len(by))
	for i, d := range by {
		cols[i] = column{
			name: columnName(d), least: 12,
			grow: d != analytics.ByDay && d != analytics.ByWeek && d != analytics.ByMonth,
		}
	}
	// sessions have no single model
	talks := !slices.Contains(by, analytics.ByModel) && !slices.Contains(by, analytics.ByPurpose)
	if talks {
		cols = append(cols, column{name: "sessions", right: true, keep: 3}, column{name: "prompts", right: true, keep: 1})
	}
	cols = append(cols, column{name: "calls", right: true, keep: 2}, column{name: "input", right: true, keep: 4},
		column{name: "output", right: true, keep: 5}, column{name: "cost", right: true})
	rows := make([][]string, len(usage))
	var unpriced int64
	for i := range usage {
		b := &usage[i]
		for _, d := range by {
			rows[i] = append(rows[i], valueName(projects, d, b.Of(d)))
		}
		if talks {
			rows[i] = append(rows[i], humanize.Comma(b.Sessions-b.Subagents), humanize.Comma(b.Prompts))
		}
		cost := "–"
		if b.Calls > 0 {
			cost = transcript.ShortMoney(b.NanoUSD(), b.UnpricedCalls)
		}
		rows[i] = append(rows[i], humanize.Comma(b.Calls), humanize.Comma(b.Tokens.AllInput()),
			humanize.Comma(b.Tokens.Output), cost)
		unpriced += b.UnpricedCalls
	}
	a.printBars(cols, rows, usage)
	a.explainPlus(unpriced)
	return nil
}

// printBars prints a table with a last column of bars: of the cost, or of all tokens where nothing has a price.
func (a *app) printBars(cols []column, rows [][]string, usage []analytics.Bucket) {
	values, top := make([]float64, len(usage)), 0.0
	for _, inDollars := range []bool{true, false} {
		for i := range usage {
			if b := &usage[i]; !inDollars {
				values[i] = float64(b.Tokens.AllInput() + b.Tokens.Output)
			} else if b.CostUSD != nil {
				values[i] = *b.CostUSD
			}
			top = max(top, values[i])
		}
		if top > 0 {
			break
		}
	}
	const least, most = 8, 30
	width := most
	if a.columns() > 0 {
		naturalWidth := 0
		for _, w := range columnWidths(cols, rows) {
			naturalWidth += w + columnGap
		}
		width = max(least, min(most, a.columns()-naturalWidth))
	}
	if top > 0 {
		cols = append(cols, column{name: strings.Repeat(" ", width), keep: 2})
		for i := range rows {
			rows[i] = append(rows[i], bar(values[i]/top, width))
		}
	}
	a.printTable(cols, rows)
}

// bar draws a share of a width in columns, in eighths of one.
func bar(share float64, width int) string {
	eighths := int(share*float64(width)*8 + 0.5)
	if share > 0 {
		eighths = max(1, eighths)
	}
	full := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		full += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return full
}

// explainPlus says below a table what the + of a cost lacks.
func (a *app) explainPlus(unpriced int64) {
	if unpriced > 0 {
		fmt.Fprintln(a.out, a.dim(a.fit("+ and ?: "+transcript.Unpriced(unpriced), "")))
	}
}

func (a *app) printUsageCSV(by []analytics.Dimension, usage []analytics.Bucket) error {
	var header []string
	for _, d := range by {
		header = append(header, string(d))
	}
	rows := [][]string{append(header, "sessions", "subagents", "messages", "prompts", "calls", "input_tokens",
		"cache_read_tokens",
		"cache_write_tokens", "output_tokens", "cost_usd", "unpriced_calls")}
	for i := range usage {
		b := &usage[i]
		var row []string
		for _, d := range by {
			row = append(row, b.Of(d))
		}
		for _, n := range []int64{
			b.Sessions, b.Subagents, b.Messages, b.Prompts, b.Calls, b.Tokens.Input, b.Tokens.CacheRead,
			b.Tokens.CacheWrite, b.Tokens.Output,
		} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		cost := ""
		if b.CostUSD != nil {
			cost = strconv.FormatFloat(*b.CostUSD, 'f', -1, 64)
		}
		rows = append(rows, append(row, cost, strconv.FormatInt(b.UnpricedCalls, 10)))
	}
	return a.writeCSV(rows)
}

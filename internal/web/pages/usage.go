package pages

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"sessiond/internal/analytics"
	"sessiond/internal/card"
	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// usagePage is what models cost.
type usagePage struct {
	analytics.Stats
	Source string
	Chips  []chip
	Sinces []option
	Units  []option // of time, in the chart
	Splits []option // what the chart's colours are
	Facts  []fact
	Budget []spent
	Notes  []string // filters that name nothing
	Year   int      // of today, for its card
	Chart  *chart
	Dear   []dearRow
	Tables []usageTable
}

type fact struct{ Name, Value string }

// option is one of some views of usage.
type option struct {
	Name, Address string
	On            bool
}

// spent is a budget with what was used of it.
type spent struct {
	analytics.Spent
	Words string
}

// dearRow is a session that cost much.
type dearRow struct{ Title, Address, Project, Alone, With string }

type usageTable struct {
	Name    string
	OfCalls bool // sessions belong to no row
	Rows    []usageRow
	More    int // rows that are left out
}

type usageRow struct {
	Name, Address, Sessions, Calls, Input, Cached, Output, Cost string
}

const (
	listedDays   = 60
	mostProjects = 20
	mostDear     = 10
)

// oneOrItself returns the value that the text of a filter names; where no session has it, the text, and a note.
func (p *Pages) oneOrItself(ctx context.Context, page *usagePage, filter, text string) (string, error) {
	value, err := p.finder().One(ctx, filter, text)
	if session.CodeOf(err) == session.NotFound { // deleted sessions may have had it, and their usage stays
		page.Notes = append(page.Notes, sentence(err.Error()))
		return text, nil
	}
	return value, err
}

func (p *Pages) usage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	page := usagePage{Year: p.Now().In(p.Zone).Year()}
	var filter analytics.Filter
	since, err := p.finder().Moment("since", q.Get("since"))
	if err != nil {
		return err
	}
	if since != nil {
		filter.Since = since.Day(p.Zone)
	}
	source, err := p.oneOrItself(r.Context(), &page, "source", q.Get("source"))
	if err != nil {
		return err
	}
	filter.Source = session.Source(source)
	if filter.Project, err = p.oneOrItself(r.Context(), &page, "project", q.Get("project")); err != nil {
		return err
	}
	if filter.Tag, err = p.oneOrItself(r.Context(), &page, "tag", q.Get("tag")); err != nil {
		return err
	}
	for _, name := range []string{"source", "project", "tag"} {
		if value := q.Get(name); value != "" {
			page.Chips = append(page.Chips, chip{name, value, address("/usage", q, name, "")})
		}
	}
	names, err := p.Store.ProjectNames(r.Context())
	if err != nil {
		return err
	}
	if page.Stats, err = p.Reports.Stats(r.Context(), filter); err != nil {
		return err
	}
	page.Sinces = options(q, "since", "7d", "7 days", "30d", "30 days", "365d", "a year", "", "the beginning")
	page.Units = options(q, "unit", "", "day", "week", "week", "month", "month")
	page.Splits = options(q, "by", "", "nothing", "source", "program", "model", "model", "project", "project")
	if page.Chart, err = p.chartOf(r.Context(), filter, page.Stats.ByDay, q, names); err != nil {
		return err
	}
	budget, err := p.Reports.Spent(r.Context(), p.Budget, p.Now())
	if err != nil {
		return err
	}
	for _, s := range budget {
		page.Budget = append(page.Budget, spent{s, s.Title() + ": " + s.String() + " in " + s.Month})
	}
	if len(page.Chips) == 0 {
		if page.Dear, err = p.dear(r.Context(), since, names); err != nil {
			return err
		}
	}
	st := &page.Stats
	page.Facts = []fact{
		{"cost", transcript.Money(st.NanoUSD(), st.UnpricedCalls)},
		{"sessions", humanize.Comma(st.Sessions - st.Subagents)},
		{"sub-agents", humanize.Comma(st.Subagents)},
		{"prompts", humanize.Comma(st.Prompts)},
		{"input tokens", humanize.Comma(st.Tokens.AllInput())},
		{"from cache", transcript.Percent(st.Tokens.CacheRead, max(1, st.Tokens.AllInput()))},
		{"output tokens", humanize.Comma(st.Tokens.Output)},
		{"saved by compactions", humanize.Comma(st.Compactions.TokensSaved) + " tokens"},
	}
	days := slices.Clone(st.ByDay)
	slices.Reverse(days)
	page.Tables = []usageTable{
		table("project", st.ByProject, mostProjects, func(b *analytics.Bucket) (string, string) {
			if b.Project == "" {
				return "no project", ""
			}
			return names.Of(b.Project), address("/", nil, "project", b.Project)
		}),
		table("model", st.ByModel, len(st.ByModel), func(b *analytics.Bucket) (string, string) {
			if b.Model == "" {
				return "calls without a model's name", ""
			}
			return b.Model, address("/", nil, "model", b.Model)
		}),
		table("program", st.BySource, len(st.BySource), func(b *analytics.Bucket) (string, string) {
			return string(b.Source), address("/usage", q, "source", string(b.Source))
		}),
		table("day", days, listedDays, func(b *analytics.Bucket) (string, string) { return b.Day, "" }),
	}
	page.Tables[1].OfCalls = true
	return p.show(w, r, "usage", frame{Title: "Usage", Place: "usage", Body: page})
}

// options returns the choices of a parameter: values and their names in turn.
func options(q url.Values, name string, choices ...string) (all []option) {
	for i := 0; i+1 < len(choices); i += 2 {
		all = append(all, option{choices[i+1], address("/usage", q, name, choices[i]), q.Get(name) == choices[i]})
	}
	return all
}

// dear lists the sessions that cost most.
func (p *Pages) dear(ctx context.Context, since *session.Time, names folders.Names) (rows []dearRow, err error) {
	all, err := p.Store.Dearest(ctx, since, mostDear)
	for i := range all {
		d := &all[i]
		row := dearRow{
			Title: titleOf(&d.Session), Address: "/s/" + string(d.ID), Project: names.With(d.Project, d.Directory),
			Alone: "–", With: transcript.ShortMoney(d.With.CostNanoUSD, d.With.UnpricedCalls),
		}
		if d.CostNanoUSD != nil {
			row.Alone = transcript.ShortMoney(d.CostNanoUSD, d.UnpricedCalls)
		}
		rows = append(rows, row)
	}
	return rows, err
}

// year answers the card of a year: 2026.svg or 2026.png.
func (p *Pages) year(w http.ResponseWriter, r *http.Request) error {
	file := r.PathValue("file")
	number, err := strconv.Atoi(strings.TrimSuffix(file, path.Ext(file)))
	write, ok := card.WriterOf(file)
	if err != nil || number < 1970 || number > 9999 || !ok {
		return session.Errorf(session.NotFound, "there is no picture %.20q: one is /year/2026.svg or /year/2026.png", file)
	}
	year, err := p.Reports.Year(r.Context(), number)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(file)))
	return write(card.Draw(&year), w)
}

// table lists the first buckets of some that have anything.
func table(name string, buckets []analytics.Bucket, most int,
	label func(*analytics.Bucket) (name, to string),
) usageTable {
	t := usageTable{Name: name}
	for i := range buckets {
		b := &buckets[i]
		if b.Calls == 0 && b.Sessions == 0 {
			continue
		}
		if len(t.Rows) == most {
			t.More++
			continue
		}
		named, to := label(b)
		cost := "–"
		if b.Calls > 0 {
			cost = transcript.ShortMoney(b.NanoUSD(), b.UnpricedCalls)
		}
		t.Rows = append(t.Rows, usageRow{
			Name: named, Address: to, Sessions: dash(b.Sessions - b.Subagents), Calls: dash(b.Calls),
			Input: dash(b.Tokens.AllInput()), Cached: "–", Output: dash(b.Tokens.Output),
			Cost: cost,
		})
		if all := b.Tokens.AllInput(); all > 0 {
			t.Rows[len(t.Rows)-1].Cached = transcript.Percent(b.Tokens.CacheRead, all)
		}
	}
	return t
}

func dash(n int64) string {
	if n == 0 {
		return "–"
	}
	return humanize.Comma(n)
}

package pages

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"sessiond/internal/analytics"
	"sessiond/internal/card"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// usagePage is what models cost.
type usagePage struct {
	analytics.Stats
	Since, Source, Project string
	Sinces                 []since
	Facts                  []fact
	LastDay                string // of the plot
	Year                   int    // of today, for its card
	Bars                   []bar
	Top                    string // of the highest bar
	Tables                 []usageTable
}

type fact struct{ Name, Value string }

// since is a time from which usage can be shown.
type since struct {
	Name, Address string
	On            bool
}

// bar is a day in the plot, whose width and height are in percent.
type bar struct {
	Day, Says  string
	Address    string // the sessions of the day
	X, W, Y, H float64
}

type usageTable struct {
	Name    string
	OfCalls bool // sessions belong to no row
	Rows    []usageRow
	More    int // rows that are left out
}

type usageRow struct {
	Name, Address, Sessions, Calls, Input, Output, Cost string
}

const (
	plottedDays  = 60
	mostProjects = 20
)

// oneOrItself returns the value that the text of a filter names; where no session has it, the text: nothing was used.
func (p *Pages) oneOrItself(ctx context.Context, filter, text string) (string, error) {
	value, err := p.finder().One(ctx, filter, text)
	if session.CodeOf(err) == session.NotFound {
		return text, nil
	}
	return value, err
}

func (p *Pages) usage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	page := usagePage{
		Year: p.Now().In(p.Zone).Year(), Since: q.Get("since"), Source: q.Get("source"), Project: q.Get("project"),
	}
	var filter analytics.Filter
	if page.Since != "" {
		at, err := p.finder().Moment("since", page.Since)
		if err != nil {
			return err
		}
		filter.Since = at.Day(p.Zone)
	}
	source, err := p.oneOrItself(r.Context(), "source", page.Source)
	if err != nil {
		return err
	}
	filter.Source = session.Source(source)
	if filter.Project, err = p.oneOrItself(r.Context(), "project", page.Project); err != nil {
		return err
	}
	names, err := p.Store.ProjectNames(r.Context())
	if err != nil {
		return err
	}
	if page.Stats, err = p.Reports.Stats(r.Context(), filter); err != nil {
		return err
	}
	for _, s := range []since{{Name: "7 days"}, {Name: "30 days"}, {Name: "the beginning"}} {
		value := map[string]string{"7 days": "7d", "30 days": "30d"}[s.Name]
		s.Address, s.On = address("/usage", q, "since", value), page.Since == value
		page.Sinces = append(page.Sinces, s)
	}
	st := &page.Stats
	page.Facts = []fact{
		{"cost", transcript.Money(st.NanoUSD(), st.UnpricedCalls)},
		{"sessions", humanize.Comma(st.Sessions - st.Subagents)},
		{"sub-agents", humanize.Comma(st.Subagents)},
		{"prompts", humanize.Comma(st.Prompts)},
		{"input tokens", humanize.Comma(st.Tokens.AllInput())},
		{"output tokens", humanize.Comma(st.Tokens.Output)},
		{"saved by compactions", humanize.Comma(st.Compactions.TokensSaved) + " tokens"},
	}
	page.plot()
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
		table("day", days, plottedDays, func(b *analytics.Bucket) (string, string) { return b.Day, "" }),
	}
	page.Tables[1].OfCalls = true
	return p.show(w, r, "usage", frame{Title: "Usage", Place: "usage", Body: page})
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

// plot draws the cost of each day, or its tokens where nothing has a price.
func (u *usagePage) plot() {
	days := calendar(u.ByDay, plottedDays)
	value := func(b *analytics.Bucket) float64 {
		if u.CostUSD == nil {
			return float64(b.Tokens.AllInput() + b.Tokens.Output)
		}
		if b.CostUSD == nil {
			return 0
		}
		return *b.CostUSD
	}
	top := 0.0
	for i := range days {
		top = max(top, value(&days[i]))
	}
	if top == 0 {
		return
	}
	u.Top = humanize.SIWithDigits(top, 1, "") + " tokens"
	if u.CostUSD != nil {
		u.Top = transcript.Dollars(int64(top * 1e9))
	}
	u.LastDay = days[len(days)-1].Day
	width := 100 / float64(len(days))
	for i := range days {
		b := &days[i]
		h := 96 * value(b) / top
		u.Bars = append(u.Bars, bar{
			Day: b.Day, X: float64(i) * width, W: width * 0.8, Y: 100 - h, H: h,
			Address: address("/", nil, "since", b.Day, "until", dayAfter(b.Day)),
			Says: b.Day + ": " + cmp.Or(transcript.Money(b.NanoUSD(), b.UnpricedCalls), "no cost") + ", " +
				humanize.Comma(b.Tokens.AllInput()+b.Tokens.Output) + " tokens",
		})
	}
}

// calendar returns the last days of some, each in its place: days without use are there, too.
func calendar(used []analytics.Bucket, most int) (days []analytics.Bucket) {
	byDay := map[string]analytics.Bucket{}
	for _, b := range used {
		byDay[b.Day] = b
	}
	if len(used) == 0 {
		return nil
	}
	last, err := time.Parse(time.DateOnly, used[len(used)-1].Day)
	if err != nil {
		return used
	}
	for back := most - 1; back >= 0; back-- {
		day := last.AddDate(0, 0, -back).Format(time.DateOnly)
		if b, ok := byDay[day]; ok {
			days = append(days, b)
		} else if day > used[0].Day {
			days = append(days, analytics.Bucket{Day: day})
		}
	}
	return days
}

func dayAfter(day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return ""
	}
	return at.AddDate(0, 0, 1).Format(time.DateOnly)
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
			Input: dash(b.Tokens.AllInput()), Output: dash(b.Tokens.Output),
			Cost: cost,
		})
	}
	return t
}

func dash(n int64) string {
	if n == 0 {
		return "–"
	}
	return humanize.Comma(n)
}

package pages

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"sessiond/internal/card"
	"sessiond/internal/find"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// Limits of what the filters of a list offer.
const (
	mostCounted = 5000 // sessions, the newest ones
	mostOffered = 1000 // of which the values are offered without counts, as beside a search
	mostChoices = 100  // of a control
)

// filterForm is the filters of a list as controls.
type filterForm struct {
	Selects []selection
	Checks  []check
	Keep    []chip // filters without a control
	Count   string // of the sessions that pass
	Clear   bool   // a filter is on
}

// selection is a control with one choice.
type selection struct {
	Name, Label, Any string
	Choices          []choice
}

type choice struct {
	Value, Text string
	On          bool
}

type check struct {
	Name, Value, Label string
	On                 bool
}

// withoutEmpty returns the parameters that have a value.
func withoutEmpty(q url.Values) url.Values {
	clean := url.Values{}
	for name, values := range q {
		if values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" }); len(values) > 0 {
			clean[name] = values
		}
	}
	return clean
}

// fillForm fills the controls. With counted it counts the sessions that pass the filter, and for each control those
// that would pass with another choice.
func (p *Pages) fillForm(ctx context.Context, page *homePage, q url.Values, filter store.Filter, counted bool) error {
	form := &page.Form
	newest := mostCounted
	if !counted {
		newest = mostOffered
	}
	facets, err := p.Store.Facets(ctx, filter, newest)
	if err != nil {
		return err
	}
	if form.Count = transcript.Counted(facets.Sessions, "session"); facets.More {
		form.Count += " of the newest " + humanize.Comma(mostCounted)
	}
	if !counted {
		form.Count = ""
	}
	tags, err := p.Store.Values(ctx, store.ColumnTag)
	if err != nil {
		return err
	}
	facets.Values[store.ColumnTag] = tags
	for _, control := range []struct {
		name, label string
		column      store.Column
	}{
		{"project", "Project", store.ColumnProject},
		{"source", "Program", store.ColumnSource},
		{"model", "Model", store.ColumnModel},
		{"branch", "Branch", store.ColumnBranch},
		{"tag", "Tag", store.ColumnTag},
	} {
		values, on := facets.Values[control.column], q.Get(control.name)
		s := selection{Name: control.name, Label: control.label, Any: "any"}
		found := on == ""
		for _, v := range values[:min(len(values), mostChoices)] {
			text := v.Text
			if control.column == store.ColumnProject {
				text = page.names.Of(v.Text)
			}
			if text = transcript.OneLine(text, 40); counted {
				text += " (" + humanize.Comma(v.Sessions) + ")"
			}
			chosen := on == v.Text || len(filter.Among[control.column]) == 1 && filter.Among[control.column][0] == v.Text
			found = found || chosen
			s.Choices = append(s.Choices, choice{v.Text, text, chosen})
		}
		if !found {
			s.Choices = append(s.Choices, choice{on, transcript.OneLine(on, 40), true})
		}
		if len(s.Choices) > 0 {
			form.Selects = append(form.Selects, s)
		}
	}
	form.Selects = append(form.Selects, sinceControl(q.Get("since")))
	for _, c := range []check{
		{"starred", "true", "starred", false},
		{"archived", "true", "archived", false},
		{"errors", "true", "with errors", false},
		{"all", "1", "sub-agents and automated ones, too", false},
	} {
		c.On = q.Get(c.Name) != ""
		form.Checks = append(form.Checks, c)
	}
	for _, c := range chips(q, append(find.Names(find.Lists|find.Searches), "q")) {
		form.Clear = true
		if !slices.ContainsFunc(form.Selects, func(s selection) bool { return s.Name == c.Name }) &&
			!slices.ContainsFunc(form.Checks, func(k check) bool { return k.Name == c.Name }) {
			form.Keep = append(form.Keep, c)
		}
	}
	form.Clear = form.Clear || q.Get("all") != ""
	return nil
}

// sinceControl chooses how far back a list goes.
func sinceControl(on string) selection {
	s := selection{Name: "since", Label: "Time", Any: "any"}
	for _, c := range [][2]string{{"today", "today"}, {"7d", "7 days"}, {"30d", "30 days"}, {"365d", "a year"}} {
		s.Choices = append(s.Choices, choice{c[0], c[1], c[0] == on})
	}
	if on != "" && !slices.ContainsFunc(s.Choices, func(c choice) bool { return c.On }) {
		s.Choices = append(s.Choices, choice{on, "since " + transcript.OneLine(on, 30), true})
	}
	return s
}

// yearMap is the year until today as a heat map, and today by hour.
type yearMap struct {
	Width  int
	Months []label
	Blank  string // path of the days without a prompt
	Days   []cell
	Hours  []cell
	Today  string // what it says of today
}

type label struct {
	X    int
	Text string
}

// cell is a linked part of a drawing.
type cell struct {
	Shade    int
	Path     string
	On, Says string // value of the filter, and what is there
	Last     bool   // Tab goes to this one alone; arrows go on from there
}

// Sizes of the drawing, in its own units.
const (
	dayStep   = 10
	daySide   = 8
	mapTop    = 12
	mapHeight = mapTop + 7*dayStep
	hourHigh  = 60
)

// yearMap draws the prompts of a year, of the projects and programs of a filter.
func (p *Pages) yearMap(ctx context.Context, q url.Values, filter store.Filter) (*yearMap, error) {
	now := p.Now().In(p.Zone)
	last := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	first := last.AddDate(-1, 0, 1)
	today := last.Format(time.DateOnly)
	active, err := p.Store.Activity(ctx, first.Format(time.DateOnly), today, filter.Among[store.ColumnProject],
		filter.Among[store.ColumnSource])
	if err != nil || len(active.ByDay) == 0 {
		return nil, err
	}
	out := &yearMap{}
	square := func(b []byte, x, y int) []byte {
		return fmt.Appendf(b, "M%d %dh%dv%dh-%dz", x, y, daySide, daySide, daySide)
	}
	var blank []byte
	for _, c := range card.Cells(first, last, active.ByDay) {
		x, y := c.Week*dayStep, mapTop+c.Weekday*dayStep
		out.Width = x + dayStep
		if c.Day.Day() == 1 {
			out.Months = append(out.Months, label{x, c.Day.Format("Jan")})
		}
		if c.Prompts == 0 {
			blank = square(blank, x, y)
			continue
		}
		out.Days = append(out.Days, cell{
			c.Shade, string(square(nil, x, y)), c.Day.Format(time.DateOnly),
			c.Day.Format("2 Jan") + ": " + transcript.Count(c.Prompts), false,
		})
	}
	out.Blank = string(blank)
	if n := len(out.Days); n > 0 {
		out.Days[n-1].Last = true
	}
	most := max(1, slices.Max(active.ByHour[:]))
	for hour, n := range active.ByHour {
		if n == 0 {
			continue
		}
		high := max(3, int(hourHigh*n/most))
		at := time.Date(now.Year(), now.Month(), now.Day(), hour, 0, 0, 0, p.Zone)
		out.Hours = append(out.Hours, cell{
			4, string(fmt.Appendf(nil, "M%d %dh%dv%dh-%dz", hour*dayStep, hourHigh-high, daySide, high, daySide)),
			at.Format("2006-01-02T15:04"), at.Format("15:04") + ": " + transcript.Counted(n, "prompt"), false,
		})
	}
	out.Today = transcript.Counted(active.ByDay[today], "prompt") + " today"
	base := address("/", q, "on", "", "since", "", "until", "", "cursor", "")
	if strings.Contains(base, "?") {
		base += "&on="
	} else {
		base += "?on="
	}
	for _, cells := range [][]cell{out.Days, out.Hours} {
		for i := range cells {
			cells[i].On = base + cells[i].On
		}
	}
	return out, nil
}

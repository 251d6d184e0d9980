package pages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"sessiond/internal/analytics"
	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
	"sessiond/internal/when"
)

// Sizes of the chart, in its own units.
const (
	chartWide   = 960
	chartHigh   = 240
	chartLeft   = 60
	chartTop    = 12
	chartBottom = 24 // for dates
	mostColours = 5  // and one for the rest
	mostDates   = 8
)

// chart is usage over time as bars: cost, or tokens where nothing has a price.
type chart struct {
	Of     string // cost or tokens
	Unit   string
	Ticks  []tick // of the axis at the left
	Dates  []tick
	Bars   []bar
	Legend []key
}

// tick is a line of an axis, or a date below.
type tick struct {
	X, Y float64
	Text string
}

// bar is a day, a week or a month. It leads to its sessions.
type bar struct {
	Address, Says string
	Parts         []part
}

type part struct {
	Colour     int
	X, Y, W, H float64
}

type key struct {
	Colour    int
	Name, Sum string
}

// unit is a day, a week or a month of the chart.
type unit struct {
	label    string // of analytics
	from, to time.Time
}

// chartOf draws the usage that passes a filter. The parameter unit is day, week or month, by is what its colours are.
// nil: nothing was used. days is the usage by day, which is known already.
func (p *Pages) chartOf(ctx context.Context, filter analytics.Filter, days []analytics.Bucket, q url.Values,
	names folders.Names,
) (*chart, error) {
	over, most, span := analytics.ByDay, 60, "day"
	switch q.Get("unit") {
	case "week":
		over, most, span = analytics.ByWeek, 53, "week"
	case "month":
		over, most, span = analytics.ByMonth, 24, "month"
	case "", "day":
	default:
		return nil, session.Errorf(session.Invalid, "unit %.20q is not day, week or month", q.Get("unit"))
	}
	by := []analytics.Dimension{over}
	split := analytics.Dimension(q.Get("by"))
	switch split {
	case "":
	case analytics.BySource, analytics.ByModel, analytics.ByProject:
		by = append(by, split)
	default:
		return nil, session.Errorf(session.Invalid, "by %.20q is not source, model or project", q.Get("by"))
	}
	buckets := days
	if over != analytics.ByDay || split != "" {
		var err error
		if buckets, err = p.Reports.Usage(ctx, filter, by...); err != nil {
			return nil, err
		}
	}
	u := usedOver(buckets, over, split, most)
	if u == nil {
		return nil, nil
	}
	c := &chart{Of: u.of, Unit: span}
	u.draw(c, filter)
	if split != "" {
		c.Legend = u.legend(names)
	}
	return c, nil
}

// used is what a chart shows.
type used struct {
	over, split analytics.Dimension // "": without colours
	units       []unit
	parts       map[string]map[string]float64 // by label of the unit and value of the split
	sums        map[string]float64            // by value of the split
	order       []string                      // these values, the largest sum first
	of          string                        // cost or tokens
	words       func(float64) string          // writes an amount
}

// usedOver sums up buckets by units of time, the last ones, and by the values of split. nil: nothing was used.
func usedOver(buckets []analytics.Bucket, over, split analytics.Dimension, most int) *used {
	u := &used{
		over: over, split: split, units: unitsOf(buckets, over, most), parts: map[string]map[string]float64{},
		sums: map[string]float64{}, of: "tokens", words: func(v float64) string { return humanize.SIWithDigits(v, 1, "") },
	}
	value := func(b *analytics.Bucket) float64 { return float64(b.Tokens.AllInput() + b.Tokens.Output) }
	if slices.ContainsFunc(buckets, func(b analytics.Bucket) bool { return b.CostUSD != nil && *b.CostUSD > 0 }) {
		u.of, u.words = "cost", func(v float64) string { return transcript.Dollars(int64(v * 1e9)) }
		value = func(b *analytics.Bucket) float64 {
			if b.CostUSD == nil {
				return 0
			}
			return *b.CostUSD
		}
	}
	for _, one := range u.units {
		u.parts[one.label] = map[string]float64{}
	}
	for i := range buckets {
		b := &buckets[i]
		if parts := u.parts[b.Of(over)]; parts != nil {
			name := ""
			if split != "" {
				name = b.Of(split)
			}
			parts[name] += value(b)
			u.sums[name] += value(b)
		}
	}
	u.order = slices.SortedFunc(maps.Keys(u.sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(u.sums[b], u.sums[a]), cmp.Compare(a, b))
	})
	if u.top() == 0 {
		return nil
	}
	return u
}

// top returns the largest sum of a unit.
func (u *used) top() (top float64) {
	for _, parts := range u.parts {
		all := 0.0
		for _, v := range parts {
			all += v
		}
		top = max(top, all)
	}
	return top
}

// draw places the axis, the dates and the bars. A bar leads to the sessions of its time that pass the filter.
func (u *used) draw(c *chart, filter analytics.Filter) {
	top := u.top()
	step := niceStep(top)
	top = math.Ceil(top/step) * step
	high := float64(chartHigh - chartTop - chartBottom)
	for v := 0.0; v <= top+step/2; v += step {
		c.Ticks = append(c.Ticks, tick{chartLeft - 6, chartTop + high*(1-v/top), u.words(v)})
	}
	wide := float64(chartWide-chartLeft) / float64(len(u.units))
	every := (len(u.units) + mostDates - 1) / mostDates
	for i, one := range u.units {
		x := chartLeft + float64(i)*wide
		if i%every == 0 {
			c.Dates = append(c.Dates, tick{x, chartHigh - 6, one.name(u.over)})
		}
		bar := bar{Address: address("/", url.Values{}, "since", one.from.Format(time.DateOnly),
			"until", one.to.Format(time.DateOnly), "source", string(filter.Source), "project", filter.Project,
			"tag", filter.Tag)}
		y, sum := chartTop+high, 0.0
		for at, name := range u.order {
			if v := u.parts[one.label][name]; v > 0 {
				h := high * v / top
				y, sum = y-h, sum+v
				bar.Parts = append(bar.Parts, part{min(at, mostColours), rounded(x), rounded(y), rounded(wide * 0.8), rounded(h)})
			}
		}
		bar.Says = one.name(u.over) + ": " + u.words(sum)
		if len(bar.Parts) > 0 {
			c.Bars = append(c.Bars, bar)
		}
	}
}

// legend names the colours. The last one is of all values that have none of their own.
func (u *used) legend(names folders.Names) (keys []key) {
	for at, name := range u.order[:min(len(u.order), mostColours+1)] {
		k := key{Colour: at, Name: nameIn(u.split, name, names), Sum: u.words(u.sums[name])}
		if at == mostColours && len(u.order) > at+1 { // one alone keeps its name
			rest := 0.0
			for _, other := range u.order[at:] {
				rest += u.sums[other]
			}
			k.Name, k.Sum = strconv.Itoa(len(u.order)-at)+" others", u.words(rest)
		}
		keys = append(keys, k)
	}
	return keys
}

// nameIn returns a value of a dimension as people call it.
func nameIn(d analytics.Dimension, value string, names folders.Names) string {
	switch {
	case value == "":
		return "no " + string(d)
	case d == analytics.ByProject:
		return names.Of(value)
	}
	return value
}

// rounded leaves a tenth of a unit.
func rounded(v float64) float64 { return math.Round(v*10) / 10 }

// niceStep returns the distance of the lines of an axis: 1, 2 or 5 times a power of ten, three to six of them.
func niceStep(top float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(top/3)))
	for _, times := range []float64{5, 2} {
		if step*times <= top/3 {
			return step * times
		}
	}
	return step
}

// unitsOf returns the last units of time until the last one that was used, each in its place.
func unitsOf(buckets []analytics.Bucket, over analytics.Dimension, most int) (units []unit) {
	var first, last time.Time
	for i := range buckets {
		at, ok := beginOf(buckets[i].Of(over), over)
		if ok && (first.IsZero() || at.Before(first)) {
			first = at
		}
		if ok && at.After(last) {
			last = at
		}
	}
	if first.IsZero() {
		return nil
	}
	for at := last; !at.Before(first) && len(units) < most; at = stepped(at, over, -1) {
		units = append(units, unit{labelOf(at, over), at, stepped(at, over, 1)})
	}
	slices.Reverse(units)
	return units
}

func stepped(at time.Time, over analytics.Dimension, n int) time.Time {
	switch over {
	case analytics.ByWeek:
		return at.AddDate(0, 0, 7*n)
	case analytics.ByMonth:
		return at.AddDate(0, n, 0)
	}
	return at.AddDate(0, 0, n)
}

// labelOf is how analytics calls a unit.
func labelOf(at time.Time, over analytics.Dimension) string {
	switch over {
	case analytics.ByWeek:
		year, week := at.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	case analytics.ByMonth:
		return at.Format("2006-01")
	}
	return at.Format(time.DateOnly)
}

// beginOf returns the first day of a unit as analytics calls it.
func beginOf(label string, over analytics.Dimension) (at time.Time, ok bool) {
	var err error
	switch over {
	case analytics.ByWeek:
		week, ok := when.Week(label, time.UTC)
		return week.From, ok
	case analytics.ByMonth:
		at, err = time.Parse("2006-01", label)
	default:
		at, err = time.Parse(time.DateOnly, label)
	}
	return at, err == nil
}

// name is what people call the unit.
func (u *unit) name(over analytics.Dimension) string {
	switch over {
	case analytics.ByWeek:
		return "week of " + u.from.Format("2 Jan")
	case analytics.ByMonth:
		return u.from.Format("Jan 2006")
	}
	return u.from.Format("2 Jan")
}

// Package card draws a year of conversations as one picture, SVG or PNG, of sums alone: no word of a conversation
// and no name of a project is on it.
package card

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"sessiond/internal/analytics"
	"sessiond/internal/transcript"
)

// Size of a card, in pixels: what sites show of a link.
const (
	width  = 1200
	height = 630
	margin = 60
)

var (
	ground = color.RGBA{0x12, 0x16, 0x1c, 0xff}
	ink    = color.RGBA{0xf3, 0xf4, 0xf2, 0xff}
	soft   = color.RGBA{0x96, 0x9f, 0xab, 0xff}
	accent = color.RGBA{0x53, 0xb9, 0x8c, 0xff}
	// shades of a day, by its prompts: none to most
	shades = [...]color.RGBA{
		{0x22, 0x28, 0x31, 0xff},
		{0x1d, 0x4a, 0x3b, 0xff},
		{0x2a, 0x70, 0x56, 0xff},
		{0x3c, 0x97, 0x72, 0xff},
		{0x6f, 0xd6, 0xa8, 0xff},
	}
)

// Picture is what a card consists of.
type Picture struct {
	name  string // for those who do not see it
	boxes []box
	texts []text
}

// box is a filled rectangle with round corners.
type box struct {
	x, y, w, h, round float64
	color             color.RGBA
}

// anchor is the point of a text that is at its place.
type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	end    anchor = "end"
)

// text is a line of text on its baseline.
type text struct {
	x, y, size float64
	bold       bool
	at         anchor
	color      color.RGBA
	words      string
}

func (p *Picture) box(x, y, w, h, round float64, c color.RGBA) {
	p.boxes = append(p.boxes, box{x, y, w, h, round, c})
}

func (p *Picture) write(x, y, size float64, at anchor, c color.RGBA, words string) {
	p.texts = append(p.texts, text{x, y, size, false, at, c, words})
}

func (p *Picture) writeBold(x, y, size float64, words string) {
	p.texts = append(p.texts, text{x, y, size, true, start, ink, words})
}

// Draw draws the card of a year.
func Draw(y *analytics.Year) *Picture {
	p := &Picture{name: fmt.Sprintf("%d with agents: %s conversations in %s hours", y.Year,
		humanize.Comma(y.Sessions-y.Subagents), humanize.Comma(y.Hours))}
	p.box(0, 0, width, height, 0, ground)
	p.writeBold(margin, 92, 44, fmt.Sprintf("%d with agents", y.Year))
	p.write(width-margin, 92, 22, end, soft, "sessiond")
	p.figures(y)
	p.days(y, 280)
	p.programs(y, 478)
	p.hours(y, 478)
	p.write(margin, height-22, 14, start, soft,
		"Made on my own host, from what my agents keep there. Nothing was sent anywhere.")
	return p
}

// figures writes the sums of the year, side by side.
func (p *Picture) figures(y *analytics.Year) {
	cost := "no price"
	if y.CostUSD != nil {
		cost = "$" + humanize.Comma(int64(math.Round(*y.CostUSD)))
	}
	costLabel := "at list prices"
	if y.UnpricedCalls > 0 && y.CostUSD != nil {
		costLabel = "at least, at list prices"
	}
	figures := []struct{ value, label string }{
		{humanize.Comma(y.Hours), nounOf(y.Hours, "hour") + " on " + transcript.Counted(int(y.Days), "day")},
		{humanize.Comma(y.Sessions - y.Subagents), nounOf(y.Sessions-y.Subagents, "conversation")},
		{humanize.Comma(y.Prompts), nounOf(y.Prompts, "prompt")},
		{transcript.ShortCount(y.Tokens.AllInput() + y.Tokens.Output), "tokens"},
		{cost, costLabel},
	}
	column := float64(width-2*margin) / float64(len(figures))
	for i, f := range figures {
		x := margin + float64(i)*column
		p.writeBold(x, 170, 40, f.value)
		p.write(x, 200, 17, start, soft, f.label)
	}
}

// nounOf returns a noun as it stands below its number.
func nounOf(n int64, noun string) string {
	_, noun, _ = strings.Cut(transcript.Counted(n, noun), " ")
	return noun
}

// days draws the year as weeks from left to right, Monday at the top.
func (p *Picture) days(y *analytics.Year, top float64) {
	const step, side = 20, 16
	first := time.Date(y.Year, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range Cells(first, first.AddDate(1, 0, -1), y.ByDay) {
		x := margin + float64(c.Week*step)
		if c.Day.Day() == 1 {
			p.write(x, top-12, 14, start, soft, c.Day.Format("Jan"))
		}
		p.box(x, top+float64(c.Weekday*step), side, side, 3, shades[c.Shade])
	}
}

// Cell is a day of a heat map.
type Cell struct {
	Day     time.Time // its midnight, UTC
	Prompts int64
	Week    int // its column, from 0
	Weekday int // its row; 0 is Monday
	Shade   int // 0 (no prompt) to 4
}

// Cells places the days from the first to the last one as weeks, with the prompts that byDay (YYYY-MM-DD) has.
func Cells(first, last time.Time, byDay map[string]int64) (cells []Cell) {
	most := int64(0)
	for _, n := range byDay {
		most = max(most, n)
	}
	place := (int(first.Weekday()) + 6) % 7 // days of its week before it
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		n := byDay[day.Format(time.DateOnly)]
		cells = append(cells, Cell{day, n, place / 7, place % 7, shadeOf(n, most)})
		place++
	}
	return cells
}

// shadeOf returns the shade of a day with n prompts: by its square root, so that one long day does not make the
// others alike.
func shadeOf(n, most int64) int {
	if n <= 0 || most <= 0 {
		return 0
	}
	steps := float64(len(shades) - 1)
	return int(math.Ceil(steps * math.Sqrt(float64(n)/float64(most))))
}

// mostPrograms is how many programs have a line.
const mostPrograms = 4

// programs draws a bar for each of the programs with the most conversations.
func (p *Picture) programs(y *analytics.Year, top float64) {
	const from, long = margin + 150, 330
	of := programsOf(y)
	most := int64(1)
	for i := range of {
		most = max(most, of[i].sessions)
	}
	for i, program := range of {
		at := top + float64(i)*28
		p.write(margin, at+14, 16, start, ink, program.name)
		p.box(from, at+2, max(3, long*float64(program.sessions)/float64(most)), 14, 3, accent)
		p.write(from+long+14, at+14, 16, start, soft, humanize.Comma(program.sessions))
	}
}

// hours draws the prompts by hour of the day.
func (p *Picture) hours(y *analytics.Year, top float64) {
	const left, step, wide, high = 700, 18.3, 14, 84
	most := max(1, slices.Max(y.ByHour[:]))
	for hour, n := range y.ByHour {
		x, tall := left+float64(hour)*step, max(2, high*float64(n)/float64(most))
		p.box(x, top+high-tall, wide, tall, 2, accent)
		if hour%6 == 0 {
			p.write(x+wide/2, top+high+20, 14, middle, soft, fmt.Sprintf("%d:00", hour))
		}
	}
}

type program struct {
	name     string
	sessions int64
}

// programsOf returns the programs with the most conversations. The last of many stands for the rest.
func programsOf(y *analytics.Year) (of []program) {
	for i := range y.BySource {
		if b := &y.BySource[i]; b.Sessions > b.Subagents {
			of = append(of, program{string(b.Source), b.Sessions - b.Subagents})
		}
	}
	slices.SortStableFunc(of, func(a, b program) int { return cmp.Compare(b.sessions, a.sessions) })
	if len(of) > mostPrograms {
		for _, rest := range of[mostPrograms:] {
			of[mostPrograms-1].sessions += rest.sessions
		}
		of[mostPrograms-1].name = transcript.Counted(len(of)-mostPrograms+1, "other")
		of = of[:mostPrograms]
	}
	return of
}

// WriterOf returns what writes a picture to a file of that name: .svg or .png.
func WriterOf(file string) (write func(*Picture, io.Writer) error, ok bool) {
	switch filepath.Ext(file) {
	case ".svg":
		return (*Picture).SVG, true
	case ".png":
		return (*Picture).PNG, true
	}
	return nil, false
}

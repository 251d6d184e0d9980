package transcript

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Bar draws a share in width columns with its percentage: ▓▓▓▓▓▓░░░░ 62 %. A share above one fills the
// bar. Below nine columns only the number is left.
func Bar(share float64, width int) string {
	if math.IsNaN(share) || share < 0 {
		share = 0
	}
	percent := fmt.Sprintf("%3.0f %%", math.Min(share, 99.99)*100)
	if share > 0 && share < 0.01 {
		percent = " <1 %"
	}
	blocks := width - Width(percent) - 1
	if blocks < 3 {
		return strings.TrimSpace(percent)
	}
	full := int(math.Round(math.Min(share, 1) * float64(blocks)))
	if full == blocks && share < 1 {
		full-- // only a full window fills the bar
	}
	if full == 0 && share > 0 {
		full = 1
	}
	return strings.Repeat("▓", full) + strings.Repeat("░", blocks-full) + " " + percent
}

// Percent formats a part of a whole: 37 %, <1 %.
func Percent(part, whole int64) string {
	if part > 0 && part*100 < whole {
		return "<1 %"
	}
	return fmt.Sprintf("%d %%", (part*100+whole/2)/max(whole, 1))
}

// Count formats a number with commas: 45,210.
func Count(n int64) string { return humanize.Comma(n) }

// Size formats a number of bytes: 12 kB, with 1 kB = 1,000 bytes.
func Size(bytes int64) string { return humanize.Bytes(uint64(max(0, bytes))) }

// Counted formats a number of things: 1 message, 45,210 messages.
func Counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Count(int64(n)) + " " + noun
}

// LastFolder returns the last element of a path of any system.
func LastFolder(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// Money formats nano-dollars and how many calls without a known price the sum lacks: $1.25,
// "$12.10 + 3 calls without a price"; "" without any call.
func Money(nano *int64, unpriced int64) string {
	missing := ""
	if unpriced > 0 {
		missing = Unpriced(unpriced)
	}
	switch {
	case nano == nil:
		return missing
	case unpriced > 0:
		return Dollars(*nano) + " + " + missing
	}
	return Dollars(*nano)
}

// Unpriced names a number of calls without a known price.
func Unpriced(calls int64) string { return Counted(calls, "call") + " without a price" }

// ShortMoney is Money for a column of a table, under which Unpriced explains the sign: "$12.10+", "?".
func ShortMoney(nano *int64, unpriced int64) string {
	switch {
	case nano == nil && unpriced > 0:
		return "?"
	case nano == nil:
		return ""
	case unpriced > 0:
		return Dollars(*nano) + "+"
	}
	return Dollars(*nano)
}

// Dollars formats nano-dollars: $0.0042, $1.25, $1,250.00.
func Dollars(nano int64) string {
	dollars := float64(nano) / 1e9
	switch {
	case nano == 0:
		return "$0"
	case dollars < 0.0001:
		return "<$0.0001"
	case dollars < 0.1:
		return fmt.Sprintf("$%.4f", dollars)
	}
	return "$" + humanize.FormatFloat("#,###.##", dollars)
}

// Ago formats how long ago t was, up to a day; then the day and time within a week, else the date, in
// the zone of now.
func Ago(t, now time.Time) string {
	t = t.In(now.Location())
	switch d := now.Sub(t); {
	case d < -time.Minute:
		return t.Format("2006-01-02 15:04")
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 7*24*time.Hour:
		return t.Format("Mon 15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006")
}

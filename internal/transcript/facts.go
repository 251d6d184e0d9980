package transcript

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"sessiond/internal/session"
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

// Costs says what a session cost, alone and with its sub-agents: $7.46, "$7.46 alone, $14.34 with 12 sub-agents". ""
// where nothing is known.
func Costs(s *session.Session, m *session.Measure) string {
	alone := Money(s.CostNanoUSD, s.UnpricedCalls)
	if m.Rollup == nil {
		return alone
	}
	agents, all := Counted(m.Rollup.Children, "sub-agent"), Money(m.Rollup.CostNanoUSD, m.Rollup.UnpricedCalls)
	switch {
	case all == "":
		return agents
	case alone == "":
		return all + " with " + agents
	}
	return alone + " alone, " + all + " with " + agents
}

// CostCell is the cost of a session in a list, and how many of its calls have no price. Where its sub-agents are folded
// under it, the cost is that with them.
func CostCell(s *session.Session, m *session.Measure, folded bool) (cell string, unpriced int64) {
	if folded && m.Rollup != nil {
		return ShortMoney(m.Rollup.CostNanoUSD, m.Rollup.UnpricedCalls), m.Rollup.UnpricedCalls
	}
	return ShortMoney(s.CostNanoUSD, s.UnpricedCalls), s.UnpricedCalls
}

// Context says how large a context is: "context 82k of 200k tokens (41 %)", "context about 82k tokens (estimate)"; ""
// for an empty one.
func Context(c session.ContextSize) string {
	if c.Tokens == 0 {
		return ""
	}
	var notes []string
	text := "context " + ShortCount(c.Tokens)
	if !c.Reported {
		text = "context about " + ShortCount(c.Tokens)
	}
	if c.Window > 0 {
		text += " of " + ShortCount(c.Window)
		notes = append(notes, Percent(c.Tokens, c.Window))
	}
	if !c.Reported {
		notes = append(notes, "estimate")
	}
	text += " tokens"
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// ContextShare is the part of its window that a context fills: 41 %, "about 41 %" for an estimate; "" if that is not
// known.
func ContextShare(c session.ContextSize) string {
	switch {
	case c.Tokens == 0 || c.Window == 0:
		return ""
	case c.Reported:
		return Percent(c.Tokens, c.Window)
	}
	return "about " + Percent(c.Tokens, c.Window)
}

// ShortCount formats a number in three digits or so: 59, 68k, 1.2M, 3.4B.
func ShortCount(n int64) string {
	switch {
	case n >= 1_000_000_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e9), ".0") + "B"
	case n >= 1_000_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
	case n >= 1000:
		return fmt.Sprintf("%dk", (n+500)/1000)
	}
	return fmt.Sprint(n)
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

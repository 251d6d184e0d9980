package transcript

import (
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
)

func TestBar(t *testing.T) {
	cases := []struct {
		share float64
		width int
		want  string
	}{
		{0.62, 16, "▓▓▓▓▓▓░░░░  62 %"},
		{0, 16, "░░░░░░░░░░   0 %"},
		{0.001, 16, "▓░░░░░░░░░  <1 %"},
		{0.999, 16, "▓▓▓▓▓▓▓▓▓░ 100 %"},
		{1, 16, "▓▓▓▓▓▓▓▓▓▓ 100 %"},
		{1.3, 16, "▓▓▓▓▓▓▓▓▓▓ 130 %"},
		{0.62, 8, "62 %"},
		{-1, 9, "░░░   0 %"},
	}
	for _, c := range cases {
		if got := Bar(c.share, c.width); got != c.want {
			t.Errorf("Bar(%g, %d) = %q, want %q", c.share, c.width, got, c.want)
		}
	}
}

func TestNumbersReadAsPeopleWriteThem(t *testing.T) {
	if got := Count(45_210); got != "45,210" {
		t.Errorf("Count = %q", got)
	}
	if got := Size(12_345); got != "12 kB" {
		t.Errorf("Size = %q", got)
	}
	for _, c := range []struct {
		nano     *int64
		unpriced int64
		want     string
		short    string
	}{
		{nil, 0, "", ""},
		{nil, 3, "3 calls without a price", "?"},
		{at(int64(0)), 0, "$0", "$0"},
		{at(int64(4_200_000)), 0, "$0.0042", "$0.0042"},
		{at(int64(10)), 0, "<$0.0001", "<$0.0001"},
		{at(int64(1_250_000_000)), 0, "$1.25", "$1.25"},
		{at(int64(12_100_000_000)), 1, "$12.10 + 1 call without a price", "$12.10+"},
		{at(int64(1_250_000_000_000)), 2000, "$1,250.00 + 2,000 calls without a price", "$1,250.00+"},
	} {
		if got := Money(c.nano, c.unpriced); got != c.want {
			t.Errorf("Money = %q, want %q", got, c.want)
		}
		if got := ShortMoney(c.nano, c.unpriced); got != c.short {
			t.Errorf("ShortMoney = %q, want %q", got, c.short)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 2, 11, 15, 0, 0, 0, time.FixedZone("CET", 3600))
	for want, before := range map[string]time.Duration{
		"just now": 20 * time.Second, "3 min ago": 3*time.Minute + 50*time.Second, "5 h ago": 5*time.Hour + 59*time.Minute,
		"Mon 14:00": 49 * time.Hour, "1 Feb 15:00": 10 * 24 * time.Hour, "28 Dec 2025": 45 * 24 * time.Hour,
		"2026-02-11 16:00": -time.Hour,
	} {
		if got := Ago(now.Add(-before).UTC(), now); got != want {
			t.Errorf("%s before: %q, want %q", before, got, want)
		}
	}
}

func TestTruncateCountsColumns(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"hello", 5, "hello"},
		{"hello", 4, "hel…"},
		{"中文字", 6, "中文字"},
		{"中文字", 5, "中文…"},
		{"中文字", 4, "中…"},
		{"hello world", 7, "hello…"},
		{"x", 0, ""},
	} {
		if got := Truncate(c.in, c.width); got != c.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestWrapKeepsWordsAndIndentation(t *testing.T) {
	for _, c := range []struct {
		name, in string
		width    int
		want     string
	}{
		{"words", "the quick brown fox", 10, "the quick|brown fox"},
		{"exactly", "the quick", 9, "the quick"},
		{"a long word", "a abcdefghijklmnop b", 10, "a|abcdefghij|klmnop b"},
		{"indentation", "    if x { return y }", 14, "    if x {|    return y }"},
		{"Chinese", "中文中文中文", 8, "中文中文|中文"},
		{"Chinese and words", "价格 price 是", 11, "价格 price|是"},
		{"empty lines", "a\n\nb", 10, "a||b"},
		{"tabs", "\tx\ty", 20, "        x       y"},
	} {
		if got := strings.Join(Wrap(c.in, c.width), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestShortArguments(t *testing.T) {
	for in, want := range map[string]string{
		`{"command":"ls -la\n"}`:                                                     "ls -la",
		`{"path":"a.go","limit":20,"deep":{"a": 1}}`:                                 `a.go limit=20 deep={"a":1}`,
		`{"description":"List","command":"ls -la"}`:                                  "ls -la description=List",
		`{"a":1,"b":"two"}`:                                                          "a=1 b=two",
		`{"path":"/home/me/projects/thing/internal/transcript/item.go"}`:             "/home/me/projects/thing/internal/transcript/item.go",
		`{"path":"/home/me/projects/thing/internal/transcript/item.go","limit":2}`:   "…/thing/internal/transcript/item.go limit=2",
		`{"path":"/a-single-name-that-is-far-too-long-to-be-shown-whole","limit":2}`: "/a-single-name-that-is-far-too-long-to-… limit=2",
		`{}`:             "",
		``:               "",
		`not json`:       "not json",
		`{"a":1`:         `{"a":1`,
		`{"a":null}`:     "null",
		`["x", 1]`:       `["x", 1]`,
		`{"a":"b"} tail`: "b",
	} {
		if got := ShortArguments(in, 60); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestContextsAndCostsSayWhatTheyCount(t *testing.T) {
	reported := session.ContextSize{Tokens: 82_400, Reported: true, Window: 200_000}
	for _, c := range []struct {
		size        session.ContextSize
		whole, part string
	}{
		{reported, "context 82k of 200k tokens (41 %)", "41 %"},
		{session.ContextSize{Tokens: 59, Window: 1_048_576}, "context about 59 of 1M tokens (<1 %, estimate)", "about <1 %"},
		{session.ContextSize{Tokens: 1500}, "context about 2k tokens (estimate)", ""},
		{session.ContextSize{Tokens: 900, Reported: true}, "context 900 tokens", ""},
		{session.ContextSize{Window: 200_000}, "", ""},
	} {
		if whole, part := Context(c.size), ContextShare(c.size); whole != c.whole || part != c.part {
			t.Errorf("%+v is %q and %q", c.size, whole, part)
		}
	}
	dear, all := int64(7_460_000_000), int64(14_340_000_000)
	for _, c := range []struct {
		own   *int64
		below *session.Rollup
		want  string
	}{
		{&dear, nil, "$7.46"},
		{&dear, &session.Rollup{Children: 12, CostNanoUSD: &all}, "$7.46 alone, $14.34 with 12 sub-agents"},
		{
			nil, &session.Rollup{Children: 1, CostNanoUSD: &all, UnpricedCalls: 1},
			"$14.34 + 1 call without a price with 1 sub-agent",
		},
		{nil, &session.Rollup{Children: 2}, "2 sub-agents"},
		{nil, nil, ""},
	} {
		if got := Costs(&session.Session{CostNanoUSD: c.own}, &session.Measure{Rollup: c.below}); got != c.want {
			t.Errorf("the cost is %q, want %q", got, c.want)
		}
	}
}

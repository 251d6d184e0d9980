package analytics_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestStats(t *testing.T) {
	r := reports(t)
	tests := []struct {
		name   string
		filter analytics.Filter
		// session count, messages, prompts, calls | input, cache read, cache write, output | usd, unpriced | compactions,
		// saved, usd
		want string
	}{
		{"everything", analytics.Filter{}, "5 16 5 8 | 4700 1900 500 310 | 2.906 1 | 1 3800 0.006"},
		{
			"one day",
			analytics.Filter{Since: "2026-02-10", Until: "2026-02-10"},
			"2 8 2 5 | 3500 0 0 210 | 0.356 1 | 1 3800 0.006",
		},
		{"since a day", analytics.Filter{Since: "2026-02-11"}, "2 4 2 1 | 100 400 0 10 | 0.05 0 | 0 0 0"},
		{"until a day", analytics.Filter{Until: "2026-02-09"}, "1 4 1 2 | 1100 1500 500 90 | 2.5 0 | 0 0 0"},
		{"a source", analytics.Filter{Source: session.SourcePi}, "1 4 1 2 | 300 0 0 60 | 0.25 0 | 0 0 0"},
		{"a project", analytics.Filter{Project: "/home/u/shop"}, "4 15 4 8 | 4700 1900 500 310 | 2.906 1 | 1 3800 0.006"},
		{
			"a project and a source",
			analytics.Filter{Project: "/home/u/shop", Source: session.SourcePi},
			"1 4 1 2 | 300 0 0 60 | 0.25 0 | 0 0 0",
		},
		{
			"a project on a day",
			analytics.Filter{Project: "/home/u/shop", Since: "2026-02-11"},
			"1 3 1 1 | 100 400 0 10 | 0.05 0 | 0 0 0",
		},
		{
			"a tag, with its sub-agent",
			analytics.Filter{Tag: "the tests"},
			"2 8 2 5 | 4300 1500 500 240 | 2.606 1 | 1 3800 0.006",
		},
		{"nothing", analytics.Filter{Project: "/nowhere"}, "0 0 0 0 | 0 0 0 0 | 0 0 | 0 0 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := testkit.Must(r.Stats(t.Context(), tt.filter))(t)
			got := fmt.Sprintf("%d %d %d %d | %d %d %d %d | %v %d | %d %d %v", s.Sessions, s.Messages, s.Prompts, s.Calls,
				s.Tokens.Input, s.Tokens.CacheRead, s.Tokens.CacheWrite, s.Tokens.Output,
				*s.CostUSD, s.UnpricedCalls, s.Compactions.Count, s.Compactions.TokensSaved, *s.Compactions.CostUSD)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSpentOfABudget(t *testing.T) {
	r := reports(t)
	at := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		budget analytics.Budget
		now    time.Time
		want   string
	}{
		{analytics.Budget{}, at, ""},
		{analytics.Budget{Month: 2}, at, "all projects: $2.91+ of $2.00 (145 %); "},
		{
			analytics.Budget{Month: 200, Projects: map[string]float64{"shop": 4, "/nowhere": 1}},
			at,
			"all projects: $2.91+ of $200.00 (1 %); /nowhere: $0.00 of $1.00 (0 %); shop: $2.91+ of $4.00 (72 %); ",
		},
		{analytics.Budget{Month: 2}, at.AddDate(0, 1, 0), "all projects: $0.00 of $2.00 (0 %); "},
	} {
		got := ""
		for _, s := range testkit.Must(r.Spent(t.Context(), tt.budget, tt.now))(t) {
			got += s.Title() + ": " + s.String() + "; "
		}
		if got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestStatsByEachDimension(t *testing.T) {
	s := testkit.Must(reports(t).Stats(t.Context(), analytics.Filter{}))(t)
	var got []string
	for _, b := range slices.Concat(s.ByDay, s.ByModel, s.BySource, s.ByProject, s.ByPurpose) {
		usd := "unknown"
		if b.CostUSD != nil {
			usd = fmt.Sprint(*b.CostUSD)
		}
		got = append(got, fmt.Sprintf("%s%s%s%s%s: %d sessions, %d messages, %d calls, %d in, %s", b.Day, b.Model, b.Source,
			b.Project, b.Purpose, b.Sessions, b.Messages, b.Calls, b.Tokens.Input, usd))
	}
	want := []string{
		"2026-02-09: 1 sessions, 4 messages, 2 calls, 1100 in, 2.5",
		"2026-02-10: 2 sessions, 8 messages, 5 calls, 3500 in, 0.356",
		"2026-02-11: 2 sessions, 4 messages, 1 calls, 100 in, 0.05",
		"gpt-x: 0 sessions, 0 messages, 6 calls, 1900 in, 2.9",
		"gpt-mini: 0 sessions, 0 messages, 1 calls, 800 in, 0.006",
		"gpt-y: 0 sessions, 0 messages, 1 calls, 2000 in, unknown",
		"sessiond: 3 sessions, 11 messages, 6 calls, 4400 in, 2.656",
		"pi: 1 sessions, 4 messages, 2 calls, 300 in, 0.25",
		"claude-code: 1 sessions, 1 messages, 0 calls, 0 in, 0",
		"/home/u/shop: 4 sessions, 15 messages, 8 calls, 4700 in, 2.906",
		"/home/u/site: 1 sessions, 1 messages, 0 calls, 0 in, 0",
		"chat: 0 sessions, 0 messages, 7 calls, 3900 in, 2.9",
		"summary: 0 sessions, 0 messages, 1 calls, 800 in, 0.006",
	}
	testkit.Equal(t, want, got)
}

func TestStatsAsJSON(t *testing.T) {
	s := testkit.Must(reports(t).Stats(t.Context(),
		analytics.Filter{Since: "2026-02-11", Source: session.SourceClaudeCode}))(t)
	got := testkit.Must(json.Marshal(s))(t)
	sums := `"sessions":1,"subagents":0,"messages":1,"prompts":1,"calls":0,"tokens":{"input":0,"cache_read":0,"cache_write":0,"output":0},"cost_usd":0,"unpriced_calls":0`
	want := `{` + sums + `,"compactions":{"count":0,"tokens_saved":0,"cost_usd":0},` +
		`"by_day":[{"day":"2026-02-11",` + sums + `}],"by_project":[{"project":"/home/u/site",` + sums + `}],` +
		`"by_source":[{"source":"claude-code",` + sums + `}],"by_model":[],"by_purpose":[]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestUsageByProjectAndDay(t *testing.T) {
	usage := testkit.Must(reports(t).Usage(t.Context(), analytics.Filter{}, analytics.ByProject, analytics.ByDay))(t)
	var got []string
	for _, b := range usage {
		got = append(got, fmt.Sprintf("%s %s: %d sessions, %d sub-agents, %d calls, %v", b.Project, b.Day, b.Sessions,
			b.Subagents, b.Calls, *b.CostUSD))
	}
	testkit.Equal(t, []string{
		"/home/u/shop 2026-02-09: 1 sessions, 0 sub-agents, 2 calls, 2.5",
		"/home/u/shop 2026-02-10: 2 sessions, 1 sub-agents, 5 calls, 0.356",
		"/home/u/shop 2026-02-11: 1 sessions, 0 sub-agents, 1 calls, 0.05",
		"/home/u/site 2026-02-11: 1 sessions, 0 sub-agents, 0 calls, 0",
	}, got)
	if _, err := reports(t).Usage(t.Context(), analytics.Filter{}, "colour"); session.CodeOf(err) != session.Invalid {
		t.Errorf("by colour: %v", err)
	}
}

func TestStatsRejectInvalidDays(t *testing.T) {
	for _, f := range []analytics.Filter{{Since: "Tuesday"}, {Until: "2026-13-01"}} {
		_, err := reports(t).Stats(t.Context(), f)
		if session.CodeOf(err) != session.Invalid || !strings.Contains(fmt.Sprint(err), "is not a day") {
			t.Errorf("%+v: got %v", f, err)
		}
	}
}

// A day of compactions is the zone's, as that of calls is.
func TestStatsUseTheZone(t *testing.T) {
	path := database(t, "testdata/fixture.sql")
	east := analytics.New(open(t, path, "ro"), time.FixedZone("east", 14*3600+60))
	s, err := east.Stats(t.Context(), analytics.Filter{Since: "2026-02-11"})
	if err != nil || s.Compactions.Count != 1 {
		t.Errorf("the compaction of 09:59 UTC is on the next day there: %+v %v", s.Compactions, err)
	}
}

func TestYear(t *testing.T) {
	r := reports(t)
	of := testkit.Must(r.Year(t.Context(), 2026))(t)
	prompts, hours := int64(0), int64(0)
	for _, n := range of.ByDay {
		prompts += n
	}
	for _, n := range of.ByHour {
		hours += n
	}
	if of.Prompts != 5 || prompts != 5 || hours != 5 || of.Sessions != 5 || *of.CostUSD != 2.906 ||
		of.Days != int64(len(of.ByDay)) || of.Hours < of.Days || len(of.BySource) == 0 {
		t.Errorf("2026: %+v", of)
	}
	if of := testkit.Must(r.Year(t.Context(), 2025))(t); of.Sessions != 0 || of.Hours != 0 || len(of.ByDay) != 0 {
		t.Errorf("2025: %+v", of)
	}
}

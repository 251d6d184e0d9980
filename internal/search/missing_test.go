package search

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
)

func TestMissingWordsAreNamed(t *testing.T) {
	store := newFakeStore()
	store.change(first, func(s *session.Session) { s.Source, s.Project = session.SourcePi, "/home/me/kites" })
	for range 3 {
		store.add(first, session.User, "the deployment of the harbour")
	}
	store.add(first, session.Assistant, "deplyment once mistyped")
	ix := openIndex(t, store)
	catchUp(t, ix)
	for _, c := range []struct {
		text    string
		order   Order
		hits    int
		missing []Missing
	}{
		{"harbour deployment", OrderRank, 3, nil},
		{"harbour zzzqqq", OrderRank, 3, []Missing{{Word: "zzzqqq"}}},
		{"deploymnet", OrderRank, 3, []Missing{{"deploymnet", "deployment", true}}},
		{"deploymnet", OrderNewest, 3, []Missing{{"deploymnet", "deployment", true}}},
		{`harbour "zzz qqq" deployment`, OrderRank, 3, []Missing{{Word: `"zzz qqq"`}}},
		{`harbour "zzz qqq"`, OrderNewest, 3, []Missing{{Word: `"zzz qqq"`}}},
		{`"the harbours" "was closed"`, OrderRank, 3, []Missing{{Word: `"was closed"`}, {Word: `"the harbours"`}}},
		{`"the harbour" "mistyped once"`, OrderRank, 3, []Missing{{Word: `"mistyped once"`}}},
		{`"the harbour" "once mistyped"`, OrderRank, 0, nil},
		{`"deployment of" zzzqqq`, OrderRank, 3, []Missing{{Word: "zzzqqq"}}},
		{`path:"harbour.go"`, OrderRank, 0, []Missing{{Word: `"harbour.go"`}}},
		{"harbour zzz*", OrderRank, 3, []Missing{{Word: "zzz*"}}},
		{"harbour depoyment", OrderRank, 3, []Missing{{"depoyment", "deployment", false}}},
		{"Harbuor deployment", OrderRank, 3, []Missing{{"Harbuor", "harbour", true}}},
		{"deployment project:kites role:assistant", OrderRank, 0, nil},
		{strings.Repeat("a", 100), OrderRank, 0, []Missing{{Word: strings.Repeat("a", 64) + "…"}}},
		{"zzz 数据库 0x00", OrderRank, 0, []Missing{{Word: "zzz"}, {Word: "数据库"}, {Word: "0x00"}}},
	} {
		for _, group := range []Group{GroupMessage, GroupSession} {
			r := search(t, ix, Query{Text: c.text, Order: c.order, Group: group})
			n := len(r.Hits)
			for _, s := range r.Sessions {
				n += len(s.Passages)
			}
			if group == GroupSession {
				c.hits = min(c.hits, mostPassages)
			}
			if n != c.hits || !slices.Equal(r.Missing, c.missing) {
				t.Errorf("%s, %s, %s: %d hits, %+v, want %d, %+v", c.text, c.order, group, n, r.Missing, c.hits, c.missing)
			}
		}
	}
}

func TestFiltersThatFindNothingListOthers(t *testing.T) {
	store := newFakeStore()
	store.change(first, func(s *session.Session) { s.Source, s.Project = session.SourcePi, "/home/me/kites" })
	store.change(second, func(s *session.Session) { s.Source, s.Project = session.SourceCodex, "/home/me/sails" })
	store.add(first, session.User, "a harbour")
	store.add(second, session.Assistant, "the harbour")
	ix := openIndex(t, store)
	catchUp(t, ix)
	for text, want := range map[string][]string{
		"harbour project:boats": {
			"project:/home/me/kites",
			"project:/home/me/sails",
		},
		"harbour source:goose": {"source:codex", "source:pi"},
		"harbour role:tool":    {"role:assistant", "role:user"},
		"harbour role:user project:/other": {
			"project:/home/me/kites",
			"project:/home/me/sails", "role:assistant",
		},
		"harbour after:2027-01-01":           {"after:2026-02-11"},
		"harbour before:2025-01-01":          {"before:2026-02-12"},
		"harbour role:user after:2027-01-01": {"after:2026-02-11"},
		"harbour role:tool after:2020-01-01": {"role:assistant", "role:user"},
		"harbour role:tool after:2027-01-01": {
			"after:2026-02-11", "role:assistant",
			"role:user",
		},
		"harbour after:2020-01-01 -session:20260211_001 -session:20260211_002": nil,
		"harbour project:kites": nil,
		"nothing project:kites": nil,
	} {
		r := search(t, ix, Query{Text: text})
		slices.Sort(r.Elsewhere)
		if !slices.Equal(r.Elsewhere, want) {
			t.Errorf("%s: %v, want %v", text, r.Elsewhere, want)
		}
	}
	if r := search(t, ix, Query{Text: "harbour after:2027-01-01"}); len(r.Hits)+len(r.Missing) != 0 {
		t.Errorf("what only the time keeps out is not missing: %+v", r)
	}
	for _, text := range []string{"a role:needle", "a origin:me", "a after:sideways", "role:needle"} {
		if _, err := ix.Search(t.Context(), Query{Text: text}); session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestATimeInAQuestionIsPreferred(t *testing.T) {
	store := newFakeStore()
	for i, at := range []string{"2025-05-20", "2026-01-20", "2026-02-03", "2026-02-10"} {
		when, _ := time.Parse(time.DateOnly, at)
		store.addParts(first, session.User, when.Add(time.Duration(i)*time.Hour), session.TextPart("the harbour was closed"))
		for range 5 {
			store.addParts(second, session.User, when, session.TextPart("filler about nothing"))
		}
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	for text, want := range map[string]string{
		"harbour in May":                      "1",
		"the harbour last month":              "2",
		"what about the harbour last week?":   "3",
		"harbour yesterday":                   "4",
		"harbour 8 days ago":                  "3",
		"harbour of May 2025":                 "1",
		"harbour 2026-01-20":                  "2",
		"When was the harbour open, in 2025?": "1",
	} {
		r := search(t, ix, Query{Text: text, Now: began})
		if got := names(r); len(got) != 4 || got[0] != want {
			t.Errorf("%s: %v, want %s first of all", text, got, want)
		}
	}
}

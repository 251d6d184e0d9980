package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestSessionsAreListedNewestActiveFirst(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	var want []session.ID
	for i := range 23 {
		if i%3 > 0 {
			now = now.Add(time.Minute) // some share their time
		}
		want = append(want, mustCreate(t, s, NewSession{}).ID)
	}
	slices.Reverse(want)
	for _, ascending := range []bool{false, true} {
		if ascending {
			slices.Reverse(want)
		}
		for _, limit := range []int{1, 5, 23, 50} {
			var got []session.ID
			p := Page{Limit: limit, Ascending: ascending}
			for {
				data, next, err := s.Sessions(ctx, Filter{}, p)
				testkit.Check(t, err)
				for _, d := range data {
					got = append(got, d.ID)
				}
				if p.Cursor = next; next == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("limit %d ascending %v: %v", limit, ascending, got)
			}
		}
	}
	for _, cursor := range []string{
		"x", "!", encodeCursor("no time", "20260211_001"),
		encodeCursor("2026-02-11 12:00:00.000", "no id"), encodeCursor("2026-02-11 12:00:00.000"),
	} {
		_, _, err := s.Sessions(ctx, Filter{}, Page{Cursor: cursor})
		wants(t, err, session.Invalid, "cursor")
	}
}

func TestFiltersOfTheList(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	a := mustCreate(t, s, NewSession{
		Title: "100% sure", Source: session.SourcePi, SourceID: "uuid-a", Key: "k",
		Directory: "/d", Model: "m", Metadata: session.JSON(`{"team":"x","n":5,"who":{"id":7},"dotted.name":"y"}`),
	}).ID
	now = now.Add(time.Hour)
	b := mustCreate(t, s, NewSession{Title: "other", ParentID: a, Project: "/p"}).ID
	yes := true
	archived, trashed := mustCreate(t, s, NewSession{}).ID, mustCreate(t, s, NewSession{}).ID
	testkit.Must(s.PatchSession(ctx, archived, SessionPatch{Archived: &yes}))(t)
	testkit.Must(s.SetTrash(ctx, trashed, true, nil, nil))(t)
	testkit.Must(s.PatchSession(ctx, a, SessionPatch{Starred: &yes}))(t)
	at := session.At(now)
	for _, c := range []struct {
		name string
		f    Filter
		want []session.ID
	}{
		{"none", Filter{}, []session.ID{b, a}},
		{"title, with LIKE's own characters", Filter{Query: "0%"}, []session.ID{a}},
		{"source id", Filter{Query: "uuid-"}, []session.ID{a}},
		{"id", Filter{Query: string(b)}, []session.ID{b}},
		{"source", Filter{Source: session.SourcePi}, []session.ID{a}},
		{"key", Filter{Key: "k"}, []session.ID{a}},
		{"directory", Filter{Directory: "/d"}, []session.ID{a}},
		{"model", Filter{Model: "m"}, []session.ID{a}},
		{"project", Filter{Project: "/p"}, []session.ID{b}},
		{"parent", Filter{ParentID: a}, []session.ID{b}},
		{"since", Filter{Since: &at}, []session.ID{b}},
		{"until", Filter{Until: &at}, []session.ID{a}},
		{"a project or a directory", Filter{Roots: []string{"/d", "/p"}}, []session.ID{b, a}},
		{"no folder", Filter{Roots: []string{}}, nil},
		{
			"one of several values",
			Filter{Among: map[Column][]string{ColumnProject: {"/p", "/q"}, ColumnSource: {"sessiond"}}},
			[]session.ID{b},
		},
		{"starred", Filter{Starred: true}, []session.ID{a}},
		{"people", Filter{People: true}, []session.ID{a}},
		{"archived", Filter{Archived: true}, []session.ID{archived}},
		{"trash", Filter{Trash: true}, []session.ID{trashed}},
		{"metadata", Filter{Metadata: map[string]string{"team": "x", "n": "5"}}, []session.ID{a}},
		{"metadata within metadata", Filter{Metadata: map[string]string{"who.id": "7", "dotted.name": "y"}}, []session.ID{a}},
		{"metadata of none", Filter{Metadata: map[string]string{`te"am`: "y"}}, nil},
		{"metadata with a backslash at its end", Filter{Metadata: map[string]string{`team\`: "y"}}, nil},
	} {
		data, _, err := s.Sessions(ctx, c.f, Page{})
		var got []session.ID
		for _, d := range data {
			got = append(got, d.ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v (%v)", c.name, got, c.want, err)
		}
	}
}

func TestFiltersOfCallersDoNotFillTheMemory(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	const most = 250 // the readers' and the writer's, far fewer than the filters
	for i := range 2 * most {
		f := Filter{Metadata: map[string]string{}}
		for j := range i {
			f.Metadata[fmt.Sprint(j)] = "x"
		}
		if _, _, err := s.Sessions(ctx, f, Page{}); err != nil {
			t.Fatal(err)
		}
	}
	if kept := testkit.Must(s.Prepared(ctx))(t); len(kept) > most {
		t.Errorf("%d statements are kept", len(kept))
	}
}

func TestSessionsAreFoundByAPartOfTheirNames(t *testing.T) {
	s := openTest(t)
	a := mustCreate(t, s, NewSession{Title: "The Parser"}).ID
	b := mustCreate(t, s, NewSession{Project: "/home/me/parsers"}).ID
	mustCreate(t, s, NewSession{Title: "Something else"})
	var got []session.ID
	for _, found := range testkit.Must(s.SessionsNamed(t.Context(), []string{"none has this", "parse"}))(t) {
		got = append(got, found.ID)
	}
	slices.Sort(got)
	testkit.Equal(t, []session.ID{a, b}, got)
}

func TestOnlySessionsThatAreThereAreInTheTrashOrNot(t *testing.T) {
	s := openTest(t)
	kept, trashed, purged := mustCreate(t, s, NewSession{}).ID, mustCreate(t, s, NewSession{}).ID,
		mustCreate(t, s, NewSession{}).ID
	testkit.Must(s.SetTrash(t.Context(), trashed, true, nil, nil))(t)
	p, _, err := s.BeginPurge(t.Context(), PurgeRequest{Session: purged})
	testkit.Check(t, err)
	testkit.Must(p.Finish(t.Context()))(t)
	got := testkit.Must(s.InTrash(t.Context(), []session.ID{kept, trashed, purged, "20200101_001"}))(t)
	if want := map[session.ID]bool{kept: false, trashed: true}; !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// The prompts of a fork begin with those of the path that it shares.
func TestPromptsAreThoseOfThePathOldestFirst(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	origin := mustCreate(t, s, NewSession{})
	mustAppend(t, s, origin.ID, says(session.User, "one"), says(session.Assistant, "reply"), says(session.User, "two"),
		says(session.User, "of the origin alone"))
	fork := testkit.Must(s.Fork(ctx, Fork{Session: origin.ID, At: ref(origin.ID, 3)}))(t)
	mustAppend(t, s, fork.ID, says(session.User, "three"))
	head := *testkit.Must(s.Session(ctx, fork.ID))(t).HeadID
	for _, c := range []struct {
		nth, limit int
		want       []string
	}{{1, 10, []string{"one", "two", "three"}}, {2, 1, []string{"two"}}, {4, 10, nil}, {0, 1, []string{"one"}}} {
		msgs, total, err := s.Prompts(ctx, head, c.nth, c.limit)
		var got []string
		for _, m := range msgs {
			got = append(got, m.Text())
		}
		if err != nil || total != 3 || !slices.Equal(got, c.want) {
			t.Errorf("%d, %d: %q of %d, %v, want %q", c.nth, c.limit, got, total, err, c.want)
		}
	}
}

// Behind a conversation's 5,000th message an index has the prompts. None is missed or counted twice where it begins.
func TestPromptsOfALongConversation(t *testing.T) {
	ctx := t.Context()
	s := openTest(t)
	id := mustCreate(t, s, NewSession{}).ID
	for from := range 6 {
		var msgs []session.Message
		for n := range 900 {
			role := [...]session.Role{session.User, session.Assistant}[n%2]
			msgs = append(msgs, says(role, fmt.Sprint(900*from+n+1)))
		}
		mustAppend(t, s, id, msgs...)
	}
	head := *testkit.Must(s.Session(ctx, id))(t).HeadID
	if _, total, err := s.Prompts(ctx, head, 1, 0); err != nil || total != 2700 {
		t.Errorf("%d prompts, %v", total, err)
	}
	msgs, total, err := s.Prompts(ctx, head, 2499, 4)
	var got []string
	for _, m := range msgs {
		got = append(got, m.Text())
	}
	if err != nil || total != 2700 || !slices.Equal(got, []string{"4997", "4999", "5001", "5003"}) {
		t.Errorf("%q of %d, %v", got, total, err)
	}
}

// The sessions of a small project are found by an index, those of a large one among all: both are the same pages.
func TestAProjectIsListedTheSameHoweverManySessionsItHas(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	at := session.At(time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC))
	for i := range 12 {
		created := session.At(at.Add(time.Duration(i) * time.Hour))
		mustCreate(t, s, NewSession{Project: "/p" + strconv.Itoa(i%3), CreatedAt: &created})
	}
	for _, f := range []Filter{
		{Project: "/p1"},
		{Among: map[Column][]string{ColumnProject: {"/p1", "/p2"}}},
	} {
		if small := testkit.Must(s.isSmallProject(ctx, f))(t); !small {
			t.Fatalf("%+v has few sessions", f)
		}
		var pages [2][]session.ID
		for i, byProject := range []bool{true, false} {
			f.byProject = byProject
			for cursor, more := "", true; more; more = cursor != "" {
				p := Page{Limit: 3, Cursor: cursor}
				query, args, err := listQuery(ctx, f, p)
				testkit.Check(t, err)
				data := testkit.Must(readSessions(ctx, s, query, args...))(t)
				data, cursor = endPage(data, p, func(s *session.Session) *session.Session { return s })
				for j := range data {
					pages[i] = append(pages[i], data[j].ID)
				}
			}
		}
		if len(pages[0]) < 4 || !slices.Equal(pages[0], pages[1]) {
			t.Errorf("%+v lists %v by project and %v among all", f, pages[0], pages[1])
		}
	}
}

// Of a column that is filtered, other values are counted as they would be if they were chosen instead.
func TestFacetsCountOtherChoices(t *testing.T) {
	s := openTest(t)
	for _, in := range []NewSession{
		{Project: "/work/a", Source: session.SourcePi},
		{Project: "/work/a", Source: session.SourceCodex},
		{Project: "/work/b", Source: session.SourcePi},
		{Project: "/work/c", Source: session.SourceCodex},
	} {
		in.SourceID = string(in.Source) + in.Project
		mustCreate(t, s, in)
	}
	for _, c := range []struct {
		among    map[Column][]string
		sessions int64
		projects []Value
		sources  []Value
	}{
		{nil, 4, []Value{{"/work/a", 2}, {"/work/b", 1}, {"/work/c", 1}}, []Value{{"codex", 2}, {"pi", 2}}},
		{
			map[Column][]string{ColumnProject: {"/work/a"}},
			2,
			[]Value{{"/work/a", 2}, {"/work/b", 1}, {"/work/c", 1}},
			[]Value{{"codex", 1}, {"pi", 1}},
		},
		{
			map[Column][]string{ColumnProject: {"/work/a"}, ColumnSource: {"pi"}},
			1,
			[]Value{{"/work/a", 1}, {"/work/b", 1}},
			[]Value{{"codex", 1}, {"pi", 1}},
		},
	} {
		f := testkit.Must(s.Facets(context.Background(), Filter{Among: c.among}, 100))(t)
		if f.Sessions != c.sessions || !slices.Equal(f.Values[ColumnProject], c.projects) ||
			!slices.Equal(f.Values[ColumnSource], c.sources) {
			t.Errorf("%v: %d sessions, %v, %v", c.among, f.Sessions, f.Values[ColumnProject], f.Values[ColumnSource])
		}
	}
}

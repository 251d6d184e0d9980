package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// The rarest words choose what is ranked, so that newer messages with the common ones hide nothing.
func TestOldMessagesAreFoundBehindManyNewer(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.User, "the zeppelin lands at the harbour tomorrow")
	for i := range rankedDepth + 500 {
		store.add(second, session.User, fmt.Sprint("tomorrow the ship leaves the harbour ", i))
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	for _, q := range []string{"When does the zeppelin land tomorrow at the harbour?", "harbour zeppelin"} {
		if got := search(t, ix, Query{Text: q, Limit: 5}).Hits; len(got) != 5 || got[0].SessionID != first {
			t.Errorf("%s: %+v", q, got)
		}
	}
}

func TestAWordOfAQuestionIsNoClue(t *testing.T) {
	store := newFakeStore()
	for range 30 {
		store.add(first, session.User, "what did you do and where were you when it was so")
	}
	store.add(first, session.User, "a kite")
	ix := openIndex(t, store)
	catchUp(t, ix)
	if got := search(t, ix, Query{
		Text: "What was that about the kite, and where?",
		Role: session.User,
	}).Hits; len(got) != 1 || got[0].Snippet != "a kite" {
		t.Errorf("%+v", got)
	}
	if got := search(t, ix, Query{Text: "where were you"}).Hits; len(got) == 0 {
		t.Error("words of questions alone find nothing")
	}
}

// An answer rarely repeats the words of its question. Only a question finds messages without its words, and only if
// nothing narrows it to single messages.
func TestAnswerBesideItsQuestionIsFound(t *testing.T) {
	store := newFakeStore()
	store.add(second, session.Tool, "hike hike")
	store.add(second, session.Assistant, "another hike")
	store.add(second, session.Tool, "no word of it")
	for range 20 {
		store.add(second, session.User, "filler about nothing")
	}
	store.add(first, session.User, "Where did you hike, Ben?")
	answer := store.add(first, session.User, "Up to Raven Ridge")
	ix := openIndex(t, store)
	catchUp(t, ix)
	for q, want := range map[string]string{
		"Where did Ben hike?": "1 2 2 1", "ben hike?": "1 2 2 1", "hike Ben": "1 2 1",
		"where did ben hike -tool:bash": "1 2 1",
		"where did ben hike* go":        "1 2 1", "where did ben hike role:user": "1",
		"where did ben hike session:" + string(first): "1 2",
	} {
		if got := strings.Join(names(search(t, ix, Query{Text: q})), " "); got != want {
			t.Errorf("%s: found %s, want %s", q, got, want)
		}
	}
	if r := search(t, ix, Query{Text: "Where did Ben hike?", Until: &answer.CreatedAt}); len(r.Hits) != 3 {
		t.Errorf("the answer is not before its own time: %+v", r.Hits)
	}
}

// The output of a tool has the same words as what was said about it.
func TestWhatWasSaidIsBeforeToolOutput(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.Assistant, "The mainsail is broken, so we use the other one.")
	store.add(second, session.Tool, "mainsail broken")
	for range 20 {
		store.add(third, session.User, "filler about nothing")
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	for _, group := range []Group{GroupMessage, GroupSession} {
		r := search(t, ix, Query{Text: "broken mainsail", Group: group})
		if group == GroupMessage && (len(r.Hits) != 2 || r.Hits[0].SessionID != first) ||
			group == GroupSession && (len(r.Sessions) != 2 || r.Sessions[0].SessionID != first) {
			t.Errorf("%s: %+v %+v", group, r.Hits, r.Sessions)
		}
	}
}

// A talk names whom it is about once. Newer messages with the question's other word do not hide what is said near the
// name, but a name that is said long before tells nothing.
func TestANameCountsForTheMessagesNearIt(t *testing.T) {
	store := newFakeStore()
	for _, id := range []session.ID{first, second} {
		store.add(id, session.User, "Hello Ben!")
		for range map[session.ID]int{first: 4, second: shareReach}[id] {
			store.add(id, session.User, "and so on")
		}
		store.add(id, session.Assistant, "My boss says that the rolls are good.")
	}
	for range 300 {
		store.add(third, session.Assistant, "My boss says that the rolls are good.")
		store.add(third, session.User, "and so on")
		for range shareReach {
			store.add(third, session.User, "nothing")
		}
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	var got []string
	for _, h := range search(t, ix, Query{Text: "Who is the boss of Ben?", Limit: 20}).Hits {
		got = append(got, h.MessageID.String())
	}
	near, far := session.MessageRef{Session: first, Seq: 6}.String(),
		session.MessageRef{Session: second, Seq: shareReach + 2}.String()
	if !slices.Contains(got[:min(3, len(got))], near) || slices.Contains(got, far) {
		t.Errorf("%v", got)
	}
}

// Of two equal messages the one within the talk about it comes first, also among those of a filter.
func TestNeighboursShareTheirWords(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.User, "the sails are mended")
	store.add(first, session.User, "nothing to do with it")
	store.add(second, session.User, "which harbour is it")
	store.add(second, session.User, "the sails are mended")
	store.add(second, session.User, "so we leave the harbour")
	for range 20 {
		store.add(third, session.User, "filler about nothing")
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	for name, q := range map[string]Query{"all": {}, "filtered": {Role: session.User}} {
		q.Text = "mended sails near a harbour yesterday evening"
		if got := names(search(t, ix, q)); len(got) != 4 || got[0] != "2" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSessionsAreRankedByTheirMessagesTogether(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.User, "we talk about kites")
	for range 5 {
		store.add(first, session.Assistant, "other words here")
	}
	for range 4 {
		store.add(second, session.User, "we talk about kites")
		store.add(second, session.Assistant, "a long answer about wind")
		store.add(second, session.Assistant, "other words here")
	}
	store.add(third, session.User, "nothing of it")
	store.add("20260212_009", session.User, "nothing at all")
	store.change(third, func(s *session.Session) { s.Title, s.TitleSource = "Kites over the sea", "given" })
	store.change("20260212_009", func(s *session.Session) {
		s.Title, s.TitleSource = "Kites in the trash", "given"
		now := session.At(began)
		s.DeletedAt = &now
	})
	ix := openIndex(t, store)
	catchUp(t, ix)
	r := search(t, ix, Query{Text: "kite", Group: GroupSession})
	var got []string
	for _, s := range r.Sessions {
		got = append(got, fmt.Sprint(s.SessionID, " ", s.Title, " ", len(s.Passages)))
	}
	want := []string{string(second) + "  3", string(third) + " Kites over the sea 0", string(first) + "  1"}
	slices.Sort(want[1:])
	slices.Sort(got[1:])
	if !slices.Equal(got, want) || r.Hits != nil {
		t.Errorf("%q, want %q", got, want)
	}
	if r := search(t, ix, Query{Text: "kite", Group: GroupSession, Role: session.Assistant}); len(r.Sessions) != 0 {
		t.Errorf("a role narrows the search, but %+v", r.Sessions)
	}
	if r := search(t, ix, Query{Text: "kite", Group: GroupSession, Order: OrderNewest, Limit: 1}); len(r.Sessions) != 1 ||
		r.Sessions[0].SessionID != second {
		t.Errorf("newest: %+v", r.Sessions)
	}
	_, err := ix.Search(t.Context(), Query{Text: "kite", Group: "author"})
	testkit.Check(t, wantsInvalid(err))
}

func wantsInvalid(err error) error {
	if session.CodeOf(err) != session.Invalid {
		return fmt.Errorf("want Invalid, got %w", err)
	}
	return nil
}

// Words within names are found, and names whole.
func TestPartsOfNamesAreFound(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.Assistant, "func getUserName() reads internal/user_store.go by HTTPServer with sha256sum")
	for range 20 {
		store.add(second, session.User, "get the name of a user, he said")
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	for _, q := range []string{
		"getUserName", "getusername", `"getUserName"`, "HTTPServer", "server", "sha256",
		"user_store", "user_store.go", "internal/user_store.go", "getUser*",
	} {
		if got := search(t, ix, Query{Text: q, Limit: 3}).Hits; len(got) == 0 || got[0].SessionID != first {
			t.Errorf("%s: %+v", q, got)
		}
	}
}

// What stands in quotes is found as written.
func TestQuotesFindNoOtherForms(t *testing.T) {
	store := newFakeStore()
	for _, text := range []string{
		"indexing the file", "the file indexed", "an index, a file", "Indexing files", "indexed",
		"indexes",
	} {
		store.add(first, session.User, text)
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	for q, want := range map[string]string{
		`"indexing"`: "1 4", `"file indexed"`: "2", `index`: "1 2 3 4 5 6",
		`"index" file`: "3", `-indexed "file"`: "",
	} {
		got := names(search(t, ix, Query{Text: q}))
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: found %v, want %s", q, got, want)
		}
		r := search(t, ix, Query{Text: q, Group: GroupSession})
		n := 0
		for _, s := range r.Sessions {
			n += len(s.Passages)
		}
		if n != min(mostPassages, len(strings.Fields(want))) {
			t.Errorf("%s: %d passages of %+v, want of %s", q, n, r.Sessions, want)
		}
	}
}

const third session.ID = "20260211_003"

// Whatever is pasted is searched as words, or refused with what to do.
func TestOddQueries(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.User, "what are you doing with NEAR(a b) and col : x^2 \U0001F980 שלום עולם c")
	ix := openIndex(t, store)
	catchUp(t, ix)
	for name, c := range map[string]struct {
		text string
		hits int
		code session.Code
	}{
		"syntax as data":   {`NEAR(a b) AND col : x^2 OR {stems} : "`, 1, ""},
		"unbalanced quote": {`"col x`, 1, ""},
		"NUL":              {"doing\x00with", 1, ""},
		"10 kB":            {strings.Repeat("doing ", 1700), 1, ""},
		"a thousand terms": {manyWords(1000) + "col", 0, ""},
		"stop words alone": {"what are you", 1, ""},
		"emoji alone":      {"\U0001F980", 1, ""},
		"right to left":    {"שלום", 1, ""},
		"one letter":       {"c", 1, ""},
		"nothing":          {"", 0, session.Invalid},
		"exclusion alone":  {"-doing", 1, ""},
		"filter alone":     {"role:user", 0, session.Invalid},
		"not UTF-8":        {"doing\xff", 1, ""},
	} {
		for _, group := range []Group{GroupMessage, GroupSession} {
			r, err := ix.Search(t.Context(), Query{Text: c.text, Group: group})
			if session.CodeOf(err) != c.code && (err != nil || c.code != "") || len(r.Hits)+len(r.Sessions) != c.hits {
				t.Errorf("%s, %s: %d hits, %v", name, group, len(r.Hits)+len(r.Sessions), err)
			}
		}
	}
}

// An agent is told of some projects only, never of hidden sessions, and not of what sessiond told another one before.
func TestProjectsHiddenSessionsAndEchoes(t *testing.T) {
	store := newFakeStore()
	for id, project := range map[session.ID]string{
		first: "/w/a", second: "/w/a-two", third: "/w/b",
		"20260212_009": "/w/a",
	} {
		store.change(id, func(s *session.Session) { s.Project, s.Title, s.TitleSource = project, "About kites", "given" })
		store.add(id, session.User, "we talk about kites")
	}
	store.add(third, session.Tool, session.Echo("a zeppelin was mentioned elsewhere"))
	ix := openIndex(t, store)
	catchUp(t, ix)
	r := search(t, ix, Query{
		Text: "kite", Group: GroupSession, Projects: []string{"/w/a", "/w/a-two"},
		Hide: func(s *session.Session) bool { return s.ID == "20260212_009" },
	})
	var got []session.ID
	for _, s := range r.Sessions {
		got = append(got, s.SessionID)
	}
	slices.Sort(got)
	if !slices.Equal(got, []session.ID{first, second}) {
		t.Errorf("found %q", got)
	}
	if r := search(t, ix, Query{Text: "zeppelin"}); len(r.Hits) != 0 {
		t.Errorf("an echo is found: %+v", r.Hits)
	}
}

func TestALongSessionHidesNoOthers(t *testing.T) {
	const trashed = session.ID("20260211_003")
	store := newFakeStore()
	store.add(second, session.User, "needle")
	for range 2 * groupedDocs {
		store.add(first, session.User, "needle")
	}
	for range groupedDocs {
		store.add(trashed, session.User, "needle")
	}
	store.change(trashed, func(s *session.Session) { s.DeletedAt = &session.Time{Time: began} })
	ix := openIndex(t, store)
	catchUp(t, ix)
	for _, order := range []Order{OrderRank, OrderNewest} {
		for limit := 1; limit <= 2; limit++ {
			r := search(t, ix, Query{Text: "needle", Group: GroupSession, Order: order, Limit: limit})
			if len(r.Sessions) != limit {
				t.Errorf("%s, limit %d: found %d sessions", order, limit, len(r.Sessions))
			}
		}
	}
}

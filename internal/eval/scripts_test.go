package eval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/memory"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

// unspacedQuestions are questions of developers in a language without spaces between words, and messages, of which the
// ones without a question answer none. Those at even places are for tuning.
func unspacedQuestions(t testing.TB, language string) dataset {
	set := dataset{name: "questions in " + language}
	for n, line := range strings.Split(strings.TrimSpace(string(testkit.Must(os.ReadFile("testdata/unspaced.tsv"))(t))),
		"\n") {
		fields := strings.Split(line, "\t")
		if fields[0] != language {
			continue
		}
		c := chat{dialogue: language, id: fmt.Sprint(n), at: time.Date(2026, 3, 1, n, 0, 0, 0, time.UTC)}
		c.said = []saying{{c.id + ":0", "user", "ok"}, {c.id + ":1", "assistant", fields[2]}}
		set.chats = append(set.chats, c)
		if fields[1] != "" {
			set.questions = append(set.questions, question{
				dialogue: language, text: fields[1], evidence: []string{c.id + ":1"},
				chats: []string{c.id},
			})
		}
	}
	return set
}

// A question in a language without spaces finds what answers it, by session and by message, whatever its order.
func TestQuestionsWithoutSpacesAreFound(t *testing.T) {
	for _, language := range []string{"zh", "ja", "th"} {
		set := unspacedQuestions(t, language)
		o := openSessiond(t, set)
		first := [2]int{} // tuned, held
		for n, q := range set.questions {
			talks, sayings := o.talks(q.text, language, 5), o.sayings(q.text, "", 5)
			if len(talks) > 0 && talks[0] == q.chats[0] && len(sayings) > 0 && sayings[0] == q.evidence[0] {
				first[n%2]++
			} else if n%2 == 0 {
				t.Logf("%s is not first: %s", q.evidence[0], q.text)
			}
		}
		t.Logf("%s: %d of 10 tuned and %d of 10 held questions are answered first", language, first[0], first[1])
		if len(set.questions) != 20 || first[0]+first[1] < 18 {
			t.Error("want 18")
		}
	}
}

// A hook finds what was said in languages without spaces, for a prompt.
func TestHookFindsFactsWithoutSpaces(t *testing.T) {
	for _, language := range []string{"en", "zh", "ja", "th"} {
		r, set, found, lines := openRig(t), unspacedQuestions(t, language), 0, 0
		for _, c := range set.chats {
			id := testkit.Must(r.store.CreateSession(t.Context(), store.NewSession{Project: "/w"}))(t).ID
			testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{
				newMessage(session.Assistant, session.Model, session.TextPart(c.said[1].text)),
			}}))(t)
		}
		testkit.Must(r.index.CatchUp(t.Context()))(t)
		m := memory.Memory{Store: r.store, Index: r.index, Count: func(s string) int64 {
			return int64(len(s))
		}, Now: time.Now, Scope: memory.Scope{Projects: []string{"/w"}}}
		for n, q := range set.questions {
			answer := testkit.Must(m.ForPrompt(t.Context(), q.text))(t)
			lines += strings.Count(answer, "\n- [")
			if strings.Contains(answer, set.chats[n].said[1].text) {
				found++
			}
		}
		t.Logf("%s: %d of %d prompts are answered, with %d passages", language, found, len(set.questions), lines)
		if found < 10 {
			t.Error("want half of them")
		}
	}
}

// In a window of 8,000 tokens recall finds what was said in languages without spaces as it finds English.
func TestRecallFindsFactsWithoutSpaces(t *testing.T) {
	found := map[string]int{}
	for _, language := range []string{"en", "zh", "ja", "th"} {
		r, set, window := openRig(t), unspacedQuestions(t, language), int64(8000)
		id := testkit.Must(r.store.CreateSession(t.Context(), store.NewSession{Model: "m", Window: &window}))(t).ID
		say := func(n int) {
			c := set.chats[n%len(set.chats)]
			if n >= len(set.chats) {
				c = set.chats[len(set.questions)+n%(len(set.chats)-len(set.questions))] // of no question
			}
			testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{
				newMessage(session.User, session.Person, session.TextPart(c.said[0].text)),
				newMessage(session.Assistant, session.Model, session.TextPart(c.said[1].text+strings.Repeat(" - ", 300))),
			}}))(t)
			testkit.Must(r.index.CatchUp(t.Context()))(t)
			r.contextOf(t, id, nil)
		}
		for n := range 2 * len(set.chats) {
			say(n)
		}
		for n, q := range set.questions {
			fact := set.chats[n].said[1].text
			if slices.ContainsFunc((&remembered{}).ask(t, r, id, q.text, nil), func(l spokenLine) bool {
				return strings.Contains(l.text, fact)
			}) {
				found[language]++
			} else if n%2 == 0 {
				t.Logf("not recalled: %s", q.text)
			}
		}
		t.Logf("%s: %d of %d", language, found[language], len(set.questions))
		if found[language] < found["en"]-1 {
			t.Error("fewer than in English")
		}
	}
}

// Each query of the case has its session first.
func TestScriptsAndFormsAreFound(t *testing.T) {
	dir := samples.Case(t, "34-search-scripts")
	r := openRig(t)
	importer := history.Importer{Store: r.store}
	testkit.Must(importer.Run(t.Context(), claudecode.New(func(string) string {
		return ""
	}, time.Now), []string{filepath.Join(dir, "claude", "projects")}))(t)
	testkit.Must(r.index.CatchUp(t.Context()))(t)
	for line := range strings.Lines(string(testkit.Must(os.ReadFile(filepath.Join(dir, "questions.tsv")))(t))) {
		query, want, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		res, err := r.index.Search(t.Context(), search.Query{Text: query, Group: search.GroupSession})
		if err != nil || len(res.Sessions) == 0 || filepath.Base(res.Sessions[0].Project) != want {
			t.Errorf("%s: %+v, %v, want %s first", query, res.Sessions, err, want)
		}
	}
}

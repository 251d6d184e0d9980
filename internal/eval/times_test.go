package eval_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// askedOn is when the questions of testdata/times.txt are asked.
var askedOn = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)

// timedQuestion is a question that names a time.
type timedQuestion struct {
	half, text string
	answers    []string // keys of sessions
	isName     bool     // the time is part of a name
}

// storeTimes stores the sessions of testdata/times.txt among two years of other work, and returns the questions.
func (r *rig) storeTimes(t *testing.T) (questions []timedQuestion, keys map[session.ID]string) {
	keys = map[session.ID]string{}
	var id session.ID
	var at time.Time
	said := func(role session.Role, origin session.Origin, text string) {
		m := newMessage(role, origin, session.TextPart(text))
		m.CreatedAt, at = session.At(at), at.Add(time.Minute)
		testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{m}}))(t)
	}
	begin := func(key string) {
		id = testkit.Must(r.store.CreateSession(t.Context(), store.NewSession{Model: "m"}))(t).ID
		keys[id] = key
	}
	for line := range strings.Lines(string(testkit.Must(os.ReadFile("testdata/times.txt"))(t))) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "==":
			key, when, _ := strings.Cut(rest, " ")
			at = testkit.Must(time.Parse("2006-01-02T15:04", when))(t)
			begin(key)
		case "P":
			said(session.User, session.Person, rest)
		case "A":
			said(session.Assistant, session.Model, rest)
		case "?":
			place, text, _ := strings.Cut(rest, " | ")
			fields := strings.Fields(place)
			q := timedQuestion{half: fields[0], text: text, answers: fields[1:]}
			q.answers[0], q.isName = strings.CutSuffix(q.answers[0], "+")
			questions = append(questions, q)
		}
	}
	_, fill := readWorlds(t, "tune")
	for day := range 40 {
		at = askedOn.AddDate(0, 0, -19*(day+3))
		begin("")
		for n := range 4 {
			said(session.User, session.Person, fill.line(fill.Asks))
			said(session.Assistant, session.Model, fill.lines(fill.Prose, 3+n, " "))
		}
	}
	testkit.Must(r.index.CatchUp(t.Context()))(t)
	return questions, keys
}

// Questions that name a time find what was said then first, and where the time is only a name, what has the name.
func TestQuestionsPreferTheirTime(t *testing.T) {
	r := openRig(t)
	questions, keys := r.storeTimes(t)
	for _, group := range []search.Group{search.GroupSession, search.GroupMessage} {
		first, asked := map[string]int{}, map[string]int{}
		for _, q := range questions {
			got := testkit.Must(r.index.Search(t.Context(), search.Query{Text: q.text, Group: group, Now: askedOn, Limit: 5}))(t)
			best := ""
			switch {
			case len(got.Sessions) > 0:
				best = keys[got.Sessions[0].SessionID]
			case len(got.Hits) > 0:
				best = keys[got.Hits[0].SessionID]
			}
			asked[q.half]++
			if slices.Contains(q.answers, best) {
				first[q.half]++
			} else {
				t.Logf("%s by %s: %q finds %s first, want %s", q.half, group, q.text, best, q.answers)
			}
			if got.Time == nil || !q.isName && got.Time.Filter == "" {
				t.Errorf("%q: the answer names no filter: %+v", q.text, got.Time)
			}
		}
		t.Logf("by %s, right ones first: %d of %d (tune), %d of %d (held)", group, first["tune"], asked["tune"],
			first["held"], asked["held"])
		if first["tune"]+first["held"] < len(questions)-2 {
			t.Errorf("by %s, only %v of %v are right", group, first, asked)
		}
	}
}

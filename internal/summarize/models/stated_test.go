package models_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// A model that forgets numbers, or answers in another language, loses none: the sentences that have them stand below
// its text, and still do after the next summary.
func TestNumbersThatTheModelDropsAreAlsoStated(t *testing.T) {
	msgs := []session.Message{
		person("The staging database listens on port 5433, and production has 64 GB."),
		call("run", `{"cmd":"go test"}`), result("run", "ok\n412 passed, 3 failed in 18.2 s", false),
		model("I measured 740 ms for a cold start. The rest is as it was."),
		person("Good. Go on with the page."),
		model("The page is built."),
	}
	for range 30 {
		msgs = append(msgs, person("Please tidy the code a little more, so that it is easier to read for everybody."),
			model("I tidied the code a little more, so that it is easier to read."))
	}
	want := []string{
		"port 5433", "64 GB", "tool: “412 passed, 3 failed in 18.2 s”",
		"model: I measured 740 ms for a cold start.",
	}
	each(t, func(t *testing.T, p provider) {
		for name, text := range map[string]string{
			"forgets":          goodSummary,
			"another language": "## Goal\n- Das Programm fertigstellen.\n\n### Done\n- Die Seite wurde gebaut.",
			"tells some":       goodSummary + "\n- Port 5433, 64 GB.",
		} {
			t.Run(name, func(t *testing.T) {
				s := serve(t, answer{body: p.answer(text)})
				remote := p.remote(t, s.URL, time.Minute, &pauses{})
				req := session.SummaryRequest{Messages: msgs, MaxTokens: 1000}
				got := testkit.Must(remote.Summarize(context.Background(), req))(t)
				stated := between(got.Text, "## Also stated\n", "\n\n")
				for _, w := range want {
					if told := strings.Contains(text, w[strings.LastIndex(w, " ")+1:]); !told && !strings.Contains(stated, w) {
						t.Errorf("%q is lost:\n%s", w, got.Text)
					}
				}
				if strings.Contains(stated, "tidied") || name == "tells some" && strings.Contains(stated, "5433") {
					t.Errorf("also stated is what says nothing new:\n%s", got.Text)
				}
				next := testkit.Must(remote.Summarize(context.Background(),
					session.SummaryRequest{Previous: got.Text, Messages: msgs[6:], MaxTokens: 1000}))(t)
				if again := between(next.Text, "## Also stated\n", "\n\n"); again != stated {
					t.Errorf("after the next summary it is\n%s\nwas\n%s", again, stated)
				}
				if n := strings.Count(next.Text, "## Also stated"); n > 1 || count(next.Text) > 1000 {
					t.Errorf("%d sections, %d tokens", n, count(next.Text))
				}
			})
		}
	})
}

// Pasted thousands of numbers take no more than their share.
func TestWhatIsAlsoStatedHasALimit(t *testing.T) {
	var msgs []session.Message
	for i := range 300 {
		msgs = append(msgs, person(strings.Repeat("word"+string(rune('a'+i%26))+" ", 1+i%7)+"takes "+strings.Repeat("7",
			2+i%9)+" ms here."))
	}
	each(t, func(t *testing.T, p provider) {
		for _, limit := range []int64{150, 400, 2000} {
			s := serve(t, answer{body: p.answer(goodSummary)})
			got := testkit.Must(p.remote(t, s.URL, time.Minute, &pauses{}).Summarize(context.Background(),
				session.SummaryRequest{Messages: msgs, MaxTokens: limit}))(t)
			stated := between(got.Text, "## Also stated\n", "\n\n")
			if n := count(stated); n > limit/4 || count(got.Text) > limit {
				t.Errorf("limit %d: %d tokens of %d are also stated", limit, n, count(got.Text))
			}
		}
	})
}

// A price that the model made up has a mark beside the true one, in this summary and in later ones, until somebody
// says it. The mark takes nothing away, and stays within the budget.
func TestInventedValuesAreMarkedUntilTheyAreSaid(t *testing.T) {
	const invented = "CompanyB's price is $999 [not in the conversation]"
	say := func(text string) []session.Message { return []session.Message{person(text), model("All right.")} }
	each(t, func(t *testing.T, p provider) {
		text := goodSummary + "\n- CompanyB's price is $999, of CompanyA $99."
		s := serve(t, answer{body: p.answer(text)})
		remote := p.remote(t, s.URL, time.Minute, &pauses{})
		ask := func(req session.SummaryRequest) session.Summary {
			req.MaxTokens = 1000
			return testkit.Must(remote.Summarize(context.Background(), req))(t)
		}
		first := ask(session.SummaryRequest{Messages: companyB()})
		if !strings.Contains(first.Text, invented) || !strings.Contains(first.Text, "$129") ||
			strings.Contains(first.Text, "$129 [not") {
			t.Fatalf("first:\n%s", first.Text)
		}
		for name, req := range map[string]session.SummaryRequest{
			"an update": {Previous: first.Text, Messages: say("Go on with the page, please.")},
			"a merge": {
				Previous: first.Text, Spans: []string{first.Span, "## Goal\n- Another."},
				Messages: say("Go on with the page, please."),
			},
		} {
			if next := ask(req); !strings.Contains(next.Text, invented) {
				t.Errorf("%s forgets the mark:\n%s", name, next.Text)
			}
		}
		said := ask(session.SummaryRequest{
			Previous: first.Text,
			Messages: say("CompanyB now asks for $999, CompanyA for 99 dollars."),
		})
		if strings.Contains(said.Text, "[not in") {
			t.Errorf("marked though it was said:\n%s", said.Text)
		}
	})
}

// A model's text full of invented values keeps its budget.
func TestMarksKeepTheBudget(t *testing.T) {
	var b strings.Builder
	b.WriteString(goodSummary)
	for i := range 40 {
		fmt.Fprintf(&b, "\n- Item %d has the number %d.", i, 48213+i)
	}
	each(t, func(t *testing.T, p provider) {
		s := serve(t, answer{body: p.answer(b.String())}, answer{body: p.answer(b.String())})
		got := testkit.Must(p.remote(t, s.URL, time.Minute, &pauses{}).Summarize(context.Background(),
			session.SummaryRequest{Messages: companyB(), MaxTokens: 600}))(t)
		if n := count(got.Text); n > 600 || !strings.Contains(got.Text, "48252 [not in the conversation].") {
			t.Errorf("%d tokens:\n%s", n, got.Text)
		}
	})
}

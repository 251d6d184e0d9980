package models_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/summarize/models"
	"sessiond/internal/testkit"
)

// small is a server whose model takes so many bytes of a request and tells of the goal in it.
type small struct {
	*httptest.Server
	mu    sync.Mutex
	takes int
	asked []string // what it took, the user's part
	tries int
}

func serveSmall(t *testing.T, takes int) *small {
	t.Helper()
	s := &small{takes: takes}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body) //nolint:errcheck // what is missing shows in the test
		var body struct {
			Messages []struct{ Content string }
		}
		_ = json.Unmarshal(raw, &body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tries++
		user := body.Messages[1].Content
		if len(user) > s.takes {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"This model's maximum context length is exceeded."}}`)
			return
		}
		s.asked = append(s.asked, user)
		text := fmt.Sprintf("## Goal\n- Compare the prices.\n\n## Critical context\n- Part %d.", len(s.asked))
		_, _ = io.WriteString(w, providers()[0].answer(text))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *small) remote(t *testing.T, window int64) *models.Remote {
	t.Helper()
	r := testkit.Must(models.NewRemote(models.Config{Provider: "openai", Model: "small", BaseURL: s.URL, Window: window},
		models.Deps{
			Count: count, Wait: (&pauses{}).wait, Getenv: func(string) string { return "" },
		}))(t)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestLongRecordIsSummarizedInChunks(t *testing.T) {
	s := serveSmall(t, 9000) // the record has about 22,000
	r := s.remote(t, 0)
	got := testkit.Must(r.Summarize(context.Background(), request()))(t)
	last := s.asked[len(s.asked)-1]
	told := strings.Count(last, "<minutes>")
	chunks := s.asked[len(s.asked)-1-told : len(s.asked)-1] // before them, those of a larger size that fitted
	if len(chunks) < 3 || strings.Contains(last, "<conversation>") {
		t.Fatalf("%d chunks, then asked:\n%s", len(chunks), last)
	}
	record := strings.Join(chunks, "")
	for i := range 100 {
		if strings.Count(record, fmt.Sprintf("topic number %d ", i)) != 1 {
			t.Errorf("topic %d was not told once", i)
		}
	}
	if got.Note != "" || len(got.Calls) != s.tries || !strings.Contains(got.Text, "$129") {
		t.Errorf("note %q, %d calls for %d requests, text\n%s", got.Note, len(got.Calls), s.tries, got.Text)
	}
	before := s.tries
	testkit.Must(r.Summarize(context.Background(), request()))(t)
	if again := s.tries - before; again != len(chunks)+1 {
		t.Errorf("the second time it asked %d times, the first time %d were good", again, len(chunks)+1)
	}
}

func TestKnownWindowSplitsBeforeAsking(t *testing.T) {
	s := serveSmall(t, 3*8000)
	testkit.Must(s.remote(t, 8000).Summarize(context.Background(), request()))(t)
	if s.tries != len(s.asked) || s.tries < 3 {
		t.Errorf("%d tries, %d taken", s.tries, len(s.asked))
	}
}

func TestTooManyChunksDropTheOldestWithANote(t *testing.T) {
	req := request()
	for i := range 400 {
		req.Messages = append(req.Messages, person(fmt.Sprintf("Then there is item %d, of which much could be said here.",
			i)))
	}
	s := serveSmall(t, 4000)
	got := testkit.Must(s.remote(t, 0).Summarize(context.Background(), req))(t)
	record := strings.Join(s.asked, "")
	if !strings.Contains(record, "item 399,") || strings.Contains(record, "topic number 3 ") {
		t.Error("it is not the oldest part that was dropped")
	}
	if !strings.Contains(got.Note, "oldest") || !strings.Contains(got.Text, "$129") {
		t.Errorf("the note is %q, the text\n%s", got.Note, got.Text)
	}
}

func TestRunningSummaryUpdatesOrMerges(t *testing.T) {
	spans := []string{"## Goal\n- span one\n\n## Index\n- $11", "## Goal\n- span two\n\n## Index\n- $22"}
	for name, c := range map[string]struct {
		previous string
		spans    []string
		want     []string
		lacks    string
	}{
		"update": {
			"## Goal\n- running\n\n## Index\n- $11", nil,
			[]string{"<earlier-summary>\n## Goal\n- running\n</earlier-summary>", "Part 1."},
			"span one",
		},
		"merge": {"## Goal\n- running", spans, []string{"span one", "span two", "Part 1."}, "running"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveSmall(t, 1<<20)
			req := request()
			req.Previous, req.Spans = c.previous, c.spans
			req.ModifiedFiles = []string{"/srv/a/one.go", "/srv/a/two.go"}
			got := testkit.Must(s.remote(t, 0).Summarize(context.Background(), req))(t)
			if len(s.asked) != 2 || strings.Contains(s.asked[0], "running") || strings.Contains(s.asked[1], "<conversation>") {
				t.Fatalf("asked %d times:\n%s", len(s.asked), strings.Join(s.asked, "\n=====\n"))
			}
			for _, want := range c.want {
				if !strings.Contains(s.asked[1], want) {
					t.Errorf("the second question lacks %q:\n%s", want, s.asked[1])
				}
			}
			if strings.Contains(s.asked[1], c.lacks) {
				t.Errorf("the second question has %q", c.lacks)
			}
			if !strings.Contains(got.Span, "Part 1.") || strings.Contains(got.Span, "Files") {
				t.Errorf("the span's summary is\n%s", got.Span)
			}
			for _, want := range []string{"Part 2.", "$11", "$129", "Files modified: /srv/a/{one.go, two.go}"} {
				if !strings.Contains(got.Text, want) {
					t.Errorf("the running summary lacks %q:\n%s", want, got.Text)
				}
			}
		})
	}
}

// The model tells well of the span and then fails at the update: nothing of what it said, nor
// of what was known before, is lost.
func TestFailedUpdateKeepsSpanSummary(t *testing.T) {
	each(t, func(t *testing.T, p provider) {
		for name, last := range map[string]answer{
			"it is broken":  {status: 500},
			"it declines":   {body: p.answer("I'm sorry, but I can't do that.")},
			"it is cut off": {body: p.cutOff},
		} {
			t.Run(name, func(t *testing.T) {
				s := serve(t, answer{body: p.answer(goodSummary)}, last)
				req := request()
				req.Previous = "## Goal\n- Move the archive.\n\n## Next steps\n- Ask for the key.\n\n## Index\n- $11"
				got := testkit.Must(p.remote(t, s.URL, time.Minute, &pauses{}).Summarize(context.Background(), req))(t)
				if !strings.HasPrefix(got.Span, companyBRules+goodSummary) || got.Provider != p.name ||
					!strings.Contains(got.Note, "without the model") {
					t.Errorf("by %s, note %q, the span's summary is\n%s", got.Provider, got.Note, got.Span)
				}
				for _, want := range []string{
					"Move the archive.", "Compare the prices of the vendors.", "Ask for the key.", "$11",
					"$129",
				} {
					if !strings.Contains(got.Text, want) {
						t.Errorf("the running summary lacks %q:\n%s", want, got.Text)
					}
				}
				if n := count(got.Text); n > req.MaxTokens || len(got.Calls) != len(s.seen()) {
					t.Errorf("%d tokens, %d calls for %d requests", n, len(got.Calls), len(s.seen()))
				}
			})
		}
	})
}

func TestSpansTooLongForTheModelUpdateInstead(t *testing.T) {
	s := serveSmall(t, 26000)
	req := request()
	req.Previous, req.Spans = "## Goal\n- running", []string{"## Goal\n- " + strings.Repeat("a long span ", 3000)}
	testkit.Must(s.remote(t, 0).Summarize(context.Background(), req))(t)
	if last := s.asked[len(s.asked)-1]; !strings.Contains(last, "- running") || s.tries != 3 {
		t.Errorf("%d tries, the last question is\n%s", s.tries, last)
	}
}

func TestDigestOfSpanAndRunningDigest(t *testing.T) {
	e := digest.NewExtractive(count)
	var spans []string
	running := ""
	for i := range 4 {
		req := session.SummaryRequest{MaxTokens: 700, Previous: running, Messages: []session.Message{
			person(fmt.Sprintf("Never touch the table named ledger_%d of the archive.", i)),
			model(fmt.Sprintf("Understood, the table ledger_%d stays as it is.", i)),
			result("sql", fmt.Sprintf("The table holds %d rows and costs $%d a month.", 1000+i, 200+i), false),
		}}
		if i == 3 {
			req.Spans = spans
		}
		got := testkit.Must(e.Summarize(context.Background(), req))(t)
		if !strings.Contains(got.Span, fmt.Sprintf("ledger_%d", i)) || i > 0 && strings.Contains(got.Span, "ledger_0") ||
			count(got.Span) > 700 || count(got.Text) > 700 {
			t.Errorf("span %d (%d tokens):\n%s", i, count(got.Span), got.Span)
		}
		for k := range i + 1 {
			if want := fmt.Sprintf("Never touch the table named ledger_%d", k); !strings.Contains(got.Text, want) {
				t.Errorf("after %d spans the running digest lacks %q:\n%s", i+1, want, got.Text)
			}
		}
		spans, running = append(spans, got.Span), got.Text
	}
}

func titler(t *testing.T, p provider, base string) models.Summarizer {
	t.Helper()
	made, err := models.NewTitler(models.Config{Provider: p.name, BaseURL: base},
		models.Deps{Count: count, Getenv: func(string) string { return apiKey }})
	testkit.Check(t, err)
	t.Cleanup(func() {
		if c, ok := made.(io.Closer); ok {
			_ = c.Close()
		}
	})
	return made
}

func TestTitleIsOneLineWithoutMarks(t *testing.T) {
	for answered, want := range map[string]string{
		"Prices of CompanyB":                     "Prices of CompanyB",
		"\n  **\"Prices of\tCompanyB\".**\nmore": `Prices of CompanyB`,
		"Title: „Preise von CompanyB“":           "Preise von CompanyB",
		"価格の比較。":                                 "価格の比較。",
		strings.Repeat("word ", 40):              strings.Repeat("word ", 15) + "word…",
	} {
		each(t, func(t *testing.T, p provider) {
			s := serve(t, answer{body: p.answer(answered)})
			got, err := titler(t, p, s.URL).Summarize(t.Context(), request())
			if err != nil || got.Text != want {
				t.Errorf("%q becomes %q, %v", answered, got.Text, err)
			}
			if len(got.Calls) != 1 || got.Calls[0].Purpose != session.PurposeTitle || got.Calls[0].Status != session.CallOK ||
				got.Calls[0].OutputTokens == 0 {
				t.Errorf("ledger: %+v", got.Calls)
			}
			if !strings.Contains(s.bodies[0], "Write the title now") || strings.Contains(s.bodies[0], "## Goal") {
				t.Errorf("asked: %.300s", s.bodies[0])
			}
		})
	}
}

func TestFailedTitleIsTriedOnceAndCounted(t *testing.T) {
	each(t, func(t *testing.T, p provider) {
		s := serve(t, answer{status: 500, body: "{}"})
		got, err := titler(t, p, s.URL).Summarize(t.Context(), request())
		var failure *models.Failure
		if !errors.As(err, &failure) || got.Text != "" || len(got.Calls) != 1 || got.Calls[0].Status != session.CallFailed ||
			len(s.bodies) != 1 {
			t.Errorf("%+v, %v, %d requests", got, err, len(s.bodies))
		}
	})
}

func TestNoModelMakesNoTitles(t *testing.T) {
	for _, provider := range []string{"", digest.ExtractiveProvider} {
		if made, err := models.NewTitler(models.Config{Provider: provider}, models.Deps{Count: count}); made != nil ||
			err != nil {
			t.Errorf("%q: %v, %v", provider, made, err)
		}
	}
}

package summarize_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/summarize"
	"sessiond/internal/testkit"
)

func titler(t *testing.T, p provider, base string) summarize.Summarizer {
	t.Helper()
	made, err := summarize.NewTitler(summarize.Config{Provider: p.name, BaseURL: base}, summarize.Deps{Count: count, Getenv: func(string) string { return apiKey }})
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
			if len(got.Calls) != 1 || got.Calls[0].Purpose != session.PurposeTitle || got.Calls[0].Status != session.CallOK || got.Calls[0].OutputTokens == 0 {
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
		var failure *summarize.Failure
		if !errors.As(err, &failure) || got.Text != "" || len(got.Calls) != 1 || got.Calls[0].Status != session.CallFailed || len(s.bodies) != 1 {
			t.Errorf("%+v, %v, %d requests", got, err, len(s.bodies))
		}
	})
}

func TestNoModelMakesNoTitles(t *testing.T) {
	for _, provider := range []string{"", summarize.ExtractiveProvider} {
		if made, err := summarize.NewTitler(summarize.Config{Provider: provider}, summarize.Deps{Count: count}); made != nil || err != nil {
			t.Errorf("%q: %v, %v", provider, made, err)
		}
	}
}

package jobs

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"sessiond/internal/analytics"
	"sessiond/internal/testkit"
)

func TestBudgetIsToldOnceForEachStep(t *testing.T) {
	var got []string
	status := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var notice struct {
			Month, Project string
			Percent        int
			USD            float64 `json:"usd"`
			LimitUSD       float64 `json:"limit_usd"`
		}
		raw := testkit.Must(io.ReadAll(r.Body))(t)
		testkit.Check(t, json.Unmarshal(raw, &notice, json.MatchCaseInsensitiveNames(true)))
		if w.WriteHeader(status); status == http.StatusNoContent {
			got = append(got, notice.Month+" "+notice.Project+" "+map[int]string{80: "80", 100: "100"}[notice.Percent])
		}
	}))
	defer server.Close()
	all := []analytics.Spent{
		{Month: "2026-02", LimitUSD: 200, USD: 159.99}, {Month: "2026-02", Project: "web", LimitUSD: 50, USD: 10},
	}
	fresh := func() *Budget {
		return &Budget{
			Webhook: server.URL, Told: filepath.Join(t.TempDir(), "budget.json"), Log: zerolog.Nop(),
			Spent: func(context.Context) ([]analytics.Spent, error) { return all, nil },
		}
	}
	b := fresh()
	look := func(want ...string) {
		t.Helper()
		got = nil
		b.Look(t.Context())
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	look()
	all[0].USD = 160
	look("2026-02  80")
	look()
	status = http.StatusInternalServerError
	all[1].USD = 60
	look()
	status = http.StatusNoContent
	look("2026-02 web 100")                                                   // and not 80 any more
	b = &Budget{Webhook: b.Webhook, Told: b.Told, Log: b.Log, Spent: b.Spent} // after a restart
	look()
	all[0].USD = 250
	look("2026-02  100")
	all[0].Month, all[1].Month, all[1].USD = "2026-03", "2026-03", 0
	look("2026-03  100")
	all[0].Month, all[1].Month, all[1].USD = "2026-04", "2026-04", 60
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var notice struct{ Project string }
		raw := testkit.Must(io.ReadAll(r.Body))(t)
		testkit.Check(t, json.Unmarshal(raw, &notice, json.MatchCaseInsensitiveNames(true)))
		if notice.Project == "" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		got = append(got, notice.Project)
	})
	look("web") // which does not wait for the notice that fails
	look()
	server.Close()
	b = fresh()
	look() // nobody listens
}

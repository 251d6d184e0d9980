package api_test

import (
	"context"
	"testing"
	"time"

	"sessiond/internal/jobs"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/web/api"

	"github.com/rs/zerolog"
)

// watchedIndex tells up to which message each catch-up came.
type watchedIndex struct {
	*search.Index
	marks chan int64
}

func (x watchedIndex) CatchUp(ctx context.Context) (int, error) {
	n, err := x.Index.CatchUp(ctx)
	if mark, markErr := x.Mark(ctx); err == nil && markErr == nil && n > 0 {
		x.marks <- mark
	}
	return n, err
}

// A daemon that looks for other daemons' writes once an hour streams and indexes them all the same: the
// server notifies it.
func TestWriteOfAnotherDaemonWakesStreamAndIndex(t *testing.T) {
	if !storetest.OnPostgres() {
		t.Skip("only PostgreSQL notifies; " + storetest.Postgres + " is not set")
	}
	var runner *jobs.Runner
	marks := make(chan int64, 100)
	k, server := feedKit(t, func(feed *api.Feed, d *api.Deps) {
		runner = jobs.New(jobs.Config{
			Store: d.Store, Index: watchedIndex{d.Search, marks}, Contexts: manager(d.Store), Log: zerolog.Nop(),
			Noticed: feed.Nudge, Look: time.Hour,
		})
	})
	runner.Start()
	t.Cleanup(runner.Stop)
	stream := listen(t, server, "", "")
	other := testkit.Must(store.Open(t.Context(), k.store.File(), store.Options{}))(t)
	defer other.Close()
	sess := testkit.Must(other.CreateSession(t.Context(), store.NewSession{}))(t)
	for _, word := range []string{"zephyr", "quokka"} { // the first may be found when the daemon begins to listen
		testkit.Must(other.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{
			{Role: session.User, InContext: true, Display: true, Parts: []session.Part{session.TextPart(word)}},
		}}))(t)
		for kind := ""; kind != store.EventMessagesAppended; {
			ended := false
			if kind, _, ended = stream.block(); ended {
				t.Fatal("the stream ended")
			}
		}
		last := testkit.Must(other.LastMessageID(t.Context()))(t)
		for <-marks < last { //nolint:revive // waiting is the test
		}
		if r := k.want(200, k.do("GET", "/v1/search?q="+word, nil)); len(r.at("hits").([]any)) != 1 {
			t.Errorf("%s: %s", word, r.raw)
		}
	}
}

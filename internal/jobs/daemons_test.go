package jobs

import (
	"database/sql"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// second opens the store of a place again, as a daemon on another host does, whose clock is ahead, with its own index.
func (p *place) second(t *testing.T, ahead time.Duration) *place {
	t.Helper()
	other := &place{dir: t.TempDir()}
	other.store = testkit.Must(store.Open(t.Context(), p.store.File(), store.Options{Now: func() time.Time {
		return time.Now().Add(ahead)
	}}))(t)
	other.index = testkit.Must(search.Open(t.Context(), filepath.Join(other.dir, "search.db"), other.store))(t)
	t.Cleanup(func() { _ = other.index.Close(); _ = other.store.Close() })
	other.purger = &Purger{Store: other.store, Index: other.index, Log: zerolog.Nop()}
	return other
}

func onPostgres(t *testing.T) {
	t.Helper()
	if !storetest.OnPostgres() {
		t.Skip("several hosts share a database on PostgreSQL only; " + storetest.Postgres + " is not set")
	}
}

func (p *place) talk(t *testing.T, text string) session.ID {
	t.Helper()
	sess := testkit.Must(p.store.CreateSession(t.Context(), store.NewSession{}))(t)
	p.append(t, sess.ID, nil, session.Message{Role: session.User, Parts: []session.Part{session.TextPart(text)}})
	return sess.ID
}

// Two daemons whose clocks differ by five hours apply retention at once: each session goes to the trash once and
// is purged, and nothing fails.
func TestTwoDaemonsKeepAtOnce(t *testing.T) {
	onPostgres(t)
	a := newPlace(t)
	b := a.second(t, 5*time.Hour)
	var old []session.ID
	for range 12 {
		old = append(old, a.talk(t, "old"))
	}
	keep := func(days int) (both [2]Kept) {
		later := time.Now().Add(time.Duration(days) * 24 * time.Hour)
		var wg sync.WaitGroup
		for i, p := range []*place{a, b} {
			k := Keeper{
				Rule: store.Retention{IdleDays: 10, TrashDays: 10, EventsDays: 10}, Store: p.store, Purger: p.purger,
				Log: zerolog.Nop(), Now: func() time.Time {
					return later.Add(time.Duration(i) * 5 * time.Hour)
				},
			}
			wg.Go(func() { both[i] = testkit.Must(k.Apply(t.Context()))(t) })
		}
		wg.Wait()
		return both
	}
	once := func(what string, got []session.ID) {
		t.Helper()
		slices.Sort(got)
		if !slices.Equal(got, old) {
			t.Errorf("%s: %v, not once each of %v", what, got, old)
		}
	}
	both := keep(11)
	once("trashed", slices.Concat(both[0].Trashed, both[1].Trashed))
	fresh := a.second(t, 11*24*time.Hour).talk(t, "fresh") // at the time of keep
	// The sessions went to the trash now, by the clock of whoever put them there.
	keep(11) // of two that purge one session at once, each may leave the report of it to the other
	for _, id := range old {
		if _, err := a.store.Session(t.Context(), id); session.CodeOf(err) != session.NotFound {
			t.Errorf("%s was not purged: %v", id, err)
		}
	}
	for _, c := range testkit.Must(a.store.Doctor(t.Context(), false))(t) {
		if !c.OK {
			t.Errorf("doctor: %s: %s", c.Name, c.Detail)
		}
	}
	if sess := testkit.Must(a.store.Session(t.Context(), fresh))(t); sess.DeletedAt != nil {
		t.Error("a session in use went to the trash")
	}
}

// What one daemon purges leaves the index of the other, also when that one did not run meanwhile.
func TestPurgeLeavesTheIndexesOfOtherHosts(t *testing.T) {
	onPostgres(t)
	a := newPlace(t)
	b := a.second(t, 0)
	gone, stays := a.talk(t, "zephyr one"), a.talk(t, "zephyr two")
	for _, p := range []*place{a, b} {
		testkit.Must(p.index.CatchUp(t.Context()))(t)
	}
	testkit.Must(a.purger.Purge(t.Context(), store.PurgeRequest{Session: gone}))(t)
	w := watcher{Runner: New(Config{Store: b.store, Index: b.index, Contexts: &fake{}, Log: zerolog.Nop()})}
	defer w.cancel()
	w.look()
	left := testkit.Must(b.index.Search(t.Context(), search.Query{Text: "zephyr"}))(t)
	if len(left.Hits) != 1 || left.Hits[0].SessionID != stays {
		t.Errorf("%+v", left.Hits)
	}
	file := testkit.Must(sql.Open("sqlite", filepath.Join(b.dir, "search.db")))(t)
	defer file.Close()
	var indexed int
	testkit.Check(t, file.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM docs`).Scan(&indexed))
	if indexed != 1 {
		t.Errorf("%d messages are indexed", indexed)
	}
}

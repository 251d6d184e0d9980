package search

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func fill(store *fakeStore, n int) {
	for i := range n {
		store.add(first, session.User, fmt.Sprintf("message number%d of the many", i+1))
	}
}

func TestConcurrentCatchUpsIndexEachMessageOnce(t *testing.T) {
	store := newFakeStore()
	const messages = 3*batch + 100
	fill(store, messages)
	path := filepath.Join(t.TempDir(), "search.db")
	var indexes []*Index
	for range 4 {
		indexes = append(indexes, openAt(t, path, store))
	}
	var wg sync.WaitGroup
	counts := make([]int, len(indexes))
	for i, ix := range indexes {
		wg.Go(func() { counts[i] = catchUp(t, ix) })
	}
	wg.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	if total != messages {
		t.Errorf("%v make %d messages, want %d", counts, total, messages)
	}
	for i, ix := range indexes {
		if mark, err := ix.Mark(t.Context()); err != nil || mark != messages {
			t.Errorf("index %d: mark %d, %v", i, mark, err)
		}
		if r := search(t, ix, Query{Text: "number5999"}); len(r.Hits) != 1 || r.Pending != 0 {
			t.Errorf("index %d: %d hits, %d pending", i, len(r.Hits), r.Pending)
		}
	}
}

// An index of an earlier version gets the size of FTS5's buffer when it is opened.
func TestHashSizeIsSetInAnEarlierIndex(t *testing.T) {
	store := newFakeStore()
	fill(store, 10)
	path := filepath.Join(t.TempDir(), "search.db")
	ix := openAt(t, path, store)
	catchUp(t, ix)
	size := func() (n int) {
		testkit.Check(t, ix.reader.QueryRow(`SELECT v FROM words_config WHERE k = 'hashsize'`).Scan(&n))
		return n
	}
	testkit.Must(ix.writer.Exec(`INSERT INTO words (words, rank) VALUES ('hashsize', 1048576)`))(t)
	if size() != 1<<20 {
		t.Fatal("the size of an earlier version is not set")
	}
	testkit.Check(t, ix.Close())
	ix = openAt(t, path, store)
	if got := size(); got != hashSize {
		t.Errorf("it is %d bytes", got)
	}
	if mark, err := ix.Mark(t.Context()); err != nil || mark != 10 {
		t.Errorf("the index was built again: mark %d, %v", mark, err)
	}
}

func TestNewestIsOrderedByTimeNotArrival(t *testing.T) {
	store := newFakeStore()
	order := rand.New(rand.NewPCG(1, 2)).Perm(100)
	for _, n := range order {
		store.addParts(first, session.User, began.Add(time.Duration(n)*time.Hour),
			session.TextPart(fmt.Sprintf("needle n%d", n)))
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	hits := search(t, ix, Query{Text: "needle", Order: OrderNewest, Limit: 100}).Hits
	if len(hits) != 100 || !slices.IsSortedFunc(hits, func(a, b Hit) int {
		return b.CreatedAt.Compare(a.CreatedAt.Time)
	}) {
		t.Errorf("%d hits, not newest first", len(hits))
	}
}

func TestManyMessagesOfOneMillisecond(t *testing.T) {
	store := newFakeStore()
	for i := range 4200 {
		store.addParts(first, session.User, began, session.TextPart(fmt.Sprintf("needle n%d", i)))
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	for _, n := range []int{0, 4095, 4096, 4199} {
		if r := search(t, ix, Query{Text: fmt.Sprintf("n%d", n)}); len(r.Hits) != 1 || r.Hits[0].Seq != int64(n+1) {
			t.Errorf("n%d: %v", n, names(r))
		}
	}
	testkit.Check(t, ix.Close())
	again := openAt(t, ix.path, store)
	if mark, _ := again.Mark(t.Context()); mark != 4200 {
		t.Errorf("the same store does not fit any more: mark %d", mark)
	}
}

func TestUnusableFilesAreReplaced(t *testing.T) {
	store := newFakeStore()
	fill(store, 20)
	cases := []struct {
		name  string
		spoil func(t *testing.T, path string)
	}{
		{"missing", func(t *testing.T, path string) { testkit.Check(t, os.Remove(path)) }},
		{"no database", func(t *testing.T, path string) {
			testkit.Check(t, os.WriteFile(path, []byte("this is text"), 0o600))
		}},
		{"cut", func(t *testing.T, path string) { testkit.Check(t, os.Truncate(path, 5000)) }},
		{"pages overwritten", func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			testkit.Check(t, err)
			_, err = f.WriteAt(make([]byte, 8000), 100)
			testkit.Check(t, errors.Join(err, f.Close()))
		}},
		{"a newer version", func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", path)
			testkit.Check(t, err)
			_, err = db.Exec(`PRAGMA user_version = 99`)
			testkit.Check(t, errors.Join(err, db.Close()))
		}},
		{"another database", func(t *testing.T, path string) {
			testkit.Check(t, os.Remove(path))
			db, err := sql.Open("sqlite", path)
			testkit.Check(t, err)
			_, err = db.Exec(`CREATE TABLE words (a)`)
			testkit.Check(t, errors.Join(err, db.Close()))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "search.db")
			ix := testkit.Must(Open(t.Context(), path, store))(t)
			catchUp(t, ix)
			testkit.Check(t, ix.Close())
			c.spoil(t, path)

			readOnly := testkit.Must(OpenReadOnly(t.Context(), path, store))(t)
			if r := search(t, readOnly, Query{Text: "number7"}); len(r.Hits) != 1 || r.Pending != 20 || readOnly.Reason() == "" {
				t.Errorf("read-only: %d hits, %d pending, reason %q; want all 20 scanned", len(r.Hits), r.Pending,
					readOnly.Reason())
			}
			testkit.Check(t, readOnly.Close())

			ix = openAt(t, path, store)
			if n := catchUp(t, ix); n != 20 {
				t.Errorf("caught up %d messages, want 20", n)
			}
			if r := search(t, ix, Query{Text: "number7"}); len(r.Hits) != 1 || r.Pending != 0 {
				t.Errorf("%d hits, %d pending", len(r.Hits), r.Pending)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file: %v, %v; want 0600", info.Mode(), err)
			}
		})
	}
}

func TestDamagedOpenIndexIsRebuilt(t *testing.T) {
	store := newFakeStore()
	fill(store, 50)
	ix := openIndex(t, store)
	catchUp(t, ix)
	testkit.Must(ix.writer.Exec(`UPDATE words_data SET block = x'00' WHERE id > 1`))(t)
	fill(store, 50)
	catchUp(t, ix)
	if r := search(t, ix, Query{Text: "number7", Order: OrderNewest}); len(r.Hits) != 2 {
		t.Errorf("%d hits after healing, want 2", len(r.Hits))
	}
}

func TestPowerLossRebuildsTheIndex(t *testing.T) {
	store := newFakeStore()
	fill(store, 20)
	path := filepath.Join(t.TempDir(), "search.db")
	ix := testkit.Must(Open(t.Context(), path, store))(t)
	catchUp(t, ix)
	testkit.Check(t, ix.Close())

	ix = testkit.Must(Open(t.Context(), path, store))(t)
	if n := catchUp(t, ix); n != 0 {
		t.Errorf("after a clean stop %d messages were indexed again", n)
	}
	testkit.Must(ix.writer.Exec(`UPDATE state SET boot = 'another run'`))(t)
	testkit.Check(t, errors.Join(ix.reader.Close(), ix.writer.Close())) // dies without sealing
	ix.reader, ix.writer = nil, nil

	readOnly := testkit.Must(OpenReadOnly(t.Context(), path, store))(t)
	if readOnly.Reason() == "" {
		t.Error("a torn index is read")
	}
	testkit.Check(t, readOnly.Close())
	if n := catchUp(t, openAt(t, path, store)); n != 20 {
		t.Errorf("%d messages were indexed anew, want all 20", n)
	}
}

func TestSearchSurvivesDamagedIndex(t *testing.T) {
	store := newFakeStore()
	fill(store, 50)
	ix := openIndex(t, store)
	catchUp(t, ix)
	readOnly := testkit.Must(OpenReadOnly(t.Context(), ix.path, store))(t)
	defer func() { testkit.Check(t, readOnly.Close()) }()
	testkit.Must(ix.writer.Exec(`UPDATE words_data SET block = x'00' WHERE id > 10`))(t)
	for name, damaged := range map[string]*Index{"read-only": readOnly, "writable": ix} {
		if r := search(t, damaged, Query{Text: "number7"}); len(r.Hits) != 1 || r.Pending != 50 {
			t.Errorf("%s: %d hits, %d pending; want the store scanned", name, len(r.Hits), r.Pending)
		}
	}
	if n := catchUp(t, ix); n != 50 {
		t.Errorf("%d messages were indexed anew, want 50", n)
	}
}

func TestTailReadsOnlyTheNewestWhenFarBehind(t *testing.T) {
	store := newFakeStore()
	fill(store, 2*tailLimit+100)
	ix := openIndex(t, store)
	for query, want := range map[string]int{"number3": 0, "number2099": 1} {
		r := search(t, ix, Query{Text: query})
		if len(r.Hits) != want || r.Pending != 2*tailLimit+100 || !r.Partial {
			t.Errorf("%s: %d hits, %d pending, partial %t", query, len(r.Hits), r.Pending, r.Partial)
		}
	}
	fill(store, 10)
	base := ix.tail.base
	if r := search(t, ix, Query{Text: "number10", Order: OrderNewest}); len(r.Hits) != 1 || r.Pending != 2*tailLimit+110 ||
		ix.tail.base != base {
		t.Errorf("a little later: %d hits, %d pending, the window moved: %t", len(r.Hits), r.Pending, ix.tail.base != base)
	}
	catchUp(t, ix)
	if r := search(t, ix, Query{Text: "number3"}); len(r.Hits) != 2 || r.Pending != 0 || r.Partial {
		t.Errorf("caught up: %d hits, %d pending, partial %t", len(r.Hits), r.Pending, r.Partial)
	}
}

func TestIndexOfAnotherStoreIsEmptied(t *testing.T) {
	store := newFakeStore()
	fill(store, 20)
	path := filepath.Join(t.TempDir(), "search.db")
	ix := testkit.Must(Open(t.Context(), path, store))(t)
	catchUp(t, ix)
	testkit.Check(t, ix.Close())

	restored := newFakeStore() // from a backup of ten messages ago, then used
	fill(restored, 10)
	for range 15 {
		restored.addParts(first, session.User, began.Add(time.Hour), session.TextPart("after the restore"))
	}
	for name, other := range map[string]*fakeStore{
		"older":          {messages: store.messages[:10], sessions: store.sessions},
		"older and used": restored,
	} {
		readOnly := testkit.Must(OpenReadOnly(t.Context(), path, other))(t)
		if r := search(t, readOnly, Query{Text: "number15"}); len(r.Hits) != 0 || readOnly.Reason() == "" {
			t.Errorf("%s: found %v, reason %q", name, names(r), readOnly.Reason())
		}
		testkit.Check(t, readOnly.Close())
	}
	ix = openAt(t, path, restored)
	if n := catchUp(t, ix); n != 15 {
		t.Errorf("caught up %d, want the 15 after the restore", n)
	}
	if r := search(t, ix, Query{Text: "number15"}); len(r.Hits) != 0 {
		t.Errorf("found %v of the store that was", names(r))
	}
	testkit.Check(t, ix.Close())

	other := newFakeStore()
	for range 20 {
		other.add(second, session.User, "of another store")
	}
	ix = openAt(t, path, other)
	if n := catchUp(t, ix); n != 20 {
		t.Errorf("caught up %d, want all 20 of the other store", n)
	}
	if r := search(t, ix, Query{Text: "number5"}); len(r.Hits) != 0 {
		t.Errorf("found %v of the store that was", names(r))
	}
}

// A database goes back while its index is open: a backup is restored, or a server takes over that lacks the last
// writes. Row ids are used again then, with other messages.
func TestOpenIndexFollowsAStoreThatWentBack(t *testing.T) {
	const all, kept = 40, 30
	for _, c := range []struct {
		name     string
		textless int // of the lost messages: how many of the last ones have no text
		more     int // messages after the store went back, before the index looks
		anew     int // messages that are indexed once more, or first
	}{
		{"and is quiet", 0, 0, 0},
		{"and has fewer messages than before", 0, 5, 5},
		{"and has more than before", 0, 20, 20},
		{"by messages without text", 12, 0, 2},
		{"by messages without text, and has more than before", 12, 20, 22},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newFakeStore()
			fill(store, all-c.textless)
			for range c.textless {
				store.addParts(first, session.User, began.Add(time.Hour))
			}
			ix := openIndex(t, store)
			catchUp(t, ix)
			search(t, ix, Query{Text: "many"})
			store.messages = slices.Clip(store.messages[:kept])
			for i := range c.more {
				store.addParts(second, session.User, began.Add(2*time.Hour), session.TextPart(fmt.Sprintf("message later%d", i+1)))
			}
			if n := catchUp(t, ix); n != c.anew {
				t.Errorf("%d messages were indexed, want %d", n, c.anew)
			}
			store.addParts(second, session.User, began.Add(3*time.Hour), session.TextPart("the quick brown fox"))
			for _, state := range []string{"tail", "index"} {
				for i := range all {
					want := 0
					if i < min(kept, all-c.textless) {
						want = 1
					}
					if r := search(t, ix, Query{Text: fmt.Sprintf("number%d", i+1)}); len(r.Hits) != want {
						t.Errorf("%s: number%d: %v, want %d", state, i+1, names(r), want)
					}
				}
				for i := range c.more {
					if r := search(t, ix, Query{Text: fmt.Sprintf("later%d", i+1)}); len(r.Hits) != 1 {
						t.Errorf("%s: later%d: %v", state, i+1, names(r))
					}
				}
				if r := search(t, ix, Query{Text: "fox"}); len(r.Hits) != 1 {
					t.Errorf("%s: fox: %v", state, names(r))
				}
				catchUp(t, ix)
			}
			var docs, counted int
			testkit.Check(t, ix.reader.QueryRow(`SELECT docs, (SELECT COUNT(*) FROM docs) FROM state`).Scan(&docs, &counted))
			if want := min(kept, all-c.textless) + c.more + 1; docs != want || counted != want {
				t.Errorf("the index has %d rows and counts %d, want %d", counted, docs, want)
			}
		})
	}
}

// The newest messages were purged by another host's daemon: the rest is not indexed again.
func TestIndexWhoseNewestMessagesWerePurgedIsKept(t *testing.T) {
	store := newFakeStore()
	fill(store, 30)
	ix := openIndex(t, store)
	catchUp(t, ix)
	store.messages = slices.Clip(store.messages[:20]) // its counter of ids goes on, which the index does not see
	if n := catchUp(t, ix); n != 0 {
		t.Errorf("%d messages were indexed again", n)
	}
	if r := search(t, ix, Query{Text: "number25"}); len(r.Hits) != 0 {
		t.Errorf("a purged message is found: %v", names(r))
	}
	again := openAt(t, ix.path, store)
	if n := catchUp(t, again); n != 0 {
		t.Errorf("opened again, %d messages were indexed again", n)
	}
}

func TestForgottenMessagesAreNotFound(t *testing.T) {
	store := newFakeStore()
	fill(store, 30)
	store.add(first, session.User, "the secret running codes 密码")
	ix := openIndex(t, store)
	catchUp(t, ix)
	testkit.Check(t, ix.Forget(t.Context(), []int64{30, 31}))
	for _, query := range []string{"secret", "run", "密码", "number30", "session:20260211_001 codes"} {
		if r := search(t, ix, Query{Text: query}); len(r.Hits) != 0 {
			t.Errorf("%s is still found: %v", query, names(r))
		}
	}
	var terms int
	testkit.Check(t, ix.writer.QueryRow(`SELECT COUNT(*) FROM words WHERE words MATCH '"secret" OR "codes"'`).Scan(&terms))
	if terms != 0 {
		t.Errorf("the index still holds %d rows of it", terms)
	}
	if _, err := ix.writer.Exec(`INSERT INTO words (words) VALUES ('integrity-check')`); err != nil {
		t.Errorf("integrity: %v", err)
	}
	if r := search(t, ix, Query{Text: "number29"}); len(r.Hits) != 1 {
		t.Errorf("the others are gone too")
	}
}

func TestClosedIndexIsOneFile(t *testing.T) {
	store := newFakeStore()
	fill(store, 10)
	dir := t.TempDir()
	path := filepath.Join(dir, "search.db")
	ix := testkit.Must(Open(t.Context(), path, store))(t)
	catchUp(t, ix)
	testkit.Check(t, ix.Close())
	readOnly := testkit.Must(OpenReadOnly(t.Context(), path, store))(t)
	if r := search(t, readOnly, Query{Text: "number7"}); len(r.Hits) != 1 || readOnly.Reason() != "" {
		t.Errorf("%d hits, reason %q", len(r.Hits), readOnly.Reason())
	}
	testkit.Check(t, readOnly.Close())
	files := testkit.Must(filepath.Glob(path + "-*"))(t)
	if len(files) > 0 {
		t.Errorf("left beside it: %v", files)
	}
}

func TestReadOnlyOpensIndexInUse(t *testing.T) {
	store := newFakeStore()
	fill(store, 10)
	ix := openIndex(t, store)
	catchUp(t, ix)
	readOnly := testkit.Must(OpenReadOnly(t.Context(), ix.path, store))(t)
	defer func() { testkit.Check(t, readOnly.Close()) }()
	fill(store, 1)
	if r := search(t, readOnly, Query{Text: "many", Limit: 100}); len(r.Hits) != 11 || r.Pending != 1 ||
		readOnly.Reason() != "" {
		t.Errorf("%d hits, %d pending, %q", len(r.Hits), r.Pending, readOnly.Reason())
	}
	if _, err := readOnly.CatchUp(t.Context()); err == nil {
		t.Error("a read-only index wrote")
	}
}

func TestSearchDuringCatchUpFindsEachMessageOnce(t *testing.T) {
	store := newFakeStore()
	ix := openIndex(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 40 {
			fill(store, 10)
			catchUp(t, ix)
		}
		cancel()
	})
	for ctx.Err() == nil {
		r := search(t, ix, Query{Text: "number1", Order: OrderNewest, Limit: 100})
		seqs := names(r)
		slices.Sort(seqs)
		if len(slices.Compact(seqs)) != len(r.Hits) {
			t.Errorf("a message appears twice: %v", seqs)
		}
	}
	wg.Wait()
}

// brokenStore is a store with pages that cannot be read: those of some messages, or of all that are new.
type brokenStore struct {
	*fakeStore
	damage error
	rows   []int64
	from   int64
}

func (b *brokenStore) EachHead(ctx context.Context, ids []int64, head session.Head,
	yield func(*session.Message) error,
) error {
	if slices.ContainsFunc(ids, func(id int64) bool { return slices.Contains(b.rows, id) }) {
		return b.damage
	}
	return b.fakeStore.EachHead(ctx, ids, head, yield)
}

func (b *brokenStore) MessagesAfter(ctx context.Context, mark int64, limit int) ([]session.Message, error) {
	if b.from > 0 && mark >= b.from {
		return nil, b.damage
	}
	return b.fakeStore.MessagesAfter(ctx, mark, limit)
}

// Damage of the database costs neither the index nor a search of what can be read.
func TestDamageOfTheStoreIsNotTheIndexs(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	testkit.Check(t, os.WriteFile(garbage, bytes.Repeat([]byte("no database "), 1000), 0o600))
	other := testkit.Must(sql.Open("sqlite", garbage))(t)
	defer other.Close()
	_, damage := other.Exec(`CREATE TABLE t (a)`)
	if !isDamage(damage) {
		t.Fatal(damage)
	}
	store := &brokenStore{fakeStore: newFakeStore(), damage: damage}
	for range 3 {
		store.add(first, session.User, "needle")
	}
	ix := testkit.Must(Open(t.Context(), filepath.Join(t.TempDir(), "search.db"), store))(t)
	defer ix.Close()
	catchUp(t, ix)
	store.rows, store.from = []int64{2}, 3
	store.add(first, session.User, "needle, new")
	if r := search(t, ix, Query{Text: "needle"}); strings.Join(slices.Sorted(slices.Values(names(r))), " ") != "1 3" ||
		!r.Partial {
		t.Errorf("found %v, partial %t", names(r), r.Partial)
	}
	if _, err := ix.CatchUp(t.Context()); !errors.Is(err, errStoreDamaged) {
		t.Errorf("catching up: %v", err)
	}
	if mark := testkit.Must(ix.Mark(t.Context()))(t); mark != 3 {
		t.Errorf("the index was built again: its mark is %d", mark)
	}
}

// A program's list of skills or tools stands in each session: it is found by nothing.
func TestRowsOfTheProgramAreNotIndexed(t *testing.T) {
	for _, c := range []struct {
		kind    session.Kind
		role    session.Role
		origin  session.Origin
		display bool
		want    string
	}{
		{session.KindMessage, session.System, session.Program, true, ""},
		{session.KindCustomMessage, session.User, session.Program, false, ""},
		{session.KindCustomMessage, session.User, session.Program, true, "- draw charts"},
		{session.KindMessage, session.Assistant, session.Model, false, "- draw charts"},
		{session.KindUnknown, "", session.Program, true, ""},
		{session.KindMarker, "", session.Program, true, ""},
	} {
		m := session.Message{
			Kind: c.kind, Role: c.role, Origin: c.origin, Display: c.display,
			Parts: []session.Part{session.TextPart("- draw charts")},
		}
		m.Talk = session.TalkOf(&m)
		if got := searchableText(&m); got != c.want {
			t.Errorf("a %s of role %s is found by %q, want %q", c.kind, c.role, got, c.want)
		}
	}
}

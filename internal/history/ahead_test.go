package history

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

func TestAnImportGathersGarbageWithinItsRoom(t *testing.T) {
	for _, test := range []struct {
		name string
		live uint64
		want int
	}{
		{"little lives", 2 << 20, 400},
		{"what a usual import holds", 6 << 20, 250},
		{"as much as the room", 16 << 20, 100},
		{"a very long line", 200 << 20, 100},
		{"nothing is known yet", 0, 400},
	} {
		if got := roomFor(test.live); got != test.want {
			t.Errorf("%s: %d %%, not %d", test.name, got, test.want)
		}
	}
}

func TestAnImportLeavesTheCollectorAsItWas(t *testing.T) {
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	run := func(polite bool) (during int) {
		im := Importer{Store: newFakeStore(), Pause: -1, Polite: polite}
		source := asking{read: func(context.Context, Found, Known, func(Batch) error) error {
			during = percent()
			return nil
		}}
		if _, err := im.Run(t.Context(), source, nil); err != nil {
			t.Fatal(err)
		}
		return during
	}
	if run(false); percent() != 100 {
		t.Errorf("%d %% after an import", percent())
	}
	live := uint64(2 << 20)
	room := takeHeadroom(true, func() uint64 { return live })
	if got := percent(); got != 400 {
		t.Errorf("%d %% while little lives", got)
	}
	live = 200 << 20
	if room.adjust(); percent() != 100 {
		t.Errorf("%d %% while much lives", percent())
	}
	live = 8 << 20
	if room.adjust(); percent() != 200 {
		t.Errorf("%d %% when less lives again", percent())
	}
	if room.giveBack(); percent() != 100 {
		t.Errorf("%d %% when it is given back", percent())
	}
	runtime.GC()
	if got := liveHeap(); got == 0 || got == roomBytes {
		t.Errorf("%d bytes live", got)
	}
	if during := run(true); during != 100 {
		t.Errorf("%d %% in a polite import: it shares its process", during)
	}
	debug.SetGCPercent(70)
	if during := run(false); during != 70 || percent() != 70 {
		t.Errorf("%d %% and %d after it, where 70 were set", during, percent())
	}
}

// asking is a source of one thing for each word, read by a function.
type asking struct {
	found []Found
	read  func(ctx context.Context, f Found, known Known, emit func(Batch) error) error
}

func (asking) Name() session.Source { return "fake" }
func (asking) Places() []string     { return nil }

func (a asking) Find(context.Context, []string) ([]Found, []Problem, error) {
	if a.found == nil {
		return []Found{{Path: "/a"}}, nil, nil
	}
	return a.found, nil, nil
}

func (a asking) Read(ctx context.Context, f Found, _ *Cursor, known Known, emit func(Batch) error) ([]Problem, error) {
	return nil, a.read(ctx, f, known, emit)
}

// slowStore stores the first batch only when it may, and says what it is asked.
type slowStore struct {
	*fakeStore
	may    chan struct{}
	events chan string
}

func (s *slowStore) Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error) {
	<-s.may
	s.events <- "stored"
	return s.fakeStore.Import(ctx, b)
}

func (s *slowStore) SessionBySource(ctx context.Context, source session.Source, id string) (session.Session, error) {
	s.events <- "session " + id
	return s.fakeStore.SessionBySource(ctx, source, id)
}

func (s *slowStore) SessionOfCall(_ context.Context, _ session.Source, key string) (session.ID, error) {
	s.events <- "call " + key
	return "", nil
}

func (s *slowStore) ImportCursor(ctx context.Context, source session.Source, path string) (*store.ImportCursor, error) {
	if path[0] == '#' {
		s.events <- "cursor " + path
	}
	return s.fakeStore.ImportCursor(ctx, source, path)
}

// What the second file asks of other sessions is answered while the first one's batch still
// waits; what it asks of that batch waits, too.
func TestOnlyQuestionsAboutWhatIsBeingStoredWait(t *testing.T) {
	st := &slowStore{fakeStore: newFakeStore(), may: make(chan struct{}), events: make(chan string, 20)}
	source := asking{found: []Found{{Path: "/a", Size: 1}, {Path: "/b", Size: 1}}, read: func(ctx context.Context, f Found, known Known, emit func(Batch) error) error {
		if f.Path == "/a" {
			b := Batch{}
			b.Session = NewSession{Source: "fake", SourceID: "one"}
			b.Messages = []Message{{Message: session.Message{ExternalID: "m"}}}
			b.Calls = []Call{{Call: session.Call{ExternalID: "reply"}}}
			b.Cursor = &Cursor{Source: "fake", Path: "#one"}
			return emit(b)
		}
		ask := []func() error{
			func() error { _, err := known.Session(ctx, "fake", "two"); return err },
			func() error { _, err := known.CallOwner(ctx, "fake", "other"); return err },
			func() error { _, err := known.Cursor(ctx, "fake", "#two"); return err },
		}
		for _, question := range ask {
			if err := question(); err != nil {
				return err
			}
		}
		close(st.may)
		_, err := known.Session(ctx, "fake", "one")
		return err
	}}
	if _, err := (&Importer{Store: st, Pause: -1}).Run(t.Context(), source, nil); err != nil {
		t.Fatal(err)
	}
	close(st.events)
	var events []string
	for e := range st.events {
		events = append(events, e)
	}
	want := []string{"session two", "call other", "cursor #two", "stored", "session one"}
	if !slices.Equal(events, want) {
		t.Errorf("%q, not %q", events, want)
	}
}

func TestEveryNameOfWhatIsBeingStoredWaits(t *testing.T) {
	p := newPending()
	named, byID, nameless, cursor := Batch{}, Batch{}, Batch{}, Batch{}
	named.Session = NewSession{Source: "fake", SourceID: "one"}
	named.Calls = []Call{{Call: session.Call{ExternalID: "reply"}}, {}}
	byID.ID = "20260101_001"
	nameless.Session.Source = "fake"
	cursor.Cursor = &Cursor{Path: "#one"}
	for _, test := range []struct {
		name  string
		batch *Batch
		waits [4]bool // session one, session 20260101_001, path #one, call reply
	}{
		{"a session by its source's id", &named, [4]bool{true, false, false, true}},
		{"a session by its own id", &byID, [4]bool{false, true, false, false}},
		{"a session of no name may be any", &nameless, [4]bool{true, true, false, false}},
		{"a cursor alone", &cursor, [4]bool{false, false, true, false}},
	} {
		waits := func() [4]bool {
			return [4]bool{p.session("one"), p.id("20260101_001"), p.path("#one"), p.call("reply")}
		}
		p.given(test.batch)
		p.given(test.batch)
		p.settled(test.batch)
		if got := waits(); got != test.waits {
			t.Errorf("%s: %v, not %v", test.name, got, test.waits)
		}
		p.settled(test.batch)
		if got := waits(); got != [4]bool{} {
			t.Errorf("%s, when it is stored: %v", test.name, got)
		}
	}
}

// How much comes in with one transaction, and who is waited for, goes by it.
func TestABatchIsAsLargeAsWhatItsCutsStandFor(t *testing.T) {
	said := strings.Repeat("some words ", 1<<19)
	line := `{"text":"` + said + `"}`
	cuts := NewCuts(strings.NewReader(line), Found{}, CutRule{Fields: []string{"text"}})
	short, err := cuts.shorten(0, int64(len(line)))
	if err != nil || len(short) > len(said)/2 {
		t.Fatalf("%d bytes are left, %v", len(short), err)
	}
	o, _ := Fields(short)
	text, _ := Text(o.Get("text"))
	b := batchOf("one", 0, 1)
	b.Messages[0].Parts, b.Cuts = []session.Part{session.TextPart(text)}, cuts
	a := ahead{given: make(chan step), pending: newPending()}
	size := make(chan int, 1)
	go func() {
		size <- (<-a.given).batch.bytes
		close((<-a.given).settled)
	}()
	if err := a.emit(t.Context(), &reading{}, b); err != nil {
		t.Fatal(err)
	}
	if got := <-size; got != len(said) {
		t.Errorf("%d bytes, not %d", got, len(said))
	}
}

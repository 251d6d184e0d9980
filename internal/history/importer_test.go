package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// fakeStore knows messages by their external ids and keeps cursors.
type fakeStore struct {
	mu      sync.Mutex
	known   map[string]bool
	cursors map[string]*store.ImportCursor
	fail    error
	batches int
	asked   int // for cursors
}

func newFakeStore() *fakeStore {
	return &fakeStore{known: map[string]bool{}, cursors: map[string]*store.ImportCursor{}}
}

func (*fakeStore) ImportIsMine(context.Context, session.Source, string) (mine, decided bool, err error) {
	return false, false, nil
}

func (*fakeStore) SetMine(context.Context, session.Source, string, bool) error { return nil }

func (f *fakeStore) Import(_ context.Context, b store.ImportBatch) (store.ImportResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.Cursor != nil && b.ID == "" && len(b.Messages) == 0 { // of no session
		f.cursors[b.Cursor.Path] = b.Cursor
		return store.ImportResult{}, nil
	}
	if f.fail != nil {
		return store.ImportResult{}, f.fail
	}
	f.batches++
	res := store.ImportResult{Created: !f.known[""], Session: session.Session{ID: "20260101_001"}}
	f.known[""] = true
	for _, m := range b.Messages {
		if f.known[m.ExternalID] {
			res.Duplicates++
			continue
		}
		f.known[m.ExternalID] = true
		res.Messages++
	}
	if b.Cursor != nil {
		b.Cursor.SessionID = res.Session.ID
		f.cursors[b.Cursor.Path] = b.Cursor
	}
	return res, nil
}

func (*fakeStore) Restore(context.Context, store.RestoreBatch) (store.ImportResult, error) {
	return store.ImportResult{}, errors.New("no source of these tests restores")
}

func (f *fakeStore) ImportCursor(_ context.Context, _ session.Source, path string) (*store.ImportCursor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.cursors[path], nil
}

func (f *fakeStore) EachImportCursor(_ context.Context, _ session.Source, first, last string,
	visit func(*store.ImportCursor),
) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	for path, c := range f.cursors {
		if first <= path && path <= last {
			one := *c
			one.Path = path
			visit(&one)
		}
	}
	return nil
}

func (f *fakeStore) Session(context.Context, session.ID) (session.Session, error) {
	return session.Session{}, session.Errorf(session.NotFound, "none")
}

func (f *fakeStore) SessionBySource(context.Context, session.Source, string) (session.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known[""] {
		return session.Session{}, session.Errorf(session.NotFound, "none")
	}
	return session.Session{ID: "20260101_001"}, nil
}

func (f *fakeStore) MessageByKey(context.Context, session.ID, string) (*session.MessageRef, error) {
	return nil, nil
}

func (f *fakeStore) Untitled(context.Context, session.Source, string) ([]session.ID, error) {
	return nil, nil
}

func (f *fakeStore) SessionOfCall(context.Context, session.Source, string) (session.ID, error) {
	return "", nil
}

func (f *fakeStore) ExternalIDs(context.Context, session.ID, func(string)) error { return nil }

func (f *fakeStore) Message(context.Context, session.MessageRef) (session.Message, error) {
	return session.Message{}, session.Errorf(session.NotFound, "no message")
}

func (f *fakeStore) Messages(context.Context, session.ID, store.MessagePage) ([]session.Message, bool, error) {
	return nil, false, nil
}

func (f *fakeStore) Calls(context.Context, session.ID, store.Page) ([]session.Call, string, error) {
	return nil, "", nil
}

// fakeSource gives two batches of each thing, of the messages a to d.
type fakeSource struct {
	found []Found
	fail  error // after the first batch
	torn  int
}

func (fakeSource) Name() session.Source { return "fake" }

func (fakeSource) Places() []string { return nil }

func (s fakeSource) Find(context.Context, []string) ([]Found, []Problem, error) {
	return s.found, []Problem{{Path: "/closed", Error: "permission denied"}}, nil
}

func (s fakeSource) Read(ctx context.Context, f Found, _ *Cursor, known Known,
	emit func(Batch) error,
) ([]Problem, error) {
	existing, err := orNone(known.SessionBySource(ctx, "fake", "x"))
	if err != nil {
		return nil, err
	}
	for i, keys := range []string{"ab", "cd"} {
		var b Batch
		if existing != nil {
			b.ID = existing.ID
		}
		for _, key := range keys {
			m := Message{}
			m.ExternalID = string(key)
			b.Messages = append(b.Messages, m)
			b.Records.Import(1)
		}
		if i == 1 {
			at := session.At(f.ModifiedAt)
			b.Cursor = &Cursor{Source: "fake", Path: f.Path, Size: f.Size, ModifiedAt: &at}
			b.Records.Wait(s.torn)
		}
		if err := emit(b); err != nil {
			return nil, err
		}
		if s.fail != nil {
			return []Problem{{Path: f.Path, Line: 3, Error: "bad"}}, s.fail
		}
	}
	return nil, nil
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestImporterAddsUp(t *testing.T) {
	st := newFakeStore()
	im := Importer{Store: st}
	source := fakeSource{
		found: []Found{{Path: "/a", Size: 1, ModifiedAt: noon}, {Path: "/b", Size: 1, ModifiedAt: noon}},
		torn:  1,
	}
	done := testkit.Must(im.Run(t.Context(), source, nil))(t)
	want := `{"source":"fake","sessions":{"new":1,"updated":0,"unchanged":0},"records":{"read":10,"imported":4,"raw":0,"skipped":{"already imported":4},"waiting":2},"errors":[{"path":"/closed","error":"permission denied"}]}`
	if got := string(session.JSONOf(done)); got != want || !done.Records.Balanced() {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var kept struct{ Records }
	if err := json.Unmarshal(st.cursors["/b"].Counts, &kept); err != nil || kept.Read != 4 ||
		kept.Skipped[SkipKnown] != 4 {
		t.Errorf("imports keeps %s: what was not finished will be read again", st.cursors["/b"].Counts)
	}
	again, err := im.Run(t.Context(), source, nil)
	if err != nil || again.Sessions != (Sessions{Unchanged: 1}) || again.Records.Read != 0 {
		t.Errorf("the second time: %+v %v", again, err)
	}
	source.found[0].ModifiedAt = noon.Add(time.Second)
	if touched, err := im.Run(t.Context(), source, nil); err != nil || touched.Records.Read != 5 ||
		touched.Records.Imported != 0 {
		t.Errorf("after a touch: %+v %v", touched, err)
	}
}

func TestProgressMovesWithinAFile(t *testing.T) {
	var told []int64
	im := Importer{Store: newFakeStore(), Progress: func(f Found, bytes int64) {
		if f.Path != "/one" {
			t.Errorf("of %s", f.Path)
		}
		told = append(told, bytes)
	}}
	source := fakeSource{found: []Found{{Path: "/one", Size: 2000, ModifiedAt: noon}}}
	for range 2 { // the second finds it unchanged
		testkit.Must(im.Run(t.Context(), source, nil))(t)
	}
	if want := []int64{600, 600, 800, 2000}; !slices.Equal(told, want) {
		t.Errorf("%v, want %v", told, want)
	}
}

// scripted is a source whose found things are read by a function.
type scripted struct {
	fakeSource
	read func(f Found, emit func(Batch) error) error
}

func (s scripted) Read(_ context.Context, f Found, _ *Cursor, _ Known, emit func(Batch) error) ([]Problem, error) {
	return nil, s.read(f, emit)
}

func batchOf(source string, from, n int) (b Batch) {
	b.Session = NewSession{Source: "fake", SourceID: source}
	for i := range n {
		key := fmt.Sprint(source, from+i)
		b.Messages = append(b.Messages, Message{Message: session.Message{ExternalID: key}})
		b.Calls = append(b.Calls, Call{MessageKey: key, Call: session.Call{ExternalID: key}})
	}
	b.Records.Import(n)
	b.Records.Skip(SkipBlank, 1)
	return b
}

// commits is a store that remembers how many messages and calls each transaction stores, and
// refuses one message.
type commits struct {
	*fakeStore
	messages, calls []int
	refuses         string
}

func (s *commits) Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error) {
	for i := range b.Messages {
		if b.Messages[i].ExternalID == s.refuses && s.refuses != "" {
			return store.ImportResult{}, session.Errorf(session.Invalid, "its parent is not here")
		}
	}
	s.messages, s.calls = append(s.messages, len(b.Messages)), append(s.calls, len(b.Calls))
	return s.fakeStore.Import(ctx, b)
}

func TestLargeBatchIsCommittedInPieces(t *testing.T) {
	large := batchOf("one", 5000, 3)
	for i := range large.Messages {
		large.Messages[i].Parts = []session.Part{session.TextPart(strings.Repeat("x", MaxBatchBytes))}
	}
	for _, test := range []struct {
		name string
		b    Batch
		want []int
	}{
		{"as many messages as a commit stores", batchOf("one", 0, MaxBatch), []int{1000}},
		{"more messages", batchOf("one", 0, 2*MaxBatch+300), []int{1000, 1000, 300}},
		{"more bytes", large, []int{2, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			st := &commits{fakeStore: newFakeStore()}
			source := scripted{fakeSource{found: []Found{{Path: "/a"}}}, func(_ Found, emit func(Batch) error) error {
				return emit(test.b)
			}}
			done, err := (&Importer{Store: st}).Run(t.Context(), source, nil)
			if err != nil || done.Records.Imported != len(test.b.Messages) || !done.Records.Balanced() {
				t.Errorf("%+v %v", done, err)
			}
			if !slices.Equal(st.messages, test.want) || !slices.Equal(st.calls, test.want) {
				t.Errorf("commits of %v messages and %v calls, not %v", st.messages, st.calls, test.want)
			}
		})
	}
}

// Requests to a daemon wait for one commit at most, which is short: a tenth of the usual one.
func TestImporterPausesAfterEachCommitWhileADaemonServes(t *testing.T) {
	for serving, want := range map[bool]time.Duration{true: (11 + 1) * 5 * time.Millisecond, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			source := scripted{fakeSource{found: []Found{{Path: "/a"}}}, func(_ Found, emit func(Batch) error) error {
				return errors.Join(emit(batchOf("one", 0, MaxBatch+1)), emit(batchOf("one", MaxBatch+1, 1)))
			}}
			begun := time.Now()
			testkit.Must((&Importer{Store: newFakeStore(), Serving: serving}).Run(t.Context(), source, nil))(t)
			if took := time.Since(begun); took != want {
				t.Errorf("serving %v: twelve commits, or three, pause for %v, not %v", serving, took, want)
			}
		})
	}
}

// The source gets the error at once, and batches that it emits after a refusal are not stored.
func TestRefusedBatchEndsItsFile(t *testing.T) {
	const batches = 4
	for refused := range batches {
		st := &commits{fakeStore: newFakeStore(), refuses: fmt.Sprint("one", 10*refused)}
		source := scripted{fakeSource{found: []Found{{Path: "/a", Size: 1}}}, func(f Found, emit func(Batch) error) error {
			for i := range batches {
				b := batchOf("one", 10*i, 10)
				if i == batches-1 {
					b.Cursor = &Cursor{Source: "fake", Path: f.Path}
				}
				if err := emit(b); (err != nil) != (i >= refused) {
					t.Errorf("batch %d is refused: emitting %d gives %v", refused, i, err)
				}
			}
			return nil
		}}
		done, err := (&Importer{Store: st}).Run(t.Context(), source, nil)
		if err != nil || len(done.Errors) != 2 { // the other one is the fake source's own
			t.Fatalf("%+v %v", done, err)
		}
		if got := done.Records; got.Imported != 10*refused || got.Skipped[SkipBlank] != refused || !got.Balanced() {
			t.Errorf("batch %d is refused: %+v", refused, got)
		}
		if n := len(st.known); n != 10*refused+min(refused, 1) {
			t.Errorf("batch %d is refused: %d are there", refused, n)
		}
		if c := st.cursors["/a"]; c != nil && !isRefused(c) {
			t.Errorf("batch %d is refused: there is a cursor", refused)
		}
	}
}

func TestImporterTellsWhoseFaultItIs(t *testing.T) {
	found := []Found{{Path: "/a", Size: 1}, {Path: "/b", Size: 1}}
	t.Run("a source's error stops one file", func(t *testing.T) {
		im := Importer{Store: newFakeStore()}
		done, err := im.Run(t.Context(), fakeSource{found: found, fail: errors.New("torn apart")}, nil)
		if err != nil || len(done.Errors) != 5 || done.Records.Imported != 2 || !done.Records.Balanced() {
			t.Errorf("%+v %v", done, err)
		}
	})
	t.Run("a full disk stops all", func(t *testing.T) {
		st := newFakeStore()
		st.fail = session.Errorf(session.StorageFull, "full")
		done, err := (&Importer{Store: st}).Run(t.Context(), fakeSource{found: found}, nil)
		if session.CodeOf(err) != session.StorageFull || done.Records.Read != 0 {
			t.Errorf("%+v %v", done, err)
		}
	})
	t.Run("what the store refuses stops one file", func(t *testing.T) {
		for _, refused := range []error{
			session.Errorf(session.Invalid, "no such parent"),
			session.Errorf(session.Conflict, "its origin is being purged"),
		} {
			st := newFakeStore()
			st.fail = refused
			done, err := (&Importer{Store: st}).Run(t.Context(), fakeSource{found: found}, nil)
			if err != nil || len(done.Errors) != 3 {
				t.Errorf("%v: %+v %v", refused, done, err)
			}
		}
	})
	t.Run("a cancelled context ends the run", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		im := Importer{Store: newFakeStore(), Progress: func(Found, int64) { cancel() }}
		if _, err := im.Run(ctx, fakeSource{found: found}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// A second import of thousands of files asks the store once how far they were read, and so does a plan.
func TestUnchangedFilesAreLookedUpAtOnce(t *testing.T) {
	var found []Found
	for i := range 50 {
		found = append(found, Found{Path: fmt.Sprintf("/h/%02d.jsonl", i), Size: 7, ModifiedAt: noon})
	}
	fake := newFakeStore()
	im, source := Importer{Store: fake}, fakeSource{found: found}
	first := testkit.Must(im.Run(t.Context(), source, nil))(t)
	fake.asked = 0
	again := testkit.Must(im.Run(t.Context(), source, nil))(t)
	if fake.asked != 1 {
		t.Errorf("the second import asked %d times", fake.asked)
	}
	if sum := first.Sessions.New + first.Sessions.Unchanged; again.Sessions.Unchanged != sum || again.Records.Read != 0 {
		t.Errorf("first %+v, then %+v", first, again)
	}
	found[3].Size = 8
	if plan := testkit.Must(im.Plan(t.Context(), source, found))(t); plan.New != 1 || fake.asked != 2 {
		t.Errorf("%+v, asked %d times", plan, fake.asked)
	}
}

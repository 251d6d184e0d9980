package history_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// home is a host on which pi is used, and a follower of it. Its clock jumps over short waits,
// and stands still otherwise.
type home struct {
	*testing.T
	store *store.Store
	dir   string // pi's sessions
	f     *history.Follower
	look  chan time.Time
	later chan time.Time
	done  chan history.Accounting

	mu  sync.Mutex
	now time.Time
}

func newHome(t *testing.T) *home {
	t.Helper()
	s := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")),
		store.Options{}))(t)
	t.Cleanup(func() { s.Close() })
	h := &home{
		T: t, store: s, dir: filepath.Join(t.TempDir(), "sessions"), now: time.Now(),
		look: make(chan time.Time), later: make(chan time.Time), done: make(chan history.Accounting, 100),
	}
	src := pi.New(func(name string) string { return map[string]string{"PI_CODING_AGENT_DIR": filepath.Dir(h.dir)}[name] })
	h.f = &history.Follower{
		Importer: &history.Importer{Store: s}, Sources: []history.Source{src}, Paths: s.ImportedPaths,
		Done:   func(_ session.Source, a history.Accounting) { h.done <- a },
		Failed: func(err error) { t.Error(err) },
		Now:    func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.now },
		After: func(d time.Duration) <-chan time.Time {
			switch {
			case d == history.LookEvery:
				return h.look
			case d > 3*time.Second:
				return h.later
			}
			h.passes(d)
			at := make(chan time.Time, 1)
			at <- time.Time{}
			return at
		},
	}
	return h
}

// imported does what a person does once: only then pi is followed.
func (h *home) imported() *home {
	h.Helper()
	testkit.Must(h.f.Importer.Run(h.Context(), h.f.Sources[0], nil))(h)
	return h
}

// run follows until the test ends, and returns when the follower waits for changes.
func (h *home) run() {
	h.Helper()
	ready := make(chan struct{}, 1)
	h.f.OnReady(func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := h.f.Run(ctx); err != nil {
			h.Error(err)
		}
	})
	h.Cleanup(func() { cancel(); wg.Wait() })
	<-ready
}

// waits until so many records more are here.
func (h *home) waits(records int) history.Accounting {
	h.Helper()
	return h.looksUntil(records, nil)
}

// looksUntil is waits for what the follower finds by itself: it looks, a day after the other. One look may
// not do, since the time between may pass while the follower scans.
func (h *home) looksUntil(records int, look chan<- time.Time) (all history.Accounting) {
	h.Helper()
	for all.Records.Imported+all.Records.Raw < records {
		select {
		case one := <-h.done:
			all.Add(one)
		case look <- time.Time{}:
			h.passes(24 * time.Hour)
		}
	}
	if got := all.Records.Imported + all.Records.Raw; got != records || len(all.Errors) > 0 {
		h.Errorf("%d records came in, not %d; %v", got, records, all.Errors)
	}
	return all
}

func (h *home) passes(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *home) messages(id string) string {
	h.Helper()
	sess := testkit.Must(h.store.SessionBySource(h.Context(), session.SourcePi, id))(h)
	msgs, _, err := h.store.Messages(h.Context(), sess.ID, store.MessagePage{})
	testkit.Check(h, err)
	var texts []string
	for i := range msgs {
		texts = append(texts, msgs[i].Text())
	}
	return strings.Join(texts, " ")
}

func header(id string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-02-03T09:00:00.000Z","cwd":"/home/dev"}`, id) + "\n"
}

func said(id, parent, text string) string {
	if parent = `"` + parent + `"`; parent == `""` {
		parent = "null"
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-02-03T09:00:01.000Z","message":{"role":"user","content":%q,"timestamp":1770109202000}}`, id, parent, text) + "\n"
}

func (h *home) write(name string, texts ...string) {
	h.Helper()
	path := filepath.Join(h.dir, name)
	testkit.Check(h, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Check(h, os.WriteFile(path, []byte(strings.Join(texts, "")), 0o600))
}

func (h *home) append(name, text string) {
	h.Helper()
	f := testkit.Must(os.OpenFile(filepath.Join(h.dir, name), os.O_APPEND|os.O_WRONLY, 0))(h)
	defer f.Close()
	testkit.Must(f.WriteString(text))(h)
}

const first = "--home-dev--/2026-02-03T09-00-00-000Z_one.jsonl"

func TestFollowerTakesWhatIsAppended(t *testing.T) {
	h := newHome(t)
	h.write(first, header("one"), said("a", "", "hello"))
	h.imported().run()
	h.append(first, said("b", "a", "again"))
	h.waits(1)
	h.append(first, said("c", "b", "and")+said("d", "c", "on"))
	h.waits(2)
	if got := h.messages("one"); got != "hello again and on" {
		t.Error(got)
	}
}

func TestFollowerTakesWhatWasAppendedWhileNobodyLooked(t *testing.T) {
	h := newHome(t)
	h.write(first, header("one"), said("a", "", "hello"))
	h.imported()
	h.append(first, said("b", "a", "again"))
	h.run()
	h.waits(1)
}

func TestFollowerFindsNewFoldersAndFiles(t *testing.T) {
	h := newHome(t)
	h.write(first, header("one"), said("a", "", "hello"))
	h.imported().run()
	h.write("--home-dev-other--/2026-02-04T09-00-00-000Z_two.jsonl", header("two"), said("a", "", "there"))
	h.waits(2) // its header is a record
	h.write("--home-dev-other--/2026-02-05T09-00-00-000Z_three.jsonl", header("three"), said("a", "", "here"))
	h.waits(2)
	if got := h.messages("two") + h.messages("three"); got != "therehere" {
		t.Error(got)
	}
}

// A line is imported when it is finished, not before.
func TestFollowerWaitsForTheEndOfALine(t *testing.T) {
	h := newHome(t)
	h.write(first, header("one"), said("a", "", "hello"))
	h.imported().run()
	line := said("b", "a", "in two halves")
	h.append(first, line[:len(line)/2])
	h.append(first, line[len(line)/2:])
	h.waits(1)
	if got := h.messages("one"); got != "hello in two halves" {
		t.Error(got)
	}
}

// What was imported stays whatever becomes of the file, and a file that comes back goes on.
func TestFollowerSurvivesDeletionTruncationAndReplacement(t *testing.T) {
	h := newHome(t)
	h.write(first, header("one"), said("a", "", "hello"), said("b", "a", "again"))
	h.imported().run()
	path := filepath.Join(h.dir, first)
	testkit.Check(t, os.Remove(path))
	h.write(first, header("one"), said("a", "", "hello"), said("c", "a", "after")) // truncated, then rewritten
	h.waits(1)
	if got := h.messages("one"); got != "hello after" {
		t.Errorf("the path is %q: a rewritten file is a branch of the same session", got)
	}
	moved := path + ".new"
	testkit.Check(t, os.WriteFile(moved, []byte(header("one")+said("a", "", "hello")+said("c", "a", "after")+said("d", "c",
		"rename")), 0o600))
	testkit.Check(t, os.Rename(moved, path))
	h.waits(1)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil { // the whole folder, made again
		t.Fatal(err)
	}
	h.write(first, header("one"), said("a", "", "hello"), said("c", "a", "after"), said("d", "c", "rename"),
		said("e", "d", "folder"))
	h.waits(1)
	if got := h.messages("one"); got != "hello after rename folder" {
		t.Error(got)
	}
	sessions, _, err := h.store.Sessions(t.Context(), store.Filter{}, store.Page{})
	if err != nil || len(sessions) != 1 {
		t.Errorf("%d sessions, %v", len(sessions), err)
	}
}

// Where the system has no watches left, the follower looks.
func TestFollowerLooksWhereNothingTells(t *testing.T) {
	h := newHome(t)
	h.f.Deaf()
	h.write(first, header("one"), said("a", "", "hello"))
	h.imported().run()
	h.append(first, said("b", "a", "again"))
	h.write("--other--/2026-02-04T09-00-00-000Z_two.jsonl", header("two"))
	h.passes(history.LookEvery)
	h.look <- time.Time{}
	h.waits(2)
}

// countingSource counts how often its folders are walked.
type countingSource struct {
	history.Source
	walks atomic.Int64
}

func (s *countingSource) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	if history.IsFolder(roots[0]) {
		s.walks.Add(1)
	}
	return s.Source.Find(ctx, roots)
}

// Where the system reports no changes, the follower looks after 10 seconds, then after twice as long each time; after a
// change it begins again.
func TestLooksBackOffWhileNothingChanges(t *testing.T) {
	h := newHome(t)
	h.f.Deaf()
	h.write(first, header("one"), said("a", "", "hello"))
	h.imported()
	counting := &countingSource{Source: h.f.Sources[0]}
	h.f.Sources[0] = counting
	h.run()
	walksDuring := func(looks int) int64 {
		before := counting.walks.Load()
		for range looks {
			h.passes(history.LookEvery)
			h.look <- time.Time{}
		}
		h.look <- time.Time{} // the one before is done
		return counting.walks.Load() - before
	}
	if n := walksDuring(60); n < 3 || n > 10 { // of 60 looks
		t.Errorf("%d walks in ten minutes without a change", n)
	}
	h.append(first, said("b", "a", "again"))
	h.looksUntil(1, h.look)
	if n := walksDuring(7); n < 2 { // after 10 and 30 seconds
		t.Errorf("%d walks in the 70 seconds after a change", n)
	}
}

// A folder that has no watch costs looks at this folder: no walk through all of its program, and nothing of what is
// watched.
func TestRefusedWatchKeepsTheOthers(t *testing.T) {
	h := newHome(t)
	other := "--other--/2026-02-04T09-00-00-000Z_two.jsonl"
	h.write(first, header("one"), said("a", "", "hello"))
	h.write(other, header("two"), said("c", "", "hello"))
	h.imported()
	counting := &countingSource{Source: h.f.Sources[0]}
	h.f.Sources[0] = counting
	h.f.RefuseWatch(filepath.Join(h.dir, "--other--"))
	h.run()
	h.append(first, said("b", "a", "seen without a look"))
	h.waits(1)
	for range 6 { // the first look scans the whole program
		h.passes(history.LookEvery)
		h.look <- time.Time{}
	}
	before := counting.walks.Load()
	h.append(other, said("d", "c", "seen at a look"))
	for got := 0; got < 1; {
		select {
		case one := <-h.done:
			got += one.Records.Imported
		case h.look <- time.Time{}:
			h.passes(history.LookEvery)
		}
	}
	if n := counting.walks.Load() - before; n > 0 {
		t.Errorf("%d walks through the program for a change in one folder", n)
	}
	h.write("--other--/2026-02-04T10-00-00-000Z_three.jsonl", header("three"), said("e", "", "a new file"))
	h.looksUntil(2, h.look)
}

// What was never imported is not followed; from the first import on it is.
func TestFollowerFollowsWhatWasImportedOnce(t *testing.T) {
	h := newHome(t)
	h.write(first, header("one"), said("a", "", "hello"))
	h.run()
	h.look <- time.Time{}
	select {
	case a := <-h.done:
		t.Errorf("imported unasked: %+v", a)
	default:
	}
	h.imported()
	h.look <- time.Time{}
	h.append(first, said("b", "a", "again"))
	h.waits(1)
}

// What is unfinished is read once more when its file has been quiet for ten minutes.
func TestFollowerComesBackAfterTenMinutes(t *testing.T) {
	h := newHome(t)
	src := &waiting{Source: h.f.Sources[0], read: make(chan string, 10)}
	h.f.Sources[0] = src
	h.write(first, header("one"), said("a", "", "hello"))
	h.imported()
	<-src.read
	h.run()
	<-src.read // the cursor said that something waits
	h.passes(history.QuietTime + time.Minute)
	select {
	case h.later <- time.Time{}:
		<-src.read
	case <-src.read: // it had not begun to wait when the time passed
	}
}

const (
	geminiChat  = "demo/chats/session-2026-03-01T10-00-aaaaaaaa.jsonl"
	geminiBegun = `{"sessionId":"aaaaaaaa-0000-4000-8000-000000000001","projectHash":"ab","startTime":"2026-03-01T10:00:00.000Z","kind":"main"}
{"id":"m1","timestamp":"2026-03-01T10:00:01.000Z","type":"user","content":[{"text":"question"}]}
{"id":"m2","timestamp":"2026-03-01T10:00:02.000Z","type":"gemini","content":"answer","tokens":{"input":10,"output":7},"model":"m"}
`
)

// newGeminiHome is a host on which Gemini CLI just wrote a reply that may get calls.
func newGeminiHome(t *testing.T) *home {
	h := newHome(t)
	h.dir = filepath.Join(filepath.Dir(h.dir), ".gemini", "tmp")
	h.f.Sources = []history.Source{geminicli.New(func(name string) string {
		return map[string]string{"HOME": filepath.Dir(filepath.Dir(h.dir))}[name]
	}, h.f.Now)}
	h.f.Importer.Now = h.f.Now
	h.write(geminiChat, geminiBegun)
	done := testkit.Must(h.f.Importer.Run(t.Context(), h.f.Sources[0], nil))(t)
	if done.Records.Waiting != 1 {
		t.Fatalf("the reply does not wait: %+v", done)
	}
	return h
}

func (h *home) hasAnswer() {
	h.Helper()
	sess := testkit.Must(h.store.SessionBySource(context.WithoutCancel(h.Context()), session.SourceGeminiCLI,
		"aaaaaaaa-0000-4000-8000-000000000001"))(h)
	msgs, _, err := h.store.Messages(context.WithoutCancel(h.Context()), sess.ID, store.MessagePage{})
	if err != nil || len(msgs) != 2 || msgs[1].Text() != "answer" || sess.Head == nil || *sess.Head != msgs[1].ID {
		h.Errorf("%d messages, head %v: %v", len(msgs), sess.Head, err)
	}
}

// A reply that waits is imported when its program removes the file.
func TestFollowerImportsWhatWaitedInARemovedFile(t *testing.T) {
	h := newGeminiHome(t)
	h.run()
	testkit.Check(t, os.Remove(filepath.Join(h.dir, geminiChat)))
	h.waits(1)
	h.hasAnswer()
}

// A reply that waits is imported when the follower ends: its program may remove the file before the next one begins.
func TestFollowerImportsWhatWaitsAtItsEnd(t *testing.T) {
	h := newGeminiHome(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.f.OnReady(cancel)
	testkit.Check(t, h.f.Run(ctx))
	h.hasAnswer()
}

// A reply that waits is imported some seconds after its program has ended, or after half a minute if it has text.
func TestFollowerImportsWhatWaitedInTime(t *testing.T) {
	for name, test := range map[string]struct {
		running bool
		passes  time.Duration
	}{"its program has ended": {false, 6 * time.Second}, "it is quiet": {true, 31 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			h := newGeminiHome(t)
			h.f.Importer.Running = func(history.Source) (running, known bool) { return test.running, true }
			h.run()
			h.passes(test.passes)
			h.looksUntilLater(1)
			h.hasAnswer()
		})
	}
}

// looksUntilLater waits until records came in, and says that each timer is due.
func (h *home) looksUntilLater(records int) {
	h.Helper()
	for n := 0; n < records; {
		select {
		case one := <-h.done:
			n += one.Records.Imported
		case h.later <- time.Time{}:
		}
	}
}

// waiting is a source in which something is always unfinished.
type waiting struct {
	history.Source
	read chan string
}

func (w *waiting) Read(ctx context.Context, f history.Found, c *history.Cursor, k history.Known,
	emit func(history.Batch) error,
) ([]history.Problem, error) {
	w.read <- f.Path
	return w.Source.Read(ctx, f, c, k, func(b history.Batch) error {
		if b.Cursor != nil {
			b.Cursor.ModifiedAt = nil
		}
		return emit(b)
	})
}

// A fork that came before its origin is linked by the event of that, though its own file does not change.
func TestFollowerLinksWhatWaited(t *testing.T) {
	h := newHome(t)
	origin := "--home-dev--/2026-02-03T09-00-00-000Z_origin.jsonl"
	h.write(first, strings.Replace(header("one"), `"cwd"`,
		fmt.Sprintf(`"parentSession":%q,"cwd"`, filepath.Join(h.dir, origin)), 1), said("a", "", "hello"))
	h.imported().run()
	h.write(origin, header("origin"), said("a", "", "hello"))
	h.waits(2)
	h.append(first, said("b", "a", "again"))
	h.waits(1)
	sess, err := h.store.SessionBySource(t.Context(), session.SourcePi, "one")
	parent, err2 := h.store.SessionBySource(t.Context(), session.SourcePi, "origin")
	if err != nil || err2 != nil || sess.ParentID != parent.ID || sess.ParentKind != session.ParentFork {
		t.Errorf("%+v %v %v", sess, err, err2)
	}
}

// asked is a store that counts how often it is asked how far a file was read.
type asked struct {
	*store.Store
	cursors atomic.Int64
}

func (a *asked) ImportCursor(ctx context.Context, source session.Source, path string) (*store.ImportCursor, error) {
	a.cursors.Add(1)
	return a.Store.ImportCursor(ctx, source, path)
}

// Files that wait for a session which never comes cost a search nothing each: there may be thousands.
func TestFollowerDoesNotReadWhatWaitsForNobody(t *testing.T) {
	h := newHome(t)
	for i := range 20 {
		name := fmt.Sprintf("--home-dev--/2026-02-03T09-00-%02d-000Z_fork%d.jsonl", i, i)
		h.write(name, strings.Replace(header(fmt.Sprint("fork", i)), `"cwd"`,
			`"parentSession":"/gone/2026_origin.jsonl","cwd"`, 1), said("a", "", "hello"))
		old := time.Now().Add(-time.Hour) // it has been quiet for long: no look is due while the test runs
		testkit.Check(t, os.Chtimes(filepath.Join(h.dir, name), old, old))
	}
	h.imported()
	counting := &asked{Store: h.store}
	h.f.Importer.Store = counting
	h.run()
	before := counting.cursors.Load()
	h.write("--home-dev--/2026-02-04T09-00-00-000Z_other.jsonl", header("other"), said("b", "", "hello"))
	h.waits(2)
	if n := counting.cursors.Load() - before; n > 10 {
		t.Errorf("the cursors were looked up %d times for one new file", n)
	}
}

// Whoever imports a file, or a folder, has asked for nothing beside it.
func TestFollowerFollowsOnlyWhatWasNamed(t *testing.T) {
	const second, third = "--home-dev--/2026-02-04T09-00-00-000Z_two.jsonl",
		"--home-other--/2026-02-05T09-00-00-000Z_three.jsonl"
	for _, test := range []struct {
		name  string
		roots []string
		want  []string // sessions
	}{
		{"a file", []string{first}, []string{"one"}},
		{"a folder", []string{"--home-dev--"}, []string{"one", "two"}},
		{"a file and another folder", []string{first, "--home-other--"}, []string{"one", "three"}},
		{"the program's places", nil, []string{"one", "two", "three"}},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, elsewhere: %v", test.name, elsewhere), func(t *testing.T) {
				h := newHome(t)
				if elsewhere {
					if test.roots == nil {
						t.Skip("the places are nowhere else")
					}
					h.dir = filepath.Join(t.TempDir(), "elsewhere")
				}
				h.write(first, header("one"), said("a", "", "hello"))
				h.write("--home-other--/readme.txt", "a folder")
				var roots []string
				for _, root := range test.roots {
					roots = append(roots, filepath.Join(h.dir, root))
				}
				testkit.Must(h.f.Importer.Run(t.Context(), h.f.Sources[0], roots))(t)
				h.write(second, header("two"), said("a", "", "hello"))
				h.run()
				h.write(third, header("three"), said("a", "", "hello"))
				h.append(first, said("b", "a", "again"))
				h.looksUntil(2*len(test.want)-1, h.look) // a folder that held no history is not watched, but searched now and then
				h.look <- time.Time{}
				h.look <- time.Time{} // the one before is done
				for _, id := range []string{"one", "two", "three"} {
					_, err := h.store.SessionBySource(t.Context(), session.SourcePi, id)
					if here := err == nil; here != slices.Contains(test.want, id) {
						t.Errorf("session %s is here: %v", id, here)
					}
				}
			})
		}
	}
}

package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"

	"github.com/rs/zerolog"
)

// fake counts what the jobs do with the store, the index and the contexts.
type fake struct {
	mu        sync.Mutex
	version   int64
	caughtUp  int
	truncated int
	digested  []session.ID
	asked     []session.ID // of whom a model is asked
	atOnce    int
	most      int // asked at once
	staged    []session.ID
	dropped   int // looks for what was cancelled
	activated []session.ID
	learned   []session.ID
	backups   []string
	drafts    []time.Time
	hold      chan struct{} // the model waits for it; nil: it does not
	readerIn  bool          // a reader keeps the log from being emptied
	resting   []session.Resting
}

func (f *fake) Staged(context.Context) ([]session.Resting, error) { return f.resting, nil }

func (f *fake) DataVersion(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version, nil
}

func (f *fake) ForgetDrafts(_ context.Context, before time.Time) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drafts = append(f.drafts, before)
	return 0, nil
}

func (f *fake) Listen(context.Context, func()) {}

func (f *fake) PurgedElsewhere(context.Context, int64) (bool, error) { return false, nil }

func (f *fake) ForgetPurged(context.Context) error { return nil }

func (f *fake) Session(context.Context, session.ID) (session.Session, error) {
	return session.Session{}, errors.New("there is none")
}

func (f *fake) EventRange(context.Context) (epoch string, removed, last int64, err error) {
	return "", 0, 0, nil
}

func (f *fake) LoggedEvents(context.Context, int64, int64) ([]session.Event, error) { return nil, nil }

func (f *fake) Probe(context.Context) error { return nil }

func (f *fake) TruncateWAL(context.Context) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.truncated++
	return !f.readerIn, nil
}

func (f *fake) Backup(_ context.Context, out string) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backups = append(f.backups, filepath.Base(out))
	return 1, os.WriteFile(out, nil, 0o600)
}

func (f *fake) CatchUp(context.Context) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caughtUp++
	return 0, errors.New("a failing index is told, and tried again")
}

func (f *fake) StageDigest(_ context.Context, id session.ID) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.digested = append(f.digested, id)
	return true, nil
}

func (f *fake) StageModel(ctx context.Context, id session.ID) error {
	f.mu.Lock()
	f.asked = append(f.asked, id)
	f.atOnce++
	f.most = max(f.most, f.atOnce)
	hold := f.hold
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.atOnce--
	f.staged = append(f.staged, id)
	return nil
}

func (f *fake) Forget() {}

func (f *fake) DropCancelled(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped++
	return nil
}

func (f *fake) ActivateIdle(_ context.Context, id session.ID) (done, waits bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.activated = append(f.activated, id)
	return true, false, nil
}

func (f *fake) Learn(_ context.Context, id session.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.learned = append(f.learned, id)
	return nil
}

// count and list read what the jobs write in goroutines of their own.
func (f *fake) count(n *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *n
}

func (f *fake) list(ids *[]session.ID) []session.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(*ids)
}

// inBubble runs a test on a clock that jumps to the next timer when everybody waits.
func inBubble(t *testing.T, f *fake, backups Backups, test func(r *Runner)) {
	synctest.Test(t, func(*testing.T) {
		r := New(Config{Store: f, Index: f, Contexts: f, Backups: backups, Log: zerolog.Nop()})
		r.Start()
		test(r)
		r.Stop()
	})
}

func TestIndexFollowsWritesOfAllProcesses(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		synctest.Wait()
		if f.count(&f.caughtUp) != 1 {
			t.Errorf("caught up %d times at the start, not once", f.count(&f.caughtUp))
		}
		time.Sleep(indexPause)
		r.Changed("20260211_001")
		synctest.Wait()
		if f.count(&f.caughtUp) != 2 {
			t.Errorf("caught up %d times after a write, not twice", f.count(&f.caughtUp))
		}
		f.mu.Lock()
		f.version++ // another process committed
		f.mu.Unlock()
		time.Sleep(lookInterval + time.Millisecond)
		synctest.Wait()
		if f.count(&f.caughtUp) != 3 {
			t.Errorf("caught up %d times after another's write, not three times", f.count(&f.caughtUp))
		}
	})
}

func TestBurstOfAppendsSharesOneCatchUp(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		synctest.Wait()
		for range 20 {
			r.Changed("20260211_001")
			time.Sleep(indexPause / 40)
		}
		synctest.Wait()
		if f.count(&f.caughtUp) != 1 {
			t.Errorf("caught up %d times during the burst, not only at the start", f.count(&f.caughtUp))
		}
		time.Sleep(2 * indexPause)
		synctest.Wait()
		if f.count(&f.caughtUp) != 2 {
			t.Errorf("caught up %d times after a burst, not once more", f.count(&f.caughtUp))
		}
	})
}

func TestStopIndexesTheRest(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		synctest.Wait()
		r.Changed("20260211_001")
	})
	if got := f.count(&f.caughtUp); got != 2 {
		t.Errorf("caught up %d times, want once at the start and once at the stop", got)
	}
}

func TestLogIsEmptiedOncePerPause(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		time.Sleep(walIdle - time.Second)
		if f.count(&f.truncated) != 0 {
			t.Error("the log was emptied while there may have been writes")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if f.count(&f.truncated) != 1 {
			t.Errorf("emptied %d times in an idle minute, not once", f.count(&f.truncated))
		}
		r.Changed("20260211_001")
		time.Sleep(time.Minute)
		synctest.Wait()
		if f.count(&f.truncated) != 2 {
			t.Errorf("emptied %d times after one more write, not twice", f.count(&f.truncated))
		}
	})
}

func TestLogIsRetriedWhileAReaderUsesIt(t *testing.T) {
	f := &fake{readerIn: true}
	inBubble(t, f, Backups{}, func(*Runner) {
		time.Sleep(3*walIdle + 2*time.Second)
		synctest.Wait()
		if f.count(&f.truncated) < 2 || f.count(&f.truncated) > 4 {
			t.Errorf("tried %d times in three quiet whiles", f.count(&f.truncated))
		}
	})
}

func TestStagingAsksOncePerSessionWithoutBlocking(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		f.hold = make(chan struct{}) // made in the bubble, or its clock would never move
		r.Soft("20260211_001")
		synctest.Wait() // the model hangs
		for range 100 {
			r.Soft("20260211_001")
		}
		synctest.Wait()
		if want := []session.ID{"20260211_001"}; !slices.Equal(f.list(&f.asked), want) {
			t.Errorf("asked %v, want %v", f.list(&f.asked), want)
		}
		close(f.hold)
		synctest.Wait()
		if want := []session.ID{"20260211_001", "20260211_001"}; !slices.Equal(f.list(&f.staged), want) {
			t.Errorf("staged %v, want %v: once, and once more for what came meanwhile", f.list(&f.staged), want)
		}
	})
}

// A model that hangs holds up no digest; sessions wait for it in the order in which they came.
func TestSessionsAreStagedInOrder(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		f.hold = make(chan struct{})
		var all []session.ID
		for n := range 3 * modelsAtOnce {
			all = append(all, session.ID(fmt.Sprintf("20260211_%03d", n)))
			r.Soft(all[n])
			synctest.Wait()
		}
		if got := f.list(&f.digested); !slices.Equal(got, all) {
			t.Errorf("digests of %v while the model hangs", got)
		}
		if got := f.list(&f.asked); !slices.Equal(got, all[:modelsAtOnce]) {
			t.Errorf("asked for %v at once", got)
		}
		for n := range all {
			f.hold <- struct{}{} // one answer
			synctest.Wait()
			if got := f.list(&f.asked); !slices.Equal(got, all[:min(n+1+modelsAtOnce, len(all))]) {
				t.Errorf("after %d answers it was asked for %v", n+1, got)
			}
		}
		if f.count(&f.most) != modelsAtOnce || len(f.list(&f.staged)) != len(all) {
			t.Errorf("%d at once, %d staged", f.count(&f.most), len(f.list(&f.staged)))
		}
	})
}

func TestCancelledRequestsAreDropped(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(*Runner) {
		time.Sleep(10 * lookInterval)
		synctest.Wait()
		before := f.count(&f.dropped)
		f.mu.Lock()
		f.version++ // another process committed
		f.mu.Unlock()
		time.Sleep(lookInterval + time.Millisecond)
		synctest.Wait()
		if got := f.count(&f.dropped); got != before+1 {
			t.Errorf("looked %d times before and %d after another's write", before, got)
		}
	})
}

func TestIdleSessionActivatesItsOverlay(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		r.Soft("20260211_001")
		time.Sleep(sessionIdle - time.Minute)
		r.Changed("20260211_001") // it is not resting after all
		time.Sleep(sessionIdle - time.Minute)
		synctest.Wait()
		if len(f.list(&f.activated)) != 0 {
			t.Error("an overlay took effect in a session that was busy")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !slices.Equal(f.list(&f.activated), []session.ID{"20260211_001"}) {
			t.Errorf("activated %v", f.list(&f.activated))
		}
	})
}

// What an earlier daemon staged is not forgotten: it takes effect as soon as its session has been
// quiet for long enough, of which the time before this start is a part.
func TestSessionsStagedByAnEarlierDaemonActivate(t *testing.T) {
	f := &fake{}
	synctest.Test(t, func(*testing.T) {
		f.resting = []session.Resting{
			{Session: "20260211_001", Since: session.At(time.Now().Add(-time.Hour))},
			{Session: "20260211_002", Since: session.At(time.Now().Add(-sessionIdle + time.Minute))},
			{Session: "20260211_003", Since: session.At(time.Now().Add(-time.Hour))},
		}
		r := New(Config{Store: f, Index: f, Contexts: f, Log: zerolog.Nop()})
		r.Soft("20260211_003") // it goes on already
		r.Start()
		time.Sleep(2 * lookInterval)
		synctest.Wait()
		if got := f.list(&f.activated); !slices.Equal(got, []session.ID{"20260211_001"}) {
			t.Errorf("activated at the start: %v", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := f.list(&f.activated); !slices.Equal(got, []session.ID{"20260211_001", "20260211_002"}) {
			t.Errorf("activated after a minute: %v", got)
		}
		r.Stop()
	})
}

func TestReportsAreLearned(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		r.Reported("20260211_001")
		synctest.Wait()
		if !slices.Equal(f.list(&f.learned), []session.ID{"20260211_001"}) {
			t.Errorf("learned from %v", f.list(&f.learned))
		}
	})
}

func TestStopCancelsAHangingModel(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(r *Runner) {
		f.hold = make(chan struct{}) // made in the bubble, or its clock would never move
		r.Soft("20260211_001")
		synctest.Wait()
		r.Stop() // a bubble fails when a goroutine never ends
		if r.Run(func(context.Context) {}) {
			t.Error("work was taken after the stop")
		}
		if len(f.list(&f.staged)) != 0 {
			t.Error("staged without its model")
		}
	})
}

func TestBackupsRemoveOldOnes(t *testing.T) {
	dir := t.TempDir()
	for _, kept := range []string{"mine.db", "sessions-yesterday.db"} {
		testkit.Check(t, os.WriteFile(filepath.Join(dir, kept), nil, 0o600))
	}
	f := &fake{}
	inBubble(t, f, Backups{Every: time.Hour, Keep: 2, Dir: dir}, func(*Runner) {
		time.Sleep(4*time.Hour + time.Minute)
		synctest.Wait()
	})
	entries := testkit.Must(os.ReadDir(dir))(t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := append([]string{"mine.db"}, f.backups[2:]...)
	want = append(want, "sessions-yesterday.db")
	if len(f.backups) != 4 || !slices.Equal(names, want) {
		t.Errorf("the folder holds %v after the backups %v", names, f.backups)
	}
}

func TestClockThatLeapsAheadDelaysRetention(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	type look struct {
		since, clock time.Duration // by the clock that cannot be set, and by the host's, since the beginning
		holds        bool
	}
	for _, test := range []struct {
		name   string
		newest time.Duration // of what is stored, before the beginning; negative: nothing is
		looks  []look
	}{
		{"all is well", hour, []look{{5 * hour, 5 * hour, false}, {29 * hour, 29 * hour, false}}},
		{"nothing is stored", -1, []look{{5 * hour, 5 * hour, false}}},
		{"a quiet weekend", 40 * hour, []look{{hour, hour, false}}},
		{"started with a wrong clock", 3650 * day, []look{{5 * hour, 5 * hour, true}, {29 * hour, 29 * hour, false}}},
		{"set ahead while it runs", hour, []look{
			{5 * hour, 5 * hour, false},
			{6 * hour, 3650 * day, true},
			{10 * hour, 3650*day + 4*hour, true},
			{30 * hour, 3651 * day, false},
		}},
		{"set ahead, and right again", hour, []look{{5 * hour, 3650 * day, true}, {29 * hour, 29 * hour, false}}},
		{"ahead and further ahead", hour, []look{
			{5 * hour, 30 * day, true},
			{29 * hour, 90 * day, true},
			{53 * hour, 91 * day, false},
		}},
		{"asleep for a night", hour, []look{{hour, hour, false}, {9 * hour, 25 * hour, false}}},
		{"set back", hour, []look{{5 * hour, -3650 * day, false}, {29 * hour, -3649 * day, false}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			newest := begun.Add(-test.newest)
			if test.newest < 0 {
				newest = time.Time{}
			}
			var since time.Duration
			d := NewDoubt(begun, newest, func() time.Duration { return since }, zerolog.Nop())
			for i, look := range test.looks {
				since = look.since
				if got := d.distrusts(begun.Add(look.clock), zerolog.Nop()); got != look.holds {
					t.Errorf("look %d: %v", i, got)
				}
			}
		})
	}
}

func TestAFailingIndexIsLoggedOnce(t *testing.T) {
	f, log := &fake{}, &bytes.Buffer{}
	r := New(Config{Store: f, Index: f, Contexts: f, Log: zerolog.New(log)})
	for range 3 {
		r.catchUp(t.Context())
	}
	if n := strings.Count(log.String(), "cannot update the search index"); n != 1 || f.caughtUp != 3 {
		t.Errorf("%d tries, log %s", f.caughtUp, log)
	}
}

package engine_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"

	"github.com/jackc/pgx/v5"
)

// appendInChild appends to the session args[1] as fast as it can and says each seq that was
// acknowledged, until it is killed.
func appendInChild(args []string) error {
	s, err := store.Open(context.Background(), args[0], store.Options{})
	if err != nil {
		return err
	}
	for {
		out, err := s.Append(context.Background(), store.Append{
			Session:  session.ID(args[1]),
			Messages: []session.Message{says(session.User, "kept")},
		})
		if err != nil {
			return err
		}
		fmt.Println(out.Head.Seq)
	}
}

// lockInChild takes the write lock, says so, and gives it back when its input ends.
func lockInChild(args []string) error {
	db, err := sql.Open("sqlite", args[0]+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.Join(tx.Rollback(), db.Close())
}

// held blocks the writer until the returned function is called.
func held(t testing.TB, s *store.Store) (release func()) {
	t.Helper()
	begun, gate := make(chan struct{}), make(chan struct{})
	go s.Alone(context.Background(), func(*engine.Tx) error { //nolint:errcheck // it cannot fail
		close(begun)
		<-gate
		return nil
	})
	<-begun
	return sync.OnceFunc(func() { close(gate) })
}

// together writes closures in one batch and returns their outcomes.
func together(t testing.TB, s *store.Store, fns ...func(*engine.Tx) error) []error {
	t.Helper()
	calls := make([]func() error, len(fns))
	for i, fn := range fns {
		calls[i] = writes(s, fn)
	}
	return callTogether(t, s, calls...)
}

// callTogether makes calls that each queue one closure, so that these make one batch, and returns their outcomes.
func callTogether(t testing.TB, s *store.Store, calls ...func() error) []error {
	t.Helper()
	release := held(t, s)
	errs := make([]error, len(calls))
	var all sync.WaitGroup
	for i, call := range calls {
		all.Go(func() { errs[i] = call() })
		for engine.Queued(s.DB) <= i {
			time.Sleep(time.Millisecond)
		}
	}
	release()
	all.Wait()
	return errs
}

func writes(s *store.Store, fn func(*engine.Tx) error) func() error {
	return func() error { return s.Write(context.Background(), fn) }
}

func note(n int) func(*engine.Tx) error {
	return func(t *engine.Tx) error {
		return t.Exec(`INSERT INTO calibrations (model, scale, weight, updated_at) VALUES (?, 1, 1, '2026-02-11 10:00:00.000')`, fmt.Sprint(n))
	}
}

func TestAFailingClosureDoesNotHarmItsBatch(t *testing.T) {
	s := openTest(t)
	errs := together(t, s, note(1),
		func(t *engine.Tx) error { return errors.Join(note(2)(t), errors.New("no")) },
		func(t *engine.Tx) error { _ = note(3)(t); panic("oh") },
		note(1), note(4))
	taken := "UNIQUE"
	if s.IsPostgres() {
		taken = "duplicate key"
	}
	for i, want := range []string{"", "no", "panic in a write: oh", taken, ""} {
		if (errs[i] == nil) != (want == "") || errs[i] != nil && !strings.Contains(errs[i].Error(), want) {
			t.Errorf("closure %d: %v, not %q", i, errs[i], want)
		}
	}
	if n := count(t, s, `SELECT SUM(CAST(model AS INTEGER)) * 100 + COUNT(*) FROM calibrations`); n != 502 {
		t.Errorf("stored: %d", n)
	}
	// Alone, without a savepoint, it is the same.
	if err := s.Write(context.Background(), func(t *engine.Tx) error { _ = note(5)(t); panic("again") }); err == nil {
		t.Error("a panic went by")
	}
	if err := s.Write(context.Background(), note(6)); err != nil {
		t.Error(err)
	}
	if n := count(t, s, `SELECT COUNT(*) FROM calibrations`); n != 3 {
		t.Errorf("%d rows", n)
	}
}

// On PostgreSQL a failed statement spoils its transaction, whose COMMIT then succeeds and stores nothing.
func TestAClosureThatOverlooksAnErrorIsNotAcknowledgedAsStored(t *testing.T) {
	s := openTest(t)
	overlooks := func(n int) func(*engine.Tx) error {
		return func(t *engine.Tx) error {
			if err := note(n)(t); err != nil {
				return err
			}
			_, _ = t.Changed(`INSERT INTO blobs (sha256) VALUES (NULL)`)
			return nil
		}
	}
	errs := together(t, s, note(1), overlooks(2), note(4))
	errs = append(errs, s.Write(t.Context(), overlooks(8)))
	want := int64(0)
	for i, n := range []int64{1, 2, 4, 8} {
		if errs[i] == nil {
			want += n
		}
	}
	if got := count(t, s, `SELECT SUM(CAST(model AS INTEGER)) FROM calibrations`); got != want || errs[0] != nil ||
		errs[2] != nil {
		t.Errorf("stored: %d, acknowledged: %d (%v)", got, want, errs)
	}
}

func TestAFullDiskFailsCleanly(t *testing.T) {
	storetest.OnFile(t)
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, store.NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "before"))
	limit := func(pages string) {
		testkit.Check(t, s.Alone(ctx, func(t *engine.Tx) error {
			var n int64
			return t.Row(`PRAGMA max_page_count = `+pages, nil, &n)
		}))
	}
	pages := count(t, s, `PRAGMA page_count`)
	limit(fmt.Sprint(pages + 2))
	fill := func(t *engine.Tx) error {
		return t.Exec(`INSERT INTO blobs (sha256, size, media_type, data) VALUES ('x', 1, 'x', zeroblob(1000000))`)
	}
	errs := together(t, s, note(1), fill, note(2), func(*engine.Tx) error {
		return session.Errorf(session.Conflict, "its own")
	}, note(3))
	for i, want := range []session.Code{"", session.StorageFull, "", session.Conflict, ""} {
		wants(t, errs[i], want, "")
	}
	if n := count(t, s, `SELECT SUM(CAST(model AS INTEGER)) * 10 + COUNT(*) FROM calibrations`); n != 63 {
		t.Errorf("what was acknowledged beside it: %d", n)
	}
	_, err := s.Append(ctx, store.Append{
		Session:  sess.ID,
		Messages: []session.Message{says(session.User, strings.Repeat("x", 1<<20))},
	})
	wants(t, err, session.StorageFull, "nothing of this request was stored")
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); got.MessageCount != 1 {
		t.Errorf("%d messages", got.MessageCount)
	}
	limit("1073741823")
	mustAppend(t, s, sess.ID, says(session.User, strings.Repeat("x", 1<<20)))
	mustBeHealthy(t, s)
}

func TestAnInterruptedTransactionFailsAndTheNextIsWhole(t *testing.T) {
	storetest.OnFile(t)
	s := openTest(t)
	errs := together(t, s, note(1), func(t *engine.Tx) error {
		// As SQLite itself does where a statement is interrupted: the transaction is gone.
		return errors.Join(engine.Exec1(t, `ROLLBACK`), errors.New("interrupted"))
	}, note(2))
	if errs[0] == nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("%v", errs)
	}
	if n := count(t, s, `SELECT SUM(CAST(model AS INTEGER)) FROM calibrations`); n != 2 {
		t.Errorf("stored: %d", n)
	}
	mustBeHealthy(t, s)
}

func TestACallerThatGivesUpInTheQueueIsAnsweredAtOnce(t *testing.T) {
	s := openTest(t)
	release := held(t, s)
	defer release()
	ctx, cancel := context.WithCancel(context.Background())
	answer := make(chan error, 1)
	go func() { answer <- s.Write(ctx, note(1)) }()
	for engine.Queued(s.DB) == 0 { // until it is queued
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Write(ctx, note(2)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	if err := s.Write(context.Background(), note(3)); err != nil {
		t.Error(err)
	}
	if n := count(t, s, `SELECT SUM(CAST(model AS INTEGER)) FROM calibrations`); n != 3 {
		t.Errorf("what was given up was stored: %d", n)
	}
}

func TestWhatHasBegunIsAwaitedAndStoredWhateverTheCallerDoes(t *testing.T) {
	s := openTest(t)
	ctx, cancel := context.WithCancel(context.Background())
	err := s.Write(ctx, func(t *engine.Tx) error {
		cancel()
		return note(7)(t)
	})
	if err != nil {
		t.Errorf("an answer of failure for what is stored: %v", err)
	}
	if n := count(t, s, `SELECT SUM(CAST(model AS INTEGER)) FROM calibrations`); n != 7 {
		t.Error("it is not stored")
	}
}

func TestStopAnswersEveryJob(t *testing.T) {
	s := openTest(t)
	release := held(t, s)
	const n = engine.QueueLength + 200 // more than the queue holds
	answers := make(chan error, n)
	for i := range n {
		go func() { answers <- s.Write(context.Background(), note(i)) }()
	}
	for engine.Queued(s.DB) < engine.QueueLength {
		time.Sleep(time.Millisecond)
	}
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	<-engine.Stopping(s.DB)
	release()
	stored := int64(0)
	for range n {
		if err := <-answers; err == nil {
			stored++
		} else if session.CodeOf(err) != session.Busy {
			t.Error(err)
		}
	}
	<-closed
	if stored < engine.QueueLength {
		t.Errorf("only %d of the %d that were queued are stored", stored, engine.QueueLength)
	}
	again := testkit.Must(store.Open(context.Background(), s.File(), store.Options{}))(t)
	defer again.Close()
	if got := count(t, again, `SELECT COUNT(*) FROM calibrations`); got != stored {
		t.Errorf("%d acknowledged, %d there", stored, got)
	}
}

func TestAClosedStoreFailsAndIsClosedTwice(t *testing.T) {
	storetest.OnFile(t)
	ctx := context.Background()
	s := openTest(t)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	_, err := s.CreateSession(ctx, store.NewSession{})
	wants(t, err, session.Busy, "stopping")
	if _, err := s.Session(ctx, "20260101_001"); err == nil {
		t.Error("read from a closed store")
	}
	if _, err := s.TruncateWAL(ctx); err == nil {
		t.Error("truncated in a closed store")
	}
}

func TestAReadOnlyStoreDoesNotWrite(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	ro := testkit.Must(store.Open(ctx, s.File(), store.Options{ReadOnly: true}))(t)
	defer ro.Close()
	_, err := ro.CreateSession(ctx, store.NewSession{})
	wants(t, err, session.Forbidden, "read-only")
	_, err = ro.DB.DataVersion(ctx)
	wants(t, err, session.Forbidden, "read-only")
	_, err = ro.TruncateWAL(ctx)
	wants(t, err, session.Forbidden, "read-only")
}

func TestAnotherProcessesLockIsWaitedForAndCallersMayLeave(t *testing.T) {
	storetest.OnFile(t)
	s := openTest(t)
	cmd := child(t, "lock", s.File())
	in := testkit.Must(cmd.StdinPipe())(t)
	out := testkit.Must(cmd.StdoutPipe())(t)
	testkit.Check(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatal(line, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	patient := make(chan error, 1)
	go func() { patient <- s.Write(context.Background(), note(1)) }()
	if err := s.Write(ctx, note(2)); !errors.Is(err, context.DeadlineExceeded) { // the lock is still held
		t.Error(err)
	}
	in.Close()
	if err := <-patient; err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if n := count(t, s, `SELECT SUM(CAST(model AS INTEGER)) FROM calibrations`); n != 1 {
		t.Errorf("stored: %d", n)
	}
}

func TestAppendsOfTwoProcessesSurviveKill(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := testkit.Must(store.Open(ctx, path, store.Options{}))(t)
	sessions := []session.ID{mustCreate(t, s, store.NewSession{}).ID, mustCreate(t, s, store.NewSession{}).ID}
	s.Close()
	acknowledged := []int64{0, 0}
	for round := range 4 {
		var wg sync.WaitGroup
		for i, id := range sessions {
			cmd := child(t, "append", path, string(id))
			out := testkit.Must(cmd.StdoutPipe())(t)
			testkit.Check(t, cmd.Start())
			wg.Go(func() {
				lines := bufio.NewScanner(out)
				for n := 0; lines.Scan(); n++ {
					var seq int64
					if _, err := fmt.Sscan(lines.Text(), &seq); err != nil || seq != acknowledged[i]+1 {
						// What was stored and not yet said when the last one was killed may be skipped.
						if n > 0 || seq <= acknowledged[i] {
							t.Errorf("round %d: %d after %d", round, seq, acknowledged[i])
						}
					}
					acknowledged[i] = seq
					if n == 40+7*round {
						cmd.Process.Kill() //nolint:errcheck // Wait tells
					}
				}
				_ = cmd.Wait()
			})
		}
		wg.Wait()
	}
	s = testkit.Must(store.Open(ctx, path, store.Options{}))(t)
	defer s.Close()
	for i, id := range sessions {
		if got := testkit.Must(s.Session(ctx, id))(t); got.LastSeq < acknowledged[i] || got.LastSeq > acknowledged[i]+1 ||
			got.MessageCount != got.LastSeq {
			t.Errorf("%d acknowledged, %d there", acknowledged[i], got.LastSeq)
		}
	}
	mustBeHealthy(t, s)
}

// An import that finds no room takes nothing with it of what shares its transaction.
func TestAnImportThatFindsNoRoomLeavesOthersWhole(t *testing.T) {
	storetest.OnFile(t)
	for _, n := range []int{1, 30, 356} {
		s := openTest(t)
		limit := func(pages int64) {
			t.Helper()
			testkit.Check(t, s.Alone(t.Context(), func(t *engine.Tx) error {
				var n int64
				return t.Row(fmt.Sprint(`PRAGMA max_page_count = `, pages), nil, &n)
			}))
		}
		b := store.ImportBatch{Session: store.NewSession{Source: session.SourcePi, SourceID: "large"}}
		for range n {
			b.Messages = append(b.Messages, store.ImportMessage{Message: says(session.User, strings.Repeat("x", 60_000))})
		}
		imports := func() error {
			_, err := s.Import(t.Context(), b)
			return err
		}
		limit(count(t, s, `PRAGMA page_count`) + 12)
		errs := callTogether(t, s, writes(s, note(1)), imports, writes(s, note(2)))
		for i, want := range []session.Code{"", session.StorageFull, ""} {
			wants(t, errs[i], want, "")
			if errs[i] != nil && (strings.Contains(errs[i].Error(), "\n") || !strings.Contains(errs[i].Error(), "make room")) {
				t.Errorf("it says %q", errs[i])
			}
		}
		if got := count(t, s, `SELECT SUM(CAST(model AS INTEGER)) * 10 + COUNT(*) FROM calibrations`); got != 32 {
			t.Errorf("%d messages: what was acknowledged beside it: %d", n, got)
		}
		if got := count(t, s, `SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM parts) + (SELECT COUNT(*) FROM sessions)`); got != 0 {
			t.Errorf("%d rows are left", got)
		}
		limit(1 << 30)
		for i, err := range callTogether(t, s, writes(s, note(3)), imports, writes(s, note(4))) {
			wants(t, err, "", fmt.Sprint(i))
		}
		mustBeHealthy(t, s)
	}
}

// A role that can only read, as that of callers' own SQL, takes no lock that writers wait for.
func TestReadersHoldUpNoWriter(t *testing.T) {
	ctx, s := t.Context(), openTest(t)
	if !s.IsPostgres() {
		t.Skip("a file of SQLite has no roles")
	}
	reader := testkit.Must(pgx.Connect(ctx, storetest.ReaderOf(t, s.File())))(t)
	defer reader.Close(ctx)
	for _, query := range append(engine.LockWriters[:1:1], `SELECT id FROM store FOR UPDATE`) {
		if _, err := reader.Exec(ctx, `BEGIN; `+query); engine.PostgresCode(err) != engine.NoPrivilege {
			t.Errorf("%s: %v", query, err)
		}
		testkit.Must(reader.Exec(ctx, `ROLLBACK`))(t)
	}
	testkit.Must(reader.Exec(ctx, `SELECT pg_advisory_lock(1936028465)`))(t)
	mustCreate(t, s, store.NewSession{}) // waits for none of it
}

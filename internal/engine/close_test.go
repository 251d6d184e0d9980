package engine_test

import (
	"bufio"
	"bytes"
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

	"github.com/gofrs/flock"
	"github.com/rs/zerolog"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// readInChild opens the file as sqlite3 would, reads from it and keeps a transaction open
// until its input ends.
func readInChild(args []string) error {
	db, err := sql.Open("sqlite", args[0])
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	var n int
	if err := tx.QueryRow(`SELECT COUNT(*) FROM messages`).Scan(&n); err != nil {
		return err
	}
	fmt.Println("reading", n)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := tx.Rollback(); err != nil {
		return err
	}
	return db.Close()
}

func startReader(t *testing.T, path string) (stop func()) {
	t.Helper()
	cmd := child(t, "read", path)
	in, out := testkit.Must(cmd.StdinPipe())(t), testkit.Must(cmd.StdoutPipe())(t)
	testkit.Check(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "reading") {
		t.Fatal(line, err)
	}
	return func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestAfterCloseTheOneFileIsEverything(t *testing.T) {
	storetest.OnFile(t)
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, store.NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "hello"))
	testkit.Check(t, s.Close())
	if names := testkit.Must(os.ReadDir(filepath.Dir(s.File())))(t); len(names) != 1 {
		t.Errorf("beside the file there is %v", names)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	testkit.Check(t, os.WriteFile(copied, testkit.Must(os.ReadFile(s.File()))(t), 0o600))
	db := testkit.Must(sql.Open("sqlite", copied))(t)
	defer db.Close()
	var mode, text string
	if err := db.QueryRow(`PRAGMA journal_mode`).Scan(&mode); err != nil || mode != "delete" {
		t.Errorf("journal_mode %s, %v", mode, err)
	}
	if err := db.QueryRow(`SELECT content FROM messages_flat`).Scan(&text); err != nil || text != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	again := testkit.Must(store.Open(ctx, s.File(), store.Options{}))(t)
	defer again.Close()
	mustAppend(t, again, sess.ID, says(session.Assistant, "hi"))
}

func TestCloseSaysWhenAnotherProcessStillReads(t *testing.T) {
	storetest.OnFile(t)
	var log bytes.Buffer
	s := openTest(t, func(o *store.Options) { o.Log = zerolog.New(&log) })
	sess := mustCreate(t, s, store.NewSession{})
	stop := startReader(t, s.File())
	mustAppend(t, s, sess.ID, says(session.User, "hello"))
	testkit.Check(t, s.Close())
	if !strings.Contains(log.String(), "not yet a backup") {
		t.Errorf("it said %q", log.String())
	}
	stop()
	again := testkit.Must(store.Open(context.Background(), s.File(), store.Options{}))(t)
	defer again.Close()
	if got := testkit.Must(again.Session(context.Background(), sess.ID))(t); got.MessageCount != 1 {
		t.Errorf("%d messages", got.MessageCount)
	}
}

func TestTruncateWALDoesNotWaitForReaders(t *testing.T) {
	storetest.OnFile(t)
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, store.NewSession{})
	stop := startReader(t, s.File())
	mustAppend(t, s, sess.ID, says(session.User, "hello"))
	done, err := s.TruncateWAL(ctx)
	if done || err != nil {
		t.Errorf("done %v with a reader on an older state, %v", done, err)
	}
	mustAppend(t, s, sess.ID, says(session.User, "hello"))
	stop()
	if done, err := s.TruncateWAL(ctx); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	if info := testkit.Must(os.Stat(s.File() + "-wal"))(t); info.Size() != 0 {
		t.Errorf("%d bytes are left", info.Size())
	}
}

func TestDataVersionTellsOfOthersWritesOnly(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	before := testkit.Must(s.DataVersion(ctx))(t)
	sess := mustCreate(t, s, store.NewSession{})
	if own := testkit.Must(s.DataVersion(ctx))(t); own != before && !engine.IsPostgres(s.File()) {
		t.Error("it changed with the store's own write")
	}
	other := testkit.Must(store.Open(ctx, s.File(), store.Options{Zone: time.UTC}))(t)
	defer other.Close()
	between := testkit.Must(s.DataVersion(ctx))(t)
	mustAppend(t, other, sess.ID, says(session.User, "x"))
	if after := testkit.Must(s.DataVersion(ctx))(t); after == between {
		t.Error("it did not change with another's write")
	}
}

func TestBackupDuringAppendsIsWholeAndOpensAlone(t *testing.T) {
	storetest.OnFile(t)
	ctx := context.Background()
	s := openTest(t)
	ids := []session.ID{mustCreate(t, s, store.NewSession{}).ID, mustCreate(t, s, store.NewSession{}).ID}
	mustAppend(t, s, ids[0], says(session.User, strings.Repeat("x", 100_000)))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					mustAppend(t, s, id, says(session.User, "during"), says(session.Assistant, "it"))
				}
			}
		})
	}
	for i := range 3 {
		out := filepath.Join(t.TempDir(), "backup.db")
		size := testkit.Must(s.Backup(ctx, out))(t)
		info := testkit.Must(os.Stat(out))(t)
		if info.Size() != size || info.Mode() != 0o600 {
			t.Errorf("backup %d: %d bytes, mode %v", i, info.Size(), info.Mode())
		}
		if names := testkit.Must(os.ReadDir(filepath.Dir(out)))(t); len(names) != 1 {
			t.Errorf("beside the backup there is %v", names)
		}
		b := testkit.Must(store.Open(ctx, out, store.Options{}))(t)
		mustBeHealthy(t, b)
		mustAppend(t, b, ids[0], says(session.User, "in the backup"))
		b.Close()
		_, err := s.Backup(ctx, out)
		wants(t, err, session.Conflict, "never overwrites")
	}
	close(stop)
	wg.Wait()
	_, err := s.Backup(ctx, filepath.Join(t.TempDir(), "a typo", "backup.db"))
	wants(t, err, session.NotFound, "there is no folder")
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	out := filepath.Join(t.TempDir(), "backup.db")
	if _, err := s.Backup(cancelled, out); err == nil {
		t.Error("a cancelled backup was made")
	}
	if names := testkit.Must(os.ReadDir(filepath.Dir(out)))(t); len(names) != 0 {
		t.Errorf("a cancelled backup left %v", names)
	}
}

func TestBackupOfAReadOnlyStore(t *testing.T) {
	storetest.OnFile(t)
	ctx := context.Background()
	s := openTest(t)
	mustCreate(t, s, store.NewSession{})
	s.Close()
	ro := testkit.Must(store.Open(ctx, s.File(), store.Options{ReadOnly: true}))(t)
	defer ro.Close()
	out := filepath.Join(t.TempDir(), "backup.db")
	testkit.Must(ro.Backup(ctx, out))(t)
	b := testkit.Must(store.Open(ctx, out, store.Options{ReadOnly: true}))(t)
	defer b.Close()
	if data, _, err := b.Sessions(ctx, store.Filter{}, store.Page{}); err != nil || len(data) != 1 {
		t.Errorf("%d sessions, %v", len(data), err)
	}
}

// A killed backup leaves its copy; the next one in the folder removes it, but not one that is written, nor
// a folder or a link with such a name.
func TestBackupRemovesTheCopyOfAKilledOne(t *testing.T) {
	storetest.OnFile(t)
	s, dir := openTest(t), t.TempDir()
	long := time.Now().Add(-time.Hour)
	file := func(name string) string {
		path := filepath.Join(dir, name)
		testkit.Check(t, errors.Join(os.WriteFile(path, []byte("half"), 0o600), os.Chtimes(path, long, long)))
		return path
	}
	left, running, others := file(".a.db.1"+engine.Unfinished), file(".b.db.2"+engine.Unfinished), file(".notes")
	journal := file(".a.db.1" + engine.Unfinished + "-journal")
	lock := flock.New(running)
	testkit.Check(t, lock.RLock())
	defer lock.Unlock()
	folder, link := filepath.Join(dir, ".d.db.4"+engine.Unfinished), filepath.Join(dir, ".e.db.5"+engine.Unfinished)
	testkit.Check(t, errors.Join(os.Mkdir(folder, 0o700), os.Symlink(others, link), os.Chtimes(folder, long, long)))
	testkit.Must(s.Backup(t.Context(), filepath.Join(dir, "c.db")))(t)
	for path, stays := range map[string]bool{
		left: false, journal: false, running: true, others: true, folder: true,
		link: true,
	} {
		if _, err := os.Lstat(path); stays != (err == nil) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

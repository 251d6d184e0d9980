package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// killedInChild writes to a new database and ends as a kill ends it: most is in the log.
func killedInChild(args []string) error {
	s, err := store.Open(context.Background(), args[0], store.Options{})
	if err != nil {
		return err
	}
	if _, err := s.CreateSession(context.Background(), store.NewSession{Title: "acknowledged"}); err != nil {
		return err
	}
	os.Exit(0)
	return nil
}

// fileNumber reads the stamp's number from a file of which this process has nothing open.
func fileNumber(t *testing.T, path string) uint32 {
	t.Helper()
	return testkit.Must(engine.NumberOf(path))(t)
}

// copyWithoutOpening copies a file in another process: closing a descriptor here would drop SQLite's locks.
func copyWithoutOpening(t *testing.T, from, to string) {
	t.Helper()
	testkit.Check(t, child(t, "copy", from, to).Run())
}

// copyInChild overwrites a file in place, as cp does.
func copyInChild(args []string) error {
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], b, 0o600)
}

func TestOverwrittenFileStopsWritesAndIsNotTouched(t *testing.T) {
	for _, way := range []struct {
		name string
		take func(t *testing.T, s *store.Store, to string)
	}{
		{"a backup", func(t *testing.T, s *store.Store, to string) { testkit.Must(s.Backup(t.Context(), to))(t) }},
		{"a copy after a checkpoint", func(t *testing.T, s *store.Store, to string) {
			testkit.Must(s.TruncateWAL(t.Context()))(t)
			copyWithoutOpening(t, s.File(), to)
		}},
		{"VACUUM INTO of another program", func(t *testing.T, s *store.Store, to string) {
			testkit.Must(raw(t, s).Exec(`VACUUM INTO ?`, to))(t)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			s, log := openLogged(t)
			sess := mustCreate(t, s, store.NewSession{})
			mustAppend(t, s, sess.ID, says(session.User, "before"))
			copied := filepath.Join(t.TempDir(), "copy.db")
			way.take(t, s, copied)
			mustAppend(t, s, sess.ID, says(session.User, "after"))
			testkit.Must(s.TruncateWAL(t.Context()))(t)
			mustAppend(t, s, sess.ID, says(session.User, "in the log"))
			copyWithoutOpening(t, copied, s.File())
			for range 3 {
				_, err := s.Append(t.Context(), store.Append{
					Session:  sess.ID,
					Messages: []session.Message{says(session.User, "late")},
				})
				wants(t, err, session.Unavailable, "was overwritten")
			}
			if h := s.Health(); h.State != engine.StateOverwritten || lines(log) != 1 {
				t.Errorf("%+v, log %s", h, log)
			}
			wants(t, s.Ready(t.Context()), session.Unavailable, "sessiond restore")
			_, err := s.TruncateWAL(t.Context())
			wants(t, err, session.Unavailable, "was overwritten")
			_, err = s.Backup(t.Context(), copied+".2")
			wants(t, err, session.Unavailable, "was overwritten")
			_, err = s.Session(t.Context(), sess.ID)
			wants(t, err, session.Unavailable, "was overwritten")
			wants(t, s.Close(), session.Unavailable, "overwritten-")
			if string(testkit.Must(os.ReadFile(copied))(t)) != string(testkit.Must(os.ReadFile(s.File()))(t)) {
				t.Error("the file was touched")
			}
			kept := testkit.Must(filepath.Glob(filepath.Join(engine.BackupDir(s.File()), "overwritten-*.db-wal")))(t)
			if pages := testkit.Must(engine.PagesOfLog(kept[0]))(t); pages == 0 {
				t.Error("the old log is empty")
			}
			// this process has the other one open still
			again := testkit.Must(store.Open(t.Context(), copied, store.Options{}))(t)
			if got := testkit.Must(again.Session(t.Context(), sess.ID))(t); got.MessageCount != 1 {
				t.Errorf("%d messages", got.MessageCount)
			}
			mustBeHealthy(t, again)
			testkit.Check(t, again.Close())
		})
	}
}

// Each state of the file has a number of its own: it counts up after each checkpoint, and only then.
// A daemon that is idle empties a log with commits of others, and then another one commits: the number in the file is
// one that the daemon has not counted, and the log is shorter than it was.
func TestCommitOfAnotherProcessBehindACheckpoint(t *testing.T) {
	s, _ := openLogged(t)
	sess := mustCreate(t, s, store.NewSession{})
	for range 3 {
		for range 100 {
			mustAppend(t, s, sess.ID, says(session.User, "a message"))
		}
		testkit.Check(t, child(t, "killed", s.File()).Run())
		if done := testkit.Must(s.TruncateWAL(t.Context()))(t); !done {
			t.Fatal("the log was not emptied")
		}
		testkit.Check(t, child(t, "killed", s.File()).Run())
		mustAppend(t, s, sess.ID, says(session.User, "and on"))
	}
}

func TestNumberCountsUpAfterEachCheckpoint(t *testing.T) {
	s, _ := openLogged(t)
	sess := mustCreate(t, s, store.NewSession{})
	number := func() uint32 { return testkit.Must(engine.Number(s.DB))(t) }
	last := number()
	for range 5 {
		for range 3 {
			mustAppend(t, s, sess.ID, says(session.User, "hello"))
		}
		if now := number(); now != last {
			t.Errorf("%d without a checkpoint, %d before", now, last)
		}
		testkit.Must(s.TruncateWAL(t.Context()))(t)
		if now := number(); now != last+1 {
			t.Errorf("%d after a checkpoint, %d before", now, last)
		}
		last = number()
	}
	first, second := filepath.Join(t.TempDir(), "1.db"), filepath.Join(t.TempDir(), "2.db")
	testkit.Must(s.Backup(t.Context(), first))(t)
	testkit.Must(s.Backup(t.Context(), second))(t)
	if a, b := fileNumber(t, first), fileNumber(t, second); a == b || a < last+1000 || b < last+1000 {
		t.Errorf("two backups have the numbers %d and %d, the database %d", a, b, last)
	}
}

// A transaction that counts up and is not stored does not use the number up, and the next one counts.
func TestFailedTransactionDoesNotCount(t *testing.T) {
	s, _ := openLogged(t)
	pages := count(t, s, `PRAGMA page_count`)
	testkit.Must(s.TruncateWAL(t.Context()))(t)
	testkit.Check(t, s.Alone(t.Context(), func(t *engine.Tx) error {
		return t.Exec(fmt.Sprint(`PRAGMA max_page_count = `, pages+2))
	}))
	for range 3 {
		err := s.Write(t.Context(), func(t *engine.Tx) error {
			return t.Exec(`INSERT INTO blobs (sha256, size, media_type, data) VALUES ('x', 1, 'x', zeroblob(1000000))`)
		})
		wants(t, err, session.StorageFull, "")
	}
	before := engine.NewestNumber(s.DB)
	testkit.Check(t, s.Alone(t.Context(), func(t *engine.Tx) error {
		return t.Exec(`PRAGMA max_page_count = 1073741823`)
	}))
	testkit.Check(t, s.Write(t.Context(), note(1)))
	testkit.Must(s.TruncateWAL(t.Context()))(t)
	if now := testkit.Must(engine.Number(s.DB))(t); now != before+1 {
		t.Errorf("the file has %d, the last commit before had %d", now, before)
	}
	testkit.Check(t, s.Write(t.Context(), note(2)))
}

// A database from before the stamp has 0. Copies of it are told apart after the first start.
func TestOldDatabaseIsStampedAtItsFirstStart(t *testing.T) {
	s, _ := openLogged(t)
	testkit.Check(t, s.Close())
	testkit.Must(raw(t, s).Exec(`PRAGMA user_version = 0`))(t)
	again := testkit.Must(store.Open(t.Context(), s.File(), store.Options{}))(t)
	if n := testkit.Must(engine.Number(again.DB))(t); n != 1 {
		t.Errorf("the file has %d", n)
	}
	testkit.Check(t, again.Close())
}

func TestLogWithoutItsDatabaseIsNotDeleted(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(path string) error
		say  string
	}{
		{"missing", func(path string) error { return os.Rename(path, path+".away") }, "serve --new"},
		{"empty", func(path string) error { return os.Rename(path, path+".away") }, "serve --new"},
		{"another", func(path string) error { return os.Rename(path, path+".away") }, "move the log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sessions.db")
			testkit.Check(t, child(t, "killed", path).Run())
			log := testkit.Must(os.ReadFile(path + "-wal"))(t)
			testkit.Check(t, c.do(path))
			switch c.name {
			case "empty":
				testkit.Check(t, os.WriteFile(path, nil, 0o600))
			case "another":
				copied := filepath.Join(t.TempDir(), "copy.db")
				testkit.Check(t, os.WriteFile(copied, newDatabase(), 0o600))
				testkit.Check(t, engine.StampCopy(t.Context(), copied))
				testkit.Check(t, os.Rename(copied, path))
			}
			for _, readOnly := range []bool{false, true} {
				_, err := store.Open(t.Context(), path, store.Options{ReadOnly: readOnly})
				wants(t, err, session.Conflict, c.say)
			}
			if string(testkit.Must(os.ReadFile(path+"-wal"))(t)) != string(log) {
				t.Error("the log was changed")
			}
			if c.name == "another" {
				_, err := store.Open(t.Context(), path, store.Options{New: true})
				wants(t, err, session.Conflict, "exists")
				return
			}
			fresh := testkit.Must(store.Open(t.Context(), path, store.Options{New: true}))(t)
			testkit.Check(t, fresh.Close())
			kept := testkit.Must(filepath.Glob(filepath.Join(engine.BackupDir(path), "left-*.db-wal")))(t)
			if len(kept) != 1 || string(testkit.Must(os.ReadFile(kept[0]))(t)) != string(log) {
				t.Errorf("the log was not kept: %v", kept)
			}
		})
	}
}

func TestRestoreFileRefusesWhatIsNoBackup(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	testkit.Check(t, os.WriteFile(path, newDatabase(), 0o600))
	for name, c := range map[string]struct {
		content []byte
		code    session.Code
		say     string
	}{
		"missing.db": {nil, session.NotFound, "nothing to restore from"},
		"text.db": {[]byte("hello, I am not a database, and long enough to be looked at as one, " +
			"which takes a hundred bytes or more"), session.Invalid, "not an SQLite database"},
		"cut.db":   {newDatabase()[:20_000], session.Invalid, "damaged"},
		"empty.db": {[]byte{}, session.Invalid, "is empty"},
	} {
		file := filepath.Join(dir, name)
		if c.content != nil {
			testkit.Check(t, os.WriteFile(file, c.content, 0o600))
		}
		_, err := store.RestoreFile(t.Context(), file, path, store.Options{}, nil)
		wants(t, err, c.code, c.say)
	}
	_, err := store.RestoreFile(t.Context(), path, path, store.Options{}, nil)
	wants(t, err, session.Invalid, "the database itself")
	if string(testkit.Must(os.ReadFile(path))(t)) != string(newDatabase()) {
		t.Error("the database was changed")
	}
	if left := testkit.Must(filepath.Glob(filepath.Join(dir, ".*"+engine.Unfinished)))(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRestoreFileKeepsWhatWasThere(t *testing.T) {
	s, _ := openLogged(t)
	sess := mustCreate(t, s, store.NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "first"))
	copied := filepath.Join(t.TempDir(), "copy.db")
	testkit.Must(s.Backup(t.Context(), copied))(t)
	mustAppend(t, s, sess.ID, says(session.User, "second"))
	testkit.Check(t, s.Close())
	epoch := func(path string) string {
		s := testkit.Must(store.Open(t.Context(), path, store.Options{ReadOnly: true}))(t)
		defer s.Close()
		return testkit.Must(engine.Get[string](t.Context(), s, `SELECT epoch FROM store`))(t)
	}
	called := false
	out := testkit.Must(store.RestoreFile(t.Context(), copied, s.File(), store.Options{},
		func(_ context.Context, old, next string) error {
			called = old == s.File() && next != copied
			return nil
		}))(t)
	if !called || out.Sessions != 1 || out.Messages != 1 {
		t.Errorf("%v %+v", called, out)
	}
	for path, want := range map[string]int64{s.File(): 1, out.Kept: 2} {
		again := testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
		if got := testkit.Must(again.Session(t.Context(), sess.ID))(t); got.MessageCount != want {
			t.Errorf("%s has %d messages", path, got.MessageCount)
		}
		mustBeHealthy(t, again)
		testkit.Check(t, again.Close())
	}
	if epoch(s.File()) == epoch(out.Kept) {
		t.Error("listeners would not learn that events are missing")
	}
	// Where nothing is, nothing is kept.
	fresh := filepath.Join(t.TempDir(), "new", "sessions.db")
	if out := testkit.Must(store.RestoreFile(t.Context(), copied, fresh, store.Options{}, nil))(t); out.Kept != "" {
		t.Errorf("%+v", out)
	}
	testkit.Check(t, testkit.Must(store.Open(t.Context(), fresh, store.Options{}))(t).Close())
}

// A database that was killed, then overwritten: SQLite must not open it, and restore keeps both files.
func TestRestoreFileKeepsALogOfAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	testkit.Check(t, child(t, "killed", path).Run())
	log := testkit.Must(os.ReadFile(path + "-wal"))(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	testkit.Check(t, os.WriteFile(copied, newDatabase(), 0o600))
	testkit.Check(t, os.WriteFile(path, nil, 0o600)) // > sessions.db
	out := testkit.Must(store.RestoreFile(t.Context(), copied, path, store.Options{}, nil))(t)
	if string(testkit.Must(os.ReadFile(out.Kept+"-wal"))(t)) != string(log) {
		t.Error("the log was not kept")
	}
	testkit.Check(t, testkit.Must(store.Open(t.Context(), path, store.Options{}))(t).Close())
}

package engine_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// openLogged opens a database in a folder of its own, and gives what it logs.
func openLogged(t *testing.T) (*store.Store, *bytes.Buffer) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	testkit.Check(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "sessions.db")
	testkit.Check(t, os.WriteFile(path, newDatabase(), 0o600))
	log := &bytes.Buffer{}
	s := testkit.Must(store.Open(t.Context(), path, store.Options{Log: zerolog.New(log)}))(t)
	t.Cleanup(func() {
		s.Close()
		if engine.LeftOpen(s.DB) {
			engine.CloseAll(s.DB) // Close leaves moved files open
		}
	})
	return s, log
}

func lines(log *bytes.Buffer) int { return strings.Count(log.String(), "\n") }

func TestMovedFilesStopWritesUntilTheyAreBack(t *testing.T) {
	for _, name := range []string{"sessions.db", "sessions.db-wal", "sessions.db-shm", "."} {
		t.Run(name, func(t *testing.T) {
			s, log := openLogged(t)
			sess := mustCreate(t, s, store.NewSession{})
			mustAppend(t, s, sess.ID, says(session.User, "before"))
			from := filepath.Clean(filepath.Join(filepath.Dir(s.File()), name))
			to := from + ".away"
			testkit.Check(t, os.Rename(from, to))
			for range 3 {
				_, err := s.Append(t.Context(), store.Append{
					Session:  sess.ID,
					Messages: []session.Message{says(session.User, "lost")},
				})
				wants(t, err, session.Unavailable, "is gone")
			}
			if h := s.Health(); h.State != engine.StateMoved || h.Err == nil || lines(log) != 1 || s.FailedWrites() != 3 {
				t.Errorf("%+v, %d failed writes, log %s", h, s.FailedWrites(), log)
			}
			if _, err := s.TruncateWAL(t.Context()); session.CodeOf(err) != session.Unavailable {
				t.Errorf("emptied a log that may be another's: %v", err)
			}
			testkit.Check(t, os.Rename(to, from))
			if h := s.Health(); h.State != engine.StateOK || h.Err != nil {
				t.Errorf("back in its place: %+v", h)
			}
			mustAppend(t, s, sess.ID, says(session.User, "after"))
			if lines(log) != 2 {
				t.Errorf("log %s", log)
			}
			testkit.Check(t, s.Close())
			again := testkit.Must(store.Open(t.Context(), s.File(), store.Options{}))(t)
			defer again.Close()
			if got := testkit.Must(again.Session(t.Context(), sess.ID))(t); got.MessageCount != 2 {
				t.Errorf("%d messages, 2 were acknowledged", got.MessageCount)
			}
			mustBeHealthy(t, again)
		})
	}
}

func TestLogWithoutANameIsSavedIntoTheDatabase(t *testing.T) {
	for _, name := range []string{"-wal", "-shm", ""} {
		t.Run("sessions.db"+name, func(t *testing.T) {
			s, _ := openLogged(t)
			sess := mustCreate(t, s, store.NewSession{})
			for range 20 {
				mustAppend(t, s, sess.ID, says(session.User, "acknowledged"))
			}
			here := s.File()
			if name == "" { // another database takes its place
				here = s.File() + ".old"
				testkit.Check(t, os.Rename(s.File(), here))
				testkit.Check(t, os.WriteFile(s.File(), newDatabase(), 0o600))
			} else {
				testkit.Check(t, os.Remove(s.File()+name))
			}
			testkit.Check(t, ignoreUnavailable(s.Probe(t.Context())))
			copied := filepath.Join(t.TempDir(), "copy.db") // as after a kill: what the file alone holds
			testkit.Check(t, os.WriteFile(copied, testkit.Must(os.ReadFile(here))(t), 0o600))
			there := testkit.Must(store.Open(t.Context(), copied, store.Options{}))(t)
			defer there.Close()
			if got := testkit.Must(there.Session(t.Context(), sess.ID))(t); got.MessageCount != 20 {
				t.Errorf("%d messages, 20 were acknowledged", got.MessageCount)
			}
			mustBeHealthy(t, there)
		})
	}
}

func ignoreUnavailable(err error) error {
	if session.CodeOf(err) == session.Unavailable {
		return nil
	}
	return fmt.Errorf("not unavailable: %w", err)
}

// A daemon whose files were replaced must not delete the log of the database that took their place.
func TestCloseAfterAMoveTouchesNoOthersLog(t *testing.T) {
	s, _ := openLogged(t)
	sess := mustCreate(t, s, store.NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "first"))
	dir := filepath.Dir(s.File())
	testkit.Check(t, os.Rename(dir, dir+".old"))
	other := testkit.Must(store.Open(t.Context(), s.File(), store.Options{}))(t)
	defer other.Close()
	theirs := mustCreate(t, other, store.NewSession{})
	mustAppend(t, other, theirs.ID, says(session.User, "second"))
	wants(t, s.Close(), session.Unavailable, dir+".old/sessions.db now")
	mustAppend(t, other, theirs.ID, says(session.User, "third"))
	if h := other.Health(); h.State != engine.StateOK {
		t.Errorf("%+v", h)
	}
}

func TestMoveDuringATransactionIsNotAcknowledged(t *testing.T) {
	s, _ := openLogged(t)
	err := s.Write(context.Background(), func(t *engine.Tx) error {
		if err := note(1)(t); err != nil {
			return err
		}
		return os.Rename(s.File(), s.File()+".away")
	})
	wants(t, err, session.Unavailable, "whether this request is stored is open")
	testkit.Check(t, os.Rename(s.File()+".away", s.File()))
	testkit.Check(t, s.Write(t.Context(), note(2)))
}

func TestChangesOfHealthAreLoggedOnce(t *testing.T) {
	s, log := openLogged(t)
	pages := count(t, s, `PRAGMA page_count`)
	set := func(pragma string) {
		t.Helper()
		testkit.Check(t, s.Alone(t.Context(), func(t *engine.Tx) error { return t.Exec(pragma) }))
	}
	for _, tt := range []struct {
		breaks, mends string
		state         engine.State
		code          session.Code
	}{
		{
			fmt.Sprint(`PRAGMA max_page_count = `, pages+2), `PRAGMA max_page_count = 1073741823`, engine.StateFull,
			session.StorageFull,
		},
		{`PRAGMA query_only = 1`, `PRAGMA query_only = 0`, engine.StateUnwritable, session.Unavailable},
	} {
		log.Reset()
		set(tt.breaks)
		for range 3 {
			err := s.Write(t.Context(), func(t *engine.Tx) error {
				return t.Exec(`INSERT INTO blobs (sha256, size, media_type, data) VALUES ('x', 1, 'x', zeroblob(1000000))`)
			})
			wants(t, err, tt.code, "nothing of this request was stored")
		}
		if h := s.Health(); h.State != tt.state || session.CodeOf(h.Err) != tt.code || lines(log) != 1 {
			t.Errorf("%+v, log %s", h, log)
		}
		set(tt.mends)
		testkit.Check(t, s.Probe(t.Context()))
		testkit.Check(t, s.Probe(t.Context()))
		if h := s.Health(); h.State != engine.StateOK || lines(log) != 2 {
			t.Errorf("%+v, log %s", h, log)
		}
	}
}

// A transaction that changes nothing does not prove that the disk accepts writes.
func TestAnEmptyWriteDoesNotEndAFailure(t *testing.T) {
	s, _ := openLogged(t)
	engine.SetHealth(s.DB, engine.Health{State: engine.StateFull, Err: session.Errorf(session.StorageFull, "full")})
	testkit.Check(t, s.Alone(t.Context(), func(t *engine.Tx) error { return t.Exec(`PRAGMA query_only = 1`) }))
	err := s.Write(t.Context(), func(*engine.Tx) error { return nil })
	wants(t, err, session.Unavailable, "")
	if s.Health().State == engine.StateOK {
		t.Error("it counts as healthy")
	}
}

func TestALargeLogIsReportedOncePerCrossing(t *testing.T) {
	s, log := openLogged(t)
	for crossing := range 2 {
		mustCreate(t, s, store.NewSession{})
		// Beyond what was committed SQLite reads nothing. Truncate opens no descriptor of the log.
		testkit.Check(t, os.Truncate(s.File()+"-wal", engine.LargeLog))
		for range 3 {
			testkit.Check(t, s.Probe(t.Context()))
		}
		if n := strings.Count(log.String(), "is large"); n != crossing+1 {
			t.Errorf("%d warnings: %s", n, log)
		}
		if done, err := s.TruncateWAL(t.Context()); !done || err != nil {
			t.Fatal(done, err)
		}
		testkit.Check(t, s.Probe(t.Context()))
	}
	mustBeHealthy(t, s)
}

// intrudeInChild makes a database at a path where the log of another one lies, and writes to it.
func intrudeInChild(args []string) error {
	db, err := sql.Open("sqlite", args[0])
	if err != nil {
		return err
	}
	var mode string
	if err := db.QueryRow(`PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	_, err = db.Exec(`CREATE TABLE x (y); INSERT INTO x SELECT zeroblob(100000)`)
	fmt.Print(err)
	os.Exit(0) // as a kill: what is in the log stays there
	return nil
}

// Another process that starts at the path makes a new database, and SQLite gives it the log that
// still lies there.
func TestAnotherDatabaseBesideOurLogHarmsNothing(t *testing.T) {
	s, _ := openLogged(t)
	sess := mustCreate(t, s, store.NewSession{})
	for range 20 {
		mustAppend(t, s, sess.ID, says(session.User, "acknowledged"))
	}
	testkit.Check(t, os.Rename(s.File(), s.File()+".away"))
	testkit.Check(t, ignoreUnavailable(s.Probe(t.Context())))
	said := testkit.Must(child(t, "intrude", s.File()).Output())(t)
	if !strings.Contains(string(said), "locked") {
		t.Errorf("the other process wrote into our log: %s", said)
	}
	testkit.Check(t, os.Rename(s.File()+".away", s.File()))
	mustAppend(t, s, sess.ID, says(session.User, "after"))
	testkit.Check(t, s.Close())
	engine.CloseHandles(s.DB)
	again := testkit.Must(store.Open(t.Context(), s.File(), store.Options{}))(t)
	defer again.Close()
	if got := testkit.Must(again.Session(t.Context(), sess.ID))(t); got.MessageCount != 21 {
		t.Errorf("%d messages, 21 were acknowledged", got.MessageCount)
	}
	mustBeHealthy(t, again)
}

func TestADeletedDatabaseCanBeBackedUp(t *testing.T) {
	s, _ := openLogged(t)
	sess := mustCreate(t, s, store.NewSession{})
	for range 20 {
		mustAppend(t, s, sess.ID, says(session.User, "acknowledged"))
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		testkit.Check(t, os.Remove(s.File()+end))
	}
	out := filepath.Join(t.TempDir(), "saved.db")
	for _, step := range []func() error{func() error {
		return nil
	}, func() error { return ignoreUnavailable(s.Probe(t.Context())) }} {
		testkit.Check(t, step())
		testkit.Must(s.Backup(t.Context(), out))(t)
		saved := testkit.Must(store.Open(t.Context(), out, store.Options{}))(t)
		if got := testkit.Must(saved.Session(t.Context(), sess.ID))(t); got.MessageCount != 20 {
			t.Errorf("%d messages, 20 were acknowledged", got.MessageCount)
		}
		mustBeHealthy(t, saved)
		testkit.Check(t, saved.Close())
		testkit.Check(t, os.Remove(out))
	}
	wants(t, s.Write(t.Context(), note(1)), session.Unavailable, "POST /v1/backups")
}

func TestALinkedDatabaseIsWrittenUntilItsFileMoves(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.db"), filepath.Join(t.TempDir(), "sessions.db")
	testkit.Check(t, os.WriteFile(file, newDatabase(), 0o600))
	testkit.Check(t, os.Symlink(file, link))
	s := testkit.Must(store.Open(t.Context(), link, store.Options{}))(t)
	defer s.Close()
	testkit.Check(t, s.Write(t.Context(), note(1)))
	if d := s.Disk(); d.Log == 0 || d.Database == 0 {
		t.Errorf("%+v", d)
	}
	testkit.Check(t, os.Rename(file+"-wal", file+".log"))
	wants(t, s.Write(t.Context(), note(2)), session.Unavailable, "real.db-wal is gone")
	testkit.Check(t, os.Rename(file+".log", file+"-wal"))
	testkit.Check(t, s.Write(t.Context(), note(3)))
}

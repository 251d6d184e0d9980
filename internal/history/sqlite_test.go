package history

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// owner is the program whose database is read: it keeps it open, as a running agent does.
func owner(t *testing.T, path string, statements ...string) *sql.DB {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)"))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	tell(t, db, `CREATE TABLE messages (id INTEGER PRIMARY KEY, text TEXT, at TIMESTAMP)`)
	tell(t, db, statements...)
	return db
}

func tell(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// folder returns the names and bytes of a folder's files, but for the index of a log, which
// whoever reads may use.
func folder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries := testkit.Must(os.ReadDir(dir))(t)
	for _, e := range entries {
		raw := testkit.Must(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		if strings.HasSuffix(e.Name(), "-shm") {
			raw = nil
		}
		files[e.Name()] = raw
	}
	return files
}

func unchangedFolder(t *testing.T, dir string, before map[string][]byte) {
	t.Helper()
	after := folder(t, dir)
	for name, raw := range after {
		if was, ok := before[name]; !ok || !bytes.Equal(was, raw) {
			t.Errorf("%s was made or changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, before %d", len(after), len(before))
	}
}

// seen opens a database and counts its messages.
func seen(t *testing.T, path string) (n int, s *SQLite) {
	t.Helper()
	s = testkit.Must(OpenSQLite(t.Context(), path))(t)
	testkit.Check(t, s.GetContext(t.Context(), &n, `SELECT COUNT(*) FROM messages`))
	return n, s
}

// What the owner committed is seen wherever it lies, and nothing of the owner's is touched.
func TestSQLiteIsReadBesideItsOwner(t *testing.T) {
	const big = `INSERT INTO messages (text) VALUES (zeroblob(33 << 20)), ('b')`
	for _, test := range []struct {
		name    string
		insert  string
		rest    bool // the owner has gone, and left no log
		crash   bool // the owner has gone, and left its log alone
		private bool
	}{
		{name: "all in the log", insert: `INSERT INTO messages (text) VALUES ('a'), ('b')`, private: true},
		{name: "too much to copy", insert: big},
		{name: "at rest", insert: big, rest: true},
		{name: "after a crash", insert: big, crash: true, private: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, temp := t.TempDir(), t.TempDir()
			t.Setenv("TMPDIR", temp)
			path := filepath.Join(dir, "their.db")
			db := owner(t, path, test.insert)
			if test.rest {
				db.Close()
			}
			if test.crash {
				lost := t.TempDir()
				for _, suffix := range []string{"", "-wal"} {
					testkit.Check(t, copyFile(filepath.Join(lost, "their.db"+suffix), path+suffix))
				}
				dir, path = lost, filepath.Join(lost, "their.db")
			}
			before := folder(t, dir)
			n, s := seen(t, path)
			var opened string
			testkit.Check(t, s.GetContext(t.Context(), &opened, `SELECT file FROM pragma_database_list`))
			if copied := opened != path; n != 2 || copied != test.private {
				t.Errorf("%d messages, copied: %v", n, copied)
			}
			if _, err := s.ExecContext(t.Context(), `INSERT INTO messages (text) VALUES ('ours')`); err == nil {
				t.Error("it can be written")
			}
			if !test.rest && !test.crash {
				tell(t, db, `INSERT INTO messages (text) VALUES ('later')`) // the owner is not held up
				if err := s.GetContext(t.Context(), &n, `SELECT COUNT(*) FROM messages`); err != nil || n != 2 {
					t.Errorf("the snapshot has %d messages now, %v", n, err)
				}
				before = folder(t, dir)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			unchangedFolder(t, dir, before)
			if left := folder(t, temp); len(left) > 0 {
				t.Errorf("%d files are left of the copy", len(left))
			}
		})
	}
}

func TestSQLiteQueriesMayBeNested(t *testing.T) {
	path := filepath.Join(t.TempDir(), "their.db")
	owner(t, path, `INSERT INTO messages (text) VALUES ('a'), ('b')`)
	_, s := seen(t, path)
	defer s.Close()
	rows := testkit.Must(s.QueryContext(t.Context(), `SELECT id FROM messages`))(t)
	defer rows.Close()
	var texts []string
	for rows.Next() {
		var id int
		var text string
		testkit.Check(t, rows.Scan(&id))
		testkit.Check(t, s.GetContext(t.Context(), &text, `SELECT text FROM messages WHERE id = ?`, id))
		texts = append(texts, text)
	}
	schema := s.Schema("messages", "nothing")
	if err := s.TakeErr(); err != nil || fmt.Sprint(texts, schema) != "[a b] map[messages:[id text at]]" {
		t.Errorf("%v %v %v", texts, schema, err)
	}
	var n int
	s.Get(&n, `SELECT nothing FROM messages`)
	s.Get(&n, `SELECT COUNT(*) FROM messages`)
	if err := s.TakeErr(); session.CodeOf(err) != session.Invalid || n != 0 {
		t.Errorf("after an error a query gives %d, %v", n, err)
	}
	s.Get(&n, `SELECT COUNT(*) FROM messages`)
	if err := s.TakeErr(); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
}

// A database at rest is read without locks, so that its owner may begin to write: then what
// was read may be of two times, and must not be stored.
func TestSQLiteTellsThatItChangedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "their.db")
	owner(t, path, `INSERT INTO messages (text) VALUES ('a')`).Close()
	_, s := seen(t, path)
	defer s.Close()
	again := testkit.Must(sql.Open("sqlite", path))(t)
	tell(t, again, `INSERT INTO messages (text) VALUES ('b')`, `PRAGMA wal_checkpoint(TRUNCATE)`)
	again.Close()
	if err := s.Check(); session.CodeOf(err) != session.Busy {
		t.Errorf("%v", err)
	}
}

func TestSQLiteThatCannotBeReadSaysWhy(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, raw []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		testkit.Check(t, os.WriteFile(path, raw, 0o600))
		return path
	}
	good := filepath.Join(dir, "good.db")
	owner(t, good, `INSERT INTO messages (text) VALUES (zeroblob(100000))`).Close()
	raw := testkit.Must(os.ReadFile(good))(t)
	newer := bytes.Clone(raw)
	newer[18], newer[19] = 9, 9 // the file format's version
	write("hot.db", raw)
	write("hot.db-journal", []byte("half a transaction"))
	for _, test := range []struct {
		path string
		code session.Code
		says string
	}{
		{filepath.Join(dir, "none.db"), "", "no such file"},
		{dir, session.Invalid, "no file"},
		{write("empty.db", nil), session.Invalid, "empty"},
		{write("text.db", []byte("{}")), session.Invalid, "no SQLite database"},
		{write("head.db", raw[:200]), session.Invalid, "damaged"},
		{write("newer.db", newer), session.Invalid, "no SQLite database"},
		{filepath.Join(dir, "hot.db"), session.Busy, "middle of a write"},
	} {
		s, err := OpenSQLite(t.Context(), test.path)
		if err == nil {
			s.Close()
		}
		if err == nil || test.code != "" && session.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %s, %q", filepath.Base(test.path), err, test.code, test.says)
		}
	}
}

func TestSQLiteIsFoundWithItsLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "their.db")
	db := owner(t, path)
	first := testkit.Must(StatSQLite(path))(t)
	tell(t, db, `INSERT INTO messages (text) VALUES (zeroblob(100000))`)
	second, err := StatSQLite(path)
	if err != nil || second.Size <= first.Size || second.Path != first.Path || second.ModifiedAt.Before(first.ModifiedAt) {
		t.Errorf("%+v, then %+v, %v", first, second, err)
	}
}

func TestAFullFolderForTemporaryFilesIsNotTheSourcesFault(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	_, err := TempFile()
	_, err2 := os.MkdirTemp("", tempNames)
	full := &os.PathError{Op: "write", Path: filepath.Join(missing, tempNames+"1", "copy.db"), Err: syscall.ENOSPC}
	for _, err := range []error{err, err2, fmt.Errorf("compressed, and damaged: %w", full)} {
		if got := Reason(err); !strings.Contains(got, "temporary files in "+missing) || !strings.Contains(got, "TMPDIR") {
			t.Errorf("%q", got)
		}
	}
	own := &os.PathError{Op: "open", Path: "/there/sessions.db", Err: syscall.EACCES}
	if got := Reason(own); got != "open: permission denied" {
		t.Errorf("%q", got)
	}
}

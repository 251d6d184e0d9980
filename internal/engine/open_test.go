package engine_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

func openInChild(args []string) error {
	opt := store.Options{ReadOnly: args[0] == "ro"}
	s, err := store.Open(context.Background(), args[1], opt)
	if err != nil {
		fmt.Printf("%s: %v", session.CodeOf(err), err)
		return nil
	}
	page, _, err := s.Sessions(context.Background(), store.Filter{}, store.Page{})
	fmt.Printf("opened %d %v", len(page), err)
	return errors.Join(s.Close())
}

func umaskInChild(args []string) error {
	testkit.ClearUmask()
	s, err := store.Open(context.Background(), args[0], store.Options{})
	if err != nil {
		return err
	}
	if _, err := s.CreateSession(context.Background(), store.NewSession{}); err != nil {
		return err
	}
	for path, want := range map[string]os.FileMode{
		args[0]: 0o600, args[0] + "-wal": 0o600, args[0] + "-shm": 0o600,
		filepath.Dir(args[0]): os.ModeDir | 0o700, filepath.Dir(filepath.Dir(args[0])): os.ModeDir | 0o700,
	} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Mode() != want {
			return fmt.Errorf("%s is %v, not %v", path, info.Mode(), want)
		}
	}
	return s.Close()
}

func TestTwoProcessesStartAtOnceOnANewFolder(t *testing.T) {
	for range 3 {
		path := filepath.Join(t.TempDir(), "new", "folder", "sessions.db")
		var started []*exec.Cmd
		var said []*strings.Builder
		for range 4 {
			cmd, out := child(t, "open", "rw", path), &strings.Builder{}
			cmd.Stdout = out
			testkit.Check(t, cmd.Start())
			started, said = append(started, cmd), append(said, out)
		}
		for i, cmd := range started {
			if err := cmd.Wait(); err != nil || said[i].String() != "opened 0 <nil>" {
				t.Errorf("process %d: %v, %s", i, err, said[i])
			}
		}
	}
}

func TestFilesAreTheOwnersWhateverTheUmask(t *testing.T) {
	if err := child(t, "umask", filepath.Join(t.TempDir(), "a", "b", "sessions.db")).Run(); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesWhatIsNotItsOwnAndChangesNothing(t *testing.T) {
	plant := func(statements ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db := testkit.Must(sql.Open("sqlite", path))(t)
			defer db.Close()
			for _, q := range statements {
				testkit.Must(db.Exec(q))(t)
			}
		}
	}
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, path string)
		code  session.Code
		words string
	}{
		{"text", func(t *testing.T, path string) {
			testkit.Check(t, os.WriteFile(path, []byte(strings.Repeat("not a database at all\n", 50)), 0o600))
		}, session.Invalid, "is not an SQLite database"},
		{
			"another program's", plant(`CREATE TABLE notes (id INTEGER)`, `INSERT INTO notes VALUES (1)`), session.Invalid,
			"another program's",
		},
		{"another program's that uses goose too", plant(`CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id INTEGER, is_applied INTEGER, tstamp TEXT)`,
			`INSERT INTO goose_db_version VALUES (1, 3, 1, '')`), session.Invalid, "another program's"},
		{
			"an empty one of another program", plant(`PRAGMA application_id = 77`, `VACUUM`), session.Invalid,
			"another program's",
		},
		{
			"one from before 0.1.0", plant(`PRAGMA application_id = 0x73657364`, `CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id INTEGER, is_applied INTEGER, tstamp TEXT)`,
				`INSERT INTO goose_db_version VALUES (1, 14, 1, '')`, `CREATE TABLE sessions (id TEXT)`), session.Invalid,
			"sessiond export -o all.jsonl",
		},
		{"one of an old migration", plant(`PRAGMA application_id = 0x73657331`, `CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id INTEGER, is_applied INTEGER, tstamp TEXT)`,
			`INSERT INTO goose_db_version VALUES (1, 14, 1, '')`), session.Invalid, "sessiond import sessiond all.jsonl"},
		{"a newer sessiond's", func(t *testing.T, path string) {
			s := testkit.Must(store.Open(context.Background(), path, store.Options{}))(t)
			testkit.Check(t, s.Close())
			plant(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)(t, path)
		}, session.Invalid, "update sessiond"},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " read-only=", readOnly), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "sessions.db")
				c.make(t, path)
				before := testkit.Must(os.ReadFile(path))(t)
				_, err := store.Open(context.Background(), path, store.Options{ReadOnly: readOnly})
				wants(t, err, c.code, c.words)
				if after := testkit.Must(os.ReadFile(path))(t); string(after) != string(before) {
					t.Error("the file was changed")
				}
				if names := testkit.Must(os.ReadDir(filepath.Dir(path)))(t); len(names) != 1 {
					t.Errorf("beside the file there is now %v", names)
				}
			})
		}
	}
}

func TestOpenNamesWhatIsNoFile(t *testing.T) {
	ctx := context.Background()
	for _, readOnly := range []bool{false, true} {
		_, err := store.Open(ctx, t.TempDir(), store.Options{ReadOnly: readOnly})
		wants(t, err, session.Invalid, "is a folder")
	}
	missing := filepath.Join(t.TempDir(), "none", "sessions.db")
	_, err := store.Open(ctx, missing, store.Options{ReadOnly: true})
	wants(t, err, session.NotFound, "does not exist")
	if _, err := os.Stat(filepath.Dir(missing)); err == nil {
		t.Error("a read-only open made the folder")
	}
}

func TestAnEmptyFileAndOneCutShortBecomeADatabase(t *testing.T) {
	for _, c := range []struct{ name, made string }{
		{"empty", ``},
		{"marked", fmt.Sprintf(`PRAGMA auto_vacuum = incremental; PRAGMA application_id = %d`, engine.ApplicationID)},
		{"without the first migration", fmt.Sprintf(`PRAGMA application_id = %d; CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, `+
			`version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP); INSERT INTO goose_db_version VALUES (1, 0, 1, datetime())`, engine.ApplicationID)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sessions.db")
			testkit.Check(t, os.WriteFile(path, nil, 0o600))
			db := testkit.Must(sql.Open("sqlite", path))(t)
			testkit.Must(db.Exec(c.made))(t) // a start ended here
			db.Close()
			_, err := store.Open(context.Background(), path, store.Options{ReadOnly: true})
			wants(t, err, session.NotFound, "is empty: `sessiond import` fills it")
			s := testkit.Must(store.Open(context.Background(), path, store.Options{}))(t)
			defer s.Close()
			mustCreate(t, s, store.NewSession{})
			mustBeHealthy(t, s)
		})
	}
}

func TestAnyPathNamesTheFile(t *testing.T) {
	for _, name := range []string{
		"with space", "a?b", "a#b", "50%25 off", "a%20b", "größe 日本", "semi;colon&amp=1",
		"'quoted\"",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			path := filepath.Join(dir, name+".db")
			s := testkit.Must(store.Open(context.Background(), path, store.Options{}))(t)
			mustCreate(t, s, store.NewSession{})
			testkit.Check(t, s.Close())
			if names := testkit.Must(os.ReadDir(dir))(t); len(names) != 1 || names[0].Name() != name+".db" {
				t.Errorf("the folder holds %v", names)
			}
			ro := testkit.Must(store.Open(context.Background(), path, store.Options{ReadOnly: true}))(t)
			defer ro.Close()
			if data, _, err := ro.Sessions(context.Background(), store.Filter{}, store.Page{}); err != nil || len(data) != 1 {
				t.Errorf("%d sessions, %v", len(data), err)
			}
		})
	}
}

func TestConnectionsHaveTheirPragmas(t *testing.T) {
	storetest.OnFile(t)
	s := openTest(t)
	read := func(query string) string {
		var v string
		testkit.Check(t, s.Alone(context.Background(), func(tx *engine.Tx) error { return tx.Row(query, nil, &v) }))
		return v
	}
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "secure_delete": "1", "auto_vacuum": "2",
		"wal_autocheckpoint": "8000", "page_size": "2048",
		"busy_timeout": "0", "query_only": "0", "temp_store": "2", "cache_size": "-8192",
		"application_id": fmt.Sprint(engine.ApplicationID),
	} {
		if got := read("PRAGMA " + pragma); got != want {
			t.Errorf("the writer's %s is %s, not %s", pragma, got, want)
		}
	}
	for pragma, want := range map[string]string{
		"query_only": "1", "busy_timeout": "250", "temp_store": "2",
		"journal_mode": "wal",
	} {
		for name, db := range map[string]interface {
			Get(any, string, ...any) error
		}{"readers": engine.Readers(s.DB), "reports": s.Reader()} {
			var got string
			if err := db.Get(&got, "PRAGMA "+pragma); err != nil || got != want {
				t.Errorf("%s of the %s is %s, not %s (%v)", pragma, name, got, want, err)
			}
		}
	}
	if _, err := s.Reader().Exec(`DELETE FROM session_days`); err == nil {
		t.Error("a reading connection could write")
	}
	if done, err := s.TruncateWAL(context.Background()); err != nil || !done {
		t.Errorf("truncate: %v %v", done, err)
	}
}

// Root may write everywhere, so what a read-only folder does is seen by another user.
func TestAReadOnlyFolderIsReadWhereThatIsSafe(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	exe := testkit.Must(os.Executable())(t)
	dir := testkit.Must(os.MkdirTemp("/tmp", "sessiond-test-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	tool := filepath.Join(dir, "tool")
	testkit.Check(t, os.WriteFile(tool, testkit.Must(os.ReadFile(exe))(t), 0o755))
	open := func(mode, path string) string {
		cmd := child(t, "open", mode, path)
		cmd.Path = tool
		testkit.RunAs(cmd, 65534, 65534)
		out, err := cmd.Output()
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	publish := func() { // everyone may read, none but root write
		testkit.Check(t, filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
			if err != nil || p == tool {
				return err
			}
			if info.IsDir() {
				return os.Chmod(p, 0o755)
			}
			return os.Chmod(p, 0o644)
		}))
	}
	path := filepath.Join(dir, "data", "sessions.db")
	s := testkit.Must(store.Open(context.Background(), path, store.Options{}))(t)
	mustCreate(t, s, store.NewSession{})
	crashed := filepath.Join(dir, "crashed", "sessions.db")
	testkit.Check(t, os.Mkdir(filepath.Dir(crashed), 0o755))
	image := map[string][]byte{"": testkit.Must(os.ReadFile(path))(t), "-wal": testkit.Must(os.ReadFile(path + "-wal"))(t)}
	testkit.Check(t, s.Close())
	publish()
	if out := open("ro", path); out != "opened 1 <nil>" {
		t.Errorf("after a clean stop: %s", out)
	}
	if out := open("rw", path); !strings.HasPrefix(out, string(session.Forbidden)) {
		t.Errorf("for writing: %s", out)
	}
	for suffix, data := range image {
		testkit.Check(t, os.WriteFile(crashed+suffix, data, 0o644))
	}
	if out := open("ro", crashed); !strings.HasPrefix(out, string(session.Forbidden)) ||
		!strings.Contains(out, "write-ahead log") {
		t.Errorf("with a WAL that holds something: %s", out)
	}
	testkit.Check(t, os.Truncate(crashed+"-wal", 0))
	if out := open("ro", crashed); strings.Contains(out, "write-ahead log") {
		t.Errorf("with an empty WAL: %s", out)
	}
}

// A crash leaves a log, and a backup that is put in the file's place beside it is mixed with it.
func TestADamagedFileBesideALogNamesTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	testkit.Check(t, s.Close())
	whole := testkit.Must(os.ReadFile(path))(t)
	for i := 100; i < 4096; i++ { // the schema's page, behind the header
		whole[i] = 0xff
	}
	for _, left := range []struct {
		log, want string
	}{{"what a crash left", "remove " + path + "-wal and " + path + "-shm"}, {"", "run `sessiond doctor`"}} {
		testkit.Check(t, errors.Join(os.WriteFile(path, whole, 0o600), os.WriteFile(path+"-wal", []byte(left.log), 0o600)))
		for _, readOnly := range []bool{true, false} {
			_, err := store.Open(t.Context(), path, store.Options{ReadOnly: readOnly})
			wants(t, err, session.Invalid, left.want)
			testkit.Check(t, os.WriteFile(path+"-wal", []byte(left.log), 0o600))
		}
	}
}

func TestRefusedFileKeepsItsMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	testkit.Check(t, errors.Join(os.WriteFile(path, []byte("another program's"), 0o600), os.Chmod(path, 0o644)))
	if s, err := store.Open(t.Context(), path, store.Options{}); err == nil {
		s.Close()
		t.Fatal("opened another program's file")
	}
	if info := testkit.Must(os.Stat(path))(t); info.Mode().Perm() != 0o644 {
		t.Errorf("a refused file has mode %04o now", info.Mode().Perm())
	}
}

func TestDatabaseMadeThroughALinkIsTheOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file.db"), filepath.Join(dir, "link.db")
	testkit.Check(t, os.Symlink(file, link))
	s := testkit.Must(store.Open(t.Context(), link, store.Options{}))(t)
	defer s.Close()
	for _, end := range []string{"", "-wal", "-shm"} {
		if info := testkit.Must(os.Stat(file + end))(t); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %04o", info.Name(), info.Mode().Perm())
		}
	}
	testkit.Check(t, os.Chmod(file+"-wal", 0o644))
	if loose := engine.LooseModes(link); len(loose) != 1 {
		t.Errorf("a log that others can read is reported as %v", loose)
	}
}

// Two daemons that open one file by two names have two logs, and destroy it.
func TestOpenWarnsOfASecondName(t *testing.T) {
	storetest.OnFile(t)
	s := openTest(t)
	path := s.File()
	testkit.Check(t, s.Close())
	for _, links := range []int{0, 1} {
		if links > 0 {
			testkit.Check(t, os.Link(path, path+".link"))
		}
		var log bytes.Buffer
		s := testkit.Must(store.Open(t.Context(), path, store.Options{Log: zerolog.New(&log)}))(t)
		testkit.Check(t, s.Close())
		if said := strings.Contains(log.String(), "hard link"); said != (links > 0) {
			t.Errorf("%d links: %s", links, log.String())
		}
	}
}

// A file that its owner made read-only cannot be opened for writing, except by root; its mode is tightened first.
func TestAReadOnlyFileIsTightenedAndStaysReadOnly(t *testing.T) {
	storetest.OnFile(t)
	s := openTest(t)
	testkit.Check(t, s.Close())
	testkit.Check(t, os.Chmod(s.File(), 0o444))
	if again, err := store.Open(t.Context(), s.File(), store.Options{}); err == nil {
		testkit.Check(t, again.Close())
	} else {
		wants(t, err, session.Forbidden, "cannot be opened by this user")
	}
	if mode := testkit.Must(os.Stat(s.File()))(t).Mode().Perm(); mode != 0o400 {
		t.Errorf("mode %04o", mode)
	}
}

func TestOpenTightensLooseModes(t *testing.T) {
	storetest.OnFile(t)
	path := openTest(t).File() // open: its log and index are there, too
	for name, mode := range map[string]os.FileMode{path: 0o644, path + "-wal": 0o644, filepath.Dir(path): 0o777} {
		testkit.Check(t, os.Chmod(name, mode))
	}
	var log bytes.Buffer
	s := testkit.Must(store.Open(t.Context(), path, store.Options{Log: zerolog.New(&log)}))(t)
	defer s.Close()
	if loose := engine.LooseModes(path); len(loose) > 0 {
		t.Errorf("still loose: %v", loose)
	}
	for _, say := range []string{"sessions.db has mode 0644", "sessions.db-wal has mode 0644", "has mode 0777"} {
		if !strings.Contains(log.String(), say) {
			t.Errorf("the log does not say %q: %s", say, log.String())
		}
	}
}

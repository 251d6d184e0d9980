package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// The tests of the engine that need rows fill databases by the store.

// TestMain runs the tests, or, in a process that a test started, that process's part.
func TestMain(m *testing.M) {
	if part := os.Getenv("ENGINE_TEST_CHILD"); part != "" {
		if err := children()[part](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// children are the parts that tests give to processes of their own.
func children() map[string]func(args []string) error {
	return map[string]func(args []string) error{
		"open": openInChild, "append": appendInChild, "lock": lockInChild, "read": readInChild, "umask": umaskInChild,
		"intrude": intrudeInChild, "replicate": replicateInChild, "copy": copyInChild, "killed": killedInChild,
	}
}

// child prepares a process that runs one of children. Its output is the test's.
func child(t testing.TB, part string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ENGINE_TEST_CHILD="+part)
	cmd.Stderr = os.Stderr
	return cmd
}

// newDatabase is a fresh database as Open makes it.
var newDatabase = sync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp("", "engine-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sessions.db")
	s, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		panic(err)
	}
	s.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return data
})

func openTest(t testing.TB, opts ...func(*store.Options)) *store.Store {
	t.Helper()
	opt := store.Options{Zone: time.UTC}
	for _, o := range opts {
		o(&opt)
	}
	path := storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	s := testkit.Must(store.Open(context.Background(), path, opt))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func says(role session.Role, text string) session.Message {
	return session.Message{Role: role, InContext: true, Display: true, Parts: []session.Part{session.TextPart(text)}}
}

func mustCreate(t testing.TB, s *store.Store, in store.NewSession) session.Session {
	t.Helper()
	return testkit.Must(s.CreateSession(context.Background(), in))(t)
}

func mustAppend(t testing.TB, s *store.Store, id session.ID, msgs ...session.Message) store.Appended {
	t.Helper()
	return testkit.Must(s.Append(context.Background(), store.Append{Session: id, Messages: msgs}))(t)
}

func mustBeHealthy(t testing.TB, s *store.Store) {
	t.Helper()
	for _, c := range testkit.Must(s.Doctor(context.Background(), false))(t) {
		if !c.OK {
			t.Errorf("doctor: %s: %s", c.Name, c.Detail)
		}
	}
}

// wants fails unless err has the code and says the words.
func wants(t testing.TB, err error, code session.Code, words string) {
	t.Helper()
	if session.CodeOf(err) != code || err != nil && !strings.Contains(err.Error(), words) {
		t.Errorf("got %q: %v; want %q with %q", session.CodeOf(err), err, code, words)
	}
}

func count(t testing.TB, s *store.Store, query string) (n int64) {
	t.Helper()
	testkit.Check(t, s.Reader().Get(&n, query))
	return n
}

// raw opens a database as another program does.
func raw(t testing.TB, s *store.Store) *sql.DB {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", s.File()+"?_pragma=busy_timeout(5000)"))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

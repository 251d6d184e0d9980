package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// measure counts bytes: enough for tests of sums.
func measure(m *session.Message) {
	m.Tokens = 0
	for i := range m.Parts {
		m.Parts[i].Tokens = int64(len(m.Parts[i].Content()) + len(m.Parts[i].Arguments))
		m.Tokens += m.Parts[i].Tokens
	}
}

// newDatabase is a fresh database as Open makes it. Making one takes longer than most tests,
// so it is made once.
var newDatabase = sync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp("", "store-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sessions.db")
	s, err := Open(context.Background(), path, Options{})
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

func openTest(t testing.TB, opts ...func(*Options)) *Store {
	t.Helper()
	if address := os.Getenv("SESSIOND_TEST_POSTGRES"); address != "" {
		opt := Options{Measure: measure, Zone: time.UTC}
		for _, o := range opts {
			o(&opt)
		}
		s := testkit.Must(Open(context.Background(), freshPostgres(t, address), opt))(t)
		t.Cleanup(func() { s.Close() })
		return s
	}
	return openData(t, newDatabase(), opts...)
}

// onFile skips a test of what only a file of SQLite has.
func onFile(t testing.TB) {
	t.Helper()
	if os.Getenv("SESSIOND_TEST_POSTGRES") != "" {
		t.Skip("it tests the file of SQLite")
	}
}

// openData opens a copy of a database.
func openData(t testing.TB, data []byte, opts ...func(*Options)) *Store {
	t.Helper()
	opt := Options{Measure: measure, Zone: time.UTC}
	for _, o := range opts {
		o(&opt)
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	testkit.Check(t, os.WriteFile(path, data, 0o600))
	s := testkit.Must(Open(context.Background(), path, opt))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func says(role session.Role, text string) session.Message {
	return session.Message{Role: role, InContext: true, Display: true, Parts: []session.Part{session.TextPart(text)}}
}

func mustCreate(t testing.TB, s *Store, in NewSession) session.Session {
	t.Helper()
	return testkit.Must(s.CreateSession(context.Background(), in))(t)
}

func mustAppend(t testing.TB, s *Store, id session.ID, msgs ...session.Message) Appended {
	t.Helper()
	return testkit.Must(s.Append(context.Background(), Append{Session: id, Messages: msgs}))(t)
}

func TestAppendIsReadBackInOrder(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for i := range 130 {
		mustAppend(t, s, sess.ID, says(session.User, fmt.Sprint("question ", i)),
			says(session.Assistant, fmt.Sprint("answer ", i)))
	}
	msgs, more, err := s.Messages(ctx, sess.ID, MessagePage{Limit: 1000})
	if err != nil || more || len(msgs) != 260 {
		t.Fatalf("%d messages, more %v, %v", len(msgs), more, err)
	}
	for i, m := range msgs {
		if m.Seq != int64(i+1) || m.Text() != fmt.Sprint([]string{"question ", "answer "}[i%2], i/2) {
			t.Fatalf("message %d is %d %q", i, m.Seq, m.Text())
		}
	}
	got, err := s.Session(ctx, sess.ID)
	if err != nil || got.MessageCount != 260 || got.Title != "question 0" {
		t.Fatalf("%+v %v", got, err)
	}
	path, err := s.Path(ctx, *got.HeadID, 0)
	if err != nil || len(path) != 260 || path[0].Seq != 1 || path[259].Seq != 260 {
		t.Fatalf("path of %d, %v", len(path), err)
	}
	mustBeHealthy(t, s)
}

// mustBeHealthy recounts everything that is counted.
func mustBeHealthy(t testing.TB, s *Store) {
	t.Helper()
	checks := testkit.Must(s.Doctor(context.Background(), false))(t)
	for _, c := range checks {
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

func count(t testing.TB, s *Store, query string, args ...any) (n int64) {
	t.Helper()
	testkit.Check(t, s.Reader().Get(&n, query, args...))
	return n
}

func ref(id session.ID, seq int64) *session.MessageRef {
	return &session.MessageRef{Session: id, Seq: seq}
}

func TestIDsGoOnPast999ADay(t *testing.T) {
	onFile(t)
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	testkit.Must(raw(t, s).Exec(`INSERT INTO session_days VALUES ('2026-02-11', 997)`))(t)
	for _, want := range []session.ID{"20260211_998", "20260211_999", "20260211_1000", "20260211_1001"} {
		sess := mustCreate(t, s, NewSession{})
		if sess.ID != want || sess.Day != "2026-02-11" {
			t.Errorf("%s of %s, not %s", sess.ID, sess.Day, want)
		}
		if _, err := session.ParseID(string(sess.ID)); err != nil {
			t.Error(err)
		}
	}
}

func TestIDsGoByTheLocalDay(t *testing.T) {
	zone := time.FixedZone("far east", 9*3600)
	now := time.Date(2026, 2, 11, 14, 59, 59, 999e6, time.UTC)
	s := openTest(t, func(o *Options) { o.Now, o.Zone = func() time.Time { return now }, zone })
	before := mustCreate(t, s, NewSession{})
	now = now.Add(time.Millisecond) // midnight there
	after := mustCreate(t, s, NewSession{})
	now = now.Add(-time.Millisecond) // and the clock is set back
	again := mustCreate(t, s, NewSession{})
	imported := session.At(time.Date(2024, 12, 31, 20, 0, 0, 0, time.UTC))
	old := mustCreate(t, s, NewSession{CreatedAt: &imported})
	got := fmt.Sprint(before.ID, after.ID, again.ID, old.ID)
	if want := fmt.Sprint("20260211_001", "20260212_001", "20260211_002", "20250101_001"); got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestAnIDIsNeverUsedAgain(t *testing.T) {
	onFile(t)
	s := openTest(t)
	first := mustCreate(t, s, NewSession{})
	testkit.Must(raw(t, s).Exec(`DELETE FROM sessions`))(t) // an empty session may go
	if second := mustCreate(t, s, NewSession{}); second.ID == first.ID {
		t.Errorf("%s was given again", second.ID)
	}
	// A refused one uses up no number, and gives none twice.
	mustCreate(t, s, NewSession{Source: session.SourcePi, SourceID: "x"})
	_, err := s.CreateSession(context.Background(), NewSession{Source: session.SourcePi, SourceID: "x"})
	wants(t, err, session.Conflict, "source_id \"x\"")
	mustCreate(t, s, NewSession{Source: session.SourceCodex, SourceID: "x"})
}

func TestTwoHundredSessionsAtOnceGetTwoHundredIDs(t *testing.T) {
	s := openTest(t)
	other := testkit.Must(Open(context.Background(), s.File(), Options{Zone: time.UTC}))(t)
	defer other.Close()
	ids := make(chan session.ID, 200)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			sess, err := []*Store{s, other}[i%2].CreateSession(context.Background(), NewSession{})
			if err != nil {
				t.Error(err)
			}
			ids <- sess.ID
		})
	}
	wg.Wait()
	close(ids)
	seen := map[session.ID]bool{}
	for id := range ids {
		seen[id] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d different ids", len(seen))
	}
	mustBeHealthy(t, s)
}

var postgresDatabases atomic.Int64

var postgresTemplate = sync.OnceValues(func() (string, error) {
	base := os.Getenv("SESSIOND_TEST_POSTGRES")
	name := fmt.Sprintf("st_test_%d", os.Getpid())
	if err := onPostgres(base, `CREATE DATABASE `+name+` TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' ENCODING 'UTF8'`); err != nil {
		return "", err
	}
	s, err := Open(context.Background(), databaseOf(base, name), Options{})
	if err != nil {
		return "", err
	}
	return name, s.Close()
})

func freshPostgres(t testing.TB, base string) string {
	from := testkit.Must(postgresTemplate())(t)
	name := fmt.Sprintf("%s_%d", from, postgresDatabases.Add(1))
	testkit.Check(t, onPostgres(base, `CREATE DATABASE `+name+` TEMPLATE `+from))
	t.Cleanup(func() { _ = onPostgres(base, `DROP DATABASE `+name+` WITH (FORCE)`) })
	return databaseOf(base, name)
}

// databaseOf returns the address of another database on the same server.
func databaseOf(base, name string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name
	return u.String()
}

func onPostgres(base, query string) error {
	db, err := sql.Open("pgx", base)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(context.Background(), query)
	return err
}

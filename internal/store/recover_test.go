package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// richData is a closed database with something in most tables.
func richData(t *testing.T) (data []byte, pageSize int64) {
	s := openTest(t)
	var first session.Session
	for i := range 12 {
		sess := mustCreate(t, s, NewSession{
			Title: fmt.Sprint("session ", i), Source: "pi",
			SourceID: fmt.Sprint("source ", i),
		})
		if i == 0 {
			first = sess
		}
		for n := range 8 {
			mustAppend(t, s, sess.ID, says(session.User, fmt.Sprint("message ", n, strings.Repeat(" word", 60))), calls("a"),
				results("a"))
		}
		testkit.Must(s.AddCall(t.Context(), session.Call{SessionID: sess.ID, CostNanoUSD: priced(3)}))(t)
		testkit.Must(s.AddCompaction(t.Context(), overlay(t, s, sess.ID, 1, session.StatusDone, 4)))(t)
	}
	mustAppend(t, s, first.ID, says(session.User, strings.Repeat("y", 100_000)))
	for seq := range int64(3) {
		fork := testkit.Must(s.Fork(t.Context(), Fork{Session: first.ID, At: ref(first.ID, 5*(seq+1))}))(t)
		mustAppend(t, s, fork.ID, says(session.User, "in the fork"), says(session.Assistant, "answer"))
	}
	mustBeHealthy(t, s)
	pageSize = count(t, s, `PRAGMA page_size`)
	testkit.Check(t, s.Close())
	return testkit.Must(os.ReadFile(s.File()))(t), pageSize
}

// recovered recovers data into a new store, which must be healthy.
func recovered(t *testing.T, data []byte) (*Store, []Recovered, error) {
	dir := t.TempDir()
	path, out := filepath.Join(dir, "damaged.db"), filepath.Join(dir, "out.db")
	testkit.Check(t, os.WriteFile(path, data, 0o600))
	tables, err := Recover(t.Context(), path, out, Options{})
	if err != nil {
		if left, _ := filepath.Glob(filepath.Join(dir, "*out*")); len(left) > 0 {
			t.Errorf("an attempt that failed left %v", left)
		}
		return nil, nil, err
	}
	s := testkit.Must(Open(t.Context(), out, Options{}))(t)
	t.Cleanup(func() { s.Close() })
	for _, check := range testkit.Must(s.Doctor(t.Context(), false))(t) {
		if !check.OK && check.Name != "blob contents" { // SQLite does not know what a page of a long text should hold
			t.Errorf("after %+v: %+v", tables, check)
		}
	}
	return s, tables, nil
}

func TestRecoverCopiesAWholeDatabase(t *testing.T) {
	onFile(t)
	data, _ := richData(t)
	want := openData(t, data)
	got, tables, err := recovered(t, data)
	testkit.Check(t, err)
	for _, table := range tables {
		if len(table.Lost) > 0 {
			t.Errorf("%+v", table)
		}
		rows := `SELECT COUNT(*) FROM ` + table.Table
		if count(t, got, rows) != count(t, want, rows) {
			t.Errorf("%s: %d rows, not %d", table.Table, count(t, got, rows), count(t, want, rows))
		}
	}
	same := `SELECT SUM(message_count * 7 + total_tokens * 11 + context_tokens * 13 + compaction_count + cost_nanousd) + (SELECT SUM(messages + calls + sessions) FROM daily_usage) FROM sessions`
	if count(t, got, same) != count(t, want, same) {
		t.Error("the counters differ")
	}
}

// Whatever page is damaged, the rest is copied into a healthy database, and the loss is told.
func TestRecoverReadsAroundEveryPage(t *testing.T) {
	onFile(t)
	effort.NotShort(t, "one goroutine recovers many databases")
	data, size := richData(t)
	pages := int64(len(data)) / size
	step := int64(19)
	if effort.Long() {
		step = 1
	}
	messages := count(t, openData(t, data), `SELECT COUNT(*) FROM messages`)
	told := 0
	for page := int64(2); page <= pages; page += step {
		for i := range size {
			data[(page-1)*size+i] ^= 0xff
		}
		s, tables, err := recovered(t, data)
		if err != nil {
			wants(t, err, session.Invalid, "sqlite3 FILE .recover") // the page held the schema
		} else {
			lost := ""
			for _, table := range tables {
				lost += strings.Join(table.Lost, " ")
			}
			n := count(t, s, `SELECT COUNT(*) FROM messages`)
			if n < messages && lost == "" {
				t.Errorf("page %d: %d of %d messages, and no loss told", page, n, messages)
			}
			if lost != "" {
				told++
			}
			s.Close()
		}
		for i := range size {
			data[(page-1)*size+i] ^= 0xff
		}
	}
	t.Logf("%d pages, one in %d damaged, %d times rows were lost", pages, step, told)
	if told == 0 {
		t.Error("no damage lost anything")
	}
}

func TestRecoverNamesLostMessages(t *testing.T) {
	onFile(t)
	data, size := richData(t)
	s := openData(t, data)
	page := count(t, s, `SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' LIMIT 1 OFFSET 2`)
	whole := count(t, s, `SELECT COUNT(*) FROM messages`)
	s.Close()
	damaged := append([]byte{}, data...)
	copy(damaged[(page-1)*size:], strings.Repeat("\xff", int(size)))
	got, tables, err := recovered(t, damaged)
	testkit.Check(t, err)
	for _, table := range tables {
		if table.Table == "messages" && (len(table.Lost) == 0 || !strings.HasPrefix(table.Lost[0], "messages 2")) {
			t.Errorf("%+v", table)
		}
	}
	n := count(t, got, `SELECT COUNT(*) FROM messages`)
	if n == whole || n < whole*9/10 {
		t.Errorf("%d of %d messages", n, whole)
	}
	// A session that lost messages in its middle still reads from its head to its beginning.
	if roots := count(t, got, `SELECT COUNT(*) FROM messages WHERE parent_id IS NULL AND seq > 1 AND session_id IN (SELECT session_id FROM messages WHERE seq = 1)`); roots > 0 {
		t.Errorf("%d messages lost what came before", roots)
	}
}

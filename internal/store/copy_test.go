package store

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Every table but the bookkeeping of the file itself is copied, with its own key.
func TestCopyNamesEveryTable(t *testing.T) {
	s := openTest(t)
	var names []string
	for _, table := range copied {
		names = append(names, table.name)
	}
	catalogue := `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'`
	if s.IsPostgres() {
		catalogue = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`
	}
	want := testkit.Must(engine.List[string](t.Context(), s, catalogue))(t)
	want = slices.DeleteFunc(want, func(name string) bool { return name == "store" || name == "goose_db_version" })
	slices.Sort(names)
	slices.Sort(want)
	testkit.Equal(t, want, names)
	if s.IsPostgres() {
		return
	}
	for _, table := range copied {
		key := testkit.Must(engine.List[string](t.Context(), s, `SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk`, table.name))(t)
		testkit.Equal(t, key, table.key)
	}
}

// A page of a copy begins after the last key of the page before: a key that two rows share would lose one.
func TestCopyGoesByPrimaryKeys(t *testing.T) {
	onFile(t)
	s := openTest(t)
	for _, table := range copied {
		primary := testkit.Must(engine.List[string](t.Context(), s, `SELECT name FROM pragma_table_info(?) WHERE pk > 0`,
			table.name))(t)
		key := slices.Sorted(slices.Values(table.key))
		slices.Sort(primary)
		if !slices.Equal(key, primary) {
			t.Errorf("%s is copied by %v, its primary key is %v", table.name, key, primary)
		}
	}
}

// A copy goes on where it broke off, and says so if what is copied has changed meanwhile.
func TestCopyContinuesAndRefusesAnotherSource(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "one", "two", "three")
	testkit.Must(s.Fork(ctx, Fork{Session: sess.ID}))(t)
	to := testkit.Must(Open(ctx, filepath.Join(t.TempDir(), "copy.db"), Options{Now: time.Now}))(t)
	defer to.Close()
	broken, cancel := context.WithCancel(ctx)
	err := s.CopyTo(broken, to, func(table string, _ int64) {
		if table == "messages" {
			cancel()
		}
	})
	if err == nil {
		t.Fatal("the copy did not break off")
	}
	var copies []string
	had := map[string]int64{}
	testkit.Check(t, s.CopyTo(ctx, to, func(table string, rows int64) {
		if before, begun := had[table]; begun && rows > before {
			copies = append(copies, table)
		}
		had[table] = rows
	}))
	if slices.Contains(copies, "sessions") || !slices.Contains(copies, "parts") {
		t.Errorf("the second run copied %v", copies)
	}
	mustBeHealthy(t, to)
	third := testkit.Must(to.Message(ctx, *ref(sess.ID, 3)))(t)
	if got := third.Text(); got != "three" {
		t.Error(got)
	}
	epoch, _, last, err := s.EventRange(ctx)
	testkit.Check(t, err)
	if e, _, l, err := to.EventRange(ctx); e != epoch || l != last || err != nil {
		t.Errorf("events of %s up to %d, not of %s up to %d: %v", e, l, epoch, last, err)
	}
	mustAppend(t, to, sess.ID, says(session.User, "only in the copy"))
	wants(t, s.CopyTo(ctx, to, func(string, int64) {}), session.Conflict, "copy into a new database")
}

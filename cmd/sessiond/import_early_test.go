package main

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"sessiond/internal/engine"
	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/pi"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/testkit/storetest"
)

// What all sessions become, without the ids, which follow the order of the import.
const outcomes = `
	SELECT s.source_id || '|' || s.kind || '|' || s.title || '|' || s.message_count || '|' || s.said_count || '|' ||
	       s.total_tokens || '|' || s.context_tokens || '|' || s.compaction_count || '|' || s.input_tokens || '|' || s.output_tokens ||
	       '|' || COALESCE(s.cost_nanousd, -1) || '|' || s.parent_kind || '|' || COALESCE(p.source_id, '') || '|' ||
	       (SELECT COUNT(*) FROM calls c WHERE c.session_id = s.id) || '|' || (SELECT COUNT(*) FROM messages m WHERE m.session_id = s.id)
	FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id ORDER BY 1`

// An import that begins with the newest conversations ends as one in order, whichever files are the newest.
func TestNewestFirstEndsAsInOrder(t *testing.T) {
	t.Parallel()
	later := func() time.Time { return time.Now().Add(24 * time.Hour) }
	noEnv := func(string) string { return "" }
	for _, c := range []struct {
		source       history.Source
		sample, part string // a folder of the samples, and files of a script that has forks
		least        int    // conversations that an early import brings, over all orders
	}{
		{claudecode.New(noEnv, later), "claude-code", "import_claude_code.txtar", 10},
		{codex.New(noEnv, later), "codex", "import_codex.txtar", 5},
		{pi.New(noEnv), "pi", "import_forks.txtar", 3},
	} {
		t.Run(c.sample, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			copyHistory(t, filepath.Join(samples.Dir(t), c.sample), folder)
			for _, f := range testkit.Must(txtar.ParseFile(filepath.Join("testdata", "script", c.part)))(t).Files {
				if strings.HasSuffix(f.Name, ".jsonl") {
					path := filepath.Join(folder, "script", f.Name)
					testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
					testkit.Check(t, os.WriteFile(path, f.Data, 0o600))
				}
			}
			early := 0
			for seed := range uint64(6) {
				shuffleTimes(t, folder, seed)
				want, _ := outcome(t, c.source, folder, false)
				got, before := outcome(t, c.source, folder, true)
				early += before
				testkit.Equal(t, want, got)
			}
			if early < c.least {
				t.Errorf("%d conversations were imported early, at least %d are the newest", early, c.least)
			}
		})
	}
}

// outcome imports a folder. early is how many conversations there were before those of the rest.
func outcome(t *testing.T, source history.Source, folder string, newest bool) (all []string, early int) {
	t.Helper()
	s := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")),
		store.Options{}))(t)
	defer s.Close() //nolint:errcheck // its end says nothing
	im := history.Importer{Store: s, Once: true, Now: func() time.Time { return time.Now().Add(24 * time.Hour) }}
	if newest {
		found, _, err := source.Find(t.Context(), []string{folder})
		testkit.Check(t, err)
		testkit.Check(t, im.ImportNewest(t.Context(), []history.Newest{{Source: source, Found: found}}, time.Hour))
		early = testkit.Must(engine.Get[int](t.Context(), s, `SELECT COUNT(*) FROM sessions`))(t)
	}
	testkit.Must(im.Run(t.Context(), source, []string{folder}))(t)
	return testkit.Must(engine.List[string](t.Context(), s, outcomes))(t), early
}

func copyHistory(t *testing.T, from, to string) {
	t.Helper()
	testkit.Check(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		name := testkit.Must(filepath.Rel(from, path))(t)
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") && !strings.HasSuffix(path, ".meta.json") {
			return err
		}
		if name == "codexbar-fork-parent.jsonl" { // real names of rollouts begin with their time, which is the order
			name = "a-fork-parent.jsonl"
		}
		testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700))
		return os.WriteFile(filepath.Join(to, name), testkit.Must(os.ReadFile(path))(t), 0o600)
	}))
}

// shuffleTimes gives files times in some order.
func shuffleTimes(t *testing.T, folder string, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	testkit.Check(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		at := time.Now().Add(-time.Duration(random.IntN(100_000)+1000) * time.Minute)
		return os.Chtimes(path, at, at)
	}))
}

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"sessiond/internal/engine"
	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/pi"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

// `sessiond` alone, with a history and without a database: a screen, Enter, and the picker has the conversation; an
// import behind it brings the rest and ends.
func TestFirstScreenLeadsToThePicker(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	testkit.Check(t, os.Remove(h.db))
	for name, title := range map[string]string{"one": "Why do the roses droop?", "two": "Where do the tulips go?"} {
		path := filepath.Join(h.home, ".pi", "agent", "sessions", name, name+".jsonl")
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Check(t, os.WriteFile(path, []byte(
			`{"type":"session","version":3,"id":"`+name+`","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/garden"}`+"\n"+
				`{"type":"message","id":"10000004","parentId":null,"timestamp":"2026-02-03T09:00:02.000Z",`+
				`"message":{"role":"user","content":[{"type":"text","text":"`+title+`"}],"timestamp":1770109202000}}`+"\n"), 0o600))
	}
	p := h.terminal("garden", 100, 30)
	p.sees("[x] import")
	p.sees("2 conversations")
	p.sees("[ ] connect")
	p.sees("Nothing leaves this host.")
	p.keys("1")
	p.sees("[ ] import")
	p.keys("Space")
	p.sees("[x] import")
	p.keys("q")
	p.sees("Nothing was done.")
	p.sees("exit code 0")
	if _, err := os.Stat(h.db); err == nil {
		t.Error("a person who leaves has a database")
	}

	p = h.terminal("garden", 100, 30)
	p.sees("Enter: go on")
	p.keys("Enter")
	p.sees("Type to search")
	p.sees("Why do the roses droop?")
	p.sees("Where do the tulips go?")
	folder := filepath.Dir(h.db)
	p.waits("the end of the import behind the picker", func() bool {
		_, locked := os.Stat(filepath.Join(folder, ".first-import"))
		_, logged := os.Stat(filepath.Join(folder, "first-import.log"))
		return locked != nil && logged != nil
	})
	p.keys("C-c")
	p.sees("exit code 0")
	h.change(func(s *store.Store) {
		if n := testkit.Must(engine.Get[int](t.Context(), s, `SELECT COUNT(*) FROM sessions`))(t); n != 2 {
			t.Errorf("%d sessions are imported, 2 are there", n)
		}
	})
}

// The disk that an import is said to need is right within 30 %, on real histories.
func TestDiskNeededIsEstimatedWithinAThird(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]history.Source{
		"claude-code": claudecode.New(os.Getenv, nil), "codex": codex.New(os.Getenv, nil), "pi": pi.New(os.Getenv),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newShop(t)
			folder := filepath.Join(samples.Dir(t), name)
			var size int64
			testkit.Check(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && filepath.Ext(path) == ".jsonl" {
					size += testkit.Must(d.Info())(t).Size()
				}
				return err
			}))
			h.sessiond("append", "--new", "user", "an empty database has pages, too")
			empty := sizeOf(t, filepath.Dir(h.db))
			h.sessiond("import", name, folder, "--json")
			needed := float64(sizeOf(t, filepath.Dir(h.db)) - empty)
			said := diskNeeded(past{source: source, Plan: history.Plan{NewBytes: size}})
			if said < needed*0.7 || said > needed*1.3 {
				t.Errorf("%.1f MB are needed for %.1f MB, said are %.1f", needed/1e6, float64(size)/1e6, said/1e6)
			}
		})
	}
}

func sizeOf(t *testing.T, folder string) (size int64) {
	t.Helper()
	for _, e := range testkit.Must(os.ReadDir(folder))(t) {
		size += testkit.Must(e.Info())(t).Size()
	}
	return size
}

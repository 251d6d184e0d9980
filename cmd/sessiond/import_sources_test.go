package main

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
)

// quietApp is a host on which no program keeps anything, seen long after the samples were made.
func quietApp(t *testing.T) *app {
	t.Helper()
	home := t.TempDir()
	return &app{env: &env{
		environ: []string{"HOME=" + home},
		now:     func() time.Time { return time.Now().Add(time.Hour) },
	}}
}

// Every record of every source is imported, kept raw, or skipped with a reason; the second
// import writes nothing; and no source is changed by either.
func TestEverySourceIsAccountedFor(t *testing.T) {
	dir := samples.Dir(t)
	for _, src := range quietApp(t).sources() {
		if src.Name() == session.SourceSessiond {
			continue // its exports have tests of their own
		}
		t.Run(string(src.Name()), func(t *testing.T) {
			from := filepath.Join(dir, string(src.Name()))
			if _, err := os.Stat(from); err != nil {
				t.Skip("no samples of it")
			}
			root := copyTree(t, from)
			roots, err := filepath.Glob(filepath.Join(root, "*")) // samples of several hosts
			testkit.Check(t, err)
			roots = slices.DeleteFunc(roots, func(path string) bool { return !history.IsFolder(path) })
			roots = append(roots, root)
			readOnly(t, root)
			before := tree(t, root)
			s := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")), store.Options{
				Measure: tokens.Reference().Measure, Touched: touched.Files, Zone: time.UTC,
			}))(t)
			defer s.Close()
			im := history.Importer{Store: s}
			first := testkit.Must(im.Run(t.Context(), src, roots))(t)
			if r := first.Records; !r.Balanced() || r.Imported == 0 {
				t.Errorf("%d = %d + %d + %v + %d waiting", r.Read, r.Imported, r.Raw, r.Skipped, r.Waiting)
			}
			here := int(fingerprint(t, s)["sessions"])
			if first.Sessions != (history.Sessions{New: here}) || here == 0 {
				t.Errorf("%d sessions are here after the first import, which counts %+v", here, first.Sessions)
			}
			rows := fingerprint(t, s)
			second := testkit.Must(im.Run(t.Context(), src, roots))(t)
			if r := second.Records; !r.Balanced() || r.Imported+r.Raw > 0 || second.Sessions.New+second.Sessions.Updated > 0 {
				t.Errorf("the second time: %d = %d + %d + %v + %d waiting, %+v", r.Read, r.Imported, r.Raw, r.Skipped, r.Waiting, second.Sessions)
			}
			if diff := cmp.Diff(rows, fingerprint(t, s)); diff != "" {
				t.Errorf("the second import wrote something: %s", diff)
			}
			if diff := cmp.Diff(before, tree(t, root)); diff != "" {
				t.Errorf("the source was changed: %s", diff)
			}
			checks := testkit.Must(s.Doctor(t.Context(), false))(t)
			for _, c := range checks {
				if !c.OK {
					t.Errorf("doctor, %s: %s", c.Name, c.Detail)
				}
			}
		})
	}
}

// readOnly takes away from everybody but root the right to write below a folder, until the test
// ends: who would put a file beside a source, or open one for writing, fails.
func readOnly(t *testing.T, root string) {
	t.Helper()
	chmod := func(folder, file fs.FileMode) error {
		return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir():
				return os.Chmod(path, folder)
			}
			return os.Chmod(path, file)
		})
	}
	testkit.Check(t, chmod(0o500, 0o400))
	t.Cleanup(func() {
		if err := chmod(0o700, 0o600); err != nil {
			t.Error(err)
		}
	})
}

// copyTree copies a folder, with its times.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	testkit.Check(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".sql" {
			return build(target, string(raw))
		}
		if err := os.WriteFile(target, raw, 0o600); err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chtimes(target, info.ModTime(), info.ModTime())
	}))
	return to
}

// build makes the database that a sample holds as SQL, under the name that its program gives
// it. A later state of one is left out.
func build(path, script string) error {
	name := map[string]string{"schema-17.sql": "sessions.db", "goose.sql": "sessions.db", "openclaw-agent.sql": "openclaw-agent.sqlite", "kilo.sql": "kilo.db"}[filepath.Base(path)]
	if name == "" {
		return nil
	}
	db, err := sql.Open("sqlite", filepath.Join(filepath.Dir(path), name))
	if err != nil {
		return err
	}
	_, err = db.Exec(script)
	return errors.Join(err, db.Close())
}

// tree gives every file below a folder with its time and the hash of its bytes.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	testkit.Check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return err
		}
		files[path] = fmt.Sprintf("%s %x", info.ModTime(), sum.Sum(nil))
		return nil
	}))
	return files
}

// fingerprint counts the rows of every table, and what moves with every write.
func fingerprint(t *testing.T, s *store.Store) map[string]int64 {
	t.Helper()
	var tables []string
	testkit.Check(t, s.Reader().Select(&tables, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`))
	counts := map[string]int64{}
	for _, q := range slices.Concat(tables, []string{"sessions/revision", "events/id"}) {
		table, column, _ := strings.Cut(q, "/")
		query := `SELECT COUNT(*) FROM ` + table
		if column != "" {
			query = `SELECT COALESCE(SUM(` + column + `), 0) FROM ` + table
		}
		var n int64
		testkit.Check(t, s.Reader().Get(&n, query))
		counts[q] = n
	}
	return counts
}

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
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

// samplesOf names the folders of samples that are not named after their source.
var samplesOf = map[session.Source]string{
	session.SourceChatGPT: "chatgpt-export", session.SourceClaudeAI: "claude-ai-export", session.SourceRoo: "cline",
	session.SourceWindsurf: "windsurf-devin", session.SourceDevin: "windsurf-devin",
}

// Every record of every source is imported, kept raw, or skipped with a reason; the second
// import writes nothing; and no source is changed by either.
func TestEverySourceIsAccountedFor(t *testing.T) {
	t.Parallel()
	dir := samples.Dir(t)
	for _, src := range quietApp(t).sources() {
		if src.Name() == session.SourceSessiond {
			continue // its exports have tests of their own
		}
		t.Run(string(src.Name()), func(t *testing.T) {
			from := filepath.Join(dir, cmp.Or(samplesOf[src.Name()], string(src.Name())))
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
			if first.Sessions.New != here || first.Sessions.Updated > 0 || here == 0 { // an export may be there as a zip, too
				t.Errorf("%d sessions are here after the first import, which counts %+v", here, first.Sessions)
			}
			rows := fingerprint(t, s)
			second := testkit.Must(im.Run(t.Context(), src, roots))(t)
			if r := second.Records; !r.Balanced() || r.Imported+r.Raw > 0 || second.Sessions.New+second.Sessions.Updated > 0 {
				t.Errorf("the second time: %d = %d + %d + %v + %d waiting, %+v", r.Read, r.Imported, r.Raw, r.Skipped, r.Waiting,
					second.Sessions)
			}
			if diff := gocmp.Diff(rows, fingerprint(t, s)); diff != "" {
				t.Errorf("the second import wrote something: %s", diff)
			}
			if diff := gocmp.Diff(before, tree(t, root)); diff != "" {
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
	t.Cleanup(func() { testkit.Check(t, chmod(0o700, 0o600)) })
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
		if state, is := strings.CutSuffix(target, "-threads.db"); is { // of Zed, which has one name for it
			if err := os.MkdirAll(state, 0o700); err != nil {
				return err
			}
			target = filepath.Join(state, "threads.db")
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
	name := map[string]string{
		"schema-17.sql": "sessions.db", "goose.sql": "sessions.db",
		"openclaw-agent.sql": "openclaw-agent.sqlite", "kilo.sql": "kilo.db", "crush.sql": "crush.db",
	}[filepath.Base(path)]
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(path), ".sql")
	}
	if filepath.Ext(name) == "" { // a script of rows that are not a history
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

// A line is wrapped to a terminal, and stays one line in a pipe.
func TestLinesFitTheTerminal(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0:  "skipped: 12 blank line, 3 unfinished last line",
		30: "skipped: 12 blank line, 3\n  unfinished last line",
	} {
		a := app{env: &env{outTTY: width > 0, width: width}}
		if got := a.fit("skipped: 12 blank line, 3 unfinished last line", "  "); got != want {
			t.Errorf("in %d columns:\n%s", width, got)
		}
	}
}

// A program that reads standard error line by line gets one line for each problem.
func TestAProblemIsOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := app{env: &env{err: &out}}
	a.printProblems([]history.Problem{{
		Path: "/home/ana/two\nlines/\x1b[31mred.jsonl", Line: 3,
		Error: "not a JSON object",
	}})
	if want := "sessiond: /home/ana/two\\nlines/red.jsonl:3: not a JSON object\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// A hit is read in a narrow terminal: words stay whole.
func TestAHitIsBrokenBetweenWords(t *testing.T) {
	t.Parallel()
	a := app{env: &env{outTTY: true, width: 30}}
	got := a.indented("one two three four five six seven eight")
	if want := "    one two three four five\n    six seven eight"; got != want {
		t.Errorf("%q", got)
	}
	a.outTTY = false
	if got := a.indented("one two three four five six seven eight"); got != "    one two three four five six seven eight" {
		t.Errorf("%q", got)
	}
}

// piHome is a home folder with one session of pi in it.
func piHome(t *testing.T) (home, transcript string) {
	t.Helper()
	home = t.TempDir()
	transcript = filepath.Join(home, ".pi", "agent", "sessions", "--demo--", "2026-02-03T09-00-00-000Z_one.jsonl")
	testkit.Check(t, os.MkdirAll(filepath.Dir(transcript), 0o700))
	header := `{"type":"session","version":3,"id":"one-and-only","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/home/dev"}` + "\n"
	testkit.Check(t, os.WriteFile(transcript, []byte(header+piSays("a", "null", "What is in a.txt?")), 0o600))
	return home, transcript
}

func piSays(id, parent, text string) string {
	return `{"type":"message","id":"` + id + `","parentId":` + parent + `,"timestamp":"2026-02-03T09:00:02.000Z","message":{"role":"user","content":"` + text + `","timestamp":1770109202000}}` + "\n"
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f := testkit.Must(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	defer f.Close()
	testkit.Must(f.WriteString(text))(t)
}

// talker is a running command, and what it says line by line.
func talker(t *testing.T, home string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command("sessiond", args...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR=", "HOME="+home,
		"PI_CODING_AGENT_DIR=")
	cmd.Stderr = os.Stderr
	out := testkit.Must(cmd.StdoutPipe())(t)
	testkit.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // gone already in most tests
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// until reads lines up to one that holds the text.
func until(t *testing.T, lines *bufio.Scanner, text string) {
	t.Helper()
	var before []string
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
		before = append(before, lines.Text())
	}
	t.Fatalf("%q was never said, but:\n%s", text, strings.Join(before, "\n"))
}

func TestImportWatchGoesOnUntilItIsStopped(t *testing.T) {
	t.Parallel()
	home, transcript := piHome(t)
	cmd, lines := talker(t, home, "import", "pi", "--watch")
	until(t, lines, "Following")
	appendTo(t, transcript, piSays("b", `"a"`, "And in b.txt?"))
	until(t, lines, "pi: 1 record of 1 session")
	testkit.Check(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	_, found := talker(t, home, "search", "b.txt")
	until(t, found, "b.txt")
}

// The daemon follows a history that was imported once; `show -f` prints its new messages.
func TestDaemonFollowsWhatWasImported(t *testing.T) {
	t.Parallel()
	home, transcript := piHome(t)
	first, lines := talker(t, home, "import", "pi")
	until(t, lines, "pi")
	testkit.Check(t, first.Wait())
	startDaemon(t, home)
	_, seen := talker(t, home, "show", "one-and-only", "-f")
	until(t, seen, "a.txt")
	appendTo(t, transcript, piSays("b", `"a"`, "And in b.txt?"))
	until(t, seen, "b.txt")
}

// A session that its model's window cannot hold comes with a digest, so that no read makes it again.
func TestImportStagesDigestsOfLongSessions(t *testing.T) {
	t.Parallel()
	home, transcript := piHome(t)
	words := strings.Repeat("the harvest of the apples begins in the orchard behind the barn. ", 400)
	for i := range 40 { // 128,000 tokens is the window of an unknown model
		appendTo(t, transcript, piSays(fmt.Sprint("m", i), fmt.Sprintf("%q", []string{"a", fmt.Sprint("m", i-1)}[min(i, 1)]),
			fmt.Sprint(i, words)))
	}
	cmd, lines := talker(t, home, "import", "pi")
	until(t, lines, "pi")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	_, out := talker(t, home, "context", "one-and-only", "--json")
	until(t, out, `"status": "staged"`)
}

func TestFailureOfAllSourcesIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	failed := logOnce(zerolog.New(&said), "the store failed")
	for range 11 {
		failed(errors.New("no server"))
	}
	failed(errors.New("another"))
	if got := strings.Count(said.String(), "\n"); got != 2 {
		t.Errorf("%d lines, want 2: %s", got, &said)
	}
}

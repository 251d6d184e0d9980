package history_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/historytest"
)

// wrongs are the kinds of wrong input that every program's history is tried with.
var wrongs = []string{
	"an empty file", "a wrong first line", "half a line", "invalid JSON in the middle", "invalid UTF-8", "a line of 50 MB",
	"a record of 65 MiB", "10,001 levels", "a cycle", "an orphan",
	"a name twice", "no end of the last line", "two objects on a line", "a record after garbage", "NULs",
	"a record over lines",
	"unknown kinds by the thousand", "a file that vanishes", "an unknown type", "an unknown version", "a newer database",
	"a corrupt database", "a locked database", "a table missing", "a column missing",
}

// wrong is one of them: a file, and what the import reports of it.
type wrong struct {
	kind string
	file string // its name; a database's text is SQL
	text string
	says string // of the first problem; "": there is none
	line int    // of it; 0: the whole file, or a row
	cut  int    // a database of which only so many bytes are there
	has  string // a text that comes in all the same
	new  int    // sessions of it that come in all the same; 0: not compared
}

// program is a source with what can be wrong of it.
type program struct {
	source history.Source
	good   wrong // a file that has nothing wrong
	wrong  []wrong
	none   []string // kinds that there are not, since it keeps no such thing
	lines  lined
}

// lined is what a program's file of lines looks like.
type lined struct {
	file string
	head []string
	says func(i int, text string) string // the i-th line behind the head, from 1
	odd  func(i int) string              // one of a kind that nobody knows
	told string                          // what is said of that; "": nothing
}

// rows are the wrong inputs that every file of lines can be.
func (l *lined) rows() []wrong {
	text := func(all ...string) string { return lines(append(slices.Clone(l.head), all...)...) }
	one, two, three := l.says(1, "one"), l.says(2, "two"), l.says(3, "three")
	at, half, nuls := len(l.head)+2, two[:len(two)/2], strings.Repeat("\x00", 512)
	broken := strings.ReplaceAll(l.says(2, "row one\nrow two"), `\n`, "\n")
	thousands, unknown := []string{one}, 0
	if l.told != "" {
		unknown = at
	}
	for i := range 3000 {
		thousands = append(thousands, l.odd(i+2))
	}
	const garbage, skipped, overLines = "a record after garbage", "512 NUL bytes", "a record over lines"
	bytes := fmt.Sprintf("%d bytes", len(half))
	return []wrong{
		{kind: garbage, file: l.file, text: text(one, half+two, three), says: bytes, line: at, has: "two"},
		{kind: garbage, file: l.file, text: text(one, "what is this? "+two, three), says: "JSON", line: at, has: "two"},
		{kind: "NULs", file: l.file, text: text(one, nuls+two) + nuls, says: skipped, line: at, has: "two"},
		{kind: "NULs", file: l.file, text: text(one, two+nuls), says: skipped, line: at, has: "two"},
		{kind: "NULs", file: l.file, text: nuls + text(one, two), says: skipped, line: 1, has: "two"},
		{kind: overLines, file: l.file, text: text(one, broken, three), has: "row one\nrow two"},
		{kind: overLines, file: l.file, text: text(one, half, three), says: "JSON", line: at, has: "three"},
		{
			kind: "unknown kinds by the thousand", file: l.file, text: text(thousands...), says: l.told, line: unknown,
			has: "one",
		},
		{kind: "a file that vanishes", file: l.file, text: text(one), says: "no such file"},
	}
}

// vanishing removes a file when it was found and is about to be read.
type vanishing struct {
	history.Source
	path string
}

func (v *vanishing) Read(
	ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error,
) ([]history.Problem, error) {
	if found.Path == v.path {
		if err := os.Remove(v.path); err != nil {
			return nil, err
		}
	}
	return v.Source.Read(ctx, found, cursor, known, emit)
}

func (p *program) has(kind string) bool {
	return slices.ContainsFunc(p.wrong, func(w wrong) bool { return w.kind == kind })
}

// Every kind of wrong input, for every program: the rest goes on, the report names the file and
// where it can the line, the records add up, the store is sound, a second import writes
// nothing, and the file stays as it was.
func TestWrongInputOfEveryProgram(t *testing.T) {
	effort.NotShort(t, "one goroutine reads each file")
	for _, p := range programs(t) {
		for _, kind := range wrongs {
			if missing := !p.has(kind); missing != slices.Contains(p.none, kind) {
				t.Errorf("%s: %s is tried: %v", p.source.Name(), kind, !missing)
			}
		}
		for _, w := range p.wrong {
			t.Run(string(p.source.Name())+"/"+w.kind+"/"+w.file, func(t *testing.T) {
				if strings.Contains(w.text, wide) || strings.Contains(w.text, huge) {
					effort.OnlyLong(t, "it reads "+w.kind)
				}
				t.Parallel()
				p.try(t, w)
			})
		}
	}
}

func (p *program) try(t *testing.T, w wrong) {
	h := historytest.New(t, p.source)
	good, bad := put(h, p.good), put(h, w)
	before := historytest.Read(t, bad)
	unlock := func() {}
	if w.kind == "a locked database" {
		unlock = lock(t, bad)
		before = historytest.Read(t, bad)
	}
	if w.kind == "a file that vanishes" {
		h.Source = &vanishing{p.source, bad}
	}
	done := h.Import(good, bad)
	if w.kind == "a file that vanishes" {
		h.Source = p.source
		testkit.Check(t, os.WriteFile(bad, []byte(before), 0o600))
		if again := h.Import(bad); again.Records.Imported == 0 || len(again.Errors) > 0 {
			t.Errorf("when it is back: %+v", again)
		}
	}
	mine := slices.DeleteFunc(slices.Clone(done.Errors), func(e history.Problem) bool { return e.Path != bad })
	switch {
	case len(mine) != len(done.Errors):
		t.Errorf("told of other files: %+v", done.Errors)
	case w.says == "" && len(mine) > 0:
		t.Errorf("told: %+v", mine)
	case w.says != "" && (len(mine) == 0 || !strings.Contains(mine[0].Error, w.says) || mine[0].Line != w.line):
		t.Errorf("told: %+v, want line %d: %s", mine, w.line, w.says)
	}
	if !goodIsThere(h) {
		t.Error("the rest did not go on")
	}
	if w.has != "" && !isThere(h, w.has) {
		t.Errorf("%q is not there", w.has)
	}
	if w.new > 0 && done.Sessions.New != w.new+1 {
		t.Errorf("%d sessions, want %d beside the good one: %+v", done.Sessions.New-1, w.new, mine)
	}
	h.Examine()
	rows := h.Rows()
	if again := h.Import(good, bad); again.Records.Imported+again.Records.Raw > 0 || h.Rows() != rows {
		t.Errorf("the second import: %+v", again)
	}
	if historytest.Read(t, bad) != before {
		t.Error("the file was changed")
	}
	if unlock(); w.kind == "a locked database" {
		if after := h.Import(bad); after.Sessions.New == 0 && after.Records.Imported == 0 || len(after.Errors) > 0 {
			t.Errorf("when it is at rest: %+v", after)
		}
	}
}

// put makes the file in a folder of its own.
func put(h *historytest.House, w wrong) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), w.file)
	testkit.Check(h, os.MkdirAll(filepath.Dir(path), 0o700))
	text := strings.NewReplacer(wide, strings.Repeat("wide ", 10<<20), huge,
		strings.Repeat("huge ", 13<<20)).Replace(w.text)
	if strings.Contains(text, "CREATE TABLE") {
		h.Load(path, text)
		text = historytest.Read(h, path)
		if w.cut == 0 {
			return path
		}
	}
	if w.cut > 0 {
		text = text[:w.cut]
	}
	testkit.Check(h, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const fine = "nothing is wrong here"

func goodIsThere(h *historytest.House) bool { return isThere(h, fine) }

func isThere(h *historytest.House, text string) bool {
	h.Helper()
	for _, s := range h.Sessions() {
		for _, m := range h.Entries(s.ID) {
			if m.Text() == text {
				return true
			}
		}
	}
	return false
}

// lock opens a database as its program does in the middle of a write.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	owner := testkit.Must(sql.Open("sqlite", path))(t)
	owner.SetMaxOpenConns(1)
	for _, statement := range []string{`PRAGMA cache_spill = 1`, `BEGIN EXCLUSIVE`, `CREATE TABLE half_done (x)`} {
		testkit.Must(owner.ExecContext(t.Context(), statement))(t)
	}
	return func() {
		if _, err := owner.ExecContext(t.Context(), `ROLLBACK`); err != nil {
			t.Error(err)
		}
		if err := owner.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A folder that cannot be read is reported, one that leads back to itself ends, and what is found by
// two names is one.
func TestFoldersOfEveryProgram(t *testing.T) {
	effort.NotShort(t, "one goroutine reads each file")
	for _, p := range programs(t) {
		t.Run(string(p.source.Name()), func(t *testing.T) {
			h := historytest.New(t, p.source)
			good := put(h, p.good)
			dir := filepath.Dir(good)
			link := filepath.Join(t.TempDir(), filepath.Base(good))
			gone, closed := filepath.Join(t.TempDir(), "gone"), filepath.Join(t.TempDir(), "closed")
			for to, from := range map[string]string{
				link: good, filepath.Join(dir, "again"): dir,
				filepath.Join(dir, "dangling"): gone,
			} {
				testkit.Check(t, os.Symlink(from, to))
			}
			testkit.Check(t, os.Mkdir(closed, 0))
			done := h.Import(dir, good, link, gone, closed)
			told := map[string]bool{}
			for _, e := range done.Errors {
				told[e.Path] = true
			}
			if n := len(h.Sessions()); n != 1 || !goodIsThere(h) {
				t.Errorf("%d sessions: %+v", n, done)
			}
			if !told[gone] || os.Getuid() != 0 && !told[closed] { // root reads every folder
				t.Errorf("told of %v", told)
			}
		})
	}
}

// Named pipes and folders that have the names of histories are no histories. Who opened such a
// pipe would block until another process writes.
func TestPipesOfEveryProgram(t *testing.T) {
	effort.NotShort(t, "one goroutine reads each file")
	for _, p := range programs(t) {
		t.Run(string(p.source.Name()), func(t *testing.T) {
			h := historytest.New(t, p.source)
			good := put(h, p.good)
			dir := filepath.Dir(good)
			named := []string{
				"sessions.json", "runs.json", "history.jsonl", "session_index.jsonl", "sessions.db",
				"openclaw-agent.sqlite", "opencode-x.db", "x.jsonl", "x.json",
			}
			for _, w := range p.wrong {
				named = append(named, filepath.Base(w.file))
			}
			for i, name := range named {
				path := filepath.Join(dir, name)
				if _, err := os.Lstat(path); err == nil {
					continue
				}
				makes := testkit.Mkfifo
				if i%2 == 1 {
					makes = func(path string, mode uint32) error { return os.Mkdir(path, os.FileMode(mode)) }
				}
				testkit.Check(t, makes(path, 0o700))
			}
			if done := h.Import(dir, good); !goodIsThere(h) {
				t.Errorf("the rest did not go on: %+v", done)
			}
			for _, name := range named { // named itself, it is reported
				if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
					if done := h.Import(filepath.Join(dir, name)); len(done.Errors) == 0 {
						t.Errorf("nothing is told of %s", name)
					}
				}
			}
		})
	}
}

package historytest

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// Claims are what every reader promises, tried on files of its program. A reader's test calls Hold.
type Claims struct {
	// New makes the source. To a clock of now, what was just written may go on; to a later one, everything is at rest.
	New func(now func() time.Time) history.Source
	// Make writes files of the program into a folder. It may be called several times, with the same result.
	Make func(t *testing.T, folder string)
	// Contexts is how many contexts there are at least, which the providers must accept.
	Contexts int
	// Lines says that the program appends to its files: one that is read while it grows gives what it gives whole.
	Lines bool
}

// Hold tries the claims:
//
//   - Everything comes in without a problem, the records add up, and the store is sound.
//   - The files stay as they are, and a second import writes nothing: neither when nothing changed, nor when every
//     file has another time, nor from a copy in another folder.
//   - An import that was killed goes on where it was.
//   - A file that is empty, cut off, overwritten with NULs or garbage, too deep, or gone, is reported or skipped; what
//     lies beside it comes in; and when the file is whole again, so does what it holds.
//   - A file of lines gives the same in pieces.
func (c *Claims) Hold(t *testing.T) {
	t.Helper()
	t.Run("once", c.comesOnce)
	t.Run("killed", c.killedImportGoesOn)
	for turn, name := range slices.Sorted(maps.Keys(damages)) {
		t.Run(name, func(t *testing.T) { c.damagedFile(t, damages[name], turn) })
	}
	if c.Lines {
		t.Run("pieces", c.pieces)
	}
}

func (c *Claims) made(t *testing.T) (h *House, folder string) {
	t.Helper()
	h, folder = New(t, c.New(Later)), filepath.Join(t.TempDir(), "history")
	testkit.Check(t, os.MkdirAll(folder, 0o700))
	c.Make(t, folder)
	return h, folder
}

func (c *Claims) comesOnce(t *testing.T) {
	h, folder := c.made(t)
	before := listTree(t, folder)
	done := h.Import(folder)
	if len(done.Errors) > 0 || done.Sessions.New == 0 || done.Records.Imported == 0 || done.Records.Waiting > 0 {
		t.Fatalf("%+v", done)
	}
	h.Examine()
	h.ContextsAreAccepted(c.Contexts)
	if after := listTree(t, folder); after != before {
		t.Errorf("the files changed: %s", gocmp.Diff(before, after))
	}
	rows, said := h.Rows(), h.Told()
	unchanged := func(what string, done history.Accounting) {
		if h.Rows() != rows || done.Records.Imported+done.Records.Raw > 0 || done.Sessions.New+done.Sessions.Updated > 0 {
			t.Errorf("%s: %d rows instead of %d, %+v", what, h.Rows(), rows, done)
		}
		if diff := gocmp.Diff(said, h.Told()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	again := h.Import(folder)
	if unchanged("a second import", again); again.Records.Read > 0 {
		t.Errorf("a second import read: %+v", again)
	}
	later := time.Now().Add(-time.Hour)
	for _, path := range filesOf(t, folder) {
		testkit.Check(t, os.Chtimes(path, later, later))
	}
	unchanged("every file has another time", h.Import(folder))
	other := filepath.Join(t.TempDir(), "copy")
	testkit.Check(t, os.CopyFS(other, os.DirFS(folder)))
	unchanged("a copy", h.Import(other))
}

func (c *Claims) killedImportGoesOn(t *testing.T) {
	whole, folder := c.made(t)
	whole.Import(folder)
	for killed := range 6 {
		h := New(t, c.New(Later))
		if !h.ImportKilled(killed, folder) {
			return // it has no more batches
		}
		h.Import(folder)
		if diff := gocmp.Diff(whole.Told(), h.Told()); diff != "" {
			t.Errorf("killed after %d batches: -whole +again\n%.2000s", killed, diff)
		}
	}
}

// damages are what may happen to a file; gone is nil.
var damages = map[string]func(text []byte) []byte{
	"an empty file":  func([]byte) []byte { return []byte{} },
	"half a file":    func(text []byte) []byte { return text[:len(text)/2] },
	"without an end": func(text []byte) []byte { return text[:len(text)-min(len(text), 2)] },
	"NULs": func(text []byte) []byte {
		return slices.Concat(text[:len(text)/2], make([]byte, 512), text[len(text)/2:])
	},
	"NULs at its end": func(text []byte) []byte { return append(bytes.Clone(text), make([]byte, 512)...) },
	"garbage": func(text []byte) []byte {
		return slices.Concat(text[:len(text)/3], []byte("\xff\xfe{{\"what\":[is this?"), text[len(text)/3:])
	},
	"only garbage":     func([]byte) []byte { return []byte("\x89PNG\r\n\x1a\n\x00\x01") },
	"another object":   func([]byte) []byte { return []byte(`{"hello":"world"}` + "\n") },
	"another list":     func([]byte) []byte { return []byte(`[{"hello":"world"},[],null,3]` + "\n") },
	"10,001 levels":    func([]byte) []byte { return []byte(strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)) },
	"a number of text": func([]byte) []byte { return []byte(`"text"`) },
	"gone":             nil,
}

// damagedFile damages one file after the other; of many files some, others by another damage.
func (c *Claims) damagedFile(t *testing.T, damage func([]byte) []byte, turn int) {
	whole, folder := c.made(t)
	all := whole.Import(folder)
	texts := map[string][]byte{}
	for _, path := range filesOf(t, folder) {
		texts[path] = testkit.Must(os.ReadFile(path))(t)
	}
	const tried = 2 // files for each damage
	step := max(1, len(texts)/tried)
	if effort.Long() {
		step = 1
	}
	for i, path := range slices.Sorted(maps.Keys(texts)) {
		if i%step != turn%step {
			continue
		}
		h := New(t, c.New(Later))
		if damage == nil {
			testkit.Check(t, os.Remove(path))
		} else {
			testkit.Check(t, os.WriteFile(path, damage(texts[path]), 0o600))
		}
		done, err := h.Importer.Run(t.Context(), h.Source, []string{folder})
		if err != nil || !done.Records.Balanced() {
			t.Errorf("%s: %v %+v", path, err, done)
		}
		for _, problem := range done.Errors {
			if len(problem.Error) < 10 || strings.Contains(problem.Error, "panic") {
				t.Errorf("%s: the problem says %q", path, problem.Error)
			}
		}
		h.Examine()
		rows := h.Rows()
		if again := h.Import(folder); h.Rows() != rows {
			t.Errorf("%s: a second import wrote %d rows: %+v", path, h.Rows()-rows, again)
		}
		testkit.Check(t, os.WriteFile(path, texts[path], 0o600))
		soon := time.Now().Add(time.Second)
		testkit.Check(t, os.Chtimes(path, soon, soon))
		if mended := h.Import(folder); len(mended.Errors) > 0 {
			t.Errorf("%s: when it is whole again: %+v", path, mended.Errors)
		}
		if n := len(h.Sessions()); n < all.Sessions.New {
			t.Errorf("%s: when it is whole again there are %d sessions, not %d", path, n, all.Sessions.New)
		}
		h.Examine()
	}
}

// pieces reads each file of lines while it grows in its place, without the others of its kind: what is a fork of what
// depends on which comes first.
func (c *Claims) pieces(t *testing.T) {
	_, folder := c.made(t)
	texts := map[string]string{}
	for _, path := range filesOf(t, folder) {
		if filepath.Ext(path) == ".jsonl" {
			texts[path] = Read(t, path)
			testkit.Check(t, os.Remove(path))
		}
	}
	for path, text := range texts {
		whole, pieces := New(t, c.New(Later)), New(t, c.New(time.Now))
		testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
		at := time.Now() // of the file: what has no time of its own has this one
		testkit.Check(t, os.Chtimes(path, at, at))
		all := whole.Import(folder).Records
		var sum history.Records
		const cuts = 5
		for i := range cuts {
			testkit.Check(t, os.WriteFile(path, []byte(text[:len(text)*(i+1)/cuts]), 0o600))
			testkit.Check(t, os.Chtimes(path, at, at))
			if i == cuts-1 {
				pieces.Source = c.New(Later)
			}
			sum.Add(pieces.Import(folder).Records)
		}
		if diff := gocmp.Diff(whole.Told(), pieces.Told()); diff != "" {
			t.Errorf("%s in pieces: -whole +pieces\n%.3000s", path, diff)
		}
		if sum.Imported != all.Imported || sum.Raw != all.Raw {
			t.Errorf("%s in pieces: %d records were imported, not %d", path, sum.Imported, all.Imported)
		}
		testkit.Check(t, os.Remove(path))
	}
}

// filesOf lists the files below a folder.
func filesOf(t testing.TB, folder string) (files []string) {
	t.Helper()
	testkit.Check(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	return files
}

func listTree(t testing.TB, folder string) string {
	t.Helper()
	var b strings.Builder
	for _, path := range filesOf(t, folder) {
		info := testkit.Must(os.Stat(path))(t)
		fmt.Fprintf(&b, "%s %d %v %v\n", path, info.Size(), info.ModTime(), info.Mode())
	}
	return b.String()
}

// CopySample writes a folder of a program's samples into another one. A file NAME.sql becomes the database NAME.
func CopySample(t testing.TB, to string, parts ...string) {
	t.Helper()
	from := Sample(t, parts[0], parts[1:]...)
	if info := testkit.Must(os.Stat(from))(t); !info.IsDir() {
		testkit.Check(t, os.WriteFile(filepath.Join(to, filepath.Base(from)), []byte(Read(t, from)), 0o600))
		return
	}
	for _, path := range filesOf(t, from) {
		place := filepath.Join(to, testkit.Must(filepath.Rel(from, path))(t))
		testkit.Check(t, os.MkdirAll(filepath.Dir(place), 0o700))
		if name, isSQL := strings.CutSuffix(place, ".sql"); isSQL {
			load(t, name, Read(t, path))
			continue
		}
		testkit.Check(t, os.WriteFile(place, []byte(Read(t, path)), 0o600))
	}
}

// ImportSample imports a copy of a folder of samples into an empty store.
func ImportSample(t *testing.T, source history.Source, parts ...string) (*House, history.Accounting) {
	t.Helper()
	h, folder := New(t, source), t.TempDir()
	CopySample(t, folder, parts...)
	return h, h.Import(folder)
}

// load makes a database of a dump, which writes bytes as X'…'.
func load(t testing.TB, path, script string) {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", path))(t)
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(context.Background(), script); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Counts are what a store has of a session, as the samples count it.
type Counts struct {
	Users, Replies, Calls, Results, Failed int
	Aside                                  int // messages that are on no path to the head
	Ledger                                 int
	Input, CacheRead, CacheWrite, Output   int64
	NanoUSD                                int64
}

// CountsOf counts the messages on the path to the head, and the whole ledger of a session.
func (h *House) CountsOf(sourceID string) (n Counts) {
	h.Helper()
	s := h.Session(sourceID)
	path := h.Path(s)
	for i := range path {
		m := &path[i]
		switch {
		case m.Kind != "message" || !m.Display:
		case m.Origin == "person":
			n.Users++
		case m.Role == "assistant":
			n.Replies++
		}
		n.Calls += len(m.Calls())
		for _, p := range m.Results() {
			if n.Results++; p.Failed() {
				n.Failed++
			}
		}
	}
	var all int
	testkit.Check(h, h.Store.Reader().Get(&all, `SELECT COUNT(*) FROM messages WHERE session_id = ?`, s.ID))
	n.Aside = all - len(slices.DeleteFunc(path, func(m session.Message) bool { return m.SessionID != s.ID }))
	for _, c := range h.Calls(s.ID) {
		n.Ledger++
		n.Input, n.Output = n.Input+c.InputTokens, n.Output+c.OutputTokens
		n.CacheRead, n.CacheWrite = n.CacheRead+c.CacheReadTokens, n.CacheWrite+c.CacheWriteTokens
		n.NanoUSD += *cmp.Or(c.CostNanoUSD, new(int64))
	}
	return n
}

package historytest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/testkit/effort"
)

// whole reads the lines of a source whole, however long they are.
type whole struct{ history.Source }

func (w whole) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	found.Whole = true
	return w.Source.Read(ctx, found, cursor, known, emit)
}

// cutting counts the lines that were shortened.
type cutting struct {
	history.Source
	cut int
}

func (c *cutting) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	if found.Whole {
		return nil, errors.New("it was read whole after all")
	}
	most := 0
	problems, err := c.Source.Read(ctx, found, cursor, known, func(b history.Batch) error {
		most = max(most, b.Cuts.Len())
		return emit(b)
	})
	c.cut += most
	return problems, err
}

// InflatedSameWhole claims that of the samples of a program, made long: all files below a folder that
// end with .jsonl.
func InflatedSameWhole(t *testing.T, source func() history.Source, folder string, cut int, fields ...string) {
	t.Helper()
	effort.OnlyLong(t, "it imports every sample six times, and long")
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files[name] = Read(t, path)
		if filepath.Ext(path) == ".jsonl" {
			files[name] = Inflate(files[name], fields...)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	half, changed := map[string]string{}, map[string]string{}
	for name, text := range files {
		half[name], changed[name] = text, text
		if lines := strings.SplitAfter(text, "\n"); filepath.Ext(name) == ".jsonl" && len(lines) > 4 {
			half[name] = strings.Join(lines[:len(lines)/2], "")
			changed[name] = strings.Join(slices.Delete(lines, len(lines)/3, len(lines)/3+1), "")
		}
	}
	SameWhole(t, source, cut, half, files, changed)
}

// SameWhole claims that an import leaves the same rows whether long lines are read whole or
// shortened, from each state of some files in turn. write gives the files of a state, by their
// names under a folder. Some lines of them must be shortened, at least so many.
func SameWhole(t *testing.T, source func() history.Source, cut int, write ...map[string]string) {
	t.Helper()
	short := &cutting{Source: source()}
	a, b := New(t, short), New(t, whole{source()})
	dir := t.TempDir()
	for n, files := range write {
		at := time.Date(2026, 3, 1, 10, n, 0, 0, time.UTC)
		for name, content := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		done, plain := a.Import(dir), b.Import(dir)
		if diff := cmp.Diff(plain, done); diff != "" {
			t.Errorf("state %d: -whole +shortened\n%.3000s", n, diff)
		}
		same(t, fmt.Sprintf("state %d", n), Dump(b), Dump(a))
	}
	if short.cut < cut {
		t.Errorf("%d strings were cut, not %d", short.cut, cut)
	}
	a.Examine()
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	told := 0
	for i := range max(len(want), len(got)) {
		w, g := "nothing", "nothing"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w == g {
			continue
		}
		at := 0
		for at < min(len(w), len(g)) && w[at] == g[at] {
			at++
		}
		from := max(at-300, 0)
		t.Errorf("%s, at byte %d of %d and %d:\nwhole …%.700q\nshort …%.700q", what, at, len(w), len(g), w[from:], g[from:])
		if told++; told == 5 {
			return
		}
	}
}

// Inflate makes some of the long-lived strings of a transcript very long, those of some fields and
// lists: equal ones equally, with all that a string may hold.
func Inflate(transcript string, fields ...string) string {
	inflated := 0
	lines := strings.Split(transcript, "\n")
	for i, line := range lines {
		if o, ok := history.ParseObject([]byte(line)); ok && len(o) > 0 {
			lines[i] = string(inflate([]byte(line), "", fields, &inflated))
		}
	}
	return strings.Join(lines, "\n")
}

// mostInflated bounds what a test reads of one file.
const mostInflated = 6

func inflate(raw []byte, field string, fields []string, n *int) []byte {
	switch raw[0] {
	case '{':
		o, _ := history.Fields(raw)
		for i := range o {
			o[i].Raw = inflate(o[i].Raw, o[i].Key, fields, n)
		}
		if len(o) == 0 {
			return raw
		}
		return o.JSON()
	case '[':
		elements, _ := history.Elements(raw)
		for i := range elements {
			elements[i] = inflate(elements[i], field, fields, n)
		}
		return history.Array(elements)
	case '"':
	default:
		return raw
	}
	h := fnv.New32()
	_, _ = h.Write(raw)
	sum := h.Sum32()
	if *n >= mostInflated || len(raw) < 4 || !slices.Contains(fields, field) || sum%3 != 0 {
		return raw
	}
	*n++
	inner := string(raw[1 : len(raw)-1])
	if rest, ok := strings.CutPrefix(inner, "data:"); ok {
		head, data, _ := strings.Cut(rest, ",")
		return []byte(`"data:` + head + "," + strings.Repeat("QUJDRA+/", filler/8) + data + `"`)
	}
	if _, ok := history.DecodeBase64([]byte(inner)); ok && len(inner) > 40 {
		return []byte(`"` + strings.Repeat("QUJDRA+/", filler/8) + inner + `"`)
	}
	unit := []string{`a line\n`, `\/ \u00e9 \b`, "plain words ", "öffentlich — ", `\ud83d\ude00\t\"quoted\"`, "YWJj"}[sum/3%6]
	return []byte(`"` + inner + " " + strings.Repeat(unit, filler/len(unit)) + "\u2028" + inner + `"`)
}

// filler is more than a line may be long that is not shortened, in bytes.
const filler = 1100 << 10

// Dump writes every row of every table, but for when it was written.
func Dump(h *House) []string {
	h.Helper()
	var tables []string
	err := h.Store.Reader().Select(&tables, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT IN ('events', 'goose_db_version', 'store')
		AND name NOT LIKE '%\_secret%' ESCAPE '\' ORDER BY name`)
	if err != nil {
		h.Fatal(err)
	}
	var all []string
	for _, table := range tables {
		rows, err := h.Store.Reader().Queryx(`SELECT * FROM "` + table + `" ORDER BY 1, 2`)
		if err != nil {
			h.Fatal(err)
		}
		for rows.Next() {
			row := map[string]any{}
			if err := rows.MapScan(row); err != nil {
				h.Fatal(err)
			}
			for _, name := range []string{"updated_at", "revision", "epoch"} { // when, and in how many transactions
				delete(row, name)
			}
			if table == "marks" || table == "blobs" {
				delete(row, "created_at")
			}
			for name, value := range row {
				if raw, ok := value.([]byte); ok {
					value = string(raw)
				}
				if text, ok := value.(string); ok && len(text) > 64<<10 {
					value = fmt.Sprintf("%.200q… %d bytes, %x", text, len(text), sha256.Sum256([]byte(text)))
				}
				row[name] = value
			}
			all = append(all, table+" "+strings.TrimPrefix(fmt.Sprint(row), "map"))
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil && !errors.Is(err, sql.ErrNoRows) {
			h.Fatal(err)
		}
	}
	return all
}

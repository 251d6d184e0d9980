package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	past "sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/pi"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/testkit/storetest"
)

func sources() map[string]past.Source {
	none := func(string) string { return "" }
	return map[string]past.Source{
		"pi": pi.New(none), "claude-code": claudecode.New(none, time.Now),
		"codex": codex.New(none, time.Now),
	}
}

// BenchmarkImport imports transcripts in process into an empty database. The baseline copies the
// rows that this made by INSERT … SELECT into another empty database.
func BenchmarkImport(b *testing.B) {
	generated := b.TempDir()
	testkit.Check(b, piProgram().writeTranscripts(generated, sized(100), newAuthor(4).conversation(1000)))
	b.Run("generated, pi", func(b *testing.B) { benchmarkImport(b, sources()["pi"], generated) })
	for name, source := range sources() {
		b.Run("real, "+name, func(b *testing.B) {
			dir := b.TempDir()
			for n := range sized(10) {
				copySamples(b, filepath.Join(samples.Dir(b), name), filepath.Join(dir, fmt.Sprint(n)), n)
			}
			benchmarkImport(b, source, dir)
		})
	}
	b.Run("again, nothing new", func(b *testing.B) {
		dir := b.TempDir()
		testkit.Check(b, piProgram().writeTranscripts(dir, sized(10_000), newAuthor(4).conversation(2)))
		s := testkit.Must(store.Open(b.Context(), storetest.New(b, filepath.Join(b.TempDir(), "sessions.db")), options()))(b)
		defer s.Close()
		im := past.Importer{Store: s}
		again := func() error {
			_, err := im.Run(b.Context(), sources()["pi"], []string{dir})
			return err
		}
		testkit.Check(b, again())
		compare(b, 1, &side{op: again}, &side{name: "stat", op: func() error { folderSize(b, dir); return nil }})
	})
}

func benchmarkImport(b *testing.B, source past.Source, dir string) {
	b.Helper()
	ctx := b.Context()
	var from string
	messages := 0
	imported := func() (err error) {
		from = storetest.New(b, filepath.Join(b.TempDir(), "sessions.db"))
		s, err := store.Open(ctx, from, options())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		im := past.Importer{Store: s}
		done, err := im.Run(ctx, source, []string{dir})
		messages = done.Records.Imported
		return err
	}
	rows := func() error {
		to := openBare(b, storetest.New(b, filepath.Join(b.TempDir(), "sessions.db")),
			append([]string{"journal_mode(wal)"}, writerPragmas()...))
		if err := errors.Join(to.exec(`PRAGMA foreign_keys = 0`), to.exec(`ATTACH ? AS source`, from)); err != nil {
			return err
		}
		for _, table := range []string{"messages", "parts", "blobs", "blob_pieces", "calls", "touched_files"} {
			columns, err := to.columns(table)
			if err != nil {
				return err
			}
			if err := to.exec(fmt.Sprintf(`INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM source.%[1]s`, table,
				columns)); err != nil {
				return err
			}
		}
		return os.RemoveAll(filepath.Dir(from))
	}
	wall, cpu := compare(b, 1, &side{op: imported}, &side{name: "rows", op: rows})
	megabytes := float64(folderSize(b, dir)) / 1e6
	b.ReportMetric(megabytes, "MB")
	b.ReportMetric(megabytes/wall, "MB/s")
	b.ReportMetric(megabytes/cpu, "MB/cpu-s")
	b.ReportMetric(float64(messages)/wall, "messages/s")
	b.ReportMetric(float64(messages)/cpu, "messages/cpu-s")
}

// columns returns the names of a table's columns that can be written, with commas.
func (f *bare) columns(table string) (names string, err error) {
	return names, f.QueryRow(`SELECT group_concat('"' || name || '"') FROM pragma_table_info(?)`, table).Scan(&names)
}

// copySamples copies transcripts and changes their UUIDs, which name sessions and entries: a copy
// under the same names would not be imported again.
func copySamples(tb testing.TB, from, to string, n int) {
	tb.Helper()
	ids := regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-`)
	renamed := func(id []byte) []byte { return append(fmt.Appendf(nil, "%02x", n), id[2:]...) }
	testkit.Check(tb, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, string(ids.ReplaceAllFunc([]byte(inside), renamed)))
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o700),
			os.WriteFile(target, ids.ReplaceAllFunc(data, renamed), 0o600))
	}))
}

// BenchmarkBesideImport appends to a daemon every 2 ms while a command imports into its database, and
// reports the 99th percentile. The baseline is the same without the import.
func BenchmarkBesideImport(b *testing.B) {
	program, db := binary(b), filepath.Join(b.TempDir(), "sessions.db")
	d := serve(b, program, db)
	c := d.dial(b)
	post := c.newSession(b, newAuthor(3).sentence(60))
	paced := func(times *[]time.Duration, done func() bool) {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for !done() {
			<-tick.C
			start := time.Now()
			testkit.Must(c.send(post))(b)
			*times = append(*times, time.Since(start))
		}
	}
	var beside, alone []time.Duration
	for b.Loop() {
		dir := b.TempDir()
		p := piProgram()
		for n := range sized(100) {
			testkit.Check(b, p.writeTranscript(dir, len(beside)<<8+n, newAuthor(4).conversation(1000)))
		}
		until := time.Now().Add(time.Second)
		paced(&alone, func() bool { return time.Now().After(until) })
		ended := make(chan error, 1)
		cmd := command(program, db, "import", "pi", dir)
		cmd.Env = append(cmd.Env, "SESSIOND_SOCKET="+d.socket) // an import that finds the daemon makes way for it
		go func() { ended <- run(cmd) }()
		paced(&beside, func() bool {
			select {
			case err := <-ended:
				testkit.Check(b, err)
				return true
			default:
				return false
			}
		})
	}
	b.ReportMetric(0, "ns/op")
	slow := percentile(beside, 99)
	b.ReportMetric(float64(slow.Microseconds())/1e3, "p99-ms")
	b.ReportMetric(slow.Seconds()/percentile(alone, 99).Seconds(), "×alone")
}

// BenchmarkFollow appends a line to a transcript that a daemon follows, and searches until the line is
// found. The baseline appends the same text over HTTP.
func BenchmarkFollow(b *testing.B) {
	program, dir := binary(b), b.TempDir()
	db, path := filepath.Join(dir, "sessions.db"),
		filepath.Join(dir, ".claude", "projects", "p", "11111111-2222-4333-8444-555555555555.jsonl")
	testkit.Check(b, os.MkdirAll(filepath.Dir(path), 0o700))
	n := 0
	word := func() string { return fmt.Sprintf("zebra%d", n) }
	follow := func() error {
		n++
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, `{"parentUuid":null,"isSidechain":false,"cwd":"/p","sessionId":%q,"version":"2.1.120","type":"user","message":{"role":"user","content":"the word %s"},"uuid":"u%d","timestamp":%q}`+"\n",
			strings.TrimSuffix(filepath.Base(path), ".jsonl"), word(), n, time.Now().UTC().Format(time.RFC3339Nano))
		return errors.Join(err, f.Close())
	}
	testkit.Check(b, follow())
	testkit.Check(b, run(command(program, db, "import", "claude-code", "--yes")))
	d := serve(b, program, db)
	c := d.dial(b)
	own := c.newSession(b, "the word")
	time.Sleep(time.Second) // the follower starts after the daemon answers
	compare(b, 1, &side{op: func() error {
		if err := follow(); err != nil {
			return err
		}
		for ask := request(b, "GET", "/v1/search?q="+word(), nil); ; time.Sleep(5 * time.Millisecond) {
			answer, err := c.send(ask)
			if err != nil || bytes.Contains(answer, []byte(`"seq":`)) {
				return err
			}
		}
	}}, &side{name: "append", op: c.sends(own)})
}

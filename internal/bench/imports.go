package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	past "sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/search"
	"sessiond/internal/store"
)

// imports measures how transcripts of pi come into an empty database, and a second import in
// which nothing is new, and what an import takes of memory.
func (b *bench) imports(ctx context.Context) error {
	n := b.count(20_000)
	made := filepath.Join(b.work, "pi")
	if err := writeTranscripts(made, n); err != nil {
		return err
	}
	if err := b.importRate(ctx, "generated transcripts of pi", made); err != nil {
		return err
	}
	samples := filepath.Join("..", "shared", "samples", "pi")
	if _, err := os.Stat(samples); err != nil {
		b.say("real transcripts of pi are left out: there are none in %s", samples)
	} else {
		copied := filepath.Join(b.work, "pi-real")
		if err := copyTranscripts(samples, copied, b.count(realCopies)); err != nil {
			return err
		}
		if err := b.importRate(ctx, "real transcripts of pi", copied); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{b.importCommand, b.importOne, b.importAgain} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// realCopies is how often each real transcript is imported: there are few, and an import of them
// alone would tell what it takes to begin one.
const realCopies = 10

// importRate imports a folder in process: every session is durable, the index comes after.
// The baseline inserts the rows that this made into an empty file, straight on the driver.
func (b *bench) importRate(ctx context.Context, name, dir string) error {
	bytesIn, err := weigh(dir)
	if err != nil {
		return err
	}
	var took, bare, index timing
	messages := 0
	for round := range b.importRounds() + 1 {
		path := filepath.Join(b.work, fmt.Sprintf("rate-%d", round), "sessions.db")
		s, err := store.Open(ctx, path, options())
		if err != nil {
			return err
		}
		im := past.Importer{Store: s}
		start, used := time.Now(), processorTime()
		done, err := im.Run(ctx, pi.New(func(string) string { return "" }), []string{dir})
		wall, cpu := time.Since(start), processorTime()-used
		if err == nil {
			messages = done.Records.Imported
			err = b.indexRate(ctx, s, &index, messages, round)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
		floorWall, floorCPU, err := b.bareRows(ctx, path)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			return err
		}
		if round > 0 { // the first warms up
			took.add(wall, cpu, messages)
			bare.add(floorWall, floorCPU, messages)
		}
	}
	rateOf := func(t timing) float64 { return bytesIn / 1e6 / (t.wall.median() * float64(messages) / 1e9) }
	b.add(row{
		name:    fmt.Sprintf("import %s, %d messages, %.1f MB: %.1f MB/s", name, messages, bytesIn/1e6, rateOf(took)),
		product: took, baseline: bare, unit: rate, against: "the same rows on the driver, 100 to a statement, 1000 messages to a transaction",
		aims: []aim{{atLeast: 30_000}},
	})
	b.add(row{name: "… its search index, after it", product: index, unit: rate})
	return nil
}

func (b *bench) importRounds() int {
	if b.quick {
		return 1
	}
	return min(b.rounds, 5)
}

func (t *timing) add(wall, cpu time.Duration, n int) {
	t.wall = append(t.wall, float64(wall)/float64(n))
	t.cpu = append(t.cpu, float64(cpu)/float64(n))
}

func (b *bench) indexRate(ctx context.Context, s *store.Store, into *timing, messages, round int) error {
	ix, err := search.Open(ctx, filepath.Join(filepath.Dir(s.File()), "search.db"), s)
	if err != nil {
		return err
	}
	start, used := time.Now(), processorTime()
	_, err = ix.CatchUp(ctx)
	if round > 0 {
		into.add(time.Since(start), processorTime()-used, messages)
	}
	return errors.Join(err, ix.Close())
}

// bareRows copies what an import made of messages, parts, calls and touched files into an
// empty file with the same schema, and tells what the inserting took.
func (b *bench) bareRows(ctx context.Context, path string) (wall, cpu time.Duration, err error) {
	f, err := b.newFloor(ctx, "rows", writerPragmas())
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	from, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return 0, 0, err
	}
	defer from.Close() //nolint:errcheck // a reader
	var tables []bareTable
	for _, name := range []string{"messages", "parts", "touched_files", "calls"} {
		t, err := readTable(ctx, from, name)
		if err != nil {
			return 0, 0, err
		}
		tables = append(tables, t)
	}
	if _, err := f.exec(ctx, `PRAGMA foreign_keys = 0`); err != nil { // the sessions are not copied
		return 0, 0, err
	}
	start, used := time.Now(), processorTime()
	transactions := (len(tables[0].rows) + 999) / 1000
	for i := range transactions {
		if _, err := f.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
			return 0, 0, err
		}
		for _, t := range tables {
			if err := t.insert(ctx, f, len(t.rows)*i/transactions, len(t.rows)*(i+1)/transactions); err != nil {
				return 0, 0, err
			}
		}
		if _, err := f.exec(ctx, `COMMIT`); err != nil {
			return 0, 0, err
		}
	}
	return time.Since(start), processorTime() - used, nil
}

// bareTable is the content of a table.
type bareTable struct {
	name    string
	columns []string
	rows    [][]any
}

func readTable(ctx context.Context, db *sql.DB, name string) (t bareTable, err error) {
	t.name = name
	columns, err := db.QueryContext(ctx, `SELECT name FROM pragma_table_info(?)`, name)
	if err != nil {
		return t, err
	}
	defer columns.Close() //nolint:errcheck // Err tells
	for columns.Next() {
		var column string
		if err := columns.Scan(&column); err != nil {
			return t, err
		}
		t.columns = append(t.columns, column)
	}
	rows, err := db.QueryContext(ctx, `SELECT `+strings.Join(t.columns, ", ")+` FROM `+name)
	if err != nil {
		return t, err
	}
	defer rows.Close() //nolint:errcheck // as above
	for rows.Next() {
		values := make([]any, len(t.columns))
		into := make([]any, len(values))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return t, err
		}
		t.rows = append(t.rows, values)
	}
	return t, errors.Join(columns.Err(), rows.Err())
}

func (t *bareTable) insert(ctx context.Context, f *floor, from, to int) error {
	one := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	for from < to {
		k := 1
		if to-from >= 100 {
			k = 100
		}
		query := `INSERT INTO ` + t.name + ` (` + strings.Join(t.columns, ", ") + `) VALUES ` + one + strings.Repeat(", "+one, k-1)
		if _, err := f.exec(ctx, query, slices.Concat(t.rows[from:from+k]...)...); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		from += k
	}
	return nil
}

// runImport runs `sessiond import SOURCE PATH` and tells what it took, by the clock and in memory.
func (b *bench) runImport(ctx context.Context, target, source, path string) (wall time.Duration, peak float64, err error) {
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return 0, 0, err
	}
	cmd, err := b.command(ctx, target, "import", source, path, "--json")
	if err != nil {
		return 0, 0, err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if peak, err = runWatched(cmd); err != nil {
		return 0, 0, fmt.Errorf("import: %w: %s", err, out.String())
	}
	wall = time.Since(start)
	var told struct{ Total past.Accounting }
	if err := json.Unmarshal(out.Bytes(), &told); err != nil || !told.Total.Records.Balanced() {
		return 0, 0, fmt.Errorf("the import told %s: %w", out.String(), err)
	}
	return wall, peak, nil
}

func (b *bench) importCommand(ctx context.Context) error {
	n := b.count(20_000)
	var took timing
	for round := range b.importRounds() {
		wall, _, err := b.runImport(ctx, filepath.Join(b.work, fmt.Sprintf("command-%d", round), "sessions.db"), "pi", filepath.Join(b.work, "pi"))
		if err != nil {
			return err
		}
		took.wall = append(took.wall, float64(wall)/float64(n))
	}
	b.add(row{name: "`sessiond import` of the generated ones, from its start to the end of the index", product: took, unit: rate})
	return nil
}

// importOne measures what every import costs, however little it brings.
func (b *bench) importOne(ctx context.Context) error {
	dir := filepath.Join(b.work, "one")
	if err := writeSessions(dir, 1, 1); err != nil {
		return err
	}
	var took timing
	for round := range b.importRounds() {
		wall, _, err := b.runImport(ctx, filepath.Join(b.work, fmt.Sprintf("one-%d", round), "sessions.db"), "pi", dir)
		if err != nil {
			return err
		}
		took.wall = append(took.wall, float64(wall))
	}
	b.add(row{name: "`sessiond import` of one message into a new database: its schema, and what is prepared", product: took})
	return nil
}

// importAgain measures an import in which nothing is new.
func (b *bench) importAgain(ctx context.Context) error {
	n := 10_000
	if b.quick {
		n = 200
	}
	dir, target := filepath.Join(b.work, "many"), filepath.Join(b.work, "again", "sessions.db")
	if err := writeSessions(dir, 2*n, 2); err != nil {
		return err
	}
	if _, _, err := b.runImport(ctx, target, "pi", dir); err != nil {
		return err
	}
	var took timing
	for range b.importRounds() {
		wall, _, err := b.runImport(ctx, target, "pi", dir)
		if err != nil {
			return err
		}
		took.wall = append(took.wall, float64(wall))
	}
	b.add(row{name: fmt.Sprintf("`sessiond import` again, %d sessions of which none changed", n), product: took, aims: []aim{{atMost: 2e9}}})
	return nil
}

// importBeside measures appends to a daemon while a command imports into the same file.
func (b *bench) importBeside(ctx context.Context) (err error) {
	db := filepath.Join(b.work, "beside", "sessions.db")
	d, err := b.serve(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	l, err := d.dial()
	if err != nil {
		return err
	}
	id, err := newSession(l)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": b.text}}})
	if err != nil {
		return err
	}
	req := request("POST", "/v1/sessions/"+id+"/messages", string(body))
	var alone, beside timing
	for round := range b.importRounds() + 1 {
		var ended error
		quiet, err := appendsUntil(l, req, func(n int) bool { return n >= b.count(400) })
		if err != nil {
			return err
		}
		dir := filepath.Join(b.work, fmt.Sprintf("beside-%d", round))
		if err := writeMore(dir, round+1, b.count(10_000), 1000); err != nil {
			return err
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _, ended = b.runImport(ctx, db, "pi", dir)
		}()
		busy, err := appendsUntil(l, req, func(int) bool {
			select {
			case <-over:
				return true
			default:
				return false
			}
		})
		<-over
		if err := errors.Join(err, ended); err != nil {
			return err
		}
		if round > 0 {
			alone.wall, beside.wall = append(alone.wall, percentile(quiet, 0.99)), append(beside.wall, percentile(busy, 0.99))
		}
	}
	b.add(row{name: "append to a daemon beside a running import, 99th percentile", product: beside, baseline: alone, against: "the same without the import", aims: []aim{{ratio: 2}}})
	return nil
}

// appendsUntil appends every two milliseconds, as a few busy agents do, and gives the times.
func appendsUntil(l *line, req []byte, done func(n int) bool) (took []time.Duration, err error) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for n := 0; !done(n); n++ {
		<-tick.C
		start := time.Now()
		if err := l.send(req, nil); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}

// Command dbdiff compares two sessiond databases by what they say: `go run ./tools/dbdiff A.db B.db`.
//
// Row ids are replaced by names (20260211_001.42, 20260211_001/compaction/2), sessions of other
// programs are named by their source's id, and bookkeeping is left out. It prints the rows that
// differ and exits with 1 if there are any.
package main

import (
	"cmp"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	_ "modernc.org/sqlite" // the driver
)

// skippedTables are bookkeeping, or are compared through another table.
var skippedTables = []string{
	"blob_pieces", "events", "idempotency_keys", "imports", "purging", "store",
	"goose_db_version", "schema_version", "sqlite_%", "_litestream_%",
}

// skippedColumns are times of bookkeeping, what other columns say already, and contents that
// their hash stands for.
var skippedColumns = []string{
	"sessions.updated_at", "parts.id", "calls.id", "blobs.data", "blocks.created_at", "keys.updated_at",
	"calibrations.updated_at",
}

// reference says what the number in a column refers to, by "table.column" or the column alone.
var reference = map[string]string{
	"messages.id": "message", "messages.parent_id": "message", "head_id": "message", "through_id": "message",
	"first_kept_id": "message", "message_id": "message", "call_part_id": "part",
	"compactions.id": "compaction", "previous_id": "compaction", "compaction_id": "compaction",
	"contexts.id": "context", "context_id": "context", "frozen.id": "frozen",
	"links.compaction_id": "compaction bound", "links.frozen_id": "frozen bound",
	"sessions.id": "session", "sessions.parent_id": "session", "session_id": "session", "root_id": "session",
	"compactions.details": "names", "frozen.content": "names",
}

// identity lists the columns that tell which rows of two files are the same row. The rows of
// other tables are known by all their columns.
var identity = map[string][]string{
	"sessions": {"id"}, "messages": {"id"}, "parts": {"message_id", "idx"}, "blobs": {"sha256"}, "compactions": {"id"},
	"contexts": {"id"}, "frozen": {"id"}, "blocks": {"hash"},
	"daily_usage": {"day", "project", "source", "model", "purpose"}, "models": {"id"},
	"prices": {"model", "valid_from"}, "calls": {
		"source", "external_id", "session_id", "message_id", "purpose",
		"created_at",
	},
	"calibrations": {"model"}, "keys": {"key"}, "links": {"session_id"}, "marks": {"session_id", "message_id", "kind"},
	"states": {"session_id", "name"}, "flushes": {"session_id", "compaction_id"}, "purged_days": {"day", "source"},
	"purged_sources": {"source", "id_hash"}, "compaction_undos": {"session_id", "compaction_id"},
	"limits": {"source", "name"},
}

type options struct {
	ignore map[string]bool // columns or tables
	now    string          // times from then on are printed as "now"
	max    int             // differing rows printed for each table
}

func main() {
	var opt options
	ignore := flag.String("ignore", "", "tables or table.column to leave out, comma-separated")
	flag.StringVar(&opt.now, "now", "", "times from `YYYY-MM-DD HH:MM:SS` (UTC) on are equal: written while the test ran")
	flag.IntVar(&opt.max, "max", 8, "print at most so many differing rows of a table")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: dbdiff [flags] A.db B.db")
		os.Exit(2)
	}
	opt.ignore = map[string]bool{}
	for word := range strings.SplitSeq(*ignore, ",") {
		opt.ignore[word] = true
	}
	differences, err := compare(flag.Arg(0), flag.Arg(1), &opt)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "dbdiff:", err)
		os.Exit(2)
	case differences > 0:
		os.Exit(1)
	}
}

// compare prints what differs between two files and returns how many rows that are.
func compare(pathA, pathB string, opt *options) (differences int, err error) {
	a, err := open(pathA)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	b, err := open(pathB)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	rows := 0
	for _, table := range union(a.columns, b.columns) {
		if opt.ignore[table] {
			continue
		}
		if a.columns[table] == nil || b.columns[table] == nil {
			fmt.Printf("%s: only in %s\n", table, onlyIn(a.columns[table] != nil))
			continue
		}
		columns := commonColumns(table, a.columns[table], b.columns[table], opt)
		fromA, err := a.rows(table, columns, opt)
		if err != nil {
			return 0, err
		}
		fromB, err := b.rows(table, columns, opt)
		if err != nil {
			return 0, err
		}
		rows += len(fromB)
		differences += printTable(table, columns, fromA, fromB, opt)
	}
	if differences == 0 {
		fmt.Printf("equal: %d rows\n", rows)
	}
	return differences, nil
}

func onlyIn(a bool) string {
	if a {
		return "A"
	}
	return "B"
}

func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// commonColumns returns the columns to compare, and prints those that one file lacks.
func commonColumns(table string, a, b []string, opt *options) (common []string) {
	for _, column := range append(slices.Clone(a), b...) {
		name := table + "." + column
		switch {
		case slices.Contains(skippedColumns, name) || opt.ignore[name] || slices.Contains(common, column):
		case slices.Contains(a, column) && slices.Contains(b, column):
			common = append(common, column)
		default:
			fmt.Printf("%s: only in %s\n", name, onlyIn(slices.Contains(a, column)))
		}
	}
	return common
}

// file is an open database with the names of its rows.
type file struct {
	*sql.DB
	columns  map[string][]string // of each table
	sessions map[string]string   // names, by id
	names    map[string]map[int64]string
	bounds   map[string]map[string][]int64 // row ids of each session, by the session's name
	idInText *regexp.Regexp
}

func open(path string) (*file, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Opaque: path, RawQuery: "mode=ro"}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	f := &file{
		DB: db, columns: map[string][]string{}, sessions: map[string]string{},
		names: map[string]map[int64]string{}, bounds: map[string]map[string][]int64{},
		idInText: regexp.MustCompile(`\b\d{8}_\d{3,}\b`),
	}
	err = errors.Join(f.readSchema(), f.nameSessions(), f.nameMessages())
	if err == nil {
		err = errors.Join(f.number("compaction", "compactions"), f.number("context", "contexts"),
			f.number("frozen", "frozen"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return f, nil
}

// each scans every row of a query into dest.
func (f *file) each(query string, dest []any, row func()) error {
	rows, err := f.Query(query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		row()
	}
	return rows.Err()
}

// readSchema lists tables and columns; generated columns are left out.
func (f *file) readSchema() error {
	query := `SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`
	for _, skipped := range skippedTables {
		query += ` AND t.name NOT LIKE '` + strings.ReplaceAll(skipped, "_", `\_`) + `' ESCAPE '\'`
	}
	var table, column string
	return f.each(query, []any{&table, &column}, func() { f.columns[table] = append(f.columns[table], column) })
}

func (f *file) nameSessions() error {
	var id, source, sourceID string
	return f.each(`SELECT id, source, source_id FROM sessions`, []any{&id, &source, &sourceID}, func() {
		if f.sessions[id] = id; sourceID != "" {
			f.sessions[id] = source + ":" + sourceID
		}
	})
}

func (f *file) nameMessages() error {
	names := map[int64]string{}
	f.names["message"] = names
	var row, seq int64
	var id string
	return f.each(`SELECT id, session_id, seq FROM messages`, []any{&row, &id, &seq}, func() {
		names[row] = f.sessions[id] + "." + strconv.FormatInt(seq, 10)
	})
}

// number names the rows of a table by their session and their place in it, from 1.
func (f *file) number(kind, table string) error {
	names, bounds := map[int64]string{}, map[string][]int64{}
	f.names[kind], f.bounds[kind] = names, bounds
	var row int64
	var id string
	return f.each(`SELECT id, session_id FROM `+table+` ORDER BY id`, []any{&row, &id}, func() {
		bounds[id] = append(bounds[id], row)
		names[row] = f.sessions[id] + "/" + kind + "/" + strconv.Itoa(len(bounds[id]))
	})
}

// rows reads a table: its rows by their identity, each a value for each column.
func (f *file) rows(table string, columns []string, opt *options) (map[string][]string, error) {
	read := make([]string, len(columns))
	for i, column := range columns {
		read[i] = `"` + column + `"`
	}
	if table == "links" { // their bounds count rows of the session's parent
		read = append(read, `(SELECT s.parent_id FROM sessions s WHERE s.id = links.session_id)`)
	}
	values, dest := make([]any, len(read)), make([]any, len(read))
	for i := range values {
		dest[i] = &values[i]
	}
	var all [][]string
	err := f.each(`SELECT `+strings.Join(read, ", ")+` FROM `+table, dest, func() {
		row := make([]string, len(columns))
		for i, column := range columns {
			row[i] = f.text(table, column, values[i], values[len(values)-1], opt)
		}
		all = append(all, row)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, slices.Compare[[]string])
	byName := map[string][]string{}
	for _, row := range all {
		name := nameOf(table, columns, row)
		for n, first := 2, name; byName[name] != nil; n++ { // rows that only their other columns tell apart
			name = first + " #" + strconv.Itoa(n)
		}
		byName[name] = row
	}
	return byName, nil
}

func nameOf(table string, columns, row []string) string {
	var name []string
	for i, column := range columns {
		if key, ok := identity[table]; !ok || slices.Contains(key, column) {
			name = append(name, row[i])
		}
	}
	return strings.Join(name, " ")
}

// text renders a value so that it is the same in every file that says the same.
func (f *file) text(table, column string, value, parent any, opt *options) string {
	refers := cmp.Or(reference[table+"."+column], reference[column])
	switch v := value.(type) {
	case nil:
		return "NULL"
	case int64:
		return f.nameOfRow(refers, v, parent)
	case string:
		switch {
		case refers == "session":
			return cmp.Or(f.sessions[v], v)
		case opt.now != "" && strings.HasSuffix(column, "_at") && v >= opt.now:
			return "now"
		case refers == "names":
			v = f.idInText.ReplaceAllStringFunc(v, func(id string) string { return cmp.Or(f.sessions[id], id) })
		}
		if strings.HasPrefix(v, "{") && column != "text" && column != "arguments" {
			sorted := jsontext.Value(v)
			if sorted.Format(jsontext.ReorderRawObjects(true), jsontext.AllowDuplicateNames(true),
				jsontext.AllowInvalidUTF8(true)) == nil {
				return string(sorted)
			}
		}
		return v
	}
	return fmt.Sprint(value)
}

func (f *file) nameOfRow(refers string, row int64, parent any) string {
	kind, bound := strings.CutSuffix(refers, " bound")
	switch {
	case kind == "part":
		return fmt.Sprintf("%s/%d", f.names["message"][row>>10], row&1023)
	case bound: // how many of the parent's rows a fork inherits
		if row == 1<<63-1 {
			return "all"
		}
		id, _ := parent.(string)
		n, _ := slices.BinarySearch(f.bounds[kind][id], row+1)
		return strconv.Itoa(n)
	case f.names[kind] == nil || kind == "compaction" && row == 0: // a flush before the first one
		return strconv.FormatInt(row, 10)
	}
	return cmp.Or(f.names[kind][row], "a "+kind+" that is gone")
}

// printTable prints the rows of a table that differ and returns how many they are.
func printTable(table string, columns []string, a, b map[string][]string, opt *options) (differences int) {
	var lines []string
	for _, name := range union(a, b) {
		rowA, rowB := a[name], b[name]
		if slices.Equal(rowA, rowB) {
			continue
		}
		if differences++; differences > opt.max {
			continue
		}
		switch {
		case rowB == nil:
			lines = append(lines, "- "+name, "    "+clip(strings.Join(rowA, " ")))
			continue
		case rowA == nil:
			lines = append(lines, "+ "+name, "    "+clip(strings.Join(rowB, " ")))
			continue
		}
		lines = append(lines, "~ "+name)
		for i, column := range columns {
			if rowA[i] != rowB[i] {
				from := differsFrom(rowA[i], rowB[i])
				indent := strings.Repeat(" ", len(column))
				lines = append(lines, "    "+column+": "+clip(rowA[i][from:]), "    "+indent+"  "+clip(rowB[i][from:]))
			}
		}
	}
	if differences > 0 {
		fmt.Printf("%s: %d of %d and %d rows differ\n%s\n", table, differences, len(a), len(b), strings.Join(lines, "\n"))
	}
	return differences
}

// differsFrom returns where two values begin to differ, a few bytes before it.
func differsFrom(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return max(0, n-20)
}

func clip(s string) string {
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\n", "⏎")
}

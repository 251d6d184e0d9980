package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"sessiond/db/migrations"
	"sessiond/internal/engine"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// Check is one thing that doctor looked at.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Advice string `json:"advice"` // with OK: a remark that needs no action now
}

// counterChecks compare what is kept with what recounting gives. Each query lists rows that
// disagree, as text; none means that all is well.
func counterChecks() []struct{ name, what, query, advice string } {
	const restore = "restore a backup, and report this: a counter that drifts is a defect of sessiond"
	return []struct{ name, what, query, advice string }{
		{"parents", "every message's parent is there and one message shallower", `
			SELECT m.session_id || '.' || m.seq FROM messages m LEFT JOIN messages p ON p.id = m.parent_id
			WHERE m.depth <> COALESCE(p.depth + 1, 0) OR (m.parent_id IS NOT NULL AND p.id IS NULL) LIMIT 5`, restore},
		{"jumps", "a jump is marked exactly where the parent is not the message before", `
			SELECT m.session_id || '.' || m.seq FROM messages m LEFT JOIN messages p ON p.id = m.parent_id
			WHERE m.jump <> CASE WHEN m.parent_id IS NULL AND m.seq = 1 OR m.parent_id IS NOT NULL AND p.session_id = m.session_id AND p.seq = m.seq - 1 THEN 0 ELSE 1 END LIMIT 5`, restore},
		{"path tokens", "path_tokens is the running sum of the tokens in the context", `
			SELECT m.session_id || '.' || m.seq FROM messages m LEFT JOIN messages p ON p.id = m.parent_id
			WHERE m.path_tokens <> COALESCE(p.path_tokens, 0) + m.tokens * m.in_context LIMIT 5`, restore},
		{"parts", "every part has its message", `
			SELECT p.id FROM parts p WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = p.message_id) LIMIT 5`, restore},
		{"blobs", "every part's blob is there", `
			SELECT p.id FROM parts p WHERE p.blob IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = p.blob) LIMIT 5`, restore},
		{"blob pieces", "every piece of a blob belongs to one, and a blob has all of its pieces and no other", `
			SELECT sha256 FROM blob_pieces WHERE sha256 NOT IN (SELECT sha256 FROM blobs)
			UNION SELECT b.sha256 FROM blobs b
			LEFT JOIN (SELECT sha256, COUNT(*) AS count, MAX(n) AS last, SUM(LENGTH(data)) AS size FROM blob_pieces GROUP BY sha256) p ON p.sha256 = b.sha256
			WHERE b.size <> LENGTH(b.data) + COALESCE(p.size, 0) OR p.count <> p.last LIMIT 5`, restore},
		{"talk", "every message is marked as said, as work or as a row of the program", `
			SELECT m.session_id || '.' || m.seq FROM messages m WHERE m.talk <> ` + talkOfRow + ` LIMIT 5`, restore},
		{"counters", "sessions count their own messages and tokens", `
			SELECT s.id FROM sessions s WHERE (s.message_count, s.said_count, s.total_tokens, s.last_seq) <>
			(SELECT COUNT(*), COUNT(*) FILTER (WHERE m.talk = 'said'), COALESCE(SUM(m.tokens), 0), COALESCE(MAX(m.seq), 0)
			 FROM messages m WHERE m.session_id = s.id) LIMIT 5`, restore},
		{"usage", "sessions sum up their calls", `
			SELECT s.id FROM sessions s WHERE (s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, COALESCE(s.cost_nanousd, -1), s.unpriced_calls) <>
			(SELECT COALESCE(SUM(c.input_tokens), 0), COALESCE(SUM(c.output_tokens), 0), COALESCE(SUM(c.cache_read_tokens), 0),
			        COALESCE(SUM(c.cache_write_tokens), 0), COALESCE(SUM(c.cost_nanousd), -1), COUNT(*) FILTER (WHERE c.cost_nanousd IS NULL)
			 FROM calls c WHERE c.session_id = s.id AND c.session_id <> '') AND s.purged_at IS NULL LIMIT 5`, restore},
		{"compactions", "sessions count their done and not undone compactions", `
			SELECT s.id FROM sessions s WHERE s.compaction_count <>
			(SELECT COUNT(*) FROM compactions c WHERE c.session_id = s.id AND c.status = 'done'
			 AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = s.id AND u.compaction_id = c.id)) LIMIT 5`, restore},
		{"links", "every fork and child is linked to its parent, and what a fork shares is there", `
			SELECT s.id FROM sessions s LEFT JOIN links l ON l.session_id = s.id LEFT JOIN messages m ON m.id = l.message_id
			WHERE s.parent_id <> '' AND (l.session_id IS NULL OR s.parent_kind = 'fork' AND l.message_id IS NOT NULL AND m.id IS NULL)
			UNION SELECT l.session_id FROM links l WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = l.session_id) LIMIT 5`, restore},
		{"heads", "every head is there", `
			SELECT s.id FROM sessions s WHERE s.head_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = s.head_id) LIMIT 5`, restore},
		{"results", "every result that names its call names a tool call before it", `
			SELECT r.id FROM parts r LEFT JOIN parts c ON c.id = r.call_part_id
			WHERE r.call_part_id IS NOT NULL AND (c.id IS NULL OR c.kind <> 'tool_call' OR c.id >= r.id) LIMIT 5`, restore},
		{"contexts", "context_tokens is the path without what the overlay hides, and its summary", `
			SELECT s.id FROM sessions s LEFT JOIN messages h ON h.id = s.head_id LEFT JOIN compactions c ON c.id = s.compaction_id
			WHERE s.context_tokens <> COALESCE(h.path_tokens, 0) - COALESCE(c.hidden_tokens, 0) + COALESCE(c.summary_tokens, 0)
			   OR s.compaction_id IS NOT NULL AND (c.id IS NULL OR c.status <> 'done'
			      OR EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = s.id AND u.compaction_id = c.id)) LIMIT 5`, restore},
		{"marks", "every mark and touched file has its message", `
			SELECT m.session_id || ' row ' || m.message_id FROM (SELECT session_id, message_id FROM marks WHERE message_id <> 0
			UNION SELECT session_id, message_id FROM touched_files) m
			WHERE NOT EXISTS (SELECT 1 FROM messages x WHERE x.id = m.message_id) LIMIT 5`, restore},
		{"daily usage", "the roll-up sums up the sessions, messages and calls", `WITH kept AS (
			SELECT day, project, source, model, purpose, ` + usageColumns + ` FROM daily_usage), recounted AS (` + recountedUsage + `)
			SELECT day || ' ' || project || ' ' || source || ' ' || model FROM (SELECT * FROM kept EXCEPT SELECT * FROM recounted) AS a
			UNION SELECT day || ' ' || project || ' ' || source || ' ' || model FROM (SELECT * FROM recounted EXCEPT SELECT * FROM kept) AS b LIMIT 5`, restore},
	}
}

const advice = "stop sessiond; then restore the newest backup, " +
	"or copy what can be read with `sessiond doctor --recover OUT`"

// Doctor looks at the whole file and recounts what is counted. It changes nothing. quick
// leaves out the check of every page, which reads all of the file. What cannot be read fails its own
// check and no other.
func (s *Store) Doctor(ctx context.Context, quick bool) ([]Check, error) {
	checks := make([]Check, 0, 16)
	if s.IsPostgres() { // which checks its pages and references itself
		checks = append(checks, s.checkServer(ctx)...)
	} else {
		checks = append(checks, s.checkFile(ctx, quick)...)
	}
	for _, c := range counterChecks() {
		checks = append(checks, s.check(ctx, c.name, c.what, c.query, c.advice))
	}
	if !s.IsPostgres() {
		check, err := s.checkSchema(ctx)
		checks = append(checks, failed(check, "schema", err))
	}
	if !quick {
		check, err := s.checkBlobs(ctx)
		checks = append(checks, failed(check, "blob contents", err))
	}
	return checks, ctx.Err()
}

// checkFile looks at the file itself: its pages, references and modes.
func (s *Store) checkFile(ctx context.Context, quick bool) (checks []Check) {
	pages := s.checkPages(ctx, quick)
	checks = append(checks, pages)
	if !pages.OK {
		checks = append(checks, s.checkReadable(ctx))
	}
	checks = append(checks, s.check(ctx, "foreign keys", "every reference leads somewhere", `SELECT "table" || ' row ' || rowid FROM pragma_foreign_key_check LIMIT 5`, "restore a backup"))
	for _, l := range engine.LooseModes(s.File()) {
		checks = append(checks, Check{
			Name: "modes", Detail: l.String() + ": other users of this host can read or change it",
			Advice: fmt.Sprintf("chmod %o %s; the next start of sessiond does it", l.Want, l.Path),
		})
	}
	return checks
}

// checkPages asks SQLite for faults in the file, and names the tables and indexes that they are in.
func (s *Store) checkPages(ctx context.Context, quick bool) Check {
	name, query := "integrity", `PRAGMA integrity_check(20)`
	if quick {
		name, query = "quick integrity", `PRAGMA quick_check(20)`
	}
	var faults []string
	err := s.Reader().SelectContext(ctx, &faults, query)
	roots := map[string]string{} // names of tables and indexes by their first page
	var trees []struct {
		Rootpage   int64
		Type, Name string
	}
	_ = s.Reader().SelectContext(ctx, &trees, `SELECT rootpage, type, name FROM sqlite_schema WHERE rootpage > 0`) // then pages have no names
	for _, t := range trees {
		roots[fmt.Sprint(t.Rootpage)] = t.Type + " " + t.Name
	}
	named := make([]string, 0, len(faults))
	for _, fault := range faults {
		for line := range strings.Lines(fault) {
			if line = strings.TrimSpace(line); line != "ok" && !strings.HasPrefix(line, "***") {
				named = append(named, treeNumber.ReplaceAllStringFunc(line, func(tree string) string {
					return cmp.Or(roots[strings.TrimPrefix(tree, "Tree ")], tree)
				}))
			}
		}
	}
	check := failed(verdict(name, "SQLite finds no fault in the file", named, advice), name, err)
	s.ReadFailed(err)
	return check
}

var treeNumber = pattern.New(`Tree \d+`)

// checkReadable names the sessions of which something cannot be read.
func (s *Store) checkReadable(ctx context.Context) Check {
	const name, what = "sessions", "every session can be read"
	damaged, err := s.DamagedSessions(ctx)
	faults := make([]string, len(damaged))
	for i, id := range damaged {
		faults[i] = string(id)
	}
	check := verdict(name, what, faults, advice)
	if n := len(faults); n > 5 {
		check.Detail += fmt.Sprintf(" and %d more", n-5)
	}
	return failed(check, name, err)
}

// DamagedSessions returns the sessions of which a page cannot be read: their own row, a message or a
// part. It reads every row, by ranges of ids.
func (s *Store) DamagedSessions(ctx context.Context) ([]session.ID, error) {
	found := map[session.ID]bool{}
	var last int64
	if err := s.Reader().GetContext(ctx, &last, `SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'messages'`); err != nil {
		last = 1 << 40 // the table of sequences is damaged, too: SQLite ends soon where there are no rows
	}
	var gone [][2]int64
	for _, table := range []struct {
		query string
		shift int64 // of a message's id
	}{
		{`SELECT * FROM messages NOT INDEXED WHERE id BETWEEN ? AND ?`, 0},
		{`SELECT * FROM parts NOT INDEXED WHERE id BETWEEN ? AND ?`, 10},
	} {
		if err := s.unreadable(ctx, table.query, table.shift, 1, last, &gone); err != nil {
			return nil, err
		}
	}
	for _, span := range gone {
		var ids []session.ID
		if err := s.Reader().SelectContext(ctx, &ids, `SELECT DISTINCT session_id FROM messages INDEXED BY sqlite_autoindex_messages_1 WHERE id BETWEEN ? AND ?`, span[0], span[1]); err != nil {
			return nil, fmt.Errorf("messages %d to %d cannot be read, and the index does not say whose they are: %w", span[0],
				span[1], err)
		}
		for _, id := range ids {
			found[id] = true
		}
	}
	var ids []session.ID
	if err := s.Reader().SelectContext(ctx, &ids, `SELECT DISTINCT session_id FROM messages INDEXED BY sqlite_autoindex_messages_1`); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := s.drain(ctx, `SELECT * FROM sessions WHERE id = ?`, id); engine.IsDamage(err) {
			found[id] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// unreadable adds the spans of messages in from..to of which query cannot read the rows. It halves a span
// until it is one message.
func (s *Store) unreadable(ctx context.Context, query string, shift, from, to int64, gone *[][2]int64) error {
	err := s.drain(ctx, query, from<<shift, (to+1)<<shift-1)
	if !engine.IsDamage(err) || from > to {
		return err
	}
	if from == to {
		if n := len(*gone); n > 0 && (*gone)[n-1][1] == from-1 {
			(*gone)[n-1][1] = from
		} else {
			*gone = append(*gone, [2]int64{from, from})
		}
		return nil
	}
	half := from + (to-from)/2
	if err := s.unreadable(ctx, query, shift, from, half, gone); err != nil {
		return err
	}
	return s.unreadable(ctx, query, shift, half+1, to, gone)
}

// drain reads all rows of a query.
func (s *Store) drain(ctx context.Context, query string, args ...any) error {
	rows, err := s.Reader().QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {  //nolint:revive // reading is the test
	}
	return rows.Err()
}

// failed is a check, or one that says why it could not be made.
func failed(check Check, name string, err error) Check {
	if err == nil {
		return check
	}
	if check.OK {
		check.Detail = ""
	}
	check.Name, check.OK, check.Advice = name, false, advice
	check.Detail = strings.TrimPrefix(check.Detail+"; it could not be checked to its end: "+err.Error(), "; ")
	return check
}

// checkSchema compares the tables, indexes, triggers and views with those of a new database:
// without its triggers the file would take any change.
func (s *Store) checkSchema(ctx context.Context) (Check, error) {
	const what = "the schema is the one that this sessiond makes"
	read := func(db *sqlx.DB) (map[string]string, error) {
		var all []struct{ Name, SQL string }
		err := db.SelectContext(ctx, &all, `SELECT type || ' ' || name AS name, sql FROM sqlite_schema
			WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' AND name <> 'goose_db_version'`)
		made := map[string]string{}
		for _, one := range all {
			made[one.Name] = one.SQL
		}
		return made, err
	}
	fresh, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		return Check{}, err
	}
	defer fresh.Close() //nolint:errcheck // in memory only
	fresh.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectSQLite3, fresh.DB, migrations.FS)
	if err != nil {
		return Check{}, err
	}
	if _, err := provider.Up(ctx); err != nil {
		return Check{}, fmt.Errorf("make a schema to compare with: %w", err)
	}
	want, err := read(fresh)
	if err != nil {
		return Check{}, err
	}
	have, err := read(s.Reader())
	if err != nil {
		return Check{}, err
	}
	var faults []string
	for name, sql := range want {
		if have[name] != sql {
			faults = append(faults, name)
		}
	}
	slices.Sort(faults)
	return verdict("schema", what, faults,
		"someone changed the schema by hand; restore a backup, or put back what is named here"), nil
}

// checkBlobs hashes every blob anew.
func (s *Store) checkBlobs(ctx context.Context) (Check, error) {
	var all, faults []string
	if err := s.Reader().SelectContext(ctx, &all, `SELECT sha256 FROM blobs`); err != nil {
		return Check{}, err
	}
	for _, sha := range all {
		b, err := readBlob(ctx, s, sha)
		if err != nil {
			return Check{}, err
		}
		if b != nil && (hash(b.Data) != sha || int64(len(b.Data)) != b.Size) { // nil: purged meanwhile
			faults = append(faults, sha)
		}
	}
	return verdict("blob contents", "every blob is what its hash says", faults, "restore a backup"), nil
}

func (s *Store) check(ctx context.Context, name, what, query, advice string) Check {
	var faults []string
	if err := s.Reader().SelectContext(ctx, &faults, query); err != nil {
		return failed(Check{}, name, err)
	}
	return verdict(name, what, faults, advice)
}

func verdict(name, what string, faults []string, advice string) Check {
	if len(faults) == 0 {
		return Check{Name: name, OK: true, Detail: what}
	}
	return Check{Name: name, Detail: "false: " + what + "; it fails at: " +
		strings.Join(faults[:min(5, len(faults))], ", "), Advice: advice}
}

package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	own "sessiond/internal/history/sessiond"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// memory measures what an import takes of memory at its peak, over an import of nothing: of one
// large transcript of each program, and of one with a long line.
func (b *bench) memory(ctx context.Context) error {
	large, line := b.large<<20, 50<<20
	if b.quick {
		large, line = 2<<20, 4<<20
	}
	chosen, err := choosePrograms(b.programs)
	if err != nil {
		return err
	}
	idle, err := b.idleMemory(ctx)
	if err != nil {
		return err
	}
	for _, p := range chosen {
		for _, m := range []struct {
			about string
			turns turns
		}{
			{"one transcript of %.0f MB", turns{author: newAuthor(5), most: large}},
			{"a line of %.0f MB", turns{author: newAuthor(5), most: 1000, long: line}},
		} {
			dir := filepath.Join(b.work, "memory")
			if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "from"), 0o700)); err != nil {
				return err
			}
			from, err := p.write(ctx, b, filepath.Join(dir, "from"), &m.turns)
			if err != nil {
				return fmt.Errorf("write a history of %s: %w", p.source, err)
			}
			wall, peak, err := b.runImport(ctx, filepath.Join(dir, "db", "sessions.db"), p.source, from)
			if err != nil {
				return err
			}
			about := fmt.Sprintf(m.about, float64(m.turns.bytes)/1e6)
			b.say("%s, %s: %d messages in %s", p.source, about, m.turns.n, wall.Round(time.Second/10))
			b.add(row{
				name: fmt.Sprintf("import of %s, peak of memory over idle: %s", p.source, about), unit: size,
				product: timing{wall: series{max(peak-idle, 0)}}, aims: []aim{{atMost: 64 << 20}},
			})
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// idleMemory is the peak of a process that imports one message.
func (b *bench) idleMemory(ctx context.Context) (float64, error) {
	dir := filepath.Join(b.work, "small")
	if err := writeTranscripts(dir, 1); err != nil {
		return 0, err
	}
	_, peak, err := b.runImport(ctx, filepath.Join(dir, "db", "sessions.db"), "pi", dir)
	return peak, err
}

// runWatched runs a command and gives the peak of its resident memory, in bytes. What the kernel
// tells of a process that ended is no less than its parent had when it began; so its own peak is
// read while it runs. Where there is no /proc it is 0.
func runWatched(cmd *exec.Cmd) (peak float64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-tick.C:
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			_, rest, ok := strings.Cut(string(status), "VmHWM:")
			if err != nil || !ok {
				continue
			}
			if fields := strings.Fields(rest); len(fields) > 0 {
				if kib, err := strconv.ParseFloat(fields[0], 64); err == nil {
					peak = max(peak, kib*1024)
				}
			}
		}
	}
}

// turns gives the messages of a conversation until there are as many bytes as were asked for.
type turns struct {
	author *author
	most   int // bytes of texts and what usually stands around them
	long   int // bytes of one more message, in the end
	bytes  int // given
	n      int // messages given
	pool   []string
}

// around is about what a program writes beside a text.
const around = 300

// next gives who speaks and what is said.
func (t *turns) next() (role, text string, ok bool) {
	if t.pool == nil {
		for range 4096 {
			t.pool = append(t.pool, t.author.sentence(2*usualWords))
		}
	}
	switch {
	case t.bytes < t.most:
		text = t.pool[t.author.rng.IntN(len(t.pool))]
		t.bytes += len(text) + around
	case t.long > 0:
		text = strings.Repeat("one line of a very long output, with an end\n", t.long/45)
		t.bytes, t.long = len(text), 0
	default:
		return "", "", false
	}
	role = "user"
	if t.n++; t.n%2 == 0 {
		role = "assistant"
	}
	return role, text, true
}

// program writes a history as one of the programs does.
type program struct {
	source string
	write  func(ctx context.Context, b *bench, dir string, t *turns) (path string, err error)
}

func programs() []program {
	return []program{
		{"claude-code", lines("9a000000-0000-4000-8000-000000000001.jsonl", "", claudeLine)},
		{"codex", lines("rollout-2026-03-01T10-00-00-0a000000-0000-4000-8000-000000000001.jsonl",
			`{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"0a000000-0000-4000-8000-000000000001","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/proj","cli_version":"0.106.0","source":"cli","model_provider":"openai"}}`, codexLine)},
		{"goose", gooseDatabase},
		{"openclaw", lines("01234567-0000-4000-8000-000000000000.jsonl", piHeader, piLine)},
		{"opencode", opencodeDatabase},
		{"pi", lines("2026-02-03T09-00-00-000Z_01234567-0000-4000-8000-000000000000.jsonl", piHeader, piLine)},
		{"sessiond", ownExport},
	}
}

func choosePrograms(names []string) ([]program, error) {
	all := programs()
	if len(names) == 0 {
		return all, nil
	}
	var chosen []program
	for _, name := range names {
		i := slices.IndexFunc(all, func(p program) bool { return p.source == name })
		if i < 0 {
			return nil, fmt.Errorf("no history of %q can be written", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// lines writes a file of lines.
func lines(name, header string, line func(i int, role, text string) any) func(context.Context, *bench, string, *turns) (string, error) {
	return func(_ context.Context, _ *bench, dir string, t *turns) (_ string, err error) {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out := bufio.NewWriter(f)
		if header != "" {
			if _, err := out.WriteString(header + "\n"); err != nil {
				return "", err
			}
		}
		enc := json.NewEncoder(out)
		for i := 0; ; i++ {
			role, text, ok := t.next()
			if !ok { // a file that nobody has written to for long is complete
				return path, errors.Join(out.Flush(), os.Chtimes(path, secondOf(0), secondOf(0)))
			}
			if err := enc.Encode(line(i, role, text)); err != nil {
				return "", err
			}
		}
	}
}

// secondOf gives when a message was said.
func secondOf(i int) time.Time { return time.Date(2026, 2, 3, 9, 0, i, 0, time.UTC) }

func stampOf(i int) string { return secondOf(i).Format("2006-01-02T15:04:05.000Z") }

const piHeader = `{"type":"session","version":3,"id":"01234567-0000-4000-8000-000000000000","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/home/me"}`

func piLine(i int, role, text string) any {
	message := object{"role": role, "content": []any{object{"type": "text", "text": text}}, "timestamp": secondOf(i).UnixMilli()}
	if role == "assistant" {
		message["provider"], message["model"], message["stopReason"] = "openai", "gpt-4o", "stop"
		message["usage"] = object{"input": 1200, "output": 90, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1290}
	}
	return object{"type": "message", "id": entryID(i), "parentId": before(i, entryID), "timestamp": stampOf(i), "message": message}
}

func entryID(i int) string { return fmt.Sprintf("%08x", i) }

func before(i int, name func(int) string) any {
	if i == 0 {
		return nil
	}
	return name(i - 1)
}

func uuidOf(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-00000000000a", i) }

func claudeLine(i int, role, text string) any {
	message := object{"role": role, "content": text}
	if role == "assistant" {
		message = object{
			"id": "msg_" + entryID(i), "type": "message", "role": role, "model": "claude-opus-4-6", "content": []any{object{"type": "text", "text": text}},
			"stop_reason": "end_turn", "usage": object{"input_tokens": 1200, "output_tokens": 90},
		}
	}
	return object{
		"parentUuid": before(i, uuidOf), "isSidechain": false, "cwd": "/proj", "sessionId": "9a000000-0000-4000-8000-000000000001", "version": "2.1.120",
		"type": role, "message": message, "uuid": uuidOf(i), "timestamp": stampOf(i),
	}
}

func codexLine(i int, role, text string) any {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	return object{"timestamp": stampOf(i), "type": "response_item", "payload": object{"type": "message", "role": role, "content": []any{object{"type": kind, "text": text}}}}
}

const gooseSchema = `
	CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP);
	INSERT INTO schema_version VALUES (17, '2026-03-01 08:00:00');
	CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '', user_set_name BOOLEAN DEFAULT 0,
		session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL DEFAULT '/w', created_at TIMESTAMP DEFAULT '2026-02-03 09:00:00',
		updated_at TIMESTAMP, extension_data TEXT DEFAULT '{}', accumulated_total_tokens INTEGER, accumulated_input_tokens INTEGER,
		accumulated_output_tokens INTEGER, accumulated_cache_read_tokens INTEGER, accumulated_cache_write_tokens INTEGER, accumulated_cost REAL,
		provider_name TEXT, model_config_json TEXT, archived_at TIMESTAMP, parent_session_id TEXT);
	CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT,
		created_timestamp INTEGER, timestamp TIMESTAMP, tokens INTEGER, metadata_json TEXT);
	CREATE INDEX idx_messages_session ON messages(session_id);
	CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER, model TEXT, input_tokens INTEGER,
		output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0);
	INSERT INTO sessions (id, name) VALUES ('20260203_1', 'one')`

func gooseDatabase(ctx context.Context, _ *bench, dir string, t *turns) (string, error) {
	path := filepath.Join(dir, "sessions.db")
	return path, writeDatabase(ctx, path, gooseSchema, func(tx *sql.Tx) error {
		put, err := tx.PrepareContext(ctx, `INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp) VALUES (?, '20260203_1', ?, ?, ?)`)
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			role, text, ok := t.next()
			if !ok {
				return nil
			}
			content := session.JSONOf([]any{object{"type": "text", "text": text}})
			if _, err := put.ExecContext(ctx, "msg_"+entryID(i), role, string(content), secondOf(i).Unix()); err != nil {
				return err
			}
		}
	})
}

const opencodeSchema = `
	CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT, directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT,
		revert TEXT, permission TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_archived INTEGER, model TEXT, cost REAL DEFAULT 0);
	CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
	CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
	CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
	CREATE INDEX part_message_id_id_idx ON part (message_id, id);
	CREATE INDEX part_session_idx ON part (session_id);
	INSERT INTO session (id, project_id, directory, title, time_created, time_updated) VALUES ('ses_1', 'p', '/w', 'one', 1770109200000, 1770109200000)`

func opencodeDatabase(ctx context.Context, _ *bench, dir string, t *turns) (string, error) {
	path := filepath.Join(dir, "opencode.db")
	return path, writeDatabase(ctx, path, opencodeSchema, func(tx *sql.Tx) error {
		put, err := tx.PrepareContext(ctx, `INSERT INTO message VALUES (?, 'ses_1', ?, ?, ?)`)
		if err != nil {
			return err
		}
		putPart, err := tx.PrepareContext(ctx, `INSERT INTO part VALUES (?, ?, 'ses_1', ?, ?, ?)`)
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			role, text, ok := t.next()
			if !ok {
				return nil
			}
			at := secondOf(i).UnixMilli()
			data := object{"role": role, "time": object{"created": at}}
			if role == "assistant" {
				data["time"] = object{"created": at, "completed": at + 500}
				data["modelID"], data["providerID"], data["finish"], data["tokens"] = "m", "p", "stop", object{"input": 1200, "output": 90}
			}
			id := "msg_" + entryID(i)
			if _, err := put.ExecContext(ctx, id, at, at, string(session.JSONOf(data))); err != nil {
				return err
			}
			part := session.JSONOf(object{"type": "text", "text": text})
			if _, err := putPart.ExecContext(ctx, "prt_"+entryID(i), id, at, at, string(part)); err != nil {
				return err
			}
		}
	})
}

func writeDatabase(ctx context.Context, path, schema string, fill func(*sql.Tx) error) (err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fill(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// ownExport writes what sessiond itself exports, of a transcript of pi.
func ownExport(ctx context.Context, b *bench, dir string, t *turns) (_ string, err error) {
	from, err := lines("2026-02-03T09-00-00-000Z_one.jsonl", piHeader, piLine)(ctx, b, dir, t)
	if err != nil {
		return "", err
	}
	db := filepath.Join(dir, "sessions.db")
	if _, _, err := b.runImport(ctx, db, "pi", from); err != nil {
		return "", err
	}
	s, err := store.Open(ctx, db, store.Options{ReadOnly: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	path := filepath.Join(dir, "export.jsonl")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	all, _, err := s.Sessions(ctx, store.Filter{}, store.Page{Limit: 1})
	if err != nil || len(all) != 1 {
		return "", errors.Join(err, errors.New("the session is not there"))
	}
	w := own.NewWriter(f, s, nil)
	if err := w.Session(ctx, all[0].ID); err != nil {
		return "", err
	}
	return path, w.Close()
}

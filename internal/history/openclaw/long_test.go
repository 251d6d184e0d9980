package openclaw_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/history/historytest"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/testkit/effort"
)

// schemaOfLong is a database of one session with an event of many times ?SAID.
const schemaOfLong = `
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT, created_at INTEGER);
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, created_at INTEGER);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, PRIMARY KEY (session_id, seq)) ?ROWID;
INSERT INTO session_windows VALUES ('one', 'agent:main:main', 1767344400000);
INSERT INTO transcript_events VALUES ('one', 0, '{"type":"session","version":3,"id":"one","timestamp":"2026-01-02T09:00:00.000Z","cwd":"/w"}', 1767344400000),
	('one', 1, '{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-02T09:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"what does it say?"}]}}', 1767344401000),
	('one', 2, json_object('type', 'message', 'id', '2', 'parentId', '1', 'timestamp', '2026-01-02T09:00:02.000Z', 'message', json_object('role', 'user', 'content',
		json_array(json_object('type', 'text', 'text', replace(hex(zeroblob(100000)), '00', ?SAID))))), 1767344402000);`

func longDatabase(h *historytest.House, said, options string) string {
	dir := filepath.Join(h.TempDir(), "agents", "main", "agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.Fatal(err)
	}
	return h.Load(filepath.Join(dir, "openclaw-agent.sqlite"), strings.NewReplacer("?SAID", "'"+said+"'", "?ROWID", options).Replace(schemaOfLong))
}

// What is very long is stored as it is, whether SQLite gives it piece by piece or not.
func TestOpenClawLongEventIsStoredAsItIs(t *testing.T) {
	for _, options := range []string{"", "WITHOUT ROWID"} {
		t.Run(options, func(t *testing.T) {
			h := historytest.New(t, openclaw.New(historytest.NoEnv))
			const said = "a line, \"quoted\" and\tended\n"
			db := longDatabase(h, said, options)
			if done := h.Import(db); len(done.Errors) != 0 || done.Records.Imported != 4 {
				t.Fatalf("%+v", done)
			}
			rows := h.Entries(h.Session("main/one").ID)
			if got := rows[1].Text(); got != strings.Repeat(said, 100_000) {
				t.Errorf("another text of %d bytes", len(got))
			}
			h.Change(db, `INSERT INTO transcript_events VALUES ('one', 3, '{"type":"message","id":"3","parentId":"2","timestamp":"2026-01-02T09:00:03.000Z","message":{"role":"user","content":"and then?"}}', 1767344403000)`)
			if done := h.Import(db); done.Records.Imported != 1 {
				t.Errorf("again: %+v", done)
			}
			h.Examine()
		})
	}
}

func TestOpenClawEventOf50MBIsNotHeld(t *testing.T) {
	effort.NotShort(t, "long events take the way of short ones")
	h := historytest.New(t, openclaw.New(historytest.NoEnv))
	db := longDatabase(h, strings.Repeat("wide ", 100), "")
	historytest.ReadsWithoutHolding(t, h.Source, db, 2)
}

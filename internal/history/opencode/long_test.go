package opencode

import (
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/historytest"
	"sessiond/internal/testkit/effort"
)

const schemaOfLong = `CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, title TEXT, time_created INTEGER); INSERT INTO session VALUES ('s', 'p', 'one', 1770109200000);` + conversations + `
INSERT INTO message VALUES ('a', 's', 1770109200000, 0, '{"role":"user"}'), ('b', 's', 1770109201000, 0, '{"role":"assistant","time":{"created":1770109201000,"completed":1770109202000}}');
INSERT INTO part VALUES ('p1', 'a', 's', 0, 0, '{"type":"text","text":"what does it say?"}'), ('p2', 'b', 's', 0, 0, json_object('type', 'tool', 'tool', 'read', 'callID', 'c', 'state',
	json_object('status', 'completed', 'input', json('{}'), 'output', replace(hex(zeroblob(100000)), '00', ?SAID), 'time', json('{"start":1,"end":2}')))),
	('p3', 'b', 's', 0, 0, '{"type":"text","text":"much"}');`

// What is very long is stored as it would be if it were read whole, and known again.
func TestOpencodeLongPartIsStoredAsItIs(t *testing.T) {
	h := historytest.New(t, New(historytest.NoEnv, historytest.Later))
	const said = "a line, \"quoted\" and\tended\n"
	db := h.Load(t.TempDir()+"/opencode.db", strings.Replace(schemaOfLong, "?SAID", "'"+said+"'", 1))
	if done := h.Import(db); len(done.Errors) != 0 || done.Records.Imported != 6 {
		t.Errorf("%+v", done)
	}
	rows := h.Entries(h.Session("s").ID)
	want := strings.Repeat(said, 100_000)
	if got := rows[2].Parts[0].Blob; got == nil || got.Size != int64(len(want)) {
		t.Fatalf("%+v", rows[2].Parts[0])
	}
	blob, err := h.Store.Blob(t.Context(), rows[2].Parts[0].Blob.SHA256)
	if err != nil || string(blob.Data) != want {
		t.Errorf("another text of %d bytes: %v", len(blob.Data), err)
	}
	whole := historytest.New(t, New(historytest.NoEnv, historytest.Later))
	n := 0
	if _, err := whole.Source.Read(t.Context(), history.Found{Path: db, Whole: true}, nil, historytest.Nobody{}, func(b history.Batch) error {
		for i := range b.Messages {
			if b.Messages[i].ExternalID == "b" && string(b.Messages[i].Extra) == string(rows[1].Extra) {
				n++
			}
		}
		return nil
	}); err != nil || n != 1 {
		t.Errorf("read whole it says something else: %s, %v", rows[1].Extra, err)
	}
	h.Change(db, `UPDATE session SET title = 'two'`)
	if done := h.Import(db); done.Records.Imported != 0 {
		t.Errorf("again: %+v", done)
	}
	h.Examine()
}

func TestOpencodePartOf50MBIsNotHeld(t *testing.T) {
	effort.NotShort(t, "long parts take the way of short ones")
	h := historytest.New(t, New(historytest.NoEnv, historytest.Later))
	db := h.Load(t.TempDir()+"/opencode.db", strings.Replace(schemaOfLong, "?SAID", "'"+strings.Repeat("wide ", 100)+"'", 1))
	historytest.ReadsWithoutHolding(t, h.Source, db, 3)
}

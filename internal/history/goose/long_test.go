package goose

import (
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/historytest"
	"sessiond/internal/testkit/effort"
)

const schemaOfLong = schemaOfMany + `
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp) VALUES
	('a', 's', 'user', json_array(json_object('type', 'text', 'text', 'what does it say?')), 1770109200),
	('b', 's', 'assistant', json_array(json_object('type', 'toolRequest', 'id', 'c', 'toolCall', json('{"status":"success","value":{"name":"read","arguments":{}}}'))), 1770109201),
	('c', 's', 'user', json_array(json_object('type', 'toolResponse', 'id', 'c', 'toolResult', json_object('status', 'success', 'value',
		json_object('content', json_array(json_object('type', 'text', 'text', replace(hex(zeroblob(100000)), '00', ?SAID)), json_object('type', 'text', 'text', 'that is all')), 'isError', json('false'))))), 1770109202),
	('d', 's', 'assistant', json_array(json_object('type', 'text', 'text', 'much')), 1770109203);`

// What is very long is stored as it would be if it were read whole, and known again.
func TestGooseLongContentIsStoredAsItIs(t *testing.T) {
	h := historytest.New(t, New(historytest.NoEnv))
	const said = "a line, \"quoted\" and\tended\n"
	db := h.Load(t.TempDir()+"/sessions.db", strings.Replace(schemaOfLong, "?SAID", "'"+said+"'", 1))
	if done := h.Import(db); len(done.Errors) != 0 || done.Records.Imported != 5 {
		t.Errorf("%+v", done)
	}
	rows := h.Entries(h.Session("s").ID)
	want := strings.Repeat(said, 100_000) + "\nthat is all"
	if got := rows[2].Parts[0].Blob; got == nil || got.Size != int64(len(want)) {
		t.Fatalf("%+v", rows[2].Parts[0])
	}
	blob, err := h.Store.Blob(t.Context(), rows[2].Parts[0].Blob.SHA256)
	if err != nil || string(blob.Data) != want {
		t.Errorf("another text of %d bytes: %v", len(blob.Data), err)
	}
	if !strings.Contains(string(rows[2].Parts[0].Extra), `{"bytes":2700000},{"bytes":11}`) {
		t.Errorf("%s", rows[2].Parts[0].Extra)
	}
	whole := historytest.New(t, New(historytest.NoEnv))
	if _, err := whole.Source.Read(t.Context(), history.Found{Path: db, Whole: true}, nil, historytest.Nobody{}, func(b history.Batch) error {
		for i := range b.Messages {
			if b.Messages[i].ExternalID == "c#0" && string(b.Messages[i].Extra) != string(rows[2].Extra) {
				t.Errorf("read whole it has another name: %s, %s", b.Messages[i].Extra, rows[2].Extra)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	before := h.Rows()
	h.Change(db, `UPDATE sessions SET name = 'two'`)
	if done := h.Import(db); done.Records.Imported != 0 || h.Rows() < before {
		t.Errorf("again: %+v", done)
	}
	h.Examine()
}

func TestGooseContentOf50MBIsNotHeld(t *testing.T) {
	effort.NotShort(t, "long contents take the way of short ones")
	h := historytest.New(t, New(historytest.NoEnv))
	db := h.Load(t.TempDir()+"/sessions.db", strings.Replace(schemaOfLong, "?SAID", "'"+strings.Repeat("wide ", 100)+"'", 1))
	historytest.ReadsWithoutHolding(t, h.Source, db, 4)
}

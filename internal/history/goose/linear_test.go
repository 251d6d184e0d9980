package goose

import (
	"regexp"
	"testing"

	_ "modernc.org/sqlite" // makes the databases

	"sessiond/internal/testkit/historytest"
)

const conversations = `
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL,
	created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);
CREATE INDEX idx_messages_session ON messages(session_id);
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER, input_tokens INTEGER);
WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 19999)
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp)
	SELECT 'msg_' || i, 's', 'user', '[{"type":"text","text":"number ' || i || ', and what else is said"}]', 1770109200 + i FROM c;
INSERT INTO usage_ledger (session_id, created_timestamp, input_tokens) SELECT 's', created_timestamp, 5 FROM messages LIMIT 2000;`

// opened gives a database with a long conversation.
func opened(t *testing.T) *database {
	t.Helper()
	read, path := historytest.Reading(t, conversations)
	has, err := read.Schema(t.Context(), tableMessages, tableLedger)
	if err != nil {
		t.Fatal(err)
	}
	return &database{SQLite: read, ctx: t.Context(), path: path, has: has}
}

func TestStatementsOfAConversationUseIndexes(t *testing.T) {
	c := newRows(opened(t), tableMessages, `session_id = ?`, "s")
	for _, statement := range []string{c.inOrder(), c.byID()} {
		for _, step := range historytest.Plan(t, c.d.SQLite, statement, "x") {
			if !regexp.MustCompile(`^(SEARCH |SCAN j VIRTUAL TABLE)`).MatchString(step) {
				t.Errorf("%s\n%s", step, statement)
			}
		}
	}
}

// A conversation of n messages costs n/4096 statements, not one for each message.
func TestLongConversationTakesFewStatements(t *testing.T) {
	c := newRows(opened(t), tableMessages, `session_id = ?`, "s")
	readTwice(t, c, 20_000)
	if c.lookup.Opened() > 20 {
		t.Errorf("%d statements", c.lookup.Opened())
	}
}

func TestUsageOfALostSessionIsReadOnce(t *testing.T) {
	d := opened(t)
	c := &lostUsage{d: d, of: "s"}
	l := newRecords()
	defer l.close()
	s := scanner{records: l}
	var said []string
	err := c.scan(t.Context(), func(in *row) error {
		s.add(in)
		said = append(said, string(in.content))
		return nil
	})
	if err != nil || len(said) != 2000 {
		t.Fatalf("%d rows: %v", len(said), err)
	}
	c.d = &database{has: d.has} // nothing can be asked now
	for i := range 2000 {
		if in, err := c.load(t.Context(), l, i); err != nil || in.id != int64(i) || in.broken == "" || string(in.content) != said[i] {
			t.Fatalf("row %d: %+v, %v", i, in, err)
		}
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

// readTwice reads a conversation as an import does: all of it, then what is not known, in order.
func readTwice(t *testing.T, c conversation, n int) {
	t.Helper()
	l := newRecords()
	defer l.close()
	s := scanner{records: l}
	var said []string
	err := c.scan(t.Context(), func(in *row) error {
		s.add(in)
		said = append(said, string(in.content))
		return nil
	})
	if err != nil || l.len() != n {
		t.Fatalf("%d messages: %v", l.len(), err)
	}
	for i := range n {
		l.at(i).known = i%100 == 99
	}
	for i := range n {
		if l.at(i).known {
			continue
		}
		in, err := c.load(t.Context(), l, i)
		if err != nil || string(in.content) != said[i] {
			t.Fatalf("message %d is another one when it is read again: %s, %v", i, in.content, err)
		}
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

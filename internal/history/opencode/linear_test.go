package opencode

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // makes the databases

	"sessiond/internal/history"
	"sessiond/internal/testkit/historytest"
)

const conversations = `
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE INDEX part_session_idx ON part (session_id);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);`

// indexes are those of opencode's releases.
var indexes = map[string]string{
	"1.2.1":   `CREATE INDEX message_session_idx ON message (session_id); CREATE INDEX part_message_idx ON part (message_id);`,
	"1.18.33": `CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id); CREATE INDEX part_message_id_id_idx ON part (message_id, id);`,
}

// opened gives a database of SQL, open for reading.
func opened(t *testing.T, scripts ...string) *database {
	t.Helper()
	read, path := historytest.Reading(t, scripts...)
	return &database{SQLite: read, ctx: t.Context(), path: path}
}

// search is a step of a plan that does not read a whole table.
var search = regexp.MustCompile(`^(SEARCH |SCAN j VIRTUAL TABLE|CORRELATED SCALAR SUBQUERY|LIST SUBQUERY|CREATE BLOOM FILTER)`)

func TestStatementsOfAConversationUseIndexes(t *testing.T) {
	more := map[string][]any{partsByID: {1 << 20}}
	sorts := map[string]bool{idsOfMessages: true, lostMessages: true} // of ids
	for release, index := range indexes {
		d := opened(t, conversations, index)
		for _, statement := range []string{idsOfMessages, messagesByID, partsByID, lostMessages, partsOfLost, sizeOfPart, wholePart, bySeqV2, byRowV2} {
			for _, step := range historytest.Plan(t, d.SQLite, statement, append([]any{"x"}, more[statement]...)...) {
				if !search.MatchString(step) && !(sorts[statement] && strings.HasPrefix(step, "USE TEMP B-TREE")) {
					t.Errorf("%s: %s\n%s", release, step, statement)
				}
			}
		}
	}
}

// A conversation of n messages costs n/4096 statements, not one for each message.
func TestLongConversationTakesFewStatements(t *testing.T) {
	const n = 20_000
	count := `WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 19999) `
	first := conversations + indexes["1.18.33"] + count + `INSERT INTO message SELECT printf('msg_%05d', i), 's', 1770109200000 + i, 0,
		'{"role":"user","time":{"created":' || (1770109200000 + i) || '}}' FROM c;` +
		count + `INSERT INTO part SELECT printf('prt_%05d_%d', i, k), printf('msg_%05d', i), 's', 0, 0,
		'{"type":"text","text":"part ' || k || ' of ' || i || ', and what is said"}' FROM c, (SELECT 0 AS k UNION SELECT 1) WHERE i % 3 <> 0 OR k = 0`
	second := conversations + count + `INSERT INTO session_message SELECT printf('msg_%05d', i), 's', 'user', 1770109200000 + i, 0, '{"text":"number ' || i || '"}', i FROM c`
	t.Run("messages and parts", func(t *testing.T) {
		c := newRows(opened(t, first), "s")
		readTwice(t, c, n, n+n-(n+2)/3+n)
		if c.lookup.Opened() > 40 {
			t.Errorf("%d statements", c.lookup.Opened())
		}
	})
	t.Run("version 2", func(t *testing.T) {
		d := opened(t, second)
		d.has = map[string][]string{tableMessageV2: {"seq"}}
		c := newTwoVersions(d, "s", nil, &history.Records{})
		readTwice(t, c, n, n)
		if c.lookup.Opened() > 20 {
			t.Errorf("%d statements", c.lookup.Opened())
		}
	})
}

// readTwice reads a conversation as an import does: all of it, then what is not known, in order.
func readTwice(t *testing.T, c conversation, messages, rows int) {
	t.Helper()
	l := newRecords()
	defer l.close()
	err := c.scan(t.Context(), func(in *message) error {
		r := recordOf(in, nil)
		l.add(&r)
		rows -= in.records
		return nil
	})
	if err != nil || l.n != messages || rows != 0 {
		t.Fatalf("%d messages, %d rows too few: %v", l.n, rows, err)
	}
	for i := range l.n {
		l.at(i).known = i%100 == 99
	}
	for i := range l.n {
		if l.at(i).known {
			continue
		}
		in, err := c.load(t.Context(), l, i)
		if err != nil {
			t.Fatal(err)
		}
		if again, r := recordOf(in, nil), l.record(i); again.id != r.id || again.hash != r.hash {
			t.Fatalf("message %d is another one when it is read again: %s", i, again.id)
		}
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

func TestConversationStopsWhenItIsCancelled(t *testing.T) {
	d := opened(t, conversations, indexes["1.18.33"], `INSERT INTO message VALUES ('a', 's', 1, 1, '{}'), ('b', 's', 2, 2, '{}')`)
	ctx, cancel := context.WithCancel(t.Context())
	c := newRows(d, "s")
	err := c.scan(ctx, func(*message) error { cancel(); return ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := c.close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

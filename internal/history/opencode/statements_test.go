package opencode

import (
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // makes the databases

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

// search is a step of a plan that does not read a whole table.
var search = regexp.MustCompile(`^(SEARCH |CORRELATED SCALAR SUBQUERY)`)

func TestStatementsOfAConversationUseIndexes(t *testing.T) {
	sorts := map[string]bool{lostMessages: true} // of ids
	for release, index := range indexes {
		read, _ := historytest.Reading(t, conversations, index)
		for _, statement := range []string{messagesOf, messageAt, partsOfMessage, lostMessages, bySeqV2, byRowV2} {
			args := []any{"x"}
			if strings.Contains(statement, "?2") {
				args = append(args, 1<<20)
			}
			for _, step := range historytest.Plan(t, read, statement, args...) {
				if !search.MatchString(step) && !(sorts[statement] && strings.HasPrefix(step, "USE TEMP B-TREE")) {
					t.Errorf("%s: %s\n%s", release, step, statement)
				}
			}
		}
	}
}

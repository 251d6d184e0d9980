package goose

import (
	"strings"
	"testing"

	_ "modernc.org/sqlite" // makes the databases

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func TestStatementsOfAConversationUseIndexes(t *testing.T) {
	opened, _ := historytest.Reading(t, `
		CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL,
			created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);
		CREATE INDEX idx_messages_session ON messages(session_id);`)
	has := testkit.Must(opened.Schema(t.Context(), tableMessages))(t)
	d := &database{SQLite: opened, ctx: t.Context(), has: has}
	for _, where := range []string{ofSession, ofID} {
		for _, step := range historytest.Plan(t, opened, d.statement(tableMessages, where), "x") {
			if !strings.HasPrefix(step, "SEARCH ") {
				t.Errorf("%s\n%s", step, where)
			}
		}
	}
}

package goose

import (
	"encoding/json"
	"hash/maphash"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"

	_ "modernc.org/sqlite" // makes the databases
)

// Whatever a row holds becomes a message that can be stored, the same one each time.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`[{"type":"text","text":"Done.","annotations":{"audience":["user"],"priority":0.5}}]`,
		`[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"document","data":"JVBERi0xLjQ=","mimeType":"application/pdf","name":"spec.pdf"}]`,
		`[{"type":"toolRequest","id":"call_1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls"}}},"_meta":{"goose.toolSummary.title":"list files"}}]`,
		`[{"type":"toolRequest","id":"call_2","toolCall":{"status":"error","error":"arguments are not valid JSON"}}]`,
		`[{"type":"toolResponse","id":"call_1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"a"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"resource","resource":{"uri":"file:///x","blob":"AAEC"}}],"isError":false}}}]`,
		`[{"type":"toolResponse","id":"call_3","toolResult":{"status":"success","value":[{"type":"text","text":"older shape"}]}}]`,
		`[{"type":"thinking","thinking":"The lexer drops CR.","signature":"Er0B"},{"type":"redactedThinking","data":"AAECAw=="},{"type":"reasoning","text":"older"}]`,
		`[{"type":"systemNotification","notificationType":"inlineMessage","msg":"Compaction complete"},{"type":"error","kind":"other","message":"x"}]`,
		`"[]"`, `[1,{}]`, `{`, ``, "\xff",
	} {
		f.Add("user", seed, `{"userVisible":true,"agentVisible":false,"usage":{"inputTokens":1}}`, "1773478800")
		f.Add("assistant", seed, ``, "1773478800250")
	}
	f.Fuzz(func(t *testing.T, role, content, metadata, created string) {
		in := &row{ID: 1, Role: role, Content: []byte(content), Metadata: []byte(metadata), Created: []byte(created)}
		read := &reader{seed: maphash.MakeSeed()}
		read.add(in)
		read.add(in)
		for i := range read.records {
			read.identifyRecord(&read.records[i], history.NewPrints(nil), read.records[i].print, i)
		}
		r, again := read.records[0], read.records[1]
		if r.print != again.print || r.key == again.key {
			t.Errorf("the same row has two prints, or one name: %+v %+v", r, again)
		}
		for _, how := range []shown{{}, {marker: true}, {hidden: true, between: true}} {
			r.shown = how
			m := decode(&r, in, session.Person)
			if len(m.Parts) > session.MaxParts || !json.Valid(m.Extra) || m.ExternalID == "" {
				t.Errorf("%+v", m)
			}
			for i := range m.Parts {
				p := &m.Parts[i]
				if p.Extra != nil && !json.Valid(p.Extra) || p.Text != history.Plain(p.Text) {
					t.Errorf("%+v", p)
				}
			}
		}
		compactions(read.records)
	})
}

func FuzzFileLine(f *testing.F) {
	f.Add(`{"id":null,"role":"user","created":1758810612,"content":[{"type":"text","text":"why does it fail?"}]}`)
	f.Add(`{"working_dir":"/home/ana/parser","description":"Lexer bug","accumulated_usage":{"input_tokens":1},"model_config":{"model_name":"m"}}`)
	f.Fuzz(func(t *testing.T, line string) {
		in := rowOf([]byte(line))
		if in.broken == "" && (in.Role == "" && in.Content == nil) {
			t.Error("nothing was read, and nobody says so")
		}
		if o, _, ok := history.ParseLine([]byte(line)); ok {
			a := aboutFile(o)
			if len(a.notes) > 0 && !json.Valid(a.notes.Column()) {
				t.Errorf("%s", a.notes.Column())
			}
		}
	})
}

func TestStatementsOfAConversationUseIndexes(t *testing.T) {
	opened, _ := historytest.Reading(t, `
		CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL,
			created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);
		CREATE INDEX idx_messages_session ON messages(session_id);`)
	has := opened.Schema(tableMessages)
	d := &database{SQLite: opened, has: has}
	for _, step := range historytest.Plan(t, opened, d.statement(tableMessages, ofSession), "x") {
		if !strings.HasPrefix(step, "SEARCH ") {
			t.Error(step)
		}
	}
}

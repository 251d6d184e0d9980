package opencode

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"

	_ "modernc.org/sqlite" // makes the databases
)

// Whatever a message and a part hold becomes messages that can be stored, the same each time.
func FuzzDecode(f *testing.F) {
	const reply = `{"role":"assistant","parentID":"a","modelID":"m1","providerID":"mock","time":{"created":1770109201000,"completed":1770109203000},"cost":0.00116,"tokens":{"total":1070,"input":620,"output":30,"reasoning":20,"cache":{"read":400,"write":0}},"finish":"tool-calls"}`
	for _, part := range []string{
		`{"type":"text","text":"I read the file.","time":{"start":1770109201500}}`,
		`{"type":"reasoning","text":"One read is enough.","metadata":{"s":"x"}}`,
		`{"type":"tool","tool":"read","callID":"call_1","state":{"status":"completed","input":{"filePath":"a"},"output":"1: hello","time":{"start":1770109202000,"end":1770109202040,"compacted":1770112800000},"attachments":[{"type":"file","mime":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}]}}`,
		`{"type":"tool","tool":"bash","callID":"c","state":{"status":"error","input":{},"error":"no","metadata":{"interrupted":true,"output":"half"},"time":{"start":1,"end":0}}}`,
		`{"type":"tool","tool":"read","callID":"c","state":{"status":"pending","input":{},"raw":"{"}}`,
		`{"type":"file","mime":"image/png","filename":"shot.png","url":"data:image/png;base64,iVBORw0KGgo="}`,
		`{"type":"compaction","auto":true,"tail_start_id":"msg_1"}`, `{"type":"subtask","prompt":"Count"}`,
		`{"type":"patch","files":[]}`,
		`{"type":"step-finish","cost":1,"tokens":{"input":5}}`, `{`, `[]`, `1`, "\xff", ``,
	} {
		f.Add(reply, part, reply)
		f.Add(`{"role":"user","time":{"created":1770109200000},"summary":{"diffs":[{"file":"a","before":"x"}]}}`, part, part)
	}
	f.Add(`{"role":"assistant","error":{"name":"APIError","data":{"message":"x","responseHeaders":{"set-cookie":"y","x-request-id":"z"}}}}`, ``, `{"text":"x"}`)
	f.Fuzz(func(t *testing.T, data, first, second string) {
		in := &message{
			id: "msg_1", data: parse([]byte(data)),
			parts:   []part{{"prt_1", parse([]byte(first))}, {"prt_2", parse([]byte(second))}, {"prt_3", parse([]byte(first))}},
			records: 4,
		}
		check(t, in)
		if o, ok := jsonx.ReadObject([]byte(data)); ok {
			if o.Get("parts") != nil {
				inner, parts := inline("msg_1", o)
				check(t, &message{id: "msg_1", data: inner, parts: parts, records: 1})
			}
			if a := aboutObject(o); len(a.notes) > 0 && !json.Valid(a.notes.Column()) {
				t.Errorf("%s", a.notes.Column())
			}
		}
		for _, kind := range []string{"user", "assistant", "compaction", "shell", "skill", "model-switched", "other"} {
			row := row{ID: "e", Type: kind, Data: []byte(data)}
			check(t, row.message())
		}
	})
}

func check(t *testing.T, in *message) {
	t.Helper()
	r, again := recordOf(in), recordOf(in)
	if r.hash != again.hash {
		t.Error("the same message has two hashes")
	}
	r.key = r.name()
	made := decode(r, in, session.Person)
	seen := map[string]bool{}
	for i := range made.Messages {
		m := &made.Messages[i]
		if len(m.Parts) > session.MaxParts || m.Extra != nil && !json.Valid(m.Extra) || m.ExternalID == "" ||
			seen[m.ExternalID] {
			t.Errorf("%+v", m)
		}
		seen[m.ExternalID] = true
		for k := range m.Parts {
			p := &m.Parts[k]
			if p.Extra != nil && !json.Valid(p.Extra) || p.Text != clean(p.Text) {
				t.Errorf("%+v", p)
			}
		}
	}
}

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
		for _, statement := range []string{messagesOf, partsOfMessage, lostMessages, bySeqV2} {
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

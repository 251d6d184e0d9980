package goose_test

import (
	"testing"

	"sessiond/internal/history/goose"
	"sessiond/internal/testkit/historytest"
)

const (
	metadata = `{"working_dir":"/home/dev/parser","description":"Lexer bug","message_count":3,"schedule_id":null,"total_tokens":12,"accumulated_input_tokens":9}`
	asks     = `{"id":null,"role":"user","created":1758810612,"content":[{"type":"text","text":"why does it fail?"}]}`
	calls    = `{"role":"assistant","created":1758810613,"content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls"}}}}],"metadata":{"userVisible":true,"agentVisible":false}}`
	answers  = `{"role":"user","created":1758810614,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"a"}]}}]}`
)

// The files of before the database: a message in each line.
func FuzzLines(f *testing.F) {
	f.Add([]byte(metadata + "\n" + asks + "\n" + calls + "\n" + answers + "\n"))
	f.Add([]byte(asks + "\n\n{broken\n" + asks + "\n" + calls))
	f.Add([]byte(metadata + "\n" + `{"role":"assistant","created":"x","content":[{"type":"text","text":"\ud800"}],"metadata":{"inactive":1}}` + "\n\xff\n" + asks + "\n"))
	historytest.FuzzFile(f, "20250925_1.jsonl", goose.New(historytest.NoEnv))
}

// An export: one object with a list.
func FuzzExport(f *testing.F) {
	begin := `{"id":"20260211_1","working_dir":"/home/dev","name":"n","session_type":"user","created_at":"2026-02-11T09:00:00Z","accumulated_input_tokens":5,"provider_name":"p","model_config":{"model_name":"m"},"conversation":[`
	f.Add([]byte(begin + asks + "," + calls + "," + answers + "]}"))
	f.Add([]byte(begin + `{"role":"user","created":1,"content":[{"type":"contextLengthExceeded","msg":"x"}]},7,null]}`))
	f.Add([]byte(`{"conversation":[` + asks + `],"name":1,"recipe":{}}`))
	f.Add([]byte(begin + asks + ","))
	historytest.FuzzFile(f, "export.json", goose.New(historytest.NoEnv))
}

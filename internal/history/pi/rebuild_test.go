package pi_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// Every field of every line must be found again in the rows: the line is built anew from
// them and compared, as a JSON value, with the file.
func TestPiRowsHoldEveryField(t *testing.T) {
	for _, path := range [][]string{
		{"large-session.jsonl"},
		{"before-compaction.jsonl"},
		{"v3", "--home-dev-demo--", "*e142.jsonl"},
		{"v3", "--home-dev-demo--", "*3ab0.jsonl"},
		{"v3-harness", "*.jsonl"},
		{"v4-harness", "*e6c9e6253dc5.jsonl"},
		{"v4-harness", "*e6d1a35ee98b.jsonl"},
		{"made", "cycle-and-orphan.jsonl"},
		{"made", "v1-compaction.jsonl"},
		{"made", "v2-hook-message.jsonl"},
	} {
		t.Run(strings.Join(path, "/"), func(t *testing.T) {
			h := newHouse(t)
			file := sample(t, path...)
			h.Import(file)
			lines := strings.Split(strings.TrimSpace(historytest.Read(t, file)), "\n")
			var header struct{ ID string }
			testkit.Check(t, json.Unmarshal([]byte(lines[0]), &header))
			s := h.Session(header.ID)
			h.rebuilt(s.ID, lines[1:])
		})
	}
}

func TestPiRowsHoldEveryFieldOfUnusualLines(t *testing.T) {
	head := `{"type":"session","version":3,"id":"odd","timestamp":"2026-01-02T09:00:00.000Z","cwd":"/home/dev"}`
	lines := []string{
		`{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-02T09:00:01Z","message":{"role":"user","content":null}}`,
		`{"type":"message","id":"2","parentId":"1","timestamp":"yesterday","message":{"role":"user","timestamp":1767344460000}}`,
		`{"type":"message","id":"3","parentId":"2","timestamp":"2026-01-02T09:00:03.000Z","message":{"role":"user","content":7}}`,
		`{"type":"message","id":"4","parentId":"3","timestamp":"2026-01-02T09:00:04.000Z","message":{"role":"user","content":"nul \u0000 and half \ud83d"}}`,
		`{"type":"message","id":"5","parentId":"4","timestamp":"2026-01-02T09:00:05.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c|1","name":"read","arguments":{"b": 1.0,"a":"<&>\u2028"},"thoughtSignature":"s"},{"type":"strange","x":1},"bare",{"type":"image","data":"!!","mimeType":"image/png"}],"stopReason":"novel","model":"m","responseModel":"n","diagnostics":[1]}}`,
		`{"type":"message","id":"6","parentId":"5","timestamp":"2026-01-02T09:00:06.000Z","message":{"role":"toolResult","toolCallId":"c|1","toolName":"read","isError":true,"content":[{"type":"text","text":"a","textSignature":"q"},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"b"}],"nestedCalls":{"calls":[{"id":"n","name":"x","status":"ok"}],"complete":true}}}`,
		`{"type":"message","id":"7","parentId":"6","timestamp":"2026-01-02T09:00:07.000Z","message":{"role":"toolResult","toolCallId":"nobody","toolName":"read","content":[{"type":"text","text":""}]}}`,
		`{"type":"message","id":"8","parentId":"7","timestamp":"2026-01-02T09:00:08.000Z","message":{"role":"bashExecution","command":"x","output":"","exitCode":2,"cancelled":false,"truncated":true,"fullOutputPath":"/tmp/x"}}`,
		`{"type":"message","id":"9","parentId":"8","timestamp":"2026-01-02T09:00:09.000Z","message":{"role":"oracle","content":"?"}}`,
		`{"type":"message","id":"10","parentId":"9","timestamp":"2026-01-02T09:00:10.000Z","message":"none"}`,
		`{"type":"message","id":"11","parentId":"10","timestamp":"2026-01-02T09:00:11.000Z","message":{"role":"system","content":"x","sections":{"a":null,"b":"c"},"toolsRemoved":[{"name":"read"}]}}`,
		`{"type":"custom_message","id":"12","parentId":"11","timestamp":"2026-01-02T09:00:12.000Z","customType":"x","content":"hidden","display":false}`,
		`{"type":"branch_summary","id":"13","parentId":"12","timestamp":"2026-01-02T09:00:13.000Z","fromId":"root","summary":""}`,
		`{"type":"message","id":"14","parentId":"13","timestamp":"2026-01-02T09:00:14.000Z","message":{"role":"branchSummary","summary":"s","fromId":"1"}}`,
		`{"a":1}`,
	}
	h := newHouse(t)
	h.Import(h.Write("odd.jsonl", append([]string{head}, lines...)...))
	h.rebuilt(h.Session("odd").ID, lines)
	odd := h.Entries(h.Session("odd").ID)
	if text := odd[3].Text(); text != "nul \ufffd and half \ufffd" {
		t.Errorf("text for reading is %q", text)
	}
	if odd[11].Display || !odd[11].InContext {
		t.Error("display:false hides from people, not from the model")
	}
	if text := odd[7].Text(); text != "Ran `x`\n(no output)\n\nCommand exited with code 2\n\n"+
		"[Output truncated. Full output: /tmp/x]" {
		t.Errorf("a command reads %q", text)
	}
}

func (h *house) rebuilt(id session.ID, lines []string) {
	h.Helper()
	rows := h.Entries(id)
	if len(rows) != len(lines) {
		h.Fatalf("%d rows of %d lines", len(rows), len(lines))
	}
	keys := map[int64]string{}
	for i := range rows {
		keys[rows[i].RowID] = rows[i].ExternalID
		var want any
		if err := json.Unmarshal([]byte(lines[i]), &want); err != nil {
			if rows[i].Parts[0].Text != lines[i] {
				h.Errorf("broken line %d is kept as %q", i, rows[i].Parts[0].Text)
			}
			continue
		}
		if diff := cmp.Diff(want, any(rebuild(h.T, &rows[i], keys))); diff != "" {
			h.Errorf("line %d: -file +rows\n%s", i+2, diff)
		}
	}
}

// rebuild makes a line from its row. What a column holds is put back where extra lacks it.
func rebuild(t *testing.T, m *session.Message, keys map[int64]string) map[string]any {
	t.Helper()
	var extra struct {
		Line  map[string]any
		Shape string
	}
	testkit.Check(t, json.Unmarshal(m.Extra, &extra))
	line := extra.Line
	if line == nil {
		line = map[string]any{}
	}
	put := func(in map[string]any, key string, value any) {
		if _, ok := in[key]; !ok {
			in[key] = value
		}
	}
	if _, ok := line["seq"]; ok { // version 4
		if line["kind"] == "record" {
			put(line, "id", m.ExternalID)
			put(line, "timestamp", float64(m.CreatedAt.UnixMilli()))
		}
		if line["kind"] != "entry" {
			return line
		}
		put(line, "timestamp", float64(m.CreatedAt.UnixMilli()))
	}
	if _, ok := line["type"]; !ok {
		return line
	}
	put(line, "timestamp", m.CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z"))
	if !strings.HasPrefix(m.ExternalID, "v1:") {
		put(line, "id", m.ExternalID)
		if m.ParentID == nil {
			put(line, "parentId", nil)
		} else {
			put(line, "parentId", keys[*m.ParentID])
		}
	}
	into := line
	switch line["type"] {
	case "message":
		message, ok := line["message"].(map[string]any)
		if !ok {
			return line
		}
		into = message
	case "branch_summary":
		put(line, "summary", m.Text())
		return line
	case "custom_message":
		put(line, "display", m.Display)
	default:
		return line
	}
	rebuildMessage(into, m, extra.Shape, put)
	return line
}

func rebuildMessage(into map[string]any, m *session.Message, shape string, put func(map[string]any, string, any)) {
	parts := m.Parts
	switch {
	case m.Kind == session.KindBranchSummary:
		put(into, "summary", m.Text())
		return
	case m.Kind == session.KindUnknown:
		return
	case m.Kind == session.KindBash:
		var extra struct{ Output []int }
		if json.Unmarshal(parts[0].Extra, &extra) == nil && extra.Output != nil {
			put(into, "output", parts[0].Content()[extra.Output[0]:extra.Output[1]])
		}
		return
	case m.Kind == session.KindCustomMessage:
		put(into, "display", m.Display)
	case m.Role == session.Assistant:
		put(into, "role", "assistant")
		finish := map[session.Finish]string{
			"stop": "stop", "tool_calls": "toolUse", "length": "length", "error": "error", "aborted": "aborted",
			"paused": "deferred",
		}[m.Finish]
		for key, value := range map[string]string{"model": m.Model, "provider": m.Provider, "stopReason": finish} {
			if value != "" {
				put(into, key, value)
			}
		}
	case m.Role == session.User:
		put(into, "role", "user")
	case m.Role == session.Tool:
		put(into, "role", "toolResult")
		put(into, "toolCallId", parts[0].CallID)
		put(into, "toolName", parts[0].ToolName)
		if parts[0].IsError != nil {
			put(into, "isError", *parts[0].IsError)
		}
	case m.Role == session.System:
		sections := map[string]any{}
		for len(parts) > 0 {
			var extra struct{ Section string }
			last := parts[len(parts)-1]
			if json.Unmarshal(last.Extra, &extra) != nil || extra.Section == "" {
				break
			}
			sections[extra.Section] = last.Text
			parts = parts[:len(parts)-1]
		}
		put(into, "sections", sections)
	}
	switch shape {
	case "string":
		text := ""
		if len(parts) > 0 {
			text = parts[0].Content()
			var extra struct{ Text *jsontext.Value }
			if json.Unmarshal(parts[0].Extra, &extra) == nil && extra.Text != nil {
				_ = json.Unmarshal(*extra.Text, &text)
			}
		}
		put(into, "content", text)
	case "null":
		put(into, "content", nil)
	case "absent":
	case "other":
		put(into, "content", blockOf(parts[0]))
	default:
		put(into, "content", blocksOf(m.Role, parts))
	}
}

func blocksOf(role session.Role, parts []session.Part) []any {
	blocks := []any{}
	if role == session.Tool {
		var extra struct {
			Blocks []struct {
				Bytes *int
				Rest  map[string]any
				Part  int
			}
		}
		text := parts[0].Content()
		if parts[0].Extra == nil {
			if text == "" && len(parts) == 1 {
				return blocks
			}
			return append(blocks, map[string]any{"type": "text", "text": text})
		}
		_ = json.Unmarshal(parts[0].Extra, &extra)
		for _, b := range extra.Blocks {
			if b.Bytes == nil {
				blocks = append(blocks, blockOf(parts[b.Part]))
				continue
			}
			block := map[string]any{"type": "text", "text": text[:*b.Bytes]}
			for key, value := range b.Rest {
				block[key] = value
			}
			blocks = append(blocks, block)
			text = strings.TrimPrefix(text[*b.Bytes:], "\n")
		}
		return blocks
	}
	for _, p := range parts {
		blocks = append(blocks, blockOf(p))
	}
	return blocks
}

func blockOf(p session.Part) any {
	extra := map[string]any{}
	if p.Extra != nil {
		_ = json.Unmarshal(p.Extra, &extra)
	}
	block := map[string]any{}
	switch p.Kind {
	case session.PartText:
		block = map[string]any{"type": "text", "text": p.Content()}
	case session.PartReasoning:
		block = map[string]any{"type": "thinking", "thinking": p.Content()}
	case session.PartToolCall:
		var arguments any
		_ = json.Unmarshal([]byte(p.Arguments), &arguments)
		block = map[string]any{"type": "toolCall", "id": p.CallID, "name": p.ToolName, "arguments": arguments}
	case session.PartImage:
		block = map[string]any{
			"type": "image", "data": base64.StdEncoding.EncodeToString(p.Blob.Data),
			"mimeType": p.Blob.MediaType,
		}
	case session.PartData:
		return extra["block"]
	}
	for key, value := range extra {
		block[key] = value
	}
	return block
}

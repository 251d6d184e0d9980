package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/dialecttest"
	"sessiond/internal/dialect/wire"
)

// longConversation gives 200 entries as an agent's are: thinking, a call, its result.
func longConversation() []json.RawMessage {
	var raw []json.RawMessage
	for i := 0; len(raw) < 200; i++ {
		raw = append(raw,
			json.RawMessage(fmt.Sprintf(`{"role":"user","content":"Please look at file number %d and say what it does."}`, i)),
			json.RawMessage(fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"thinking","thinking":"%s","signature":"%s"},{"type":"text","text":"I will read it."},{"type":"tool_use","id":"toolu_%d","name":"read","input":{"path":"/src/file%d.go","limit":200}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":100}}`, i, strings.Repeat("It is about files. ", 10), strings.Repeat("Eq+/", 100), i, i)),
			json.RawMessage(fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":[{"type":"text","text":"%s"}]}]}`, i, strings.Repeat(`func main() {\n\tprintln(\"hello\")\n}\n`, 20))),
			json.RawMessage(`{"role":"assistant","content":[{"type":"text","text":"It prints hello."}]}`),
		)
	}
	return raw
}

func BenchmarkDecode200(b *testing.B) {
	raw := longConversation()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := anthropic.Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSend200(b *testing.B) {
	decoded, err := anthropic.Decode(longConversation())
	if err != nil {
		b.Fatal(err)
	}
	in := wire.Request{System: "Be short.", Messages: dialecttest.Stored(b, decoded.Messages), Model: "claude-opus-4-6"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := anthropic.Send(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExport200(b *testing.B) {
	decoded, err := anthropic.Decode(longConversation())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := anthropic.Export(decoded.Messages); err != nil {
			b.Fatal(err)
		}
	}
}

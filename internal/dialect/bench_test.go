package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// conversation is 200 messages of an agent's: a question, a call, its result, an answer.
func conversation() []session.Message {
	of := func(role session.Role, parts ...session.Part) session.Message {
		return session.Message{Kind: session.KindMessage, Role: role, InContext: true, Parts: parts}
	}
	var msgs []session.Message
	for i := 0; len(msgs) < 200; i++ {
		id := fmt.Sprintf("call_%d", i)
		msgs = append(
			msgs,
			of(session.User, session.TextPart(fmt.Sprintf("Please look at file number %d and say what it does.", i))),
			of(session.Assistant, session.TextPart("I will read it."),
				session.Part{
					Kind: session.PartToolCall, CallID: id, ToolName: "read",
					Arguments: fmt.Sprintf(`{"path":"/src/file%d.go","limit":200}`, i),
				}),
			of(session.Tool, session.Part{
				Kind: session.PartToolResult, CallID: id, ToolName: "read",
				Text: strings.Repeat("func main() {\n\tprintln(\"hello\")\n}\n", 20),
			}),
			of(session.Assistant, session.TextPart("It prints hello.")),
		)
	}
	return msgs
}

func BenchmarkForms(b *testing.B) {
	for _, form := range dialecttest.Forms() {
		wire := testkit.Must(dialect.Export(form, conversation()))(b)
		decoded := testkit.Must(dialect.Decode(form, wire))(b)
		in := dialect.Request{
			System: "Be short.", Messages: dialecttest.Stored(b, decoded.Messages),
			Borders: []int{-1, len(decoded.Messages) - 1},
		}
		for _, step := range []struct {
			name string
			run  func() error
		}{
			{"decode", func() error { _, err := dialect.Decode(form, wire); return err }},
			{"send", func() error { _, err := dialect.Send(form, in); return err }},
			{"export", func() error { _, err := dialect.Export(form, decoded.Messages); return err }},
		} {
			b.Run(form+"/"+step.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					testkit.Check(b, step.run())
				}
			})
		}
	}
}

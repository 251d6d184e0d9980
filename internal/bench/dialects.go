package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// talked is how many messages the conversation has that the dialects are measured with.
const talked = 200

// conversation is an agent's: a question, a call, its result, an answer, again and again.
func conversation() []session.Message {
	a := newAuthor(4)
	var msgs []session.Message
	for i := 0; len(msgs) < talked; i++ {
		id := fmt.Sprintf("call_%d", i)
		call := textMessage(session.Assistant, session.Model, a.sentence(20))
		call.Finish = session.FinishToolCalls
		call.Parts = append(call.Parts, session.Part{Kind: session.PartToolCall, CallID: id, ToolName: "read", Arguments: fmt.Sprintf(`{"path":"/src/file%d.go","limit":200}`, i)})
		result := textMessage(session.Tool, session.ByTool, "")
		result.Parts = []session.Part{{Kind: session.PartToolResult, CallID: id, ToolName: "read", Text: a.sentence(60) + "\n\t\"" + a.sentence(60) + "\"\n"}}
		msgs = append(msgs, textMessage(session.User, session.Person, a.sentence(30)), call, result, textMessage(session.Assistant, session.Model, a.sentence(40)))
	}
	return msgs
}

// dialects measures what the wire forms cost beside the store: reading 200 messages, and making
// a context of them that the store has read.
func (b *bench) dialects(ctx context.Context) (err error) {
	s, err := store.Open(ctx, filepath.Join(b.work, "dialects", "sessions.db"), options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, form := range []string{dialect.OpenAIChat, dialect.OpenAIResponses, dialect.Anthropic, dialect.Gemini} {
		wire, err := dialect.Export(form, conversation())
		if err != nil {
			return err
		}
		decoded, err := dialect.Decode(form, wire)
		if err != nil {
			return err
		}
		made, err := s.CreateSession(ctx, store.NewSession{})
		if err != nil {
			return err
		}
		stored, err := s.Append(ctx, store.Append{Session: made.ID, Messages: decoded.Messages})
		if err != nil {
			return err
		}
		head := stored.Messages[len(stored.Messages)-1].RowID
		path, err := s.Path(ctx, head, 0)
		if err != nil {
			return err
		}
		times, err := race(ctx, b.rounds, b.count(100),
			variant{name: "decode " + form, run: func(_ context.Context, n int) error {
				return each(n, func(int) error {
					_, err := dialect.Decode(form, wire)
					return err
				})
			}},
			variant{name: "encoding/json", run: func(_ context.Context, n int) error { return each(n, func(int) error { return asMaps(wire) }) }},
			variant{name: "context in " + form, run: func(_ context.Context, n int) error {
				return each(n, func(int) error {
					draft := contextmgr.Assemble(contextmgr.Material{
						System: b.text, Messages: path, Dialect: form, Policy: contextmgr.PolicyOf("", form, model), Weigh: known{},
					})
					_, err := dialect.Send(form, dialect.Request{System: draft.System, Messages: draft.Messages(), Model: model, Borders: []int{-1, talked - 1}})
					return err
				})
			}},
			variant{name: "path", run: func(ctx context.Context, n int) error {
				return each(n, func(int) error { return s.Walk(ctx, head, func(session.Message) bool { return true }) })
			}},
		)
		if err != nil {
			return err
		}
		most := []aim{{atMost: float64(time.Millisecond)}}
		b.add(row{name: fmt.Sprintf("decode %d messages of %s", talked, form), product: times[0], baseline: times[1], against: "encoding/json into maps", aims: most})
		b.add(row{name: "… assemble and send them", product: times[2], baseline: times[3], against: "the store's reading of their path", aims: most})
	}
	return nil
}

const model = "claude-opus-4-5"

// known weighs messages by what they were counted at when they were stored.
type known struct{}

func (known) Message(m *session.Message, _ bool) int64 { return m.Tokens }
func (known) Text(s string) int64                      { return int64(len(s)) / 4 }

// asMaps reads JSON as one does who knows nothing of its form.
func asMaps(raw []json.RawMessage) error {
	for _, r := range raw {
		var v map[string]any
		if err := json.Unmarshal(r, &v); err != nil {
			return err
		}
	}
	return nil
}

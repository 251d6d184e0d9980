package store

import (
	"context"
	"fmt"
	"testing"

	"sessiond/internal/session"
)

func TestImportRejectsWhatTheSchemaRejects(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	for name, spoil := range map[string]func(m *session.Message){
		"kind":           func(m *session.Message) { m.Kind = "talk" },
		"role":           func(m *session.Message) { m.Role = "function" },
		"origin":         func(m *session.Message) { m.Origin = "agent" },
		"finish":         func(m *session.Message) { m.Finish = "Stop" },
		"metadata":       func(m *session.Message) { m.Metadata = session.JSON(`{`) },
		"extra":          func(m *session.Message) { m.Extra = session.JSON(`[1,]`) },
		"a part's kind":  func(m *session.Message) { m.Parts[0].Kind = "" },
		"a part's extra": func(m *session.Message) { m.Parts[0].Extra = session.JSON(`{'a': 1}`) },
	} {
		b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: name}}
		for i := range 30 {
			in := record(fmt.Sprint(i), "", session.User, "text")
			if i == 29 {
				spoil(&in.Message)
			}
			b.Messages = append(b.Messages, in)
		}
		if _, err := s.Import(ctx, b); session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spoil := range map[string]func(c *session.Call){
		"a call's purpose":  func(c *session.Call) { c.Purpose = "talk" },
		"a call's status":   func(c *session.Call) { c.Status = "OK" },
		"its price":         func(c *session.Call) { c.PriceSource = "guessed" },
		"a call's metadata": func(c *session.Call) { c.Metadata = session.JSON(`{`) },
	} {
		b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: name}}
		for i := range 30 {
			b.Calls = append(b.Calls, ImportCall{Call: session.Call{ExternalID: fmt.Sprint(name, i)}})
		}
		spoil(&b.Calls[29].Call)
		if _, err := s.Import(ctx, b); session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	n, err := get[int](ctx, s, `SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM parts) + (SELECT COUNT(*) FROM sessions)`)
	if err != nil || n != 0 {
		t.Errorf("%d rows were stored, %v", n, err)
	}
}

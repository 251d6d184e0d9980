package contextmgr

import (
	"slices"
	"testing"

	"sessiond/internal/session"
)

// Rows of Claude Code that were imported before their rendered form was read have it in their
// extra: the context is that, and not what the importer told in its place.
func TestRenderedFormOfOldRowsIsTheContext(t *testing.T) {
	row := func(kind session.Kind, inContext bool, extra string) session.Message {
		m := text(session.User, "retold")
		m.Kind, m.InContext, m.Origin, m.Dialect, m.Extra = kind, inContext, session.Program,
			string(session.SourceClaudeCode), session.JSON(extra)
		return m
	}
	r := newRig(t, 100_000)
	r.append(
		text(session.User, "hi"),
		row(session.KindUnknown, false, `{"line":{"rendered":[{"content":"environment"}],"renderedRole":"system"}}`),
		row(session.KindCustomMessage, true, `{"line":{"rendered":[{"content":"called"},{"content":[{"type":"text","text":"result"}]}],"renderedRole":"user"}}`),
		row(session.KindUnknown, false, `{"line":{"rendered":[]}}`),
		row(session.KindCustomMessage, true, `{"line":{"attachment":{"type":"file"}}}`),
	)
	view := r.turn(TurnInput{})
	var got []string
	for i := range view.Messages {
		line := string(view.Messages[i].Role)
		for _, p := range view.Messages[i].Parts {
			line += " " + p.Content()
		}
		got = append(got, line)
	}
	if want := []string{"user hi", "system environment", "user called result", "user retold"}; !slices.Equal(got, want) {
		t.Errorf("the context is %q, want %q", got, want)
	}
}

// A program reminds its model in the middle of a turn: no turn begins there, and no cut divides it.
func TestReminderInTheSystemsRoleBeginsNoTurn(t *testing.T) {
	for _, c := range []struct {
		role session.Role
		want bool
	}{{session.User, true}, {session.System, false}} {
		m := session.Message{Kind: session.KindCustomMessage, Role: c.role, InContext: true}
		e := Entry{Kind: m.Kind, Role: m.Role, InContext: m.InContext}
		if e.cuttable() != c.want || startsTurn(&m) != c.want {
			t.Errorf("a custom message of role %s: a cut may be there: %v, a turn begins: %v", c.role, e.cuttable(),
				startsTurn(&m))
		}
	}
}

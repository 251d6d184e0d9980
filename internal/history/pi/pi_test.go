package pi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

// house is a store with an importer of pi's files.
type house struct{ *historytest.House }

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{historytest.New(t, pi.New(historytest.NoEnv))}
}

// context returns what the model would see at the head: the effective overlay's summary, if
// there is one, as "summary", then the roles of what follows it.
func (h *house) context(s session.Session) []string {
	h.Helper()
	var roles []string
	effective, rest := h.Seen(s)
	if effective != nil {
		roles = append(roles, "summary")
	}
	for _, m := range rest {
		roles = append(roles, string(m.Role))
	}
	return roles
}

func sample(t testing.TB, parts ...string) string {
	t.Helper()
	return historytest.Sample(t, "pi", parts...)
}

// What a line says does not depend on where it stands: the tests of whole files show what it
// becomes, these that nothing of it is lost on the way out.
func TestPiLineOutsideOfAFile(t *testing.T) {
	before := session.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, test := range []struct {
		name, line, kind, role, extra string
		calls                         int
	}{
		{"message", user("1", "0", "hello"), "message", "user", `"id":"1"`, 0},
		{"a compaction's place is the caller's to know", `{"type":"compaction","id":"2","parentId":"1","summary":"S","firstKeptEntryId":"1","usage":{"input":1,"output":2}}`, "marker", "", `"firstKeptEntryId":"1"`, 1},
		{
			"so is a label's target", `{"type":"label","id":"3","targetId":"nobody","label":"x"}`, "marker", "",
			`"targetId":"nobody"`, 0,
		},
		{"unknown type", `{"type":"later","id":"4","x":[1]}`, "unknown", "", `"x":[1]`, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, why := pi.ParseLine([]byte(test.line), 3, before)
			if why != "" || string(l.Message.Kind) != test.kind || string(l.Message.Role) != test.role ||
				len(l.Calls) != test.calls {
				t.Fatalf("%q %+v", why, l)
			}
			extra := l.Extra("a note", "")
			if !json.Valid(extra) || !strings.Contains(string(extra), test.extra) ||
				!strings.Contains(string(extra), `"note":"a note"`) {
				t.Errorf("extra %s", extra)
			}
			if l.Message.CreatedAt.IsZero() {
				t.Error("a line without a time has that of the line before")
			}
		})
	}
	for _, broken := range []string{"", "[]", "{", `{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}"} {
		if _, why := pi.ParseLine([]byte(broken), 3, before); why == "" {
			t.Errorf("%.20q was read", broken)
		}
		if m := history.KeepRaw([]byte(broken), "broken", session.SourcePi,
			before).Messages[0]; m.Kind != session.KindUnknown || m.InContext || m.Parts[0].Text != broken {
			t.Errorf("%+v", m)
		}
	}
}

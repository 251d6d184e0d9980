package pi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

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
		{"so is a label's target", `{"type":"label","id":"3","targetId":"nobody","label":"x"}`, "marker", "", `"targetId":"nobody"`, 0},
		{"unknown type", `{"type":"later","id":"4","x":[1]}`, "unknown", "", `"x":[1]`, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, why := pi.ParseLine([]byte(test.line), 3, before)
			if why != "" || string(l.Message.Kind) != test.kind || string(l.Message.Role) != test.role || len(l.Calls) != test.calls {
				t.Fatalf("%q %+v", why, l)
			}
			extra := l.Extra("a note", "")
			if !json.Valid(extra) || !strings.Contains(string(extra), test.extra) || !strings.Contains(string(extra), `"note":"a note"`) {
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
		if m := pi.Verbatim([]byte(broken), "broken", before).Messages[0]; m.Kind != session.KindUnknown || m.InContext || m.Parts[0].Text != broken {
			t.Errorf("%+v", m)
		}
	}
}

package dialecttest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Wrong is an entry that a form refuses, and where it says the fault is.
type Wrong struct {
	name, entry string
	code        session.Code
	path        string
}

// WrongAt is a Wrong that stands at messages[1].
func WrongAt(name, entry string, code session.Code, path string) Wrong {
	return Wrong{name, entry, code, path}
}

// Refuses returns a form entries that are wrong, behind one that is fine: those of cases, and
// what is wrong in any form.
func Refuses(t *testing.T, form wire.Form, fine string, cases ...Wrong) {
	t.Helper()
	const deep = 20_000
	cases = append(
		cases,
		Wrong{"no JSON", `{"role":`, session.Malformed, "messages[1]"},
		Wrong{"bytes that are not UTF-8", "{\"role\":\"user\",\"x\":\"\xff\"}", session.Malformed, "messages[1]"},
		Wrong{"nested beyond reading", `{"role":"user","x":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}`, session.TooLarge, "messages[1]"},
		Wrong{"no object", `"hi"`, session.Invalid, "messages[1]"},
		Wrong{"a null", `null`, session.Invalid, "messages[1]"},
		Wrong{"role is no string", `{"role":1}`, session.Invalid, "messages[1].role"},
		Wrong{"a field twice", `{"role":"user","x":1,"x":1}`, session.Invalid, "messages[1].x"},
	)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			decoded, err := form.Decode([]json.RawMessage{json.RawMessage(fine), json.RawMessage(c.entry)})
			var known *session.Error
			if !errors.As(err, &known) {
				t.Fatalf("got %+v and error %v", decoded, err)
			}
			if known.Code != c.code || len(known.Fields) != 1 || known.Fields[0].Path != c.path {
				t.Errorf("got %s at %+v: %.300s; want %s at %s", known.Code, known.Fields, known, c.code, c.path)
			}
			if !strings.HasPrefix(known.Message, c.path) || len(known.Message) > 300 {
				t.Errorf("the message must begin with the path and be short: %.400s", known.Message)
			}
		})
	}
}

// Warns reads entries, the first of which holds the text "cut \ud83d": each warning begins with
// one of the paths, in order.
func Warns(t *testing.T, form wire.Form, array string, paths ...string) {
	t.Helper()
	decoded, err := form.Decode(List(t, array))
	if err != nil {
		t.Fatal(err)
	}
	if len(decoded.Warnings) != len(paths) {
		t.Fatalf("warnings: %q", decoded.Warnings)
	}
	for i, path := range paths {
		if !strings.HasPrefix(decoded.Warnings[i], path+" ") {
			t.Errorf("warning %d: %q, want one of %s", i, decoded.Warnings[i], path)
		}
	}
	if got := decoded.Messages[0].Text(); got != "cut \uFFFD" {
		t.Errorf("text for reading: %q", got)
	}
}

// HoldsMaxParts takes a message of as many parts as one may hold there and back: before, one
// part again and again, after.
func HoldsMaxParts(t *testing.T, form wire.Form, before, part, after string) {
	t.Helper()
	RoundTrip(t, form, List(t, "["+before+strings.Repeat(part+",", session.MaxParts-1)+part+after+"]"))
}

package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Case is a JSON array of entries that a form's wire may hold.
type Case = struct{ Name, Entries string }

// PNG is the smallest picture there is, in base64.
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// Nested returns arrays within arrays.
func Nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// small is the length up to which a case is a seed: the fuzzer spends its time on shrinking
// larger ones.
const small = 4096

// List reads a JSON array.
func List(t testing.TB, array string) []jsontext.Value {
	t.Helper()
	var raw []jsontext.Value
	if err := json.Unmarshal([]byte(array), &raw); err != nil {
		t.Fatalf("the case is no JSON array: %v", err)
	}
	return raw
}

// RoundTrip decodes entries that must decode, stores them and exports them: the same come back.
func RoundTrip(t testing.TB, form wire.Form, raw []jsontext.Value) {
	t.Helper()
	decoded, err := form.Decode(raw)
	if err != nil {
		t.Fatalf("%.2000s: %v", Array(raw), err)
	}
	comesBack(t, form, raw, decoded)
}

func comesBack(t testing.TB, form wire.Form, raw []jsontext.Value, decoded wire.Decoded) {
	t.Helper()
	exported := testkit.Must(form.Export(Stored(t, decoded.Messages)))(t)
	if want, got := Array(raw), Array(exported); !EqualJSON(want, got) {
		t.Fatalf("export is not what was decoded\n want %.4000s\n got  %.4000s", want, got)
	}
}

// RoundTrips takes every case there and back.
func RoundTrips(t *testing.T, form wire.Form, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { RoundTrip(t, form, List(t, c.Entries)) })
	}
}

// AnyRoundTrips takes generated entries there and back.
func AnyRoundTrips(t *testing.T, form wire.Form, entry func(*rapid.T) jsontext.Value) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		raw := rapid.SliceOfN(rapid.Custom(entry), 1, 6).Draw(r, "entries")
		decoded, err := form.Decode(raw)
		if err != nil {
			r.Fatalf("%s: %v", Array(raw), err)
		}
		exported := testkit.Must(form.Export(Stored(t, decoded.Messages)))(r)
		if want, got := Array(raw), Array(exported); !EqualJSON(want, got) {
			r.Fatalf("export is not what was decoded\n want %s\n got  %s", want, got)
		}
	})
}

// FuzzRoundTrip takes whatever decodes there and back.
func FuzzRoundTrip(f *testing.F, form wire.Form, cases []Case) {
	f.Helper()
	fuzz(f, cases, func(t *testing.T, raw []jsontext.Value) {
		if decoded, err := form.Decode(raw); err == nil {
			comesBack(t, form, raw, decoded)
		}
	})
}

// FuzzSend sends whatever decodes, after what brings it into order: its provider accepts it.
func FuzzSend(f *testing.F, form wire.Form, cases []Case, order func([]session.Message) []session.Message) {
	f.Helper()
	fuzz(f, cases, func(t *testing.T, raw []jsontext.Value) {
		decoded, err := form.Decode(raw)
		if err != nil {
			return
		}
		sent := testkit.Must(form.Send(wire.Request{Messages: order(Stored(t, decoded.Messages))}))(t)
		if err := ValidateFor(form.Name, "", sent.Request); err != nil {
			t.Errorf("the provider would refuse it: %v\n%s", err, sent.Request)
		}
	})
}

func fuzz(f *testing.F, cases []Case, run func(*testing.T, []jsontext.Value)) {
	f.Helper()
	for _, c := range cases {
		if len(c.Entries) < small {
			f.Add([]byte(c.Entries))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var raw []jsontext.Value
		if json.Unmarshal(body, &raw) != nil {
			t.Skip("no JSON array")
		}
		run(t, raw)
	})
}

// KeepsOwnJSON fails the test if more than so many percent of messages keep their own JSON,
// whole or of a part, because their columns and their unknown fields do not give it back.
func KeepsOwnJSON(t testing.TB, msgs []session.Message, percent int) {
	t.Helper()
	own := 0
	for i := range msgs {
		m := &msgs[i]
		kept := bytes.Contains(m.Extra, []byte(`"raw":`))
		for j := range m.Parts {
			p := &m.Parts[j]
			kept = kept || p.Kind != session.PartData && bytes.Contains(p.Extra, []byte(`"raw":`))
		}
		if kept {
			own++
		}
	}
	if len(msgs) == 0 || own*100 > percent*len(msgs) {
		t.Errorf("%d of %d messages keep their own JSON, more than %d %%", own, len(msgs), percent)
	}
}

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
	cases = append(
		cases,
		Wrong{"no JSON", `{"role":`, session.Malformed, "messages[1]"},
		Wrong{"bytes that are not UTF-8", "{\"role\":\"user\",\"x\":\"\xff\"}", session.Malformed, "messages[1]"},
		Wrong{"nested beyond reading", `{"role":"user","x":` + Nested(20_000) + `}`, session.TooLarge, "messages[1]"},
		Wrong{"no object", `"hi"`, session.Invalid, "messages[1]"},
		Wrong{"a null", `null`, session.Invalid, "messages[1]"},
		Wrong{"role is no string", `{"role":1}`, session.Invalid, "messages[1].role"},
		Wrong{"a field twice", `{"role":"user","x":1,"x":1}`, session.Invalid, "messages[1].x"},
	)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			decoded, err := form.Decode([]jsontext.Value{jsontext.Value(fine), jsontext.Value(c.entry)})
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
	decoded := testkit.Must(form.Decode(List(t, array)))(t)
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

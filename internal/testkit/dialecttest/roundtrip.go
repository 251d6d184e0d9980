package dialecttest

import (
	"bytes"
	"encoding/json"
	"iter"
	"testing"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"

	"pgregory.net/rapid"
)

// Cases are what a form's wire may hold, by name: each a JSON array of entries.
type Cases = iter.Seq2[string, string]

// small is the length up to which a case is a seed: the fuzzer spends its time on shrinking
// larger ones.
const small = 4096

// List reads a JSON array.
func List(t testing.TB, array string) []json.RawMessage {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(array), &raw); err != nil {
		t.Fatalf("the case is no JSON array: %v", err)
	}
	return raw
}

// RoundTrip decodes entries that must decode, stores them and exports them: the same come back.
func RoundTrip(t testing.TB, form wire.Form, raw []json.RawMessage) {
	t.Helper()
	decoded, err := form.Decode(raw)
	if err != nil {
		t.Fatalf("%.2000s: %v", Array(raw), err)
	}
	comesBack(t, form, raw, decoded)
}

func comesBack(t testing.TB, form wire.Form, raw []json.RawMessage, decoded wire.Decoded) {
	t.Helper()
	exported, err := form.Export(Stored(t, decoded.Messages))
	if err != nil {
		t.Fatal(err)
	}
	if want, got := Array(raw), Array(exported); !EqualJSON(want, got) {
		t.Fatalf("export is not what was decoded\n want %.4000s\n got  %.4000s", want, got)
	}
}

// RoundTrips takes every case there and back.
func RoundTrips(t *testing.T, form wire.Form, cases Cases) {
	t.Helper()
	for name, array := range cases {
		t.Run(name, func(t *testing.T) { RoundTrip(t, form, List(t, array)) })
	}
}

// AnyRoundTrips takes generated entries there and back.
func AnyRoundTrips(t *testing.T, form wire.Form, entry func(*rapid.T) json.RawMessage) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		raw := rapid.SliceOfN(rapid.Custom(entry), 1, 6).Draw(r, "entries")
		decoded, err := form.Decode(raw)
		if err != nil {
			r.Fatalf("%s: %v", Array(raw), err)
		}
		exported, err := form.Export(Stored(t, decoded.Messages))
		if err != nil {
			r.Fatal(err)
		}
		if want, got := Array(raw), Array(exported); !EqualJSON(want, got) {
			r.Fatalf("export is not what was decoded\n want %s\n got  %s", want, got)
		}
	})
}

// FuzzRoundTrip takes whatever decodes there and back.
func FuzzRoundTrip(f *testing.F, form wire.Form, cases Cases) {
	f.Helper()
	fuzz(f, cases, func(t *testing.T, raw []json.RawMessage) {
		if decoded, err := form.Decode(raw); err == nil {
			comesBack(t, form, raw, decoded)
		}
	})
}

// FuzzSend sends whatever decodes, after what brings it into order: its provider accepts it.
func FuzzSend(f *testing.F, form wire.Form, cases Cases, order func([]session.Message) []session.Message) {
	f.Helper()
	fuzz(f, cases, func(t *testing.T, raw []json.RawMessage) {
		decoded, err := form.Decode(raw)
		if err != nil {
			return
		}
		sent, err := form.Send(wire.Request{Messages: order(Stored(t, decoded.Messages))})
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(form.Name, sent.Request); err != nil {
			t.Errorf("the provider would refuse it: %v\n%s", err, sent.Request)
		}
	})
}

func fuzz(f *testing.F, cases Cases, run func(*testing.T, []json.RawMessage)) {
	f.Helper()
	for _, array := range cases {
		if len(array) < small {
			f.Add([]byte(array))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var raw []json.RawMessage
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

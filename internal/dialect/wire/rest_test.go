package wire_test

import (
	"strings"
	"testing"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func object(t *testing.T, raw string) wire.Object {
	t.Helper()
	return testkit.Must(wire.ParseObject("x", []byte(raw)))(t)
}

func TestRestIsWhatMergeNeeds(t *testing.T) {
	for _, c := range []struct{ name, original, encoded, rest string }{
		{"nothing is missing", `{"a":1,"b":[1.0]}`, `{"b":[ 1.0 ],"a":1}`, `{}`},
		{"a field is missing", `{"a":1,"b":{"c":null}}`, `{"a":1}`, `{"b":{"c":null}}`},
		{"a field of an object is missing", `{"f":{"name":"f","x":1}}`, `{"f":{"name":"f"}}`, `{"f":{"x":1}}`},
		{"a value differs", `{"a":1.0}`, `{"a":1}`, `{"a":1.0}`},
		{"a kind differs", `{"a":"x","b":{"c":1}}`, `{"a":{"b":1},"b":7}`, `{"a":"x","b":{"c":1}}`},
		{"a string is written otherwise", `{"a":"\u00e9\/"}`, `{"a":"é/"}`, `{}`},
		{"half a pair is not U+FFFD", `{"a":"\ud800"}`, `{"a":"�"}`, `{"a":"\ud800"}`},
		{"a name that is no text", `{"\ud800":1}`, `{}`, `{"\ud800":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			original, encoded := object(t, c.original), object(t, c.encoded)
			rest, ok := wire.Rest(&original, &encoded)
			if got := string(rest.JSON()); !ok || got != c.rest {
				t.Fatalf("rest %s, %v; want %s", got, ok, c.rest)
			}
			encoded.Merge(&rest)
			if !wire.Equal(encoded.JSON(), []byte(c.original)) {
				t.Errorf("merged %s", encoded.JSON())
			}
		})
	}
	original, encoded := object(t, `{"f":{"a":1}}`), object(t, `{"f":{"a":1,"b":2}}`)
	if _, ok := wire.Rest(&original, &encoded); ok {
		t.Error("no rest takes a field away")
	}
}

func TestEqualComparesNumbersAsTheyAreWritten(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, ` 1 `, true},
		{`1`, `1.0`, false},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`[1,{"a":[]}]`, `[ 1, {"a":[ ]} ]`, true},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1,"b":2}`, `{"a":1}`, false},
		{`null`, `{}`, false},
		{`"a"`, `"\u0061"`, true},
	} {
		if wire.Equal([]byte(c.a), []byte(c.b)) != c.want {
			t.Errorf("%s and %s: want %v", c.a, c.b, c.want)
		}
	}
}

func TestExtraKeepsEveryStringAsItCame(t *testing.T) {
	raw := session.JSON(`{"signature":"\u0041\ud800","item":{},"rest":{"a":"\ud800\u0000","n":1.0e400},"raw":{"b":"\/"}}`)
	var x wire.Extra
	testkit.Check(t, wire.ReadExtra(raw, &x))
	if got := x.JSON(); string(got) != string(raw) {
		t.Errorf("got %s, want %s", got, raw)
	}
	if x.Item == nil {
		t.Error("an empty item is an item")
	}
	if none := (&wire.Extra{}).JSON(); none != nil {
		t.Errorf("nothing is %s", none)
	}
}

// Exports of older versions name the remainder fields.
func TestExtraReadsTheOldNameOfTheRest(t *testing.T) {
	var x wire.Extra
	testkit.Check(t, wire.ReadExtra(session.JSON(`{"fields":{"a":1}}`), &x))
	if got := string(x.JSON()); got != `{"rest":{"a":1}}` {
		t.Errorf("got %s", got)
	}
}

func TestUnmarshalNamesThePlaceAndTheType(t *testing.T) {
	type message struct {
		A struct {
			B []*wire.String `json:"b"`
		} `json:"a"`
		C bool `json:"c"`
	}
	deep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	for raw, want := range map[string]string{
		`{"a":{"b":["x",7]}}`:         "m.a.b[1] must be a string, not a number",
		`{"a":{"b":{}}}`:              "m.a.b must be an array, not an object",
		`{"a":[]}`:                    "m.a must be an object, not an array",
		`{"c":"yes"}`:                 "m.c must be true or false, not a string",
		`{"x":{"y":1,"y":2}}`:         "m.x.y stands twice",
		`{"x":`:                       "m is not JSON",
		`{} {}`:                       "m is not JSON",
		`{"x":` + deep + `}`:          "m is nested deeper than 10000 levels",
		`{"a":{"b":["\ud800",null]}}`: "",
	} {
		var into message
		err := wire.Unmarshal("m", []byte(raw), &into)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.60s: %v, want %q", raw, err, want)
		}
		if s := into.A.B; want == "" && (len(s) != 2 || s[0].S != "\uFFFD" || s[0].Exact || s[1] != nil) {
			t.Errorf("%s: got %+v", raw, s)
		}
	}
}

package jsonx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/testkit"

	"github.com/go-json-experiment/json/jsontext"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		raw, want string
		exact     bool
	}{
		{`""`, "", true},
		{`"plain é 你"`, "plain é 你", true},
		{` "a\n\t\b\f\r\"\\\/b" `, "a\n\t\b\f\r\"\\/b", true},
		{`"\u00e9\u4f60\uFFFD"`, "é你\uFFFD", true},
		{`"\ud83d\ude00!"`, "😀!", true},
		{`"a\ud83d"`, "a\uFFFD", false},
		{`"\ude00\ud83d"`, "\uFFFD\uFFFD", false},
		{`"\ud83d\ud83d\ude00"`, "\uFFFD😀", false},
		{`"\ud83d\n"`, "\uFFFD\n", false},
		{`"\u0000"`, "\uFFFD", false},
		{`"\\u0000"`, `\u0000`, true},
		{`"a real \ufffd and \uFFFD"`, "a real \ufffd and \ufffd", true},
		{"\"a real \ufffd, \\n\"", "a real \ufffd, \n", true},
		{"\"no \xff UTF-8\"", "no \ufffd UTF-8", false},
		{`7`, "", false},
		{``, "", false},
	} {
		if got, exact := jsonx.Text(jsontext.Value(c.raw)); got != c.want || exact != c.exact {
			t.Errorf("%s: %q, %v", c.raw, got, exact)
		}
	}
}

// What encoding/json reads, Text reads alike, but for NUL; and AppendText writes it so that
// both read it back.
func FuzzText(f *testing.F) {
	for _, s := range []string{`"a\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\\\"\/"`, `"<&>\u2028"`, `"\u0000"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var want string
		if json.Unmarshal([]byte(raw), &want) != nil || strings.TrimSpace(raw) == "null" ||
			jsonx.Check("x", jsontext.Value(raw)) != nil {
			t.Skip("no JSON string")
		}
		got, exact := jsonx.Text(jsontext.Value(raw))
		if want = strings.ReplaceAll(want, "\x00", "\uFFFD"); got != want {
			t.Fatalf("%s: %q, want %q", raw, got, want)
		}
		written := jsonx.AppendText(nil, got)
		var back string
		if err := json.Unmarshal(written, &back); err != nil || back != got {
			t.Fatalf("%q was written as %s (%v)", got, written, err)
		}
		if again, ok := jsonx.Text(written); again != got || !ok {
			t.Fatalf("%s is read as %q", written, again)
		}
		if exact != !strings.Contains(got, "\uFFFD") && !strings.Contains(strings.ToLower(raw), `\ufffd`) &&
			!strings.Contains(raw, "\uFFFD") {
			t.Fatalf("%s: exact is %v", raw, exact)
		}
	})
}

func TestAppendTextReplacesBytesThatAreNoText(t *testing.T) {
	if got := string(jsonx.AppendText(nil, "a\xffb<\u2028>\x01")); got != "\"a\ufffdb<\u2028"+`>\u0001"` {
		t.Errorf("got %s", got)
	}
}

func TestDepthLooksPastStrings(t *testing.T) {
	for raw, want := range map[string]int{
		`7`: 0, `"[[["`: 0, `"\"[["`: 0, `[]`: 1, `{"a":[{}],"b":[]}`: 3, `[[`: 2,
		`"`: 0,
	} {
		if got := jsonx.Depth(jsontext.Value(raw)); got != want {
			t.Errorf("%s: %d", raw, got)
		}
	}
}

func TestObjectKeepsEveryByteOfItsValues(t *testing.T) {
	o := testkit.Must(jsonx.ParseObject("x", jsontext.Value(` { "a" : 1.0 , "b":[ 1e400 ],"\ud800":"\ud800", "c":"\u0041" } `)))(t)
	o.Drop("c")
	o.SetText("a", "new")
	var more jsonx.Object
	more.Set("b", jsontext.Value("null"))
	more.Set("d", jsontext.Value("{}"))
	o.Merge(&more)
	if got, want := string(o.Value()), `{"a":"new","b":null,"\ud800":"\ud800","d":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFieldThatStandsTwiceIsRefused(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = `"` + strings.Repeat("k", i) + `":0`
	}
	for _, raw := range []string{`{"a":1,"\u0061":2}`, `{` + strings.Join(many, ",") + `,"kkk":1}`} {
		if _, err := jsonx.ParseObject("x", jsontext.Value(raw)); session.CodeOf(err) != session.Invalid ||
			!strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if o, err := jsonx.ParseObject("x", jsontext.Value(`{`+strings.Join(many, ",")+`}`)); err != nil ||
		len(o) != len(many) {
		t.Errorf("%d fields, %v", len(o), err)
	}
}

func TestParseArray(t *testing.T) {
	got := testkit.Must(jsonx.ParseArray("x", jsontext.Value(` [ 1 , "a,]" , {"b":[2]} , [] ,true ] `)))(t)
	want := []jsontext.Value{[]byte("1"), []byte(`"a,]"`), []byte(`{"b":[2]}`), []byte("[]"), []byte("true")}
	testkit.Equal(t, want, got)
}

func object(t *testing.T, raw string) jsonx.Object {
	t.Helper()
	return testkit.Must(jsonx.ParseObject("x", []byte(raw)))(t)
}

func TestChangeSetsAndDropsFieldsInTheirPlaces(t *testing.T) {
	o, with := object(t, `{"a":1,"b":2,"c":3}`), object(t, `{"c":null,"d":4,"a":5,"\ud800":6,"e":null}`)
	var were []string
	o.Change(with, func(was, given jsontext.Value) jsontext.Value {
		if were = append(were, string(was)); jsonx.IsNull(given) {
			return nil
		}
		return given
	})
	if got := string(o.Value()); got != `{"a":5,"b":2,"d":4,"\ud800":6}` ||
		!slices.Equal(were, []string{"3", "", "1", "", ""}) {
		t.Errorf("%s of %q", got, were)
	}
	var many bytes.Buffer // a 1 MiB patch, which once took 15 s in the store's transaction
	for i := range 80_000 {
		fmt.Fprintf(&many, `,"k%d":0`, i)
	}
	large := object(t, "{"+many.String()[1:]+"}")
	if o.Merge(&large); len(o) != 80_004 {
		t.Errorf("%d fields", len(o))
	}
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
			rest, ok := jsonx.Rest(&original, &encoded)
			if got := string(rest.Value()); !ok || got != c.rest {
				t.Fatalf("rest %s, %v; want %s", got, ok, c.rest)
			}
			encoded.Merge(&rest)
			if !jsonx.Equal(encoded.Value(), []byte(c.original)) {
				t.Errorf("merged %s", encoded.Value())
			}
		})
	}
	original, encoded := object(t, `{"f":{"a":1}}`), object(t, `{"f":{"a":1,"b":2}}`)
	if _, ok := jsonx.Rest(&original, &encoded); ok {
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
		if jsonx.Equal([]byte(c.a), []byte(c.b)) != c.want {
			t.Errorf("%s and %s: want %v", c.a, c.b, c.want)
		}
	}
}

func TestCheckNamesThePlace(t *testing.T) {
	deep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	for raw, want := range map[string]string{
		`{"x":{"y":1,"y":2}}`:          "m.x.y stands twice",
		`{"x":[0,{"y":1,"\u0079":2}]}`: "m.x[1].y stands twice",
		`{"x":`:                        "m is not JSON",
		`{} {}`:                        "m is not JSON",
		`{"x":` + deep + `}`:           "m is nested deeper than 10000 levels",
		`{"a":{"b":["\ud800",null]}}`:  "",
	} {
		if err := jsonx.Check("m", []byte(raw)); want == "" && err != nil ||
			want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.60s: %v, want %q", raw, err, want)
		}
	}
}

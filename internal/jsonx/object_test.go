package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func TestObjectKeepsNamesOrderAndBytes(t *testing.T) {
	o := mustObject(t, []byte(` {"b" : [1, {"x":"}"}] ,"B":"two","a\u0062":1.50,"c":"\\\"" } `))
	var got []string
	for _, f := range o {
		got = append(got, f.Key+"="+string(f.Value))
	}
	if want := `b=[1, {"x":"}"}] B="two" ab=1.50 c="\\\""`; strings.Join(got, " ") != want {
		t.Errorf("got %s", strings.Join(got, " "))
	}
	if o.String("c") != `\"` || o.String("B") != "two" || o.String("ab") != "" || o.Get("none") != nil {
		t.Error("names count exactly")
	}
	if got := string(o.Without("b", "c").With("c", []byte("{}")).Value()); got != `{"B":"two","ab":1.50,"c":{}}` {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{``, `[]`, `{"a":}`, `{"a":1}{}`, `1`, `{`, `{"a":1,"a":2}`} {
		if _, ok := ReadObject([]byte(bad)); ok {
			t.Errorf("%s is no object, or has a name twice", bad)
		}
	}
}

// Whatever valid JSON is taken apart and put together again means the same.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[[],{"b":"\"]"}],"c":-1e5,"d":null,"e":true}`,
		"{ \"a\" : [ ] , \"b\" : \"\\\\\" }\n", `{"":null,"":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return
		}
		o, ok := ReadObject(data)
		var want map[string]any
		once := jsontext.Value(data).IsValid() // each name once
		if err := json.Unmarshal(data, &want); ok != (err == nil && want != nil && once) {
			if ok || !errors.As(err, new(*json.UnmarshalTypeError)) {
				t.Fatalf("parsed %v, encoding/json says %v", ok, err)
			}
		}
		if !ok {
			return
		}
		if Depth(data) < 1 {
			t.Error("an object has a depth")
		}
		for _, field := range o {
			if elements, ok := ReadArray(field.Value); ok {
				var list []any
				if err := json.Unmarshal(field.Value, &list); err != nil || len(list) != len(elements) {
					t.Errorf("%d elements of %s", len(elements), field.Value)
				}
			}
		}
		if len(o) == 0 {
			return
		}
		var got map[string]any
		if err := json.Unmarshal(o.Value(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %s", data, o.Value())
		}
		if Fingerprint(o) != Fingerprint(mustObject(t, o.Value())) {
			t.Error("the fingerprint changed")
		}
	})
}

// A long string of escapes is gone over once, not once for each escape.
func TestObjectOfManyEscapes(t *testing.T) {
	const n = 1 << 20
	raw := []byte(`{"a":"` + strings.Repeat(`\n\"`, n) + `","b":1}`)
	o := mustObject(t, raw) // takes minutes if it is quadratic
	if len(o.String("a")) != 2*n || string(o.Get("b")) != "1" || Depth(raw) != 1 {
		t.Errorf("%d bytes, then %s", len(o.String("a")), o.Get("b"))
	}
}

// What is valid, and what a string says, is what encoding/json says, but for names that occur twice.
func FuzzValid(f *testing.F) {
	for _, seed := range []string{
		`"a\\n\\u00e9\\ud83d\\ude00\\ud83d"`, `"\\u12g4"`, "\"long enough for eight bytes \x01\"", `[1,-0.5e+3,01,1.,-]`,
		`[0,-0,1e5, true , false,null]`,
		`{"a":{"b":[{}]}}`, `{"a" 1}`, `[1 2]`, `tru`, `"open`, `{"a":1,}`, "\"\xff\"", `"\\`, strings.Repeat("[", 300),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, want := Valid(raw), json.Valid(raw); got && !want {
			t.Fatalf("%q: %v", raw, got)
		}
		var want string
		if body := bytes.TrimSpace(raw); Valid(body) && body[0] == '"' && utf8.Valid(body) &&
			json.Unmarshal(body, &want) == nil {
			if got, _ := Text(body); got != strings.ReplaceAll(want, "\x00", "\ufffd") {
				t.Fatalf("%q is %q, not %q", body, got, want)
			}
		}
	})
}

func TestDeepNestingIsInvalid(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if !Valid(nested(10_000)) || Valid(nested(10_001)) {
		t.Error("the limit is not 10,000 levels")
	}
	if DeeperThan(nested(500), 500) || !DeeperThan(nested(500), 499) || DeeperThan([]byte(`[[],[],[]]`), 2) {
		t.Error("the depth is wrong")
	}
}

func mustObject(t *testing.T, raw []byte) Object {
	t.Helper()
	o, ok := ReadObject(raw)
	if !ok {
		t.Fatalf("%s is no object", raw)
	}
	return o
}

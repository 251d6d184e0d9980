package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// read gives one entry to a Reader behind a first one.
func read(entry string, each func(*wire.Fields) error) (wire.Decoded, error) {
	var r wire.Reader
	n := 0
	return r.Read([]json.RawMessage{json.RawMessage(`{}`), json.RawMessage(entry)}, func(v wire.Value) error {
		if n++; n == 1 {
			return nil
		}
		o, err := v.Fields()
		if err != nil {
			return err
		}
		return each(&o)
	})
}

func TestReaderNamesThePlaceOfWhatIsWrong(t *testing.T) {
	element := func(of func(wire.Value) error) func(*wire.Fields) error {
		return func(o *wire.Fields) error {
			list, err := o.Value("a").Elements()
			if err != nil {
				return err
			}
			return of(list[1])
		}
	}
	for _, c := range []struct {
		name, entry string
		read        func(*wire.Fields) error
		code        session.Code
		path, says  string
	}{
		{"no JSON", `{`, nil, session.Malformed, "messages[1]", "is not JSON"},
		{"no UTF-8", "\"\xff\"", nil, session.Malformed, "messages[1]", "holds bytes that are not UTF-8"},
		{"no object", `[]`, nil, session.Invalid, "messages[1]", "must be an object, not an array"},
		{"a field twice", `{"a":1,"a":2}`, nil, session.Invalid, "messages[1].a", "stands twice"},
		{"no such field", `{}`, func(o *wire.Fields) error { _, err := o.Take("a"); return err }, session.Invalid, "messages[1].a", "is missing"},
		{"another kind", `{"a":7}`, func(o *wire.Fields) error { _, err := o.Take("a"); return err }, session.Invalid, "messages[1].a", "must be a string, not a number"},
		{"an inner field twice", `{"a":{"b":1,"b":1}}`, func(o *wire.Fields) error { _, err := o.Inner("a"); return err }, session.Invalid, "messages[1].a.b", "stands twice"},
		{"no array", `{"a":{}}`, element(nil), session.Invalid, "messages[1].a", "must be an array, not an object"},
		{"too many elements", `{"a":[` + strings.Repeat("1,", session.MaxParts) + `1]}`, element(nil), session.Invalid, "messages[1].a", "has 1025 elements: a message holds at most 1024, split it"},
		{"an element", `{"a":[{},7]}`, element(func(v wire.Value) error { _, err := v.Fields(); return err }), session.Invalid, "messages[1].a[1]", "must be an object, not a number"},
		{"a field of an element", `{"a":[{},{"b":[]}]}`, element(func(v wire.Value) error {
			o, err := v.Fields()
			if err != nil {
				return err
			}
			return o.Value("b").Not("a number")
		}), session.Invalid, "messages[1].a[1].b", "must be a number, not an array"},
		{"a deep field", `{"d":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, (*wire.Fields).Fits, session.TooLarge, "messages[1].d", "is nested deeper than 900 levels"},
		{"a large field without a name", `{"":"` + strings.Repeat("x", 70_000) + `"}`, func(o *wire.Fields) error { _, err := o.TakeLarge(); return err }, session.TooLarge, "messages[1].", "is over 65536 bytes or 900 levels under a name that is empty or no Unicode text"},
		{"too many parts", `{}`, func(o *wire.Fields) error { return o.Holds(session.MaxParts + 1) }, session.Invalid, "messages[1]", "has 1025 parts: a message holds at most 1024, split it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.entry, c.read)
			var known *session.Error
			if !errors.As(err, &known) {
				t.Fatal(err)
			}
			if known.Code != c.code || known.Fields[0].Path != c.path || known.Fields[0].Message != c.says || known.Message != c.path+" "+c.says {
				t.Errorf("%s %+v: %s", known.Code, known.Fields, known)
			}
		})
	}
}

func TestReaderTakesWhatAColumnHoldsAndKeepsTheRest(t *testing.T) {
	large := strings.Repeat("x", 70_000)
	decoded, err := read(`{"a":"x","b":"cut \ud83d","c":"","d":"y","l":"`+large+`","n":null}`, func(o *wire.Fields) error {
		for field, want := range map[string]string{"a": "x", "b": "cut \uFFFD"} {
			if got, err := o.Take(field); got != want || err != nil {
				t.Errorf("%s: %q, %v", field, got, err)
			}
		}
		if c, d, n := o.TakeExact("c"), o.TakeExact("d"), o.TakeExact("n"); c != "" || d != "y" || n != "" {
			t.Errorf("%q, %q and %q", c, d, n)
		}
		taken, err := o.TakeLarge()
		if err != nil || len(taken) != 1 || taken[0].Key != "l" || string(taken[0].Value) != `"`+large+`"` {
			t.Errorf("%d large fields, %v", len(taken), err)
		}
		if got := string(o.JSON()); got != `{"b":"cut \ud83d","c":"","n":null}` {
			t.Errorf("left is %s", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"messages[1].b holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw for export"}
	if d := cmp.Diff(want, decoded.Warnings); d != "" {
		t.Error(d)
	}
}

// The memory that a Reader lends is never lent twice within an entry, however much is read.
func TestWhatIsReadStaysAsItWasReadWithinAnEntry(t *testing.T) {
	element := `{"a":1,"b":"x","c":[{"d":[1,2]},{}]}`
	const n = 700
	_, err := read(`{"list":[`+strings.TrimSuffix(strings.Repeat(element+",", n), ",")+`]}`, func(o *wire.Fields) error {
		list, err := o.Value("list").Elements()
		if err != nil {
			return err
		}
		var all []wire.Fields
		for _, e := range list {
			f, err := e.Fields()
			if err != nil {
				return err
			}
			inner, err := f.Value("c").All()
			if err != nil {
				return err
			}
			if _, err := inner[0].Fields(); err != nil {
				return err
			}
			all = append(all, f)
		}
		for i := range all {
			if i%2 == 0 {
				all[i].Drop("a")
				all[i].Set("a", json.RawMessage("1"))
				all[i].Set("more", json.RawMessage("2"))
			}
		}
		for i := range all {
			want := element
			if i%2 == 0 {
				want = `{"b":"x","c":[{"d":[1,2]},{}],"a":1,"more":2}`
			}
			if got := string(all[i].JSON()); got != want {
				t.Fatalf("element %d is %s", i, got)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

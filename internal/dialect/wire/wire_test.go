package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
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
	} {
		if got, exact := wire.Text(json.RawMessage(c.raw)); got != c.want || exact != c.exact {
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
		if json.Unmarshal([]byte(raw), &want) != nil || strings.TrimSpace(raw) == "null" || wire.Check("x", json.RawMessage(raw)) != nil {
			t.Skip("no JSON string")
		}
		got, exact := wire.Text(json.RawMessage(raw))
		if want = strings.ReplaceAll(want, "\x00", "\uFFFD"); got != want {
			t.Fatalf("%s: %q, want %q", raw, got, want)
		}
		written := wire.AppendText(nil, got)
		var back string
		if err := json.Unmarshal(written, &back); err != nil || back != got {
			t.Fatalf("%q was written as %s (%v)", got, written, err)
		}
		if again, ok := wire.Text(written); again != got || !ok {
			t.Fatalf("%s is read as %q", written, again)
		}
		if exact != !strings.Contains(got, "\uFFFD") && !strings.Contains(strings.ToLower(raw), `\ufffd`) && !strings.Contains(raw, "\uFFFD") {
			t.Fatalf("%s: exact is %v", raw, exact)
		}
	})
}

func TestAppendTextReplacesBytesThatAreNoText(t *testing.T) {
	if got := string(wire.AppendText(nil, "a\xffb<\u2028>\x01")); got != "\"a\ufffdb<\u2028"+`>\u0001"` {
		t.Errorf("got %s", got)
	}
}

func TestDepthLooksPastStrings(t *testing.T) {
	for raw, want := range map[string]int{`7`: 0, `"[[["`: 0, `"\"[["`: 0, `[]`: 1, `{"a":[{}],"b":[]}`: 3, `[[`: 2, `"`: 0} {
		if got := wire.Depth(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %d", raw, got)
		}
	}
}

func TestObjectKeepsEveryByteOfItsValues(t *testing.T) {
	o := testkit.Must(wire.ParseObject("x", json.RawMessage(` { "a" : 1.0 , "b":[ 1e400 ],"\ud800":"\ud800", "c":"\u0041" } `)))(t)
	o.Drop("c")
	o.SetText("a", "new")
	var more wire.Object
	more.Set("b", json.RawMessage("null"))
	more.Set("d", json.RawMessage("{}"))
	o.Merge(&more)
	if got, want := string(o.JSON()), `{"a":"new","b":null,"\ud800":"\ud800","d":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFieldThatStandsTwiceIsRefused(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = `"` + strings.Repeat("k", i) + `":0`
	}
	for _, raw := range []string{`{"a":1,"\u0061":2}`, `{` + strings.Join(many, ",") + `,"kkk":1}`} {
		if _, err := wire.ParseObject("x", json.RawMessage(raw)); session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if o, err := wire.ParseObject("x", json.RawMessage(`{`+strings.Join(many, ",")+`}`)); err != nil || o.Len() != len(many) {
		t.Errorf("%d fields, %v", o.Len(), err)
	}
}

func TestParseArray(t *testing.T) {
	got := testkit.Must(wire.ParseArray("x", json.RawMessage(` [ 1 , "a,]" , {"b":[2]} , [] ,true ] `)))(t)
	want := []jsontext.Value{[]byte("1"), []byte(`"a,]"`), []byte(`{"b":[2]}`), []byte("[]"), []byte("true")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDataURLTakesOnlyWhatItGivesBack(t *testing.T) {
	for url, want := range map[string]bool{
		"data:image/png;base64,QUJD":        true,
		"data:image/png;name=a;base64,QUI=": true,
		"data:image/png;base64,QUI":         false,
		"data:image/png;base64,QUJ=":        false, // bits that encoding would not set
		"data:image/png;base64,QUJD\n":      false,
		"data:image/png;base64,":            false,
		"data:image/png,QUJD":               false,
		"data:;base64,QUJD":                 false,
		"DATA:image/png;base64,QUJD":        false,
		"https://x/data:a;base64,QUJD":      false,
	} {
		if _, _, _, ok := wire.DataURL(url); ok != want {
			t.Errorf("%q: %v", url, ok)
		}
	}
}

func TestMediaOf(t *testing.T) {
	blob := wire.Blob("image/png", []byte("x"))
	for _, c := range []struct {
		part session.Part
		want wire.Media
	}{
		{session.Part{Kind: session.PartImage}, wire.Media{}},
		{session.Part{Kind: session.PartImage, Blob: blob}, wire.Media{MediaType: "image/png"}},
		{session.Part{Kind: session.PartImage, Blob: blob, Extra: session.JSON(`{"media_type":"image/jpeg","other":[1]}`)}, wire.Media{MediaType: "image/jpeg"}},
		{session.Part{Kind: session.PartImage, Extra: session.JSON(`{"url":"https://x","detail":7}`)}, wire.Media{}},
		{session.Part{Kind: session.PartFile, Extra: session.JSON(`{"file_id":"f","name":"n"}`)}, wire.Media{FileID: "f", Name: "n"}},
	} {
		if got := wire.MediaOf(&c.part); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.part.Extra, got, c.want)
		}
	}
}

package history

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/session"
)

// small limits let short lines be cut.
func small(line string) *Cuts {
	return NewCuts(strings.NewReader(line), Found{}, CutRule{
		Fields: []string{"text", "data", "list"}, Limits: CutLimits{Line: 1, String: 700, Keep: 64},
	})
}

// TestCutsGiveBackWhatStoodThere: a line that was shortened says, with what was cut out put back, the
// same as before: raw, as a text, written as JSON again, as base64, however often.
func TestCutsGiveBackWhatStoodThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { giveBack(t, lineOf(t)) })
}

// lineOf draws an object with long strings of all kinds.
func lineOf(t *rapid.T) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range rapid.IntRange(1, 4).Draw(t, "fields") {
		if i > 0 {
			b.WriteString(", ")
		}
		name := rapid.SampledFrom([]string{"text", "data", "id", "list"}).Draw(t, "name")
		value := stringOf(t)
		switch rapid.IntRange(0, 3).Draw(t, "shape") {
		case 0:
			value = `[1,` + value + `,{"text":` + value + `}]`
		case 1:
			value = `{"deep":` + value + `,"text":` + value + `}`
		}
		fmt.Fprintf(&b, "%q : %s", name, value)
	}
	b.WriteString("}")
	return b.String()
}

func stringOf(t *rapid.T) string {
	unit := rapid.SampledFrom([]string{
		"a", "abcd", "AB+/", "ab-_", "plain words, ", "é", "日本", "\U0001F600", `\n`, `\"`, `\\\\`, `\u001b[0m`, `\u00e9`, `\ud83d\ude00`,
		`\/`, `\b`, "\u2028", `\t`, `\u0009`, "<b>", " ", `\ud83d`, `\u0000`,
	})
	text := strings.Join(rapid.SliceOfN(unit, 0, 30).Draw(t, "units"), "")
	if rapid.Bool().Draw(t, "again and again") {
		text = strings.Repeat(text, rapid.IntRange(1, 60).Draw(t, "times"))
	}
	if rapid.IntRange(0, 4).Draw(t, "base64") == 0 {
		text = base64.StdEncoding.EncodeToString([]byte(text))
	}
	if rapid.IntRange(0, 4).Draw(t, "url") == 0 {
		text = "data:image/png;base64," + text
	}
	return `"` + text + `"`
}

func giveBack(t interface {
	Fatalf(format string, args ...any)
	Helper()
}, line string,
) (was bool) {
	t.Helper()
	c := small(line)
	short, err := c.shorten(0, int64(len(line)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	if short == nil {
		return false
	}
	same := func(what string, got []byte, want string) {
		t.Helper()
		whole, err := c.Whole(got)
		if err != nil || string(whole) != want {
			t.Fatalf("%s: %v\n got %.2000q\nwant %.2000q\n  of %.2000q", what, err, whole, want, got)
		}
	}
	if len(short) >= len(line) {
		t.Fatalf("%d bytes became %d", len(line), len(short))
	}
	same("raw", short, line)
	same("as JSON", session.JSONOf(string(short)), string(session.JSONOf(line)))
	same("as JSON in JSON", session.JSONOf(string(session.JSONOf(string(short)))), string(session.JSONOf(string(session.JSONOf(line)))))
	if c.Size(short) != len(line) {
		t.Fatalf("a size of %d, not %d", c.Size(short), len(line))
	}
	cut, _ := ParseObject(short)
	want, ok := ParseObject([]byte(line))
	if !ok || len(cut) != len(want) {
		t.Fatalf("%d fields, not %d", len(cut), len(want))
	}
	if got, want := c.Fingerprint(cut), Fingerprint(want); got != want {
		t.Fatalf("a fingerprint of %s, not %s", got, want)
	}
	for i := range cut {
		texts(cut[i].Raw, want[i].Raw, func(short, long json.RawMessage) {
			got, exact := Text(short)
			text, was := Text(long)
			if exact != was {
				t.Fatalf("exact: %t, not %t", exact, was)
			}
			same("a text", []byte(got), text)
			same("a text as JSON", session.JSONOf(got), string(session.JSONOf(text)))
			same("a text as JSON in JSON", session.JSONOf(string(session.JSONOf(got))), string(session.JSONOf(string(session.JSONOf(text)))))
			bits, isBase64 := base64Of(short)
			data, is := base64Of(long)
			if isBase64 != is {
				t.Fatalf("base64: %t, not %t: %.1000q", isBase64, is, long)
			}
			if is {
				same("base64", bits, string(data))
			}
		})
	}
	return true
}

// texts goes over the strings of two values of one shape.
func texts(short, long json.RawMessage, yield func(short, long json.RawMessage)) {
	switch short[0] {
	case '"':
		yield(short, long)
	case '[':
		a, _ := Elements(short)
		b, _ := Elements(long)
		for i := range a {
			texts(a[i], b[i], yield)
		}
	case '{':
		a, _ := Fields(short)
		b, _ := Fields(long)
		for i := range a {
			texts(a[i].Raw, b[i].Raw, yield)
		}
	}
}

func base64Of(raw []byte) ([]byte, bool) {
	t := Taker{Object: Object{{Key: "data", Raw: raw}}}
	if _, rest, ok := bytes.Cut(raw, []byte(";base64,")); ok {
		t.Object[0].Raw = append([]byte{'"'}, rest...)
	}
	return t.Base64("data")
}

func FuzzCuts(f *testing.F) {
	long := strings.Repeat(`some text\n`, 200)
	for _, line := range []string{
		`{"text":"` + long + `"}`, `{"text":["` + long + `"]}`, `{"text":"` + long, `{"text":"` + long + `"}}`, `{"id":"` + long + `"}`,
		`{"text":"` + strings.Repeat("QUJD", 400) + `"}`, `{"text":"` + strings.Repeat(`\ud83d\ude00`, 200) + `","data":"` + long + `"}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) { giveBack(t, line) })
}

// TestCutsAreMade: what is told above is told of lines that are cut.
func TestCutsAreMade(t *testing.T) {
	words, picture := strings.Repeat("some words, ", 200), strings.Repeat("QUJD", 400)
	for name, c := range map[string]struct {
		line string
		cut  bool
	}{
		"a long text":                  {`{"text":"` + words + `"}`, true},
		"with escapes":                 {`{"text":"` + strings.Repeat(`a\n`, 500) + `"}`, true},
		"in a list":                    {`{"list":[1,"` + words + `"]}`, true},
		"base64":                       {`{"data":"` + picture + `"}`, true},
		"a data: URL":                  {`{"data":"data:image/png;base64,` + picture + `"}`, true},
		"a field that may not be cut":  {`{"id":"` + words + `"}`, false},
		"a long name":                  {`{"` + words + `":1}`, false},
		"a short text":                 {`{"text":"` + words[:600] + `"}`, false},
		"half of a pair of surrogates": {`{"text":"` + words + `\ud83d` + words + `"}`, false},
		"a NUL":                        {`{"text":"` + words + `\u0000` + words + `"}`, false},
		"no UTF-8":                     {`{"text":"` + words + "\xff" + words + `"}`, false},
		"a control character":          {`{"text":"` + words + "\x01" + words + `"}`, false},
		"a line that is no JSON":       {`{"text":"` + words + `"} x`, false},
		"a line that has no end":       {`{"text":"` + words, false},
		"a list":                       {`["` + words + `"]`, false},
		"text behind much white space": {`{"text":"` + strings.Repeat(" ", 1000) + words + `"}`, false},
		"white space behind the text":  {`{"text":"` + words + strings.Repeat(`\n`, 1000) + `"}`, false},
		"nested too deep to be read":   {`{"text":"` + words + `","a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, false},
		"a text that holds the marker": {`{"text":"` + words + string(marker) + words + `","id":"` + string(marker) + `"}`, false},
		"much that is not to be cut":   {`{"text":"` + words + `","id":[` + strings.Repeat(`"a",`, 2000) + `1]}`, false},
	} {
		if got := giveBack(t, c.line); got != c.cut {
			t.Errorf("%s: cut: %t", name, got)
		}
	}
}

// TestChangedCutsAreNoticed: a file that changed is not read as what stood there before.
func TestChangedCutsAreNoticed(t *testing.T) {
	line := []byte(`{"text":"` + strings.Repeat("some words, ", 200) + `"}`)
	for name, change := range map[string]func(){
		"another byte": func() { line[1000]++ },
		"shorter":      func() { line = line[:1000] },
	} {
		before := bytes.Clone(line)
		c := small("")
		c.file = readerOf{&line}
		short, err := c.shorten(0, int64(len(line)))
		if err != nil || short == nil {
			t.Fatal(err)
		}
		change()
		if _, err := c.Whole(short); session.CodeOf(err) != session.Busy {
			t.Errorf("%s: %v", name, err)
		}
		line = before
	}
}

type readerOf struct{ b *[]byte }

func (r readerOf) ReadAt(b []byte, at int64) (int, error) { return bytes.NewReader(*r.b).ReadAt(b, at) }

// TestLinesAreShortened: lines come one after the other as ever, the long ones shortened.
func TestLinesAreShortened(t *testing.T) {
	long := `{"text":"` + strings.Repeat(`some words,\n`, 20_000) + `"}`
	for _, file := range []string{
		"{}\n" + long + "\n{}\n", long + "\n" + long, "{}\n" + long[:len(long)-1] + "\n{}", long, long + "\n\n",
	} {
		c := small(file)
		var got, sizes strings.Builder
		for lines := NewLines(strings.NewReader(file), 0, int64(len(file))).Cut(c); ; {
			line, at, ended, err := lines.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := lines.Write(&got, line); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(file[at:], long) && len(line) > 1000 || lines.Size() < len(line) {
				t.Errorf("a line of %d bytes has %d", lines.Size(), len(line))
			}
			if ended {
				got.WriteByte('\n')
			}
			fmt.Fprint(&sizes, lines.Size(), at, lines.Offset(), ended, ";")
		}
		if got.String() != file {
			t.Errorf("%.100q… of %d bytes became %.100q… of %d", file, len(file), got.String(), got.Len())
		}
		var plain strings.Builder
		for lines := NewLines(strings.NewReader(file), 0, int64(len(file))); ; {
			line, at, ended, err := lines.Next()
			if err == io.EOF {
				break
			}
			fmt.Fprint(&plain, len(line), at, lines.Offset(), ended, ";")
		}
		if sizes.String() != plain.String() {
			t.Errorf("%s, not %s", sizes.String(), plain.String())
		}
	}
}

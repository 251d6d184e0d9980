package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// streamed is Fingerprint as it is of an object that is too large to be normalised in memory.
func streamed(o Object, drop ...string) string {
	sum := sha256.New()
	w := canonical{Writer: bufio.NewWriterSize(sum, 1<<10)}
	w.object(o.Without(drop...))
	w.Flush()
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// The fingerprint of a small object is made in another way than that of a large one, and is the same.
func FuzzFingerprint(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"b":{"z":1,"a":[true,null,{"c":"x\ny","b":""}]},"a":-0.50e1,"b":2,"id":7}`,
		`{"a" : [ ] , "\u0061":[ 1 , "\ud83d" ], "":1e999}`, `{"a":` + strings.Repeat(`[{"b":`, 40) + `"\n"` + strings.Repeat(`}]`, 40) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return
		}
		o, ok := ParseObject(data)
		if !ok {
			return
		}
		if got, want := Fingerprint(o, "id"), streamed(o, "id"); got != want {
			t.Errorf("%s of %s, streamed it has %s", got, data, want)
		}
	})
}

func TestFingerprintsStay(t *testing.T) {
	text := strings.Repeat(`some text,\nwith \"escapes\" `, 40)
	small := mustObject(t, []byte(`{"type":"message","id":"1","message":{"role":"assistant","content":[{"type":"text","text":"`+text+`"}],"usage":{"input":1.50}}}`))
	if got, want := Fingerprint(small, "id"), "3ebb89d0aae12dece4e7f70a9ffdf86a"; got != want {
		t.Errorf("%s, was %s: databases hold it", got, want)
	}
	large := small.With("more", []byte(`"`+strings.Repeat(text, normalBytes/len(text)+1)+`"`))
	if got, want := Fingerprint(large, "id"), "8ac1d0e9ea6899ae711a62c9bdf2f5c9"; got != want {
		t.Errorf("%s, was %s: databases hold it", got, want)
	}
}

// Where a string ends, and what it says, does not depend on how far apart its escapes are.
func TestStringsOfAnyLength(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(0, 8).Draw(rt, "pieces") {
			b.WriteString(strings.Repeat("é", rapid.SampledFrom([]int{0, 1, 3, 7, 8, 9, 50, 100, 1000}).Draw(rt, "length")))
			b.WriteString(strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 3, 7, 8, 9, 50, 100, 1000}).Draw(rt, "length")))
			b.WriteString(rapid.SampledFrom([]string{"", "\"", "\\", "\n", "\"\"", "\\\\\"", "😀", "\u2028"}).Draw(rt, "sign"))
		}
		raw, err := json.Marshal(b.String())
		if err != nil {
			rt.Fatal(err)
		}
		behind := append(bytes.Clone(raw), rapid.SampledFrom([]string{"", "]", `,"\""]`, `,"` + strings.Repeat("y", 200) + `"]`}).Draw(rt, "behind")...)
		if end, escaped := endOfString(behind, 0); end != len(raw) || escaped != bytes.Contains(raw, []byte(`\`)) {
			rt.Fatalf("%d of %d, escapes %v: %s", end, len(raw), escaped, behind)
		}
		if text, exact := Text(raw); text != b.String() || !exact {
			rt.Fatalf("%q of %s", text, raw)
		}
	})
}

func TestKnownNamesAreWholeNames(t *testing.T) {
	for n := range 64 {
		known := knownNames(n)
		if known != "" && len(known)%n != 0 {
			t.Errorf("%q holds no names of %d letters", known, n)
		}
	}
	for _, name := range []string{"type", "cost", "parentUuid", "cache_creation_input_tokens", "typf", "ypet", "", "é", "a\nb"} {
		if got := nameOf([]byte(mustJSON(t, name))); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

package jsonx

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Stored names are made of fingerprints: these must not change.
func TestFingerprintsStay(t *testing.T) {
	text := strings.Repeat(`some text,\nwith \"escapes\" `, 40)
	small := mustObject(t, []byte(`{"type":"message","id":"1","message":{"role":"assistant","content":[{"type":"text","text":"`+text+`"}],"usage":{"input":1.50}}}`))
	if got, want := Fingerprint(small, "id"), "3ebb89d0aae12dece4e7f70a9ffdf86a"; got != want {
		t.Errorf("%s, was %s: databases hold it", got, want)
	}
	large := small.With("more", []byte(`"`+strings.Repeat(text, (64<<10)/len(text)+1)+`"`))
	if got, want := Fingerprint(large, "id"), "8ac1d0e9ea6899ae711a62c9bdf2f5c9"; got != want {
		t.Errorf("%s, was %s: databases hold it", got, want)
	}
}

func TestEqualObjectsHaveOneFingerprint(t *testing.T) {
	one := mustObject(t, []byte(`{"b":{"z":1,"a":[true,null,{"c":"x\ny","b":""}]},"a":-0.50e1,"id":7}`))
	other := mustObject(t, []byte(` { "a": -5, "b" : {"a":[true , null,{"b":"","c":"x\u000ay"}],"z":1.0} , "id":8}`))
	if Fingerprint(one, "id") != Fingerprint(other, "id") {
		t.Error("order, white space, escapes and the spelling of numbers count")
	}
	if Fingerprint(one) == Fingerprint(other) {
		t.Error("another id does not count")
	}
}

func TestFingerprintIsThatOfTheMeaning(t *testing.T) {
	base := `{"id":"1","a":{"x":0.00003,"y":["é","b"]},"n":1}`
	for _, test := range []struct {
		name, other string
		equal       bool
	}{
		{"order, spelling, spaces", `{"n":1.0, "a":{"y":["\u00e9","b"],"x":3e-05},"id":"2"}`, true},
		{"another number", `{"id":"1","a":{"x":0.00004,"y":["é","b"]},"n":1}`, false},
		{"another order of a list", `{"id":"1","a":{"x":0.00003,"y":["b","é"]},"n":1}`, false},
		{"text that looks like structure", `{"id":"1","a":{"x":0.00003,"y":["é\",\"b"]},"n":1}`, false},
		{"an inner id counts", `{"id":"1","a":{"id":"1","x":0.00003,"y":["é","b"]},"n":1}`, false},
		{"a number as text", `{"id":"1","a":{"x":0.00003,"y":["é","b"]},"n":"1"}`, false},
	} {
		if got := Fingerprint(mustObject(t, []byte(base)), "id") == Fingerprint(mustObject(t, []byte(test.other)),
			"id"); got != test.equal {
			t.Errorf("%s: equal is %v", test.name, got)
		}
	}
}

func FuzzFingerprint(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a" : [ ] , "b":[ 1 , "\ud83d" ], "":1e999}`,
		`{"a":` + strings.Repeat(`[{"b":`, 40) + `"\n"` + strings.Repeat(`}]`, 40) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, ok := ReadObject(data)
		if !ok || !utf8.Valid(data) {
			return
		}
		reversed := slices.Clone(o)
		slices.Reverse(reversed)
		if got, want := Fingerprint(reversed), Fingerprint(o); got != want {
			t.Errorf("%s backwards has %s, not %s", data, got, want)
		}
	})
}

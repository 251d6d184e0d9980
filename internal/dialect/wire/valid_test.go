package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

// Valid is what encoding/json takes for valid, and the depth is that of Depth.
func FuzzMeasure(f *testing.F) {
	for _, raw := range []string{
		``, ` `, `{}`, `[]`, `{"a":[1,2.5e-3,-0,{"b":null}],"c":"\u00e9\\\"x\n"}`, `[,]`, `[1,]`, `{"a":1,}`, `{"a"}`, `{1:2}`, `[}`, `{]`, `01`, `-`, `1.`, `1e`, `1e+`, `+1`, `.5`,
		`"\x"`, `"\u12"`, `"\u12G4"`, "\"a\nb\"", "\"\x7f\"", `"`, `"\`, `tru`, `truex`, `nulll`, `true false`, `[1] 2`, `[[[]]]`, "\ufeff{}", "\v1", `[1 2]`, `{"a" 1}`, `{"a":}`,
		strings.Repeat(`[{"a":`, 100), strings.Repeat("[", 70) + strings.Repeat("]", 70), `"` + strings.Repeat(`\\`, 9) + `\"" `,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		depth, ok := measure(raw)
		if want := json.Valid(raw); ok != want {
			t.Fatalf("%q is valid: %v, want %v", raw, ok, want)
		}
		if ok && depth != Depth(raw) {
			t.Fatalf("%q is %d deep, want %d", raw, depth, Depth(raw))
		}
		if !ok || len(raw) == 0 {
			return
		}
		if at := skipSpace(raw, 0); strings.TrimRight(string(raw[valueEnd(raw, at):]), " \t\r\n") != "" {
			t.Fatalf("%q ends at %d", raw, valueEnd(raw, at))
		}
	})
}

// A string is written as encoding/json writes it, and reads back.
func FuzzAppendText(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c\n\t\r\x00\x1f\x7f<>&", "é\u2028🦓", "\xff", "a\xc3", "\xed\xa0\x80x", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw := AppendText(nil, s)
		var back string
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%q is written as %s: %v", s, raw, err)
		}
		if want := string([]rune(s)); back != want {
			t.Fatalf("%q is written as %s, which says %q, not %q", s, raw, back, want)
		}
	})
}

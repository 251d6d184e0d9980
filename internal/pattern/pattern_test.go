package pattern

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// A text without a word of the expression is not tried; one that matches always is.
func TestNeedles(t *testing.T) {
	tests := []struct {
		expression, matches, misses string // misses has no word of the expression
	}{
		{`(?i)\b(never|always)\b`, "Never again", "sometimes"},
		{`(?i)\b(no|in)\b`, "say No.", "know nothing inside"}, // only as whole words
		{`(?i)\b(is|are) (called|named)\b`, "it is Named x", "this is it, so named"},
		{`(?i)don['’]?t`, "DONT, don’t", "do it"},
		{`(?i)ungültig`, "UNGÜLTIG", "gulp, ung"},
		{`决定|決め`, "我们决定了", "我们说了"},
		{`^\s*(return\b|\d+\s*[→|:])`, " 12 →", "plain"},
		{`(ab)+x?`, "abab", "b a"},
		{`(?:ab){2,3}`, "abab", "ba"},
		{`\d+ (ms|rows?)`, "12 rows", "12"},
	}
	for _, tt := range tests {
		n := needlesOf(tt.expression)
		if n == nil {
			t.Errorf("%s: none", tt.expression)
			continue
		}
		if !n.mayMatch(tt.matches) || n.mayMatch(tt.misses) || !New(tt.expression).MatchString(tt.matches) {
			t.Errorf("%s: %v for %q, %v for %q", tt.expression, n.mayMatch(tt.matches), tt.matches, n.mayMatch(tt.misses),
				tt.misses)
		}
	}
	for _, expression := range []string{`a*`, `a?b?`, `(a|)`, `.`, `[a-z]x*`, `(?i)ü`, `\pL+`} {
		if needlesOf(expression) != nil {
			t.Errorf("%s: a match may be without any", expression)
		}
	}
}

func TestPatternsMatchAsRegexpDoes(t *testing.T) {
	expressions := []string{
		`(?i)\b(ask|k|ss)\b`, `(?i)(s|ks?)\b`, `\b_a|b_\b`, `(?i)[ks]x`, `a(b|c?)d`, `(?i)^(x|y )*(a|b)+ s$`, `\Ba`,
		`(?s)a.b|é`, `(?i)é|ab`, `a{0,2}b`,
	}
	text := rapid.StringOfN(rapid.SampledFrom([]rune("abcdksxy_ éÉſ\u212aKS.\n")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		expression, s := rapid.SampledFrom(expressions).Draw(t, "expression"), text.Draw(t, "text")
		p, plain := New(expression), regexp.MustCompile(expression)
		if got, want := p.MatchString(s), plain.MatchString(s); got != want {
			t.Fatalf("%v, want %v", got, want)
		}
		if got, want := p.ReplaceAllString(s, "-"), plain.ReplaceAllString(s, "-"); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		if got, want := len(p.FindAllStringIndex(s, -1)), len(plain.FindAllStringIndex(s, -1)); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

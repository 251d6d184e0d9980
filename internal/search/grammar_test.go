package search

import (
	"strings"
	"testing"

	"sessiond/internal/session"
)

func TestQueryTerms(t *testing.T) {
	cases := []struct{ query, want string }{
		{`one two`, `"one" AND "two"`},
		{`prices`, `("prices" OR "pric")`},
		{`"the prices"`, `"the prices"`},
		{`gener*`, `"gener" *`},
		{`a.b/c_d`, `"a b c d"`},
		{`$129`, `"$129 129"`},
		{`x AND y`, `"x" AND "AND" AND "y"`},
		{`数据库`, `"数据 据库"`},
		{`数`, `"数" *`},
		{`数据库test`, `"数据 据库 库 test"`},
		{`he said "unclosed`, `"he" AND "said" AND "unclosed"`},
		{`Company’s`, `"Company"`},
		{`a -- b`, `"a" AND "b"`},
	}
	for _, c := range cases {
		p := parse(c.query)
		wanted, _ := p.wanted()
		got := joinTerms(wanted, "AND")
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
	if p := parse(strings.Repeat("word ", 100)); len(p.terms) != maxTerms {
		t.Errorf("%d terms of a hundred words, want %d", len(p.terms), maxTerms)
	}
}

func TestStemsOfWordFamilies(t *testing.T) {
	for _, family := range []string{
		"price prices priced pricing", "run runs running", "store stores stored storing", "box boxes", "story stories",
		"pass passes passed passing", "configure configures configured configuring", "add adds added adding", "quick quickly",
	} {
		words := strings.Fields(family)
		for _, w := range words[1:] {
			if stem(w) != stem(words[0]) {
				t.Errorf("%s → %s but %s → %s", words[0], stem(words[0]), w, stem(w))
			}
		}
	}
	for _, w := range []string{"status", "this", "need", "bus", "häuser", "a1b2ing", "sing", "red"} {
		if stem(w) != w {
			t.Errorf("%s → %s, want it as it is", w, stem(w))
		}
	}
}

// Whatever is asked is answered or Invalid, and what was said is found by its own words.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{`a "b c" -d e* role:user`, `"`, `$1,2.3 中文`, "NEAR(a b)", `a""b`, "col : x^2", "\x00\uE000\xff", "ー", "٣x²"} {
		f.Add(seed)
	}
	store := newFakeStore()
	store.add(first, session.User, "text")
	ix := openIndex(f, store)
	f.Fuzz(func(t *testing.T, text string) {
		_, err := ix.Search(t.Context(), Query{Text: text})
		if err != nil && session.CodeOf(err) != session.Invalid {
			t.Fatalf("%q: %v", text, err)
		}
		if n := normalize(text, true); strings.ContainsAny(n.text, "\x00\uE000") {
			t.Fatalf("%q: normalized to %q", text, n.text)
		}
		snippet(text, parse(text).terms)
	})
}

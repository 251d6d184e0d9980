package text

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestStemsOfWordFamilies(t *testing.T) {
	for _, family := range []string{
		"price prices priced pricing", "run runs running", "store stores stored storing", "box boxes", "story stories",
		"pass passes passed passing", "configure configures configured configuring", "quick quickly",
		"go goes went gone going", "buy buys bought buying", "child children", "index indices indexed",
		"write wrote written writes",
		"база базы базу", "миграция миграции",
	} {
		words := strings.Fields(family)
		for _, w := range words[1:] {
			if Stem(w) != Stem(words[0]) {
				t.Errorf("%s → %s but %s → %s", words[0], Stem(words[0]), w, Stem(w))
			}
		}
	}
	for _, w := range []string{"status", "this", "need", "bus", "häuser", "a1b2ing", "sing", "red"} {
		if Stem(w) != w {
			t.Errorf("%s → %s, want it as it is", w, Stem(w))
		}
	}
}

func TestLanguagesAreRecognisedByTheirWords(t *testing.T) {
	for text, want := range map[string]Language{
		"why did the import fail?":                 English,
		"Warum ist der Import nicht durchgelaufen": German,
		"pourquoi la migration est-elle lente ?":   French,
		"der die":                                  German,
		"der":                                      English, // one word may be a name
		"какой сейчас статус":                      English,
		"":                                         English,
	} {
		if got := LanguageOf(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestStopWords(t *testing.T) {
	for word, want := range map[string][2]bool{ // for a search, and at all
		"the": {true, true}, "which": {true, true}, "mentioned": {true, false},
		"make": {false, true}, "die": {false, true}, "combien": {false, true},
		"deploy": {false, false}, "#": {false, false}, "run": {false, false}, "什么": {false, false},
	} {
		if got := [2]bool{IsStopWord(word), IsCommonWord(word)}; got != want {
			t.Errorf("%s: %v, want %v", word, got, want)
		}
	}
	if got := strings.Fields(WithoutStopRuns("我们为什么部署失败了")); strings.Join(got, " ") != "部署失败" {
		t.Errorf("%q", got)
	}
}

func TestUnspacedScripts(t *testing.T) {
	scripts := []*unicode.RangeTable{
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar,
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, scripts...) || r == 'ー'
		if r > 0x2E80 && unicode.Is(unicode.Myanmar, r) {
			want = false // letters of Shan and others: existing indexes have them as words
		}
		if got := IsUnspaced(r); got != want {
			t.Fatalf("%U: %v, want %v", r, got, want)
		}
		if want && IsWord(r) {
			t.Fatalf("%U is unspaced and of a word with spaces", r)
		}
	}
}

func TestWordsOfAnyScript(t *testing.T) {
	for s, want := range map[string]string{
		"Why did max_tokens=800 fail?": "Why did max_tokens 800 fail",
		"サーバーを再起動する":                   "サーバーを再起動する", // its long vowels are part of it
		"deploy失败了v2":                  "deploy 失败了 v2",
		"naïve cafe\u0301, ١٢":         "naïve cafe\u0301 ١٢",
		"สวัสดีครับ":                   "สวัสดีครับ",
		" —!":                          "",
	} {
		if got := strings.Join(slices.Collect(Words(s)), " "); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestBeginnings(t *testing.T) {
	for word, want := range map[string]string{
		"deployments": "deploymen", "Verträge": "Verträ", "index": "inde", "run": "run", "v1.2.3456": "v1.2.3456",
		"失败了吗是的对": "失败了吗是的对",
	} {
		if got := Beginning(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

func TestSmallLettersStayInTheirPlace(t *testing.T) {
	for _, s := range []string{"", "ABC", "ÄÖÜ İstanbul ẞ K", "混合 Text", "broken \xff\xc3 A", "Ⱥ"} {
		if got := SmallLetters(s); len(got) != len(s) {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got := SmallLetters("Größe ÄÖ 日本 X"); got != "größe äö 日本 x" {
		t.Errorf("got %q", got)
	}
}

// The tokens of an index are those of a query, whichever texts came before.
func TestTokenizerOfAnIndex(t *testing.T) {
	pieces := []string{
		"running", "getUserNames", "HTTPServer", "it's", "dogs’", "Müller's", "Bücher", "der die Verträge", "les des maisons",
		"über", "u\u0308ber",
		"$129", "€5", "数据库迁移", "ภาษาไทย", "가격", "😀", "e\u0301", "\uE001x", "\x00", "a1b2", strings.Repeat("x", 300),
		strings.Repeat("é", 200),
		"миграции", "'", " ", "\n", "_", "-", ".", "\xff",
	}
	n := NewTokenizer()
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "")
		for _, in := range []Language{English, German, French} {
			want, got := Tokenize(s, in, true), n.Tokenize(s, in, true)
			if want.Count != len(strings.Fields(want.Text)) {
				t.Fatalf("%q has %d words, not %q", s, want.Count, want.Text)
			}
			want.Text = ""
			if got != want {
				t.Fatalf("%q in language %d\nin an index %+v\nin a query  %+v", s, in, got, want)
			}
		}
	})
}

func TestTokenizerForgetsStems(t *testing.T) {
	n := NewTokenizer()
	for i := range mostKnown + 1 {
		n.Tokenize("running w"+strconv.Itoa(i), English, true)
	}
	if len(n.known) > mostKnown {
		t.Errorf("it remembers %d words", len(n.known))
	}
	if got := n.Tokenize("running", English, true).Stems; got != "run" {
		t.Errorf("then running is %q", got)
	}
}

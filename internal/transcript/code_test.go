package transcript

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHighlighted(t *testing.T) {
	for _, tt := range []struct{ language, code, want string }{
		{"go", "if x := f(`a\nb`); x < 1 { // why", "<k>if</k> x := <n>f</n>(<s>`a\nb`</s>); x &lt; 1 { <c>// why</c>"},
		{"go", `a := []any{"b\"c", 'd'} /* e`, `a := []<k>any</k>{<s>&#34;b\&#34;c&#34;</s>, <s>&#39;d&#39;</s>} <c>/* e</c>`},
		{"go", "s := \"open\nreturn", "s := &#34;open\n<k>return</k>"},
		{"go", "x.range, y...string", "x.range, y...<k>string</k>"},
		{"GO run", "return", "<k>return</k>"},
		{
			"py", "def f(a): # b\n  r'c' \"\"\"d\n\"e\" \"\"\"",
			"<k>def</k> <n>f</n>(a): <c># b</c>\n  r<s>&#39;c&#39;</s> <s>&#34;&#34;&#34;d\n&#34;e&#34; &#34;&#34;&#34;</s>",
		},
		{
			"sh", "for i in $#; do echo 'a' --if ${x#y}; done # don't",
			"<k>for</k> i <k>in</k> $#; <k>do</k> <k>echo</k> <s>&#39;a&#39;</s> --if ${x#y}; <k>done</k> <c># don&#39;t</c>",
		},
		{"bash", "it don't matter, 'a'", "it don&#39;t matter, <s>&#39;a&#39;</s>"},
		{"json", `{"a": [true, "b:c", 1]}`, `{<k>&#34;a&#34;</k>: [<k>true</k>, <s>&#34;b:c&#34;</s>, 1]}`},
		{
			"yaml", "- some-key: \"v\" # c\n  url: http://a.example/x",
			"- <k>some-key</k>: <s>&#34;v&#34;</s> <c># c</c>\n  <k>url</k>: http://a.example/x",
		},
		{"toml", "[a.b]\nc = 'd'", "<k>[a.b]</k>\n<k>c</k> = <s>&#39;d&#39;</s>"},
		{"sql", "Select count(*) FROM t -- all", "<k>Select</k> <n>count</n>(*) <k>FROM</k> t <c>-- all</c>"},
		{"html", `<!-- a --><p class="b">c < d</p><br/>`, `<c>&lt;!-- a --&gt;</c><k>&lt;p</k> <n>class</n>=<s>&#34;b&#34;</s><k>&gt;</k>c &lt; d<k>&lt;/p</k><k>&gt;</k><k>&lt;br</k><k>/&gt;</k>`},
		{
			"diff", "--- a/x\n@@ -1 +1 @@\n-old<\n+new\n\n same",
			"<c>--- a/x</c>\n<c>@@ -1 +1 @@</c>\n<del>-old&lt;</del>\n<add>+new</add>\n\n same",
		},
		{"css", ".a { color: red; } /* b */", ".a { <k>color</k>: red; } <c>/* b */</c>"},
		{
			"ts", "const a = `b\n`; import(x) // http://a",
			"<k>const</k> a = <s>`b\n`</s>; <k>import</k>(x) <c>// http://a</c>",
		},
		{"rs", "fn f<'a>(x: &'a str) {}", "<k>fn</k> f&lt;&#39;a&gt;(x: &amp;&#39;a <k>str</k>) {}"},
		{"c", "#include <a.h>\nint x;", "<c>#include &lt;a.h&gt;</c>\n<k>int</k> x;"},
		{"dockerfile", "FROM a AS b", "<k>FROM</k> a <k>AS</k> b"},
		{"nosuch", "if a < b", "if a &lt; b"},
		{"", "if a < b", "if a &lt; b"},
		{"go", strings.Repeat("if ", mostCode), strings.Repeat("if ", mostCode)},
	} {
		got := regexp.MustCompile(`<span class="([a-z]+)">([^<]*)</span>`).
			ReplaceAllString(string(highlighted(tt.language, tt.code)), "<$1>$2</$1>")
		if got != tt.want {
			t.Errorf("%s: %.60q is coloured as\n%.300s\nnot\n%.300s", tt.language, tt.code, got, tt.want)
		}
	}
}

// Each language has names of its own, and only fields that its kind reads.
func TestLanguages(t *testing.T) {
	of := map[string]string{}
	for _, l := range languages {
		for name := range strings.FieldsSeq(l.names) {
			if first, twice := of[name]; twice {
				t.Errorf("%q names both %q and %q", name, first, l.names)
			}
			of[name] = l.names
		}
		if len(strings.Fields(l.blocks))%2 != 0 {
			t.Errorf("%s: %q is no list of pairs", l.names, l.blocks)
		}
		if l.anyCase && l.words != strings.ToLower(l.words) {
			t.Errorf("%s: words of any case are listed in lower case", l.names)
		}
	}
}

// Colours add to code, and change nothing.
func TestHighlightedKeepsTheCode(t *testing.T) {
	var names, marks []string
	for _, l := range languages {
		names = append(names, strings.Fields(l.names)[0])
		for _, list := range []string{l.comments, l.blocks, l.texts, l.long, l.raw} {
			marks = append(marks, strings.Fields(list)...)
		}
	}
	marks = append(marks, "\n", " ", "a", "é", "if", "(", ":", "=", "\\", "<", "</", "/>", "[", "1", "&lt;", "日本", ".",
		"-")
	span := regexp.MustCompile(`<span class="(?:[ksnc]|add|del)">|</span>`)
	rapid.Check(t, func(t *rapid.T) {
		language := rapid.SampledFrom(names).Draw(t, "language")
		code := strings.Join(rapid.SliceOf(rapid.SampledFrom(marks)).Draw(t, "code"), "")
		coloured := string(highlighted(language, code))
		if got := html.UnescapeString(span.ReplaceAllString(coloured, "")); got != code {
			t.Fatalf("%q became %q", code, got)
		}
		if strings.ToValidUTF8(coloured, "") != coloured {
			t.Fatalf("%q is cut inside a character: %q", code, coloured)
		}
	})
}

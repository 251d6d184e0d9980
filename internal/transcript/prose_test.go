package transcript

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/testkit"

	"pgregory.net/rapid"
)

func proseOf(t testkit.Failer, text string) string {
	var b bytes.Buffer
	testkit.Check(t, newProse().Convert([]byte(text), &b))
	return strings.TrimSpace(b.String())
}

func TestProse(t *testing.T) {
	for text, want := range map[string]string{
		"**bold** and `x < y`":              "<p><strong>bold</strong> and <code>x &lt; y</code></p>",
		"# Plan\none\ntwo":                  "<h3>Plan</h3>\n<p>one<br>\ntwo</p>",
		"<details>\nkept\n</details>":       "<p class=\"plain\">&lt;details&gt;\nkept\n&lt;/details&gt;</p>",
		"a <b>word</b>":                     "<p>a &lt;b&gt;word&lt;/b&gt;</p>",
		"[x](javascript:alert(1))":          "<p>x (javascript:alert(1))</p>",
		"[main](cmd/main.go#L3)":            "<p>main (cmd/main.go#L3)</p>",
		"[x](https://a.example/\"onload=1)": `<p><a href="https://a.example/%22onload=1" title="https://a.example/&#34;onload=1" rel="noopener noreferrer">x</a></p>`,
		"see https://a.example/b?c=d&e":     `<p>see <a href="https://a.example/b?c=d&amp;e" title="https://a.example/b?c=d&amp;e" rel="noopener noreferrer">https://a.example/b?c=d&amp;e</a></p>`,
		"![a cat](https://a.example/c.png)": "<p>[image a cat https://a.example/c.png]</p>",
		"[1]: https://a.example \"said\"":   `<p>[1]: <a href="https://a.example" title="https://a.example" rel="noopener noreferrer">https://a.example</a> &quot;said&quot;</p>`,
		"```go\nif a < b {\n```": "<pre class=\"code\"><span class=\"note\">go</span>\n" +
			"<span class=\"k\">if</span> a &lt; b {</pre>",
		"```\nif a < b {\n```":  "<pre class=\"code\">if a &lt; b {</pre>",
		"```nosuch\na < b\n```": "<pre class=\"code\"><span class=\"note\">nosuch</span>\na &lt; b</pre>",
		"| a | b |\n|---|---|\n| <i> | `y` |": "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td>&lt;i&gt;</td>\n<td><code>y</code></td>\n</tr>\n</tbody>\n</table>",
		"<!-- a\ncomment -->\nafter":               "<p class=\"plain\">&lt;!-- a\ncomment --&gt;</p>\n<p>after</p>",
		"data:text/html;base64,x <data:text/html>": "<p>data:text/html;base64,x data:text/html</p>",
	} {
		if got := proseOf(t, text); got != want {
			t.Errorf("%q is drawn as\n%s\nnot\n%s", text, got, want)
		}
	}
}

// Whatever the marks around them, words do not vanish.
func TestProseLosesNoWord(t *testing.T) {
	marks := []string{
		" ", "\n", "\n\n", "*", "**", "_", "`", "``", "```", "\n```", "[", "](", ")", "]: ", "<", ">", "</", "<!--", "-->",
		"<?", "<![CDATA[", "]]>",
		"# ", "- ", "1. ", "> ", "    ", "---\n", "===\n", "&amp;", "&", "\\", "!", "~~", "https://", "\"", "'", "{{", "\t",
	}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		words := rapid.IntRange(1, 20).Draw(t, "words")
		for i := range words {
			for range rapid.IntRange(0, 4).Draw(t, "marks") {
				text.WriteString(rapid.SampledFrom(marks).Draw(t, "mark"))
			}
			fmt.Fprintf(&text, "wd%dx", i)
		}
		got := proseOf(t, text.String())
		for i := range words {
			if word := fmt.Sprintf("wd%dx", i); !strings.Contains(got, word) {
				t.Fatalf("%s of %q is not in %q", word, text.String(), got)
			}
		}
	})
}

// What would take a time that grows with the square of its length is not drawn.
func TestOnlyProseIsDrawn(t *testing.T) {
	for text, want := range map[string]bool{
		strings.Repeat("a word ", 1000):            true,
		strings.Repeat("[a](b) ", 100):             true,
		"> > > three\n" + strings.Repeat("a>", 99): true,
		strings.Repeat("a word ", 10_000):          false,
		strings.Repeat("[a](", 1000):               false,
		"so:\n" + strings.Repeat("> ", 1000):       false,
	} {
		if got := isProse(text); got != want {
			t.Errorf("%.20q …, %d bytes, is prose: %v", text, len(text), got)
		}
	}
	for _, mark := range []string{
		"[", "![", "*a ", "_a", "`a", "<", "- ", "\\[", "a\n- ", "| a\n", "~~a", "&", "http://",
		"**a*",
	} {
		if proseOf(t, strings.Repeat(mark, maxProse/len(mark))) == "" {
			t.Errorf("%q … is drawn as nothing", mark)
		}
	}
}

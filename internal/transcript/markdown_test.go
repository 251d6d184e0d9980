package transcript

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"
)

func TestMarkdownEscapesNothingInsideCode(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a span", "use `<div>` and `![x]` here", "use `<div>` and `![x]` here"},
		{"a span of two backticks", "``a ` <b>`` <b>", "``a ` <b>`` \\<b>"},
		{"a span without an end", "a ` <b>", "a \\` \\<b>"},
		{"an escaped backtick", "\\`<b>`", "\\`\\<b>\\`"},
		{"a fence", "```go\n<b>\n```\n<b>", "```go\n<b>\n```\n\\<b>"},
		{"a fence without an end", "look:\n```\n<b>", "look:\n```\n<b>\n```"},
		{"a fence in a list", "- x\n  ```\n  <b>\n\n  ```\n<b>", "- x\n  ```\n  <b>\n\n  ```\n\\<b>"},
		{"a fence that its list ends", "- x\n  ```\n<b>\n  ```", "- x\n  \\`\\`\\`\n\\<b>\n  \\`\\`\\`"},
		{"a fence in a quotation", "> ```\n> <b>\n> ```\n> <b>", "> ```\n> <b>\n> ```\n> \\<b>"},
		{"a fence that its quotation ends", "> ```\n> <b>\n<b>", "> ```\n> <b>\n> ```\n\\<b>"},
		{"a span in a line that is not of a table", "`a | <b>`", "`a | <b>`"},
		{"a span that a cell ends", "|a|b|\n|-|-|\n|`a | <b>`|", "|a|b|\n|-|-|\n|\\`a | \\<b>\\`|"},
	} {
		if got := escapeActive(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Whatever a text is made of, a program that shows the Markdown finds no HTML and no image in it.
func TestMarkdownOfAnyTextHasNoHTML(t *testing.T) {
	reader := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	piece := rapid.SampledFrom([]string{
		"`", "``", "```", "````", "~~~", "<b>", "</b>", "<!-- ", "<a href='`'>", "<", ">", "![x](y)", "!", "[", "\\", "\n",
		"\n\n", "\n", " ", "  ", "    ", "\t",
		"> ", "- ", "* ", "1. ", "2. ", "# ", "|", "|-|-|\n", "a", "go", "word word", "---\n", "===\n", "&lt;",
	})
	rapid.Check(t, func(t *rapid.T) {
		given := strings.Join(rapid.SliceOfN(piece, 1, 24).Draw(t, "pieces"), "")
		var out bytes.Buffer
		m := &markdown{out: bufio.NewWriter(&out)}
		m.quote(given)
		_ = m.Close()
		source := out.Bytes()
		_ = ast.Walk(reader.Parse(text.NewReader(source)), func(n ast.Node, _ bool) (ast.WalkStatus, error) {
			switch n.Kind() {
			case ast.KindRawHTML, ast.KindHTMLBlock, ast.KindImage:
				t.Fatalf("%q has a %s as\n%s", given, n.Kind(), source)
			}
			return ast.WalkContinue, nil
		})
	})
}

// Quotations and fences without an end are escaped in one pass, however many there are.
func TestMarkdownOfManyMarks(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"quotations": {strings.Repeat(">", 300_000) + "<b>", strings.Repeat(">", 300_000) + `\<b>`},
		"fences": {
			strings.TrimSuffix(strings.Repeat(" ```a\n", 100_000), "\n"),
			strings.TrimSuffix(strings.Repeat(" \\`\\`\\`a\n", 100_000), "\n"),
		},
	} {
		if got := escapeActive(test.given); got != test.want {
			t.Errorf("%s: %d bytes become %d, which begin with %.40q and end with %q", name, len(test.given), len(got), got,
				got[max(0, len(got)-40):])
		}
	}
}

package transcript

import (
	"bytes"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// The Markdown of longer texts, or with more links or deeper quotations, is not rendered: these are
// dumps, and parsing them can take quadratic time.
const (
	maxProse = 32 << 10
	maxLinks = 400
	maxDepth = 32
)

func isProse(s string) bool {
	if len(s) > maxProse || strings.Count(s, "](") > maxLinks {
		return false
	}
	for line := range strings.Lines(s) {
		if marks := line[:len(line)-len(strings.TrimLeft(line, "> \t"))]; strings.Count(marks, ">") > maxDepth {
			return false
		}
	}
	return true
}

// newProse returns a renderer of models' Markdown. HTML is text, a picture is its name, and a link
// leads to the address that it shows, or nowhere.
func newProse() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(parser.NewParser( // without definitions of links: they would vanish from the text
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		)),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
		goldmark.WithRendererOptions(
			html.WithHardWraps(), // a model's line ends are meant
			renderer.WithNodeRenderers(util.Prioritized(asText{}, 1)),
		),
	)
}

// asText renders nodes that could act as text.
type asText struct{}

func (asText) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, htmlBlock)
	r.Register(ast.KindRawHTML, rawHTML)
	r.Register(ast.KindImage, picture)
	r.Register(ast.KindLink, link)
	r.Register(ast.KindAutoLink, autoLink)
	r.Register(ast.KindHeading, title)
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(ast.KindCodeBlock, code)
}

func escaped(w util.BufWriter, parts ...[]byte) {
	for _, part := range parts {
		template.HTMLEscape(w, part)
	}
}

// lines are the source's lines of a block.
func lines(n ast.Node, source []byte) []byte { return n.Lines().Value(source) }

func htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.HTMLBlock)
	text := lines(n, source)
	if n.HasClosure() {
		text = append(bytes.Clone(text), n.ClosureLine.Value(source)...)
	}
	_, _ = w.WriteString(`<p class="plain">`)
	escaped(w, bytes.Trim(text, "\n"))
	_, _ = w.WriteString("</p>\n")
	return ast.WalkSkipChildren, nil
}

func rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		escaped(w, node.(*ast.RawHTML).Segments.Value(source))
	}
	return ast.WalkSkipChildren, nil
}

// picture renders a picture's alternative text, which its children are.
func picture(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("[image ")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(" ")
	escaped(w, node.(*ast.Image).Destination)
	_, _ = w.WriteString("]")
	return ast.WalkContinue, nil
}

func link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	to := node.(*ast.Link).Destination
	switch {
	case isWebAddress(to) && entering:
		opening(w, to)
	case isWebAddress(to):
		_, _ = w.WriteString("</a>")
	case !entering: // to a file, or what would act: it is said, not followed
		_, _ = w.WriteString(" (")
		escaped(w, to)
		_, _ = w.WriteString(")")
	}
	return ast.WalkContinue, nil
}

func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	if to := n.URL(source); n.AutoLinkType == ast.AutoLinkURL && isWebAddress(to) {
		opening(w, to)
		escaped(w, n.Label(source))
		_, _ = w.WriteString("</a>")
		return ast.WalkContinue, nil
	}
	escaped(w, n.Label(source))
	return ast.WalkContinue, nil
}

func opening(w util.BufWriter, to []byte) {
	_, _ = w.WriteString(`<a href="`)
	escaped(w, util.URLEscape(to, false))
	_, _ = w.WriteString(`" title="`)
	escaped(w, to)
	_, _ = w.WriteString(`" rel="noopener noreferrer">`)
}

// isWebAddress reports whether an address is on the web.
func isWebAddress(to []byte) bool {
	lower := strings.ToLower(string(to[:min(len(to), 8)]))
	return strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://")
}

// title renders a heading inside a message, below the page's own headings.
func title(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	level := string(rune('0' + min(6, node.(*ast.Heading).Level+2)))
	if entering {
		_, _ = w.WriteString("<h" + level + ">")
	} else {
		_, _ = w.WriteString("</h" + level + ">\n")
	}
	return ast.WalkContinue, nil
}

func code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		language, text := "", string(bytes.TrimRight(lines(node, source), "\n"))
		if isWide(text) {
			_, _ = w.WriteString(`<pre class="code" tabindex="0">`) // so that keys can scroll it
		} else {
			_, _ = w.WriteString(`<pre class="code">`)
		}
		if fence, ok := node.(*ast.FencedCodeBlock); ok && fence.Info != nil { // a language, mostly
			language = string(fence.Info.Segment.Value(source))
			_, _ = w.WriteString(`<span class="note">`)
			escaped(w, []byte(language))
			_, _ = w.WriteString("</span>\n")
		}
		_, _ = w.WriteString(string(highlighted(language, text)))
		_, _ = w.WriteString("</pre>\n")
	}
	return ast.WalkSkipChildren, nil
}

// isWide reports whether a line of code is wider than the page.
func isWide(code string) bool {
	for line := range strings.SplitSeq(code, "\n") {
		if len(line) > 80 || Width(line)+7*strings.Count(line, "\t") > 80 {
			return true
		}
	}
	return false
}

package geminitakeout

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"sessiond/internal/pattern"
)

// markdownOf turns the HTML of an answer into Markdown. Scripts and styles are dropped.
func markdownOf(text string) string {
	nodes, err := html.ParseFragment(strings.NewReader(text), inBody())
	if err != nil {
		return text
	}
	w := &markdown{}
	for _, n := range nodes {
		w.node(n)
	}
	return strings.TrimSpace(blankLines.ReplaceAllString(w.String(), "\n\n"))
}

var blankLines = pattern.New(`\n[ \t]*\n(?:[ \t]*\n)+`)

// markdown is a text that is written.
type markdown struct {
	strings.Builder
	indent string // of the items of lists
}

func (w *markdown) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.node(c)
	}
}

// around writes what is below a node between two marks.
func (w *markdown) around(n *html.Node, before, after string) {
	w.WriteString(before)
	w.children(n)
	w.WriteString(after)
}

func (w *markdown) node(n *html.Node) {
	if n.Type == html.TextNode {
		w.WriteString(spaces.ReplaceAllString(n.Data, " "))
		return
	}
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template:
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.around(n, "\n\n"+strings.Repeat("#", int(n.Data[1]-'0'))+" ", "\n\n")
	case atom.P, atom.Div, atom.Section, atom.Article:
		w.around(n, "\n\n"+w.indent, "\n\n")
	case atom.Br:
		w.WriteString("\n" + w.indent)
	case atom.Hr:
		w.WriteString("\n\n---\n\n")
	case atom.B, atom.Strong:
		w.around(n, "**", "**")
	case atom.I, atom.Em:
		w.around(n, "*", "*")
	case atom.Pre:
		w.pre(n)
	case atom.Code:
		w.WriteString("`" + plainOf(n) + "`")
	case atom.A:
		w.around(n, "[", "]("+attribute(n, "href")+")")
	case atom.Img:
		w.WriteString("![" + attribute(n, "alt") + "](" + attribute(n, "src") + ")")
	case atom.Ul, atom.Ol:
		w.list(n)
	case atom.Blockquote:
		w.quote(n)
	case atom.Table:
		w.table(n)
	default:
		w.children(n)
	}
}

var spaces = pattern.New(`[ \t\r\n]+`)

// pre writes code as it stands.
func (w *markdown) pre(n *html.Node) {
	language := ""
	for _, code := range find(n, isElement(atom.Code)) {
		_, language, _ = strings.Cut(attribute(code, "class"), "language-")
		language, _, _ = strings.Cut(language, " ")
	}
	code := strings.TrimSuffix(plainOf(n), "\n")
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	w.WriteString("\n\n" + fence + language + "\n" + code + "\n" + fence + "\n\n")
}

func (w *markdown) list(n *html.Node) {
	before, number := w.indent, 1
	w.WriteString("\n")
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Li {
			continue
		}
		mark := "- "
		if n.DataAtom == atom.Ol {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		item := &markdown{indent: before + strings.Repeat(" ", len(mark))}
		item.children(c)
		w.WriteString("\n" + before + mark + strings.TrimSpace(item.String()))
	}
	w.WriteString("\n\n")
}

func (w *markdown) quote(n *html.Node) {
	inner := &markdown{}
	inner.children(n)
	for line := range strings.Lines(blankLines.ReplaceAllString("\n"+strings.TrimSpace(inner.String()), "\n\n")) {
		w.WriteString(strings.TrimRight("> "+strings.TrimSpace(line), " ") + "\n")
	}
	w.WriteString("\n")
}

func (w *markdown) table(n *html.Node) {
	w.WriteString("\n\n")
	for i, row := range find(n, isElement(atom.Tr)) {
		cells := find(row, isElement(atom.Td, atom.Th))
		for _, cell := range cells {
			inner := &markdown{}
			inner.children(cell)
			w.WriteString("| " + strings.ReplaceAll(spaces.ReplaceAllString(strings.TrimSpace(inner.String()), " "), "|", `\|`) + " ")
		}
		w.WriteString("|\n")
		if i == 0 {
			w.WriteString(strings.Repeat("| --- ", len(cells)) + "|\n")
		}
	}
	w.WriteString("\n")
}

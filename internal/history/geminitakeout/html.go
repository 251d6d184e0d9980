package geminitakeout

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// eachCard visits the cards of an activity page, each as a tree of its own: a page may have many MB on one line. Codes:
// Invalid (the page ends within a card).
func eachCard(text io.Reader, visit func(card *html.Node)) error {
	z := html.NewTokenizer(text)
	z.SetMaxBuf(history.MaxLine)
	var card bytes.Buffer
	depth := 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return session.Errorf(session.Invalid, "the page cannot be read: %v", err)
			}
			if depth > 0 {
				return session.Errorf(session.Invalid, "it ends in the middle; what stands before is imported")
			}
			return nil
		}
		raw := bytes.Clone(z.Raw())
		name, hasAttributes := z.TagName()
		isDiv := string(name) == "div"
		if depth == 0 && !(isDiv && kind == html.StartTagToken && hasAttributes && hasClass(z, "outer-cell")) {
			continue
		}
		if card.Len()+len(raw) > history.MaxLine {
			return session.Errorf(session.Invalid, "a card is over %d MiB", history.MaxLine>>20)
		}
		card.Write(raw)
		switch {
		case isDiv && kind == html.StartTagToken:
			depth++
		case isDiv && kind == html.EndTagToken:
			depth--
		}
		if depth > 0 {
			continue
		}
		nodes, err := html.ParseFragment(&card, inBody())
		if card.Reset(); err == nil && len(nodes) > 0 {
			visit(nodes[0])
		}
	}
}

// inBody returns the element that a piece of a page is parsed in.
func inBody() *html.Node {
	return &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
}

func hasClass(z *html.Tokenizer, class string) bool {
	for {
		key, value, more := z.TagAttr()
		if string(key) == "class" && strings.Contains(string(value), class) {
			return true
		}
		if !more {
			return false
		}
	}
}

// attribute returns an attribute of an element.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// find returns the elements below a node that match, in their order, and none within them.
func find(n *html.Node, match func(n *html.Node) bool) (found []*html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && match(c) {
			found = append(found, c)
		} else {
			found = append(found, find(c, match)...)
		}
	}
	return found
}

func ofClass(class string) func(n *html.Node) bool {
	return func(n *html.Node) bool { return strings.Contains(attribute(n, "class"), class) }
}

func isElement(kinds ...atom.Atom) func(n *html.Node) bool {
	return func(n *html.Node) bool {
		for _, kind := range kinds {
			if n.DataAtom == kind {
				return true
			}
		}
		return false
	}
}

// plainOf returns the text below nodes as it stands, with line ends for <br>.
func plainOf(nodes ...*html.Node) string {
	var b strings.Builder
	var write func(n *html.Node)
	write = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case n.DataAtom == atom.Br:
			b.WriteString("\n")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			write(c)
		}
	}
	for _, n := range nodes {
		write(n)
	}
	return b.String()
}

// card reads an activity of a page.
func (t *takeout) card(card *html.Node) {
	headers, contents := find(card, ofClass("header-cell")), find(card, ofClass("content-cell"))
	product := ""
	if len(headers) > 0 {
		product = plainOf(headers[0])
	}
	if !isGemini(product) {
		t.another = true
		t.in.Skip(skipProduct, 1)
		return
	}
	t.found++
	p := &prompt{}
	if paragraphs := find(headers[0], isElement(atom.P)); len(find(headers[0], isElement(atom.H3))) > 0 {
		t.cardInHeader(p, paragraphs, contents)
		return
	}
	if len(contents) == 0 {
		t.in.Skip(skipBroken, 1)
		return
	}
	answer := p.readBody(contents[0])
	for _, cell := range contents[1:] {
		for _, link := range find(cell, isElement(atom.A)) {
			p.addConversation(attribute(link, "href"))
		}
	}
	p.answer = strings.TrimSpace(answer)
	t.add(p)
}

// readBody reads the cell of a card: the prompt, its attachments, the time, and the answer, which it returns as HTML.
// The first line between two <br> that is a time divides them.
func (p *prompt) readBody(body *html.Node) (answer string) {
	var line []*html.Node
	var lines []string
	for c := body.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Br {
			line = append(line, c)
			continue
		}
		text := plainOf(line...)
		at, zone, ok := parseTime(text)
		if !ok {
			for _, n := range line {
				p.attached(n)
			}
			lines, line = append(lines, text), nil
			continue
		}
		p.at, p.zone, p.title = at, zone, promptOf(lines, len(p.files) > 0)
		var b strings.Builder
		for c = c.NextSibling; c != nil; c = c.NextSibling {
			_ = html.Render(&b, c) // into memory
		}
		return b.String()
	}
	p.title = promptOf(append(lines, plainOf(line...)), false) // without a time
	return ""
}

// attached notes a file that a line links to.
func (p *prompt) attached(n *html.Node) {
	if href := attribute(n, "href"); n.DataAtom == atom.A && href != "" && !strings.Contains(href, "://") {
		p.addFile(href)
	}
	if n.DataAtom == atom.A {
		p.addConversation(attribute(n, "href"))
	}
}

// promptOf joins the lines of a prompt, without those of its attachments.
func promptOf(lines []string, hasFiles bool) string {
	var kept []string
	for _, line := range lines {
		const longest = 40 // of a line that counts files
		counts := attachedTail.MatchString(line) && len(line) < longest
		if hasFiles && (counts || strings.HasPrefix(strings.TrimSpace(line), "- ")) {
			continue
		}
		kept = append(kept, line)
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// cardInHeader reads another shape: action and time stand in the header, prompt and answer behind it, where nothing
// tells them apart.
func (t *takeout) cardInHeader(p *prompt, paragraphs, contents []*html.Node) {
	action := ""
	for _, n := range paragraphs {
		text := plainOf(n)
		if at, zone, ok := parseTime(text); ok {
			p.at, p.zone = at, zone
		} else if action == "" {
			action = strings.TrimSpace(text)
		}
	}
	if _, isPrompt := cutVerb(action, asks); !isPrompt || len(contents) == 0 {
		t.in.Skip(skipAction, 1)
		return
	}
	var b strings.Builder
	_ = html.Render(&b, contents[0]) // into memory
	p.title, p.whole = action+" "+markdownOf(b.String()), true
	t.add(p)
}

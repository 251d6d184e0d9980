package transcript

import (
	"html/template"
	"strings"
)

// mostCode is the longest code that is coloured: longer code is a dump.
const mostCode = 32 << 10

// Classes of coloured code, as page.css names them.
const (
	wordClass    = "k"
	textClass    = "s"
	nameClass    = "n"
	commentClass = "c"
	addedClass   = "add"
	deletedClass = "del"
)

// highlighted returns code with its words in classes, if its language is known, else as text.
func highlighted(language, code string) template.HTML {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(language)), " ")
	r, known := rulesOf(name)
	if !known || len(code) > mostCode {
		return template.HTML(template.HTMLEscapeString(code)) //nolint:gosec // escaped
	}
	c := colouring{rules: r, code: code, unclosed: map[string]bool{}}
	switch {
	case r.markup:
		c.readMarkup()
	case r.changes:
		c.readChanges()
	default:
		c.readProgram()
	}
	c.writePlain()
	return template.HTML(c.out.String()) //nolint:gosec // escaped by write and writePlain
}

// colouring is code on its way to HTML: written up to start, read up to at.
type colouring struct {
	rules
	code      string
	start, at int
	unclosed  map[string]bool // quotes that nothing closes any more
	out       strings.Builder
}

// write writes the code up to end in a class, and what was read before it as it is.
func (c *colouring) write(class string, end int) {
	c.writePlain()
	c.out.WriteString(`<span class="` + class + `">` + template.HTMLEscapeString(c.code[c.at:end]) + `</span>`)
	c.start, c.at = end, end
}

func (c *colouring) writePlain() {
	c.out.WriteString(template.HTMLEscapeString(c.code[c.start:c.at]))
	c.start = c.at
}

func (c *colouring) rest() string { return c.code[c.at:] }

// readChanges reads a diff, line by line.
func (c *colouring) readChanges() {
	for c.at < len(c.code) {
		line, _, _ := strings.Cut(c.rest(), "\n")
		end := c.at + len(line)
		switch {
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "),
			strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
			c.write(commentClass, end)
		case strings.HasPrefix(line, "+"):
			c.write(addedClass, end)
		case strings.HasPrefix(line, "-"):
			c.write(deletedClass, end)
		}
		c.at = min(end+1, len(c.code))
	}
}

func (c *colouring) readProgram() {
	for c.at < len(c.code) {
		if end := c.commentEnd(); end > 0 {
			c.write(commentClass, end)
			continue
		}
		if end := c.textEnd(); end > 0 {
			class := textClass
			if c.key == ':' && c.isKey(end) {
				class = wordClass
			}
			c.write(class, end)
			continue
		}
		switch b := c.code[c.at]; {
		case b >= '0' && b <= '9':
			c.at = c.wordEnd()
		case isWordByte(b):
			c.readWord()
		case b == '[' && c.key == '=' && c.startsLine(): // a section
			length := strings.IndexAny(c.rest(), "]\n")
			c.write(wordClass, c.at+max(length+1, 1))
		case b == '\\' && c.at+1 < len(c.code) && c.code[c.at+1] < 0x80: // no quote
			c.at += 2
		default:
			c.at++
		}
	}
}

func (c *colouring) readWord() {
	end := c.wordEnd()
	word := c.code[c.at:end]
	if c.anyCase {
		word = strings.ToLower(word)
	}
	switch {
	case c.keywords[word] && !c.isPartOfName(), c.key != 0 && c.isKey(end):
		c.write(wordClass, end)
	case end < len(c.code) && c.code[end] == '(':
		c.write(nameClass, end)
	default:
		c.at = end
		if len(word) > 2 && end < len(c.code) && c.code[end] == '\'' { // an apostrophe; r'…' and f'…' are texts
			c.at++
		}
	}
}

// commentEnd returns where the comment ends that begins here, 0 for none.
func (c *colouring) commentEnd() int {
	rest := c.rest()
	for i := 0; i+1 < len(c.blocks); i += 2 {
		opening, closing := c.blocks[i], c.blocks[i+1]
		if !strings.HasPrefix(rest, opening) {
			continue
		}
		_, after, closed := strings.Cut(rest[len(opening):], closing)
		if !closed {
			return len(c.code)
		}
		return len(c.code) - len(after)
	}
	for _, opening := range c.comments {
		if !strings.HasPrefix(rest, opening) {
			continue
		}
		switch before := c.before(); {
		case opening == "//" && before == ':': // an address
		case opening != "//" && !strings.ContainsRune(" \t\n\r", rune(before)): // $#, a--b
		default:
			line, _, _ := strings.Cut(rest, "\n")
			return c.at + len(line)
		}
	}
	return 0
}

// textEnd returns where the text ends that begins here, 0 for none.
func (c *colouring) textEnd() int {
	for _, quote := range c.raw {
		if end := c.quotedEnd(quote, false, false); end > 0 {
			return end
		}
	}
	for _, quote := range c.long {
		if end := c.quotedEnd(quote, true, false); end > 0 {
			return end
		}
	}
	for _, quote := range c.texts {
		if end := c.quotedEnd(quote, true, true); end > 0 {
			return end
		}
	}
	return 0
}

// quotedEnd returns the end of a text that begins here with a quote, 0 if it does not or nothing closes it.
func (c *colouring) quotedEnd(quote string, escapes, oneLine bool) int {
	if c.unclosed[quote] || !strings.HasPrefix(c.rest(), quote) {
		return 0
	}
	for i := c.at + len(quote); i < len(c.code); i++ {
		switch b := c.code[i]; {
		case escapes && b == '\\':
			i++
		case oneLine && b == '\n':
			return 0
		case b == quote[0] && strings.HasPrefix(c.code[i:], quote):
			return i + len(quote)
		}
	}
	c.unclosed[quote] = true
	return 0
}

// wordEnd returns where the word or number ends that begins here.
func (c *colouring) wordEnd() int {
	end := c.at + 1
	for end < len(c.code) && (isWordByte(c.code[end]) || c.key != 0 && (c.code[end] == '-' || c.code[end] == '.')) {
		end++
	}
	return end
}

func isWordByte(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b >= 0x80
}

// isPartOfName reports whether the word here continues a name or an option: a.default, $if, --set, ./test.
func (c *colouring) isPartOfName() bool {
	return strings.IndexByte("$@-/", c.before()) >= 0 || c.before() == '.' && !strings.HasSuffix(c.code[:c.at], "..")
}

// isKey reports whether the code from here to end begins an entry and its key follows: {"a": 1}, - a: 1, a = 1.
func (c *colouring) isKey(end int) bool {
	if after := strings.TrimLeft(c.code[end:], " \t"); after == "" || after[0] != c.key {
		return false
	}
	line := c.code[strings.LastIndexByte(c.code[:c.at], '\n')+1 : c.at]
	line = strings.TrimRight(line, " \t")
	return line == "" || strings.IndexByte("{[(,;-", line[len(line)-1]) >= 0
}

// before returns the byte before this one; at the start the end of a line.
func (c *colouring) before() byte {
	if c.at == 0 {
		return '\n'
	}
	return c.code[c.at-1]
}

func (c *colouring) startsLine() bool { return c.before() == '\n' }

// readMarkup colours tags, their attributes and comments.
func (c *colouring) readMarkup() {
	for c.at < len(c.code) {
		if end := c.commentEnd(); end > 0 {
			c.write(commentClass, end)
			continue
		}
		tag := strings.TrimPrefix(c.rest(), "<")
		tag = strings.TrimPrefix(tag, "/")
		if c.code[c.at] != '<' || tag == "" || !isWordByte(tag[0]) {
			c.at++
			continue
		}
		c.write(wordClass, len(c.code)-len(strings.TrimLeft(tag, tagBytes)))
		c.readAttributes()
	}
}

const tagBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:.@"

func (c *colouring) readAttributes() {
	for c.at < len(c.code) {
		switch b := c.code[c.at]; {
		case b == '>':
			c.write(wordClass, c.at+1)
			return
		case b == '/' && strings.HasPrefix(c.rest(), "/>"):
			c.write(wordClass, c.at+2)
			return
		case b == '<': // the tag was none
			return
		case b == '"' || b == '\'':
			end := c.quotedEnd(string(b), false, false)
			if end == 0 {
				return
			}
			c.write(textClass, end)
		case strings.IndexByte(tagBytes, b) >= 0:
			c.write(nameClass, len(c.code)-len(strings.TrimLeft(c.rest(), tagBytes)))
		default:
			c.at++
		}
	}
}

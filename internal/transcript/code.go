package transcript

import (
	"bytes"
	"html/template"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
)

// mostCode is the longest code that is coloured: longer code is a dump.
const mostCode = 32 << 10

var codeFormat = html.New(html.WithClasses(true), html.PreventSurroundingPre(true))

// highlighted returns code with its words in classes, if its language is known, else as text.
func highlighted(language, code string) template.HTML {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(language)), " ")
	if lexer := lexerOf(name); lexer != nil && len(code) <= mostCode {
		if tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code); err == nil {
			var b bytes.Buffer
			if codeFormat.Format(&b, styles.Fallback, tokens) == nil {
				return template.HTML(b.String()) //nolint:gosec // the formatter escapes
			}
		}
	}
	return template.HTML(template.HTMLEscapeString(code)) //nolint:gosec // escaped
}

// lexerOf returns the lexer of a language, nil if there is none. lexers.Get compares a name that it does not know with
// the patterns of all file names, for milliseconds.
func lexerOf(name string) chroma.Lexer {
	if !languages()[name] {
		return nil
	}
	return lexers.Get(name)
}

var languages = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for _, name := range lexers.Names(true) {
		known[strings.ToLower(name)] = true
	}
	return known
})

package transcript

import (
	"bytes"
	"html/template"
	"strings"

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
	name, _, _ := strings.Cut(strings.TrimSpace(language), " ")
	if lexer := lexers.Get(name); name != "" && lexer != nil && len(code) <= mostCode {
		if tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code); err == nil {
			var b bytes.Buffer
			if codeFormat.Format(&b, styles.Fallback, tokens) == nil {
				return template.HTML(b.String()) //nolint:gosec // the formatter escapes
			}
		}
	}
	return template.HTML(template.HTMLEscapeString(code)) //nolint:gosec // escaped
}

// languageOf returns the language of a file by its name, "" if it is not known.
func languageOf(path string) string {
	if name := path[strings.LastIndexAny(path, `/\`)+1:]; name != "" {
		if lexer := lexers.Match(name); lexer != nil {
			return lexer.Config().Name
		}
	}
	return ""
}

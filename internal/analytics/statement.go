package analytics

import (
	"slices"
	"strings"

	"sessiond/internal/session"
)

// statement is the tokens of an SQL text.
type statement struct {
	text   string   // up to the last token
	tokens []token  // outside comments
	params []string // names of its parameters without their sign, in order, each once
}

// token is a word, a literal, a parameter or a sign: a range of bytes of the text.
type token struct {
	start, end int
	kind       tokenKind
}

type tokenKind uint8

const (
	word tokenKind = iota
	literal
	param
	sign
)

// parseStatement checks that text is one reading statement. The read-only connection rejects what this
// check misses. Codes: Invalid.
func parseStatement(text string) (statement, error) {
	s := statement{text: text}
	end := -1
	for i := 0; i < len(text); {
		t, next := scan(text, i)
		i = next
		switch {
		case t == nil:
		case end >= 0 && !isSign(text, t, ';'):
			return statement{}, session.Errorf(session.Invalid, "only one statement is allowed; a second one begins at %s",
				position(text, t.start))
		case isSign(text, t, ';'):
			if end < 0 {
				end = t.start
			}
		default:
			s.tokens = append(s.tokens, *t)
			if name := text[t.start+1 : t.end]; t.kind == param && !slices.Contains(s.params, name) {
				s.params = append(s.params, name)
			}
		}
	}
	if len(s.tokens) == 0 {
		return statement{}, session.Errorf(session.Invalid, "the SQL is empty; write a SELECT")
	}
	s.text = text[:s.tokens[len(s.tokens)-1].end]
	return s, s.checkReads()
}

// word returns the i-th token in upper case; "" beyond the end.
func (s *statement) word(i int) string {
	if i >= len(s.tokens) {
		return ""
	}
	return strings.ToUpper(s.text[s.tokens[i].start:s.tokens[i].end])
}

// wraps reports whether the statement can be a subquery.
func (s *statement) wraps() bool {
	first := s.word(0)
	return first == "SELECT" || first == "WITH" || first == "VALUES"
}

// verb returns the statement's verb, behind EXPLAIN and WITH, in upper case.
func (s *statement) verb() string {
	i := 0
	if s.word(i) == "EXPLAIN" {
		if i++; s.word(i) == "QUERY" && s.word(i+1) == "PLAN" {
			i += 2
		}
	}
	if s.word(i) != "WITH" {
		return s.word(i)
	}
	depth := 0
	for i++; i < len(s.tokens); i++ {
		switch w := s.word(i); {
		case w == "(":
			depth++
		case w == ")":
			depth--
		case depth > 0 || s.tokens[i].kind != word:
		case w == "SELECT" || w == "VALUES" || w == "INSERT" || w == "UPDATE" || w == "DELETE" || w == "REPLACE":
			return w
		}
	}
	return "SELECT" // incomplete; SQLite's error is better
}

func (s *statement) checkReads() error {
	switch first := s.verb(); first {
	case "SELECT", "VALUES":
	case "PRAGMA":
		if s.word(0) != "PRAGMA" { // some take effect when they compile, so also in an EXPLAIN
			return session.Errorf(session.Invalid, "a PRAGMA cannot be explained")
		}
		return s.checkPragma()
	case "ATTACH", "DETACH":
		return session.Errorf(session.Invalid, "%s is not allowed; queries read only this database", first)
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER", "VACUUM", "REINDEX", "ANALYZE",
		"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE":
		return session.Errorf(session.Invalid, "%s is not allowed; queries only read, write through the commands or the API",
			first)
	default:
		return session.Errorf(session.Invalid, "the SQL begins with %q; write a SELECT",
			clip(s.text[s.tokens[0].start:s.tokens[0].end]))
	}
	for _, t := range s.tokens {
		if t.kind == param && s.text[t.start] == '?' {
			return session.Errorf(session.Invalid, "a ? at %s has no name; write :name", position(s.text, t.start))
		}
	}
	return nil
}

// checkPragma allows the pragmas that describe the database, in their reading form.
func (s *statement) checkPragma() error {
	name, at := s.word(1), 2
	if s.word(2) == "." {
		name, at = s.word(3), 4
	}
	switch name {
	case "TABLE_INFO", "TABLE_XINFO", "TABLE_LIST", "INDEX_LIST", "INDEX_INFO", "INDEX_XINFO", "FOREIGN_KEY_LIST":
		if s.word(at) == "" || s.word(at) == "(" || s.word(at) == "=" {
			return nil
		}
	case "USER_VERSION", "APPLICATION_ID", "DATA_VERSION", "PAGE_COUNT", "PAGE_SIZE", "FREELIST_COUNT", "ENCODING",
		"COMPILE_OPTIONS", "FUNCTION_LIST", "COLLATION_LIST":
		if s.word(at) == "" {
			return nil
		}
	}
	return session.Errorf(session.Invalid,
		"this PRAGMA is not allowed; only those that describe the database are, such as table_info, index_list, page_count")
}

func isSign(text string, t *token, c byte) bool { return t.kind == sign && text[t.start] == c }

// scan returns the token at i, by SQLite's rules; nil for white space and comments.
func scan(text string, i int) (t *token, next int) {
	c := text[i]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
		return nil, i + 1
	case strings.HasPrefix(text[i:], "--"):
		return nil, after(text, i+2, "\n")
	case strings.HasPrefix(text[i:], "/*"):
		return nil, after(text, i+2, "*/")
	case c == '\'' || c == '"' || c == '`':
		end := i + 1
		for {
			end = after(text, end, string(c))
			if end >= len(text) || text[end] != c { // a doubled quote is part of the literal
				return &token{i, end, literal}, end
			}
			end++
		}
	case c == '[':
		end := after(text, i+1, "]")
		return &token{i, end, literal}, end
	case c == '?', (c == ':' || c == '@' || c == '$') && i+1 < len(text) && isWordByte(text[i+1]):
		end := wordEnd(text, i+1)
		return &token{i, end, param}, end
	case isWordByte(c):
		end := wordEnd(text, i)
		return &token{i, end, word}, end
	}
	return &token{i, i + 1, sign}, i + 1
}

// after returns the index behind the first end at or after i, or the text's length.
func after(text string, i int, end string) int {
	if j := strings.Index(text[min(i, len(text)):], end); j >= 0 {
		return i + j + len(end)
	}
	return len(text)
}

func wordEnd(text string, i int) int {
	for i < len(text) && isWordByte(text[i]) {
		i++
	}
	return i
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

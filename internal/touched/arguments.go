package touched

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"sessiond/internal/jsontext"
)

// argumentsOf reads the arguments that name files. Calls are many, and the rest of what they
// hold may be a whole file: what is spelled as programs spell it is gone over once, and anything
// else left to encoding/json.
func argumentsOf(text string) (f fields, ok bool) {
	if f.scan(text) {
		return f, true
	}
	f = fields{}
	return f, json.Unmarshal([]byte(text), &f) == nil
}

// scan takes an object apart. It gives false for what is no JSON, and for names and values that
// stand otherwise than one expects.
func (f *fields) scan(s string) bool {
	at := space(s, 0)
	if at == len(s) || s[at] != '{' {
		return false
	}
	if at = space(s, at+1); at < len(s) && s[at] == '}' {
		return space(s, at+1) == len(s)
	}
	for {
		name := at
		if at = textEnd(s, at); at < 0 {
			return false
		}
		key := s[name+1 : at-1]
		if at = space(s, at); at == len(s) || s[at] != ':' {
			return false
		}
		at = space(s, at+1)
		value := at
		if at = valueEnd(s, at, 0); at < 0 || !f.take(key, s[value:at]) {
			return false
		}
		if at = space(s, at); at == len(s) {
			return false
		}
		switch s[at] {
		case '}':
			return space(s, at+1) == len(s)
		case ',':
			at = space(s, at+1)
		default:
			return false
		}
	}
}

// take keeps a value that is asked for.
func (f *fields) take(key, value string) bool {
	if !isPlain(key) {
		return false
	}
	if key == "command" {
		f.Command = json.RawMessage(value)
		return true
	}
	to := f.text(key)
	if to == nil {
		return !f.resembles(key)
	}
	if value[0] == '"' && strings.IndexByte(value, '\\') < 0 && utf8.ValidString(value) {
		*to = value[1 : len(value)-1]
		return true
	}
	return json.Unmarshal([]byte(value), to) == nil
}

// text is the field of a name, nil if there is none.
func (f *fields) text(key string) *string {
	switch key {
	case "path":
		return &f.Path
	case "file_path":
		return &f.FilePath
	case "filePath":
		return &f.CamelPath
	case "notebook_path":
		return &f.NotebookPath
	case "cmd":
		return &f.Cmd
	case "input":
		return &f.Input
	case "patchText":
		return &f.PatchText
	case "patch":
		return &f.Patch
	case "workdir":
		return &f.WorkDir
	case "working_directory":
		return &f.WorkingDir
	}
	return nil
}

// resembles tells whether a name is one that is asked for but for the case of its letters:
// encoding/json takes it.
func (f *fields) resembles(key string) bool {
	for _, name := range [...]string{
		"path", "file_path", "filePath", "notebook_path", "command", "cmd", "input", "patchText", "patch", "workdir", "working_directory",
	} {
		if len(name) == len(key) && strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}

// isPlain tells whether a name stands in JSON as it is, in ASCII.
func isPlain(name string) bool {
	for i := range len(name) {
		if name[i] == '\\' || name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// deepest is how deep values are gone over here.
const deepest = 100

// The end functions give where what begins at at ends, -1 if that is no JSON.

func valueEnd(s string, at, depth int) int {
	if at == len(s) || depth == deepest {
		return -1
	}
	switch c := s[at]; {
	case c == '"':
		return textEnd(s, at)
	case c == '{' || c == '[':
		return membersEnd(s, at, depth+1)
	case c == '-' || c >= '0' && c <= '9', c == 't', c == 'f', c == 'n':
		end := at
		for end < len(s) && s[end] != ',' && s[end] != '}' && s[end] != ']' && s[end] > ' ' {
			end++
		}
		if word := s[at:end]; word == "true" || word == "false" || word == "null" || json.Valid([]byte(word)) {
			return end
		}
	}
	return -1
}

func membersEnd(s string, at, depth int) int {
	object, end := s[at] == '{', s[at]+2 // } and ] stand two behind { and [ in ASCII
	if at = space(s, at+1); at < len(s) && s[at] == end {
		return at + 1
	}
	for {
		if object {
			if at = textEnd(s, at); at < 0 {
				return -1
			}
			if at = space(s, at); at == len(s) || s[at] != ':' {
				return -1
			}
			at = space(s, at+1)
		}
		if at = valueEnd(s, at, depth); at < 0 {
			return -1
		}
		if at = space(s, at); at == len(s) {
			return -1
		}
		switch s[at] {
		case end:
			return at + 1
		case ',':
			at = space(s, at+1)
		default:
			return -1
		}
	}
}

func textEnd(s string, at int) int {
	if at >= len(s) || s[at] != '"' {
		return -1
	}
	for at++; ; at++ {
		if at += jsontext.PlainLen(s[at:]); at == len(s) {
			return -1
		}
		switch s[at] {
		default: // a control character
			return -1
		case '"':
			return at + 1
		case '\\':
			if at++; at == len(s) || strings.IndexByte(`"\/bfnrtu`, s[at]) < 0 {
				return -1
			}
			if s[at] != 'u' {
				continue
			}
			for range 4 {
				if at++; at == len(s) || strings.IndexByte("0123456789abcdefABCDEF", s[at]) < 0 {
					return -1
				}
			}
		}
	}
}

func space(s string, at int) int {
	for at < len(s) && (s[at] == ' ' || s[at] == '\t' || s[at] == '\r' || s[at] == '\n') {
		at++
	}
	return at
}

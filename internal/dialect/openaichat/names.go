package openaichat

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the API, which answers 400 beyond them.
const (
	maxName   = 64 // characters of a tool's or an author's name
	maxCallID = 40 // bytes of a call's id
)

// legalTool gives a tool's name in the API's alphabet [a-zA-Z0-9_-], 64 at most. Calls of
// other providers may have others, e.g. mcp.server.tool.
func legalTool(name string) string {
	return legal(name, func(r rune) bool {
		return r == '_' || r == '-' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
	})
}

// legalAuthor gives an author's name without what the API refuses there: [^\s<|\\/>]+, 64 at most.
func legalAuthor(name string) string {
	return legal(name, func(r rune) bool { return !unicode.IsSpace(r) && !strings.ContainsRune(`<|\/>`, r) })
}

func legal(name string, allowed func(rune) bool) string {
	name = strings.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return '_'
	}, name)
	if utf8.RuneCountInString(name) > maxName {
		name = string([]rune(name)[:maxName])
	}
	if name == "" {
		return "_"
	}
	return name
}

// legalCallID gives an id that is short enough. Some programs join two ids into one that is
// not; its beginning and a hash stand for it, the same for a call and its result.
func legalCallID(id string) string {
	if len(id) <= maxCallID {
		return id
	}
	const kept = 20
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(id[:kept], "") + hex.EncodeToString(sum[:10])[:maxCallID-kept]
}

package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
)

// Limits of the API, which answers 400 beyond them.
const (
	maxName   = 128 // characters of a tool's name
	maxCallID = 64  // bytes of a call's id
)

// legalTool gives a tool's name in the API's alphabet [a-zA-Z0-9_-]. Calls of other providers
// may have others, e.g. mcp.server.tool.
func legalTool(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "_"
	}
	return name[:min(len(name), maxName)]
}

// callID gives the id that a call is sent with: its own, if that is short enough and no call
// before had it. One that is too long keeps its beginning, and a hash stands for the rest. It
// depends on nothing but the calls so far, so that a context that grows keeps its beginning.
func (s *sender) callID(id string) string {
	s.calls++
	if id == "" {
		id = "call_made_" + strconv.Itoa(s.calls)
	}
	sent := shortID(id)
	for s.used[sent] {
		s.again[id]++
		sent = shortID(id + "_" + strconv.Itoa(s.again[id]+1))
	}
	s.used[sent] = true
	return sent
}

func shortID(id string) string {
	if len(id) <= maxCallID {
		return id
	}
	const kept = 40
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(id[:kept], "") + hex.EncodeToString(sum[:])[:maxCallID-kept]
}

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
// before had it. It depends on nothing but the calls so far, so that a context that grows keeps
// its beginning.
func (s *sender) callID(id string) string {
	s.calls++
	if id == "" {
		id = "call_made_" + strconv.Itoa(s.calls)
	}
	short := shortID(id)
	sent := short
	for s.used[sent] {
		s.again[short]++
		sent = clipped(short + "_" + strconv.Itoa(s.again[short]+1))
	}
	s.used[sent] = true
	return sent
}

// shortID gives an id that is short enough. Some programs join a call's id and its item's with
// a bar: then the first is what it was.
func shortID(id string) string {
	if call, _, joined := strings.Cut(id, "|"); len(id) > maxCallID && joined && call != "" && len(call) <= maxCallID {
		return call
	}
	return clipped(id)
}

// clipped keeps the beginning of an id that is too long; a hash stands for the rest.
func clipped(id string) string {
	if len(id) <= maxCallID {
		return id
	}
	const kept = 40
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(id[:kept], "") + hex.EncodeToString(sum[:])[:maxCallID-kept]
}

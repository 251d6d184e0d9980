package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"sessiond/internal/session"
)

// Limits of the API. A tool's name is ^[a-zA-Z0-9_-]{1,64}$ on the models that are strictest,
// 128 on others; a call's id is ^[a-zA-Z0-9_-]+$ without a stated length.
const (
	maxName   = 64
	maxCallID = 64
)

// legal tells whether a name or an id is in the API's alphabet.
func legal(s string) bool {
	for i := range len(s) {
		if !legalByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func legalByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// legalTool gives a tool's name in the API's alphabet. Names of other providers may have dots
// and letters of any script.
func legalTool(name string) string {
	if legal(name) && len(name) <= 2*maxName {
		return name
	}
	if name = strings.Map(legalRune, name); len(name) > maxName {
		name = name[:maxName]
	}
	if name == "" {
		return "_"
	}
	return name
}

func legalRune(r rune) rune {
	if r < 0x80 && legalByte(byte(r)) {
		return r
	}
	return '_'
}

// legalCallID gives an id that the API takes. What it cannot take is named by its beginning
// and a hash, so that two ids do not become one; the same for a call and its result.
func legalCallID(id string) string {
	if legal(id) && len(id) <= maxCallID || id == "" {
		return id
	}
	const kept = 40
	sum := sha256.Sum256([]byte(id))
	id = strings.Map(legalRune, id)
	return id[:min(kept, len(id))] + "_" + hex.EncodeToString(sum[:8])
}

// openCall is a call of the last reply that has no result yet: its id and name as they came,
// the id that it is sent with, and the message that it stands in.
type openCall struct {
	id, name, sent string
	from           *session.Message
}

// newID gives a call the id that it is sent with: one of its own, since the API refuses the
// same id twice in a request and some providers count anew in each reply.
func (s *sender) newID(p *session.Part) string {
	s.calls++
	id := legalCallID(p.CallID)
	if id == "" {
		id = "toolu_made_" + strconv.Itoa(s.calls)
	}
	unique := id
	for n := 2; s.used[unique]; n++ {
		unique = id + "_" + strconv.Itoa(n)
	}
	s.use(unique)
	return unique
}

func (s *sender) use(id string) {
	if s.used == nil {
		s.used = map[string]bool{}
	}
	s.used[id] = true
}

package anthropic

import (
	"strconv"
	"strings"

	"sessiond/internal/callid"
	"sessiond/internal/session"
)

// maxName is the length of a tool's name, which is ^[a-zA-Z0-9_-]{1,64}$ on the models that are
// strictest, 128 on others.
const maxName = 64

// legal tells whether a name is in the API's alphabet, which is that of ids.
func legal(s string) bool { return callid.Valid(s) }

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
	if r < 0x80 && callid.Valid(string(r)) {
		return r
	}
	return '_'
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
	if p.CallID == "" {
		return s.ids.Call("toolu_made_" + strconv.Itoa(s.calls))
	}
	return s.ids.Call(p.CallID)
}

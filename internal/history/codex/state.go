package codex

import (
	"crypto/sha256"
	"encoding/hex"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// state is what a record must know of those before it.
type state struct {
	Chain string   // the key of the last record of the conversation
	Side  int      // records beside the conversation since
	Tip   string   // the key of the message that the next one follows
	Base  *string  // what the first turn followed
	Turns []string // what each turn of this branch followed

	Provider string
	Model    string
	Context  string           // the last turn context, as contextOf gives it
	Summary  string           // digest of the last compaction's text
	Calls    map[string]int64 // when open calls were made, Unix milliseconds
	LastAt   session.Time

	Total    tokens // the last cumulative usage
	Usage    string // the key of the last call
	Recorded bool   // usage records say what calls cost, counts only repeat it

	Copying bool // the records are still copies of those of the origin
}

// after returns the key of a record that comes after the one with the key chain.
func after(chain, says string) string {
	sum := sha256.Sum256([]byte(chain + "\n" + says))
	return hex.EncodeToString(sum[:12])
}

// advance moves over a record of the conversation and gives its key.
func (s *state) advance(r *record) string {
	s.Chain, s.Side = after(s.Chain, jsonx.Fingerprint(r.says())), 0
	return s.Chain
}

// beside makes the key of a record that is beside the conversation.
func (s *state) beside(says string) string {
	s.Side++
	return s.Chain + "." + after("", says)[:8] + "." +
		hex.EncodeToString([]byte{byte(s.Side >> 16), byte(s.Side >> 8), byte(s.Side)})
}

// rollBack goes to the place before the last n turns.
func (s *state) rollBack(n int) {
	switch {
	case n <= 0:
	case n <= len(s.Turns):
		s.Tip = s.Turns[len(s.Turns)-n]
		s.Turns = s.Turns[:len(s.Turns)-n]
	default:
		s.Turns = nil
		if s.Base != nil {
			s.Tip = *s.Base
		}
	}
}

// maxTurns bounds how far a roll-back can reach.
const maxTurns = 2000

func (s *state) beginTurn(before string) {
	if s.Base == nil {
		s.Base = &before
	}
	if len(s.Turns) == maxTurns {
		s.Turns = append(s.Turns[:0], s.Turns[1:]...)
	}
	s.Turns = append(s.Turns, before)
}

// opened remembers when a call was made. Those that never get an answer are forgotten.
func (s *state) opened(id string, at session.Time) {
	const most = 1000
	if s.Calls == nil || len(s.Calls) >= most {
		s.Calls = map[string]int64{}
	}
	if id != "" && !at.IsZero() {
		s.Calls[id] = at.UnixMilli()
	}
}

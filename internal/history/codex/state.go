package codex

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"sessiond/internal/session"
)

// state is what a reading must know of the records before it. It is kept in the cursor.
type state struct {
	Awaits string `json:"awaits,omitempty"` // the thread that this one was forked from, or was started by, where it is not here yet

	Line      int32 `json:"line"` // lines read
	Witnesses bool  `json:"witnesses,omitempty"`
	Items     bool  `json:"items,omitempty"`

	Chain string  `json:"chain"`           // the key of the last record of the conversation
	Side  int     `json:"side,omitempty"`  // records beside the conversation since
	Tip   place   `json:"tip"`             // what the next message follows
	Base  *place  `json:"base,omitempty"`  // what the first turn followed
	Turns []place `json:"turns,omitempty"` // what each turn of this branch followed

	Provider string           `json:"provider,omitempty"`
	Model    string           `json:"model,omitempty"`
	Effort   string           `json:"effort,omitempty"`
	Context  string           `json:"context,omitempty"` // fingerprint of the last turn context
	Summary  string           `json:"summary,omitempty"` // digest of the last compaction's text
	Calls    map[string]int64 `json:"calls,omitempty"`   // when open calls were made, Unix milliseconds
	LastAt   session.Time     `json:"last_at"`

	Total    tokens `json:"total"`              // the last cumulative usage
	Usage    string `json:"usage,omitempty"`    // the key of the last call
	Recorded bool   `json:"recorded,omitempty"` // usage records say what calls cost, counts only repeat it

	Copying bool `json:"copying,omitempty"` // the records are still copies of those of the origin
	Matched int  `json:"matched,omitempty"` // copies that were found in the origin
}

// place is a message by its external id; Session is set when it lies in another session.
type place struct {
	Key     string     `json:"key,omitempty"`
	Session session.ID `json:"session,omitempty"`
}

func readState(raw session.JSON) (*state, bool) {
	var s state
	if raw == nil || json.Unmarshal(raw, &s) != nil {
		return nil, false
	}
	return &s, true
}

// after gives the key of a record that comes after the one with the key chain.
func after(chain, says string) string {
	sum := sha256.Sum256([]byte(chain + "\n" + says))
	return hex.EncodeToString(sum[:12])
}

// advance moves over a record of the conversation and gives its key.
func (s *state) advance(r *record) string {
	s.Chain, s.Side = after(s.Chain, r.cuts.Fingerprint(r.says())), 0
	return s.Chain
}

// beside gives a key to a record that is beside the conversation.
func (s *state) beside(says string) string {
	s.Side++
	return s.Chain + "." + after("", says)[:8] + "." + hex.EncodeToString([]byte{byte(s.Side >> 16), byte(s.Side >> 8), byte(s.Side)})
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

func (s *state) beginTurn(before place) {
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

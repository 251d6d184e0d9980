package contextmgr

import (
	"slices"

	"sessiond/internal/session"
	"sessiond/internal/words"
)

// wordsShare is the part of the threshold that a person's words may fill: in a window that is
// small for them they would else leave no room.
const wordsShare = 0.3

// planWords plans as Codex compacts: everything is hidden but what no reply has answered yet
// and calls that wait for their results; the person's newest words stay beside the summary. The
// message that began a turn which goes on is shown again.
func planWords(path []Entry, budget int64, room PlanRoom) Plan {
	if len(path) == 0 {
		return planAt(path, Cut{0, -1}, 0)
	}
	p := planAt(path, cutAt(path, unanswered(path)), budget)
	if room.Threshold > 0 {
		budget = min(budget, int64(wordsShare*float64(room.Threshold)), room.Threshold-room.Fixed-room.Summary-p.KeptTokens)
	}
	budget = max(0, budget)
	p.Words, p.WordsRoom = &budget, 0
	if room.Threshold > 0 {
		p.WordsRoom = budget
	}
	return p
}

// unanswered gives the first entry that must stay as it is: messages after the last reply, or
// the reply whose calls still wait for results, with the reasoning before it.
func unanswered(path []Entry) int {
	first, waits := len(path), map[string]bool{}
	for i := range path {
		for _, id := range path[i].Calls {
			waits[id] = true
		}
		for _, id := range path[i].Results {
			delete(waits, id)
		}
	}
	for i := range slices.Backward(path) {
		switch e := &path[i]; {
		case !e.gives():
		case slices.ContainsFunc(e.Calls, func(id string) bool { return waits[id] }):
			for first = i; first > 0 && path[first-1].Reasoning; first-- {
			}
			return first
		case e.Role == session.Assistant:
			return first
		case e.Role == session.Tool:
			if len(waits) == 0 {
				return first
			}
		default:
			if first == len(path) || path[first].startsTurn() {
				first = i
			}
		}
	}
	return first
}

// cutAt gives a cut with the beginning of the turn that it splits: one whose reply is not
// whole before it.
func cutAt(path []Entry, first int) Cut {
	cut := Cut{first, -1}
	if first < len(path) && path[first].startsTurn() {
		return cut
	}
	last := lastGiving(path[:first])
	switch {
	case last < 0:
	case path[last].startsTurn():
		cut.TurnStart = last
	case path[last].Role == session.Tool || len(path[last].Calls) > 0 || first < len(path):
		cut.TurnStart = turnStart(path, last)
	}
	return cut
}

func lastGiving(path []Entry) int {
	for i := range slices.Backward(path) {
		if path[i].gives() {
			return i
		}
	}
	return -1
}

// keptWords is a copy of what a person said, with the message that said it.
type keptWords struct {
	ID     session.MessageRef `json:"id"`
	Kind   session.Kind       `json:"kind"`
	Role   session.Role       `json:"role"`
	Origin session.Origin     `json:"origin"`
	Parts  []session.Part     `json:"parts"`
}

// message gives the copy as a message, which shares its parts.
func (k *keptWords) message() *session.Message {
	return &session.Message{Kind: k.Kind, Role: k.Role, Parts: k.Parts}
}

// keepWords gives the person's newest words that a plan hides and does not show again, those
// that the overlay before it kept included, with what they weigh by the reference counter.
// Codex counts bytes: where the room that the plan leaves is small for what they really weigh,
// they are less. nil: there are none.
func (m *Manager) keepWords(r *reading, p Plan, details *session.CompactionDetails) (kept []keptWords, size int64) {
	for budget := *p.Words; ; {
		kept = r.newestWords(p, budget, details)
		weight := int64(0)
		for i := range kept {
			weight += r.weigh.Message(kept[i].message(), true)
		}
		if p.WordsRoom == 0 || weight <= p.WordsRoom || budget <= 0 {
			return kept, m.measureWords(kept)
		}
		budget = min(budget-1, budget*p.WordsRoom/weight)
	}
}

// newestWords gives the newest words within a budget in Codex's tokens. Each message stands
// there once: one that the overlay shows again, as the beginning of the turn that goes on or as
// the person's last, is no copy beside it, and neither is one that was copied before.
func (r *reading) newestWords(p Plan, left int64, details *session.CompactionDetails) []keptWords {
	var said []session.Message
	if r.words {
		said = replacementOf(r.overlay)
	}
	for _, m := range []*session.Message{r.turnStart, r.person} {
		if m != nil && fromPerson(m) {
			said = append(said, *m)
		}
	}
	for i := range r.path[:p.First] {
		if m := &r.path[i]; m.InContext && fromPerson(m) {
			said = append(said, *m)
		}
	}
	seen := map[session.MessageRef]bool{}
	said = slices.DeleteFunc(said, func(m session.Message) bool {
		if m.ID == (session.MessageRef{}) { // of an import
			return m.Text() == ""
		}
		again := seen[m.ID]
		seen[m.ID] = true
		if name := m.ID.String(); !again && (name == details.TurnStart || name == details.LastPerson) {
			left -= words.Tokens(m.Text())
			return true
		}
		return again || m.Text() == ""
	})
	texts := make([]string, len(said))
	for i := range said {
		texts[i] = said[i].Text()
	}
	var kept []keptWords
	recent := words.Recent(texts, left)
	for i, text := range recent {
		kept = append(kept, keptWords{
			ID: said[len(said)-len(recent)+i].ID, Kind: session.KindMessage, Role: session.User, Origin: session.Person, Parts: []session.Part{session.TextPart(text)},
		})
	}
	return kept
}

// measureWords sets what copies of words weigh, by the reference counter, and gives the sum.
func (m *Manager) measureWords(kept []keptWords) int64 {
	var sum int64
	for i := range kept {
		msg := kept[i].message()
		m.cfg.Counter(m.cfg.Reference).Measure(msg)
		sum += msg.Tokens
	}
	return sum
}

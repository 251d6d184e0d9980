package contextmgr

import (
	"sessiond/internal/session"
	"sessiond/internal/words"
)

// copiedWords is a copy of what a person said, with the message that said it. Preset codex keeps
// such copies beside a summary.
type copiedWords struct {
	ID     session.MessageRef `json:"id"`
	Kind   session.Kind       `json:"kind"`
	Role   session.Role       `json:"role"`
	Origin session.Origin     `json:"origin"`
	Parts  []session.Part     `json:"parts"`
}

// message returns the copy as a message that shares its parts.
func (w *copiedWords) message() *session.Message {
	return &session.Message{Kind: w.Kind, Role: w.Role, Parts: w.Parts}
}

// copyWords copies the person's newest words that a plan hides and does not show again, including
// those that the overlay before kept. Codex counts bytes: if the copies weigh more than the plan
// leaves room for, the budget shrinks.
func (s *snapshot) copyWords(p *Plan, details *session.CompactionDetails) []copiedWords {
	for budget := *p.Words; ; {
		copies := s.newestWords(p, budget, details)
		weight := int64(0)
		for i := range copies {
			weight += s.Weigh.Message(copies[i].message(), true)
		}
		if p.WordsRoom == 0 || weight <= p.WordsRoom || budget <= 0 {
			return copies
		}
		budget = min(budget-1, budget*p.WordsRoom/weight)
	}
}

// newestWords copies the newest words within a budget of Codex's tokens, each message once. A
// message that the overlay shows again is not copied, but counts against the budget.
func (s *snapshot) newestWords(p *Plan, budget int64, details *session.CompactionDetails) []copiedWords {
	var said []session.Message
	if s.Words {
		said = ReplacementOf(s.Overlay)
	}
	for _, m := range s.shownAgain() {
		if fromPerson(m) {
			said = append(said, *m)
		}
	}
	for i := range s.Messages[:p.First] {
		if m := &s.Messages[i]; m.InContext && fromPerson(m) {
			said = append(said, *m)
		}
	}
	seen := map[session.MessageRef]bool{}
	var ids []session.MessageRef
	var texts []string
	for i := range said {
		id, text := said[i].ID, said[i].Text()
		if id != (session.MessageRef{}) { // imported copies have none
			if seen[id] {
				continue
			}
			seen[id] = true
			if name := id.String(); name == details.TurnStart || name == details.LastPerson {
				budget -= words.Tokens(text)
				continue
			}
		}
		if text != "" {
			ids, texts = append(ids, id), append(texts, text)
		}
	}
	var copies []copiedWords
	recent := words.Recent(texts, budget)
	ids = ids[len(ids)-len(recent):]
	for i, text := range recent {
		copies = append(copies, copiedWords{
			ID: ids[i], Kind: session.KindMessage, Role: session.User, Origin: session.Person,
			Parts: []session.Part{session.TextPart(text)},
		})
	}
	return copies
}

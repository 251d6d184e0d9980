package contextmgr

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
	lang "sessiond/internal/text"
)

// Recall finds hidden originals. unread is the number of messages that it did not search, because they are not yet
// indexed.
type Recall interface {
	Recall(ctx context.Context, q RecallQuery) (hits []Hit, unread int, err error)
}

// RecallQuery searches the messages of a path that an overlay hides.
type RecallQuery struct {
	Head   int64   // row of the path's end
	Before int64   // hidden messages of the path have smaller rows
	Pruned []int64 // rows of kept messages that are partly hidden
	Text   string
	Limit  int
}

// Hit is a hidden message that answers a query. Hits are ordered best first.
type Hit struct {
	Message    session.Message
	Neighbours []session.Message // right before and after it
	Rest       []session.Message // of a person's message, instead of neighbours: the rest of its turn
}

const (
	maxHits      = 24
	recallParts  = 2  // a recall takes one of them of what is left for its overlay, or of the most that a recall takes
	queryReach   = 3  // newest messages of a person that a query may be made of
	minTerms     = 2  // that a query needs
	longTerm     = 7  // letters of a term that is enough for a question: what it asks for is rarely in the message before
	maxTerms     = 24 // of a query
	maxHitsBytes = 128 << 10
	maxRestBytes = 384 << 10 // of the texts of turns that hits bring
)

// recall quotes, in the person's newest message, hidden messages that answer it. Pruned outputs
// count as hidden.
func (t *turn) recall(ctx context.Context) error {
	s, c := t.s, t.s.Overlay
	if t.m.cfg.Recall == nil || t.pinned || c == nil || c.Strategy == session.StrategyClear || s.numbers.RecallMax <= 0 ||
		len(s.Messages) == 0 {
		return nil
	}
	m := s.newest(fromPerson)
	if m == nil || s.hasFrozen(m, session.FrozenRecall) || s.wasSent(m) {
		return nil
	}
	spent, shown, quoted := s.earlierRecalls(c.RowID)
	// What is left for this overlay must do for later questions, too.
	left := s.numbers.RecallEpoch - spent
	budget := min(s.numbers.RecallMax, max(left/recallParts, min(left, s.numbers.RecallMax/recallParts)),
		s.numbers.Limit-t.tokens.Total)
	text, terms := Query(s.newestQuestions())
	forQuestions := left < s.numbers.RecallEpoch/2 // the rest of what an overlay may recall
	if len(terms) == 0 || budget < minPart || forQuestions && !strings.ContainsAny(text, "?？") {
		return nil
	}
	before := s.Messages[0].RowID
	hits, unread, err := t.m.cfg.Recall.Recall(ctx, RecallQuery{
		Head: *s.sess.HeadID, Before: before, Text: text, Limit: maxHits + shown,
		Pruned: s.partlyHidden(),
	})
	if err != nil { // a context without recall is better than none
		s.warn("recall failed, nothing was recalled: %v", err)
		return nil
	}
	if unread > 0 {
		s.warn("recall did not search %d older messages that are not yet in the index", unread)
	}
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Message.RowID >= before && !s.hidesIn(&h.Message) })
	block := quoteHits(quoteInput{
		hits: hits, terms: terms, quoted: quoted, budget: budget, mask: t.m.cfg.Mask,
		weigh: s.Weigh,
	})
	var overlay *int64
	if c.RowID != 0 {
		overlay = &c.RowID
	}
	t.freezeContent(m, session.FrozenRecall, overlay, block) // even if empty, so that the message stays as it was sent
	if block.Text == "" {
		return nil
	}
	return t.assemble(ctx)
}

// earlierRecalls returns the tokens recalled under an overlay, and the number of messages and the text
// that this context quotes already.
func (s *snapshot) earlierRecalls(overlay int64) (spent int64, shown int, quoted string) {
	for _, f := range s.Frozen {
		var content frozenText
		if f.Kind != session.FrozenRecall || !decode(f.Content, &content) {
			continue
		}
		if f.CompactionID != nil && *f.CompactionID == overlay {
			spent += content.Tokens
		}
		if s.contains(f.MessageID) {
			shown, quoted = shown+len(content.Sources), quoted+content.Text
		}
	}
	return spent, shown, quoted
}

// newestQuestions returns the texts of a person's newest messages, newest first.
func (s *snapshot) newestQuestions() []string {
	var texts []string
	for i := range slices.Backward(s.Messages) {
		if m := &s.Messages[i]; m.InContext && fromPerson(m) {
			if texts = append(texts, m.Text()); len(texts) == queryReach {
				break
			}
		}
	}
	return texts
}

// Query returns the newest of a person's messages, given newest first, that has enough terms to
// search for, and its terms; none: nothing is recalled.
func Query(newest []string) (text string, terms []string) {
	for _, t := range newest[:min(len(newest), queryReach)] {
		terms := Terms(t)
		alone := len(terms) == 1 && strings.ContainsAny(t, "?？") && utf8.RuneCountInString(terms[0]) >= longTerm
		if len(terms) >= minTerms || alone {
			return t, terms
		}
	}
	return "", nil
}

// Terms returns the distinct telling words of a text, lower-case: no common words, none shorter than
// three letters unless it has a digit; runs without spaces as bigrams.
func Terms(said string) []string {
	const maxWords = 1000 // of a pasted text
	var terms []string
	add := func(t string) {
		if len(terms) < maxTerms && !slices.Contains(terms, t) {
			terms = append(terms, t)
		}
	}
	words := 0
	for word := range lang.Words(said) {
		if words++; words > maxWords {
			break
		}
		if r := []rune(word); lang.IsUnspaced(r[0]) {
			for i := range r[1:] {
				add(string(r[i : i+2]))
			}
		} else if word = strings.ToLower(word); isTelling(word) && !lang.IsCommonWord(word) {
			add(word)
		}
	}
	return terms
}

// isTelling reports whether a word has a digit or at least three letters.
func isTelling(word string) bool {
	if strings.ContainsFunc(word, unicode.IsDigit) {
		return true
	}
	return utf8.RuneCountInString(word) > 2
}

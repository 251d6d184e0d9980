package search

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"sessiond/internal/text"
)

// A longer run without spaces is a sentence, not a word, in characters; Thai writes a word with more of them.
const (
	longestRun  = 4
	longestThai = 8
)

// splitRuns replaces each sentence without spaces by its clues: pairs of characters, of which a hit need not have all.
// What may be one word stays whole where a message has it.
func (r *run) splitRuns(ctx context.Context) error {
	var terms []term
	for queue := slices.Clone(r.parsed.terms); len(queue) > 0; {
		t := queue[0]
		queue = queue[1:]
		clues := t.clues()
		if len(clues) > 1 && !t.isSentence() {
			n, err := r.count(ctx, r.expression(t.match()))
			if err != nil {
				return err
			}
			if n > 0 {
				clues = nil
			}
		}
		switch {
		case len(clues) == 0 || t.not:
			terms = append(terms, t)
		case len(clues) == 1:
			terms = append(terms, clues...)
		default:
			for i := range clues {
				clues[i].addLanguages(r.languages)
			}
			queue = append(clues, queue...)
		}
	}
	p := parsed{}
	for _, t := range terms {
		if p.hasRoomFor(t) {
			p.terms = append(p.terms, t)
		}
	}
	r.parsed.terms = p.terms
	return nil
}

// isSentence reports whether a term has a longer run without spaces than a word has.
func (t term) isSentence() bool {
	letters, longest := 0, longestRun
	for _, r := range t.raw {
		switch {
		case !text.IsUnspaced(r) || text.IsMark(r):
		case text.IsKatakana(r):
		default:
			letters++
			if r < 0x2E80 {
				longest = longestThai
			}
		}
	}
	return letters > longest
}

// clues returns what a term without spaces may be found by; none of another one.
func (t term) clues() (all []term) {
	if !t.word || t.norm.Count < 2 || !strings.ContainsFunc(t.raw, text.IsUnspaced) {
		return nil
	}
	of := t.raw
	if t.run != "" {
		of = t.run
	}
	add := func(run string, open bool) {
		c, ok := field{text: run}.term()
		if !ok {
			return
		}
		if c.prefix && !open {
			return
		}
		c.run = of
		all = append(all, c)
	}
	for _, said := range []string{text.WithoutStopRuns(t.raw), t.raw} {
		for piece := range strings.FieldsSeq(said) {
			for _, same := range text.SplitScripts(piece) {
				addClues(same, same == t.raw, add)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// CluesOf returns what the runs without spaces of a text may be found by: pairs of characters, without stop words.
func CluesOf(s string) (found []string) {
	for run := range strings.FieldsFuncSeq(norm.NFC.String(s), func(r rune) bool { return !text.IsUnspaced(r) }) {
		t, _ := field{text: run}.term()
		if t.norm.Count == 1 {
			found = append(found, run)
		}
		queue := t.clues()
		for len(queue) > 0 {
			c := queue[0]
			if clues := c.clues(); len(clues) > 1 {
				queue = append(clues, queue[1:]...)
				continue
			}
			if queue = queue[1:]; !slices.Contains(found, c.raw) {
				found = append(found, c.raw)
			}
		}
	}
	return found
}

func addClues(run string, whole bool, add func(run string, open bool)) {
	chars := text.Characters(run)
	switch first := []rune(run)[0]; {
	case !text.IsUnspaced(first):
		add(run, true)
	case text.IsKatakana(first) && !whole:
		add(run, false) // one word
	case unicode.Is(unicode.Hiragana, first) && len(chars) < 3 && !whole: // an ending
	case len(chars) == 1:
		add(run, unicode.In(first, unicode.Han, unicode.Hangul)) // as the beginning of a token
	default:
		for i := range chars[1:] {
			add(chars[i]+chars[i+1], false)
		}
	}
}

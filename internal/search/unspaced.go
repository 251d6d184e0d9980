package search

import (
	"context"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A longer run without spaces is a sentence, not a word, in characters; Thai writes a word with more of them.
const (
	longestRun  = 4
	longestThai = 8
)

// stopRuns are what stop words are in scripts without spaces, the longer ones before their beginnings.
var stopRuns = sync.OnceValue(func() *strings.Replacer {
	words := strings.Fields(`
		什么时候 为什么 什么 怎么样 怎么 怎样 哪里 哪儿 哪个 哪些 多少 如何 是否 有没有 我们 你们 他们 咱们 这个 那个 请问 告诉我 的 了 吗 呢 吧
		甚麼 什麼 為什麼 怎麼 哪裡 我們 你們
		どうやって どのように どのような どこ どの どれ どう どんな なぜ なに いつ だれ いくつ いくら 何 誰
		くださいました ください でしょうか でしょう でした です ましょう ました ません ます ていた ている していた している して した する しま され させ
		から まで より など こと もの ところ とき ため について という として あり ある いる ない なければ なる なった なり
		その それ この これ あの そこ ここ れる られ よう だけ でも では には とは
		ที่ไหน ตรงไหน อะไร ทำไม อย่างไร ยังไง เมื่อไหร่ เมื่อไร ใคร หรือไม่ หรือยัง ครับ ค่ะ คะ ไหม บ้าง เท่าไหร่ เท่าไร แล้ว ของ และ ที่ ให้ ได้ เรา`)
	var pairs []string
	for _, w := range words {
		pairs = append(pairs, w, " ")
	}
	return strings.NewReplacer(pairs...)
})

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
		case !isUnspaced(r) || isMark(r):
		case isKatakana(r):
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
	if !t.word || t.norm.words < 2 || !strings.ContainsFunc(t.raw, isUnspaced) {
		return nil
	}
	of := t.raw
	if t.run != "" {
		of = t.run
	}
	add := func(text string, open bool) {
		c, ok := field{text: text}.term()
		if !ok {
			return
		}
		if c.prefix && !open {
			return
		}
		c.run = of
		all = append(all, c)
	}
	for _, said := range []string{stopRuns().Replace(t.raw), t.raw} {
		for piece := range strings.FieldsSeq(said) {
			for _, same := range splitScripts(piece) {
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
func CluesOf(text string) (found []string) {
	for run := range strings.FieldsFuncSeq(norm.NFC.String(text), func(r rune) bool { return !isUnspaced(r) }) {
		t, _ := field{text: run}.term()
		if t.norm.words == 1 {
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

func addClues(text string, whole bool, add func(text string, open bool)) {
	chars := charactersOf(text)
	switch first := []rune(text)[0]; {
	case !isUnspaced(first):
		add(text, true)
	case isKatakana(first) && !whole:
		add(text, false) // one word
	case unicode.Is(unicode.Hiragana, first) && len(chars) < 3 && !whole: // an ending
	case len(chars) == 1:
		add(text, unicode.In(first, unicode.Han, unicode.Hangul)) // as the beginning of a token
	default:
		for i := range chars[1:] {
			add(chars[i]+chars[i+1], false)
		}
	}
}

// splitScripts splits text where a script ends: Latin, Katakana, Hiragana, others without spaces.
func splitScripts(text string) (parts []string) {
	script := func(r rune) int {
		switch {
		case !isUnspaced(r):
			return 0
		case isKatakana(r):
			return 1
		case unicode.Is(unicode.Hiragana, r):
			return 2
		}
		return 3
	}
	from, last := 0, -1
	for i, r := range text {
		if s := script(r); s != last && !isMark(r) {
			if i > from {
				parts = append(parts, text[from:i])
			}
			from, last = i, s
		}
	}
	return append(parts, text[from:])
}

// charactersOf returns the characters of a run with their marks.
func charactersOf(run string) (all []string) {
	from := 0
	for i, r := range run {
		if i > from && !isMark(r) {
			all = append(all, run[from:i])
			from = i
		}
	}
	return append(all, run[from:])
}

func isKatakana(r rune) bool { return r == 'ー' || unicode.Is(unicode.Katakana, r) }

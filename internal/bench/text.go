package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Words that the generated histories hold on purpose.
const (
	rareWord   = "zanthorp"  // in rareIn messages of a history, whatever its size
	knownWord  = "quellmark" // in a bit under 1 % of them
	commonWord = "deploy"    // in about a fifth
	rareIn     = 20
)

// author writes text that is like talk in what matters here: some words are in nearly every
// message and most are rare. The same seed gives the same text.
type author struct {
	rng   *rand.Rand
	words []string
	zipf  *rand.Zipf
}

const vocabulary = 20_000

func newAuthor(seed uint64) *author {
	rng := rand.New(rand.NewPCG(seed, 7433))
	a := &author{rng: rng, words: make([]string, vocabulary), zipf: rand.NewZipf(rng, 1.07, 4, vocabulary-1)}
	consonants, vowels := "bcdfghklmnprstvw", "aeiou"
	for i := range a.words {
		var b strings.Builder
		for range 1 + rng.IntN(3) {
			b.WriteByte(consonants[rng.IntN(len(consonants))])
			b.WriteByte(vowels[rng.IntN(len(vowels))])
		}
		b.WriteByte(consonants[rng.IntN(len(consonants))])
		a.words[i] = b.String()
	}
	return a
}

// sentence gives about n words.
func (a *author) sentence(n int) string {
	var b strings.Builder
	b.Grow(n * 7)
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.words[a.zipf.Uint64()])
	}
	switch p := a.rng.IntN(1000); {
	case p < 9:
		b.WriteString(" " + knownWord)
	case p < 209:
		b.WriteString(" " + commonWord)
	}
	b.WriteByte('.')
	return b.String()
}

// path names one of a few hundred files.
func (a *author) path() string {
	return fmt.Sprintf("internal/%s/%d.go", a.words[a.rng.IntN(20)], a.rng.IntN(20))
}

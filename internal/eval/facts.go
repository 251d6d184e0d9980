package main

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
	"sessiond/internal/touched"
)

// kinds of facts, in the order of the table.
const (
	kindConstraint = "constraints"
	kindPasted     = "constraints, pasted" // in what a person sent, but far down in it
	kindDecision   = "decisions"
	kindNumber     = "numbers"
	kindName       = "names"
	kindPath       = "paths"
)

func kinds() []string {
	return []string{kindConstraint, kindPasted, kindDecision, kindNumber, kindName, kindPath}
}

// fact is something that was said before a compaction, and the words that one asks for it with.
type fact struct {
	kind      string
	text      string // looked for in the context
	asked     string
	otherwise string // the same question without the words of the fact; "": none
	told      int    // index of the message that says it
	first     bool   // it is hidden by the first compaction
	unclear   bool   // the words of the question do not say which fact is meant
}

var (
	// What a person demands or forbids, in five languages: a rule for measuring only, the
	// digest knows no words.
	demand = regexp.MustCompile(`(?i)\b(never|always|must|don'?t|do not|should(n't)?|only|without|make sure|no need|prefer|instead of|rather|needs?( to)?|has to|have to|wants?|keep|leave|stays?|please (use|avoid)|nie|niemals|immer|muss|müssen|darf|nur|ohne|bitte|kein(e|en)?)\b|必须|不要|不能|只能|务必|一定|禁止|必ず|しないで|だけ|禁止|してください|ないこと`)
	chosen = regexp.MustCompile(`(?i)\b(decided|decide|we('ll| will)? (use|go with|keep)|let'?s (use|go with|keep)|i('ll| will) (use|go with|keep)|going with|chose|instead of|nehmen wir|entschieden|wir nehmen)\b|决定|采用|改用|決め|採用|にします`)
	number = regexp.MustCompile(`[$€¥£]\s?\d[\d.,]*\d|\d[\d.,]*\d?\s?(%|ms|kB|KB|MB|GB|TB|EUR|USD|Euro|元|円|kg|km)|\b\d+\.\d+(\.\d+)+\b|\b\d{3,6}\b`)
	path   = regexp.MustCompile(`(?:~|\.{1,2})?(?:/[\w.@-]+){2,}|\b[\w-]+(?:/[\w.-]+)+\.\w{1,5}\b`)
	name   = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w{2,30}\b|\b[a-z]+_[a-z_]{3,30}\b|[ァ-ヴー]{4,}`)
)

// mostOfAKind is how many facts of a kind are asked about in one transcript; of what persons
// demand, which is rare, all.
const mostOfAKind = 20

// lineNumber is what tools print before lines: their number, or a file's name with it.
var lineNumber = regexp.MustCompile(`^\s*(\S+[:-])?\d+\s*[:→|-]`)

// blanked is what a publisher of transcripts puts where he takes text out: no fact.
const blanked = "[REDACTED"

// sampler collects facts of a conversation.
type sampler struct {
	all  map[string][]fact
	seen map[string]bool
	said []string
}

// factsOf samples facts from a conversation by rule: what persons demand anywhere, the rest in
// the first messages, as many of each kind, evenly spread, of those that can be asked about, and
// again as many that cannot, marked so.
func factsOf(msgs []session.Message, first int) []fact {
	s := sampler{all: map[string][]fact{}, seen: map[string]bool{}}
	for i := range msgs {
		for n, line := range lines(msgs[i].Text()) {
			line = plain(lineNumber.ReplaceAllString(line, ""))
			if i < first {
				s.said = append(s.said, line)
			}
			s.demands(&msgs[i], i, n, line)
			if i < first {
				s.rest(&msgs[i], i, line)
			}
		}
	}
	out := slices.Concat(s.all[kindConstraint], spread(s.all[kindPasted], mostOfAKind))
	for _, kind := range kinds()[2:] {
		var clear, unclear []fact
		for _, f := range s.all[kind] {
			if f.unclear = !f.askable(s.said); f.unclear {
				unclear = append(unclear, f)
			} else {
				clear = append(clear, f)
			}
		}
		out = append(append(out, spread(clear, mostOfAKind)...), spread(unclear, mostOfAKind)...)
	}
	return out
}

func (s *sampler) add(f fact) {
	if f.text != "" && f.asked != "" && !s.seen[f.text] {
		s.seen[f.text] = true
		s.all[f.kind] = append(s.all[f.kind], f)
	}
}

// farDown is the sentence of a person's message from which on it is taken for something pasted.
const farDown = 12

// demands takes a sentence in which a person demands or forbids something.
func (s *sampler) demands(m *session.Message, told, nth int, line string) {
	if m.Origin != session.Person || !demand.MatchString(line) || len(line) >= 300 || utf8.RuneCountInString(line) <= 7 {
		return
	}
	f := fact{kind: kindConstraint, text: firstRunes(line, 60), asked: cue(line, ""), told: told}
	if nth >= farDown {
		f.kind = kindPasted
	}
	s.add(f)
}

// rest takes what a line holds besides.
func (s *sampler) rest(m *session.Message, told int, line string) {
	if m.Role == session.Assistant && chosen.MatchString(line) && len(line) < 300 {
		s.add(fact{kind: kindDecision, text: firstRunes(line, 60), asked: cue(line, ""), told: told})
	}
	if len(line) > 400 || strings.Contains(line, blanked) { // a line without an end is data
		return
	}
	for kind, rule := range map[string]*regexp.Regexp{kindNumber: number, kindName: name, kindPath: path} {
		if text := strings.TrimRight(rule.FindString(line), ".,/"); len(text) > 2 {
			s.add(fact{kind: kind, text: text, asked: cue(line, text), told: told})
		}
	}
}

// spread takes so many facts, evenly.
func spread(facts []fact, most int) []fact {
	n := min(len(facts), most)
	out := make([]fact, n)
	for i := range out {
		out[i] = facts[i*len(facts)/n]
	}
	return out
}

// askable tells whether the words of the question say which fact is meant: they stand
// together in two sentences at most.
func (f *fact) askable(said []string) bool {
	words := strings.Fields(f.asked)
	n := 0
	for _, line := range said {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			n++
		}
	}
	return n > 0 && n <= 2
}

// lines gives the sentences of a text, with white space and the marks of lists taken off.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		start := 0
		emit := func(end int) {
			if s := plain(line[start:end]); s != "" {
				out = append(out, s)
			}
			start = end
		}
		for i, r := range line {
			end := i + utf8.RuneLen(r)
			if strings.ContainsRune("。！？", r) || strings.ContainsRune(".!?", r) && end < len(line) && line[end] == ' ' {
				emit(end)
			}
		}
		emit(len(line))
	}
	return out
}

// plain joins white space and takes marks off the ends.
func plain(s string) string {
	return strings.Trim(strings.Join(strings.Fields(s), " "), " -*#>+•`|\"")
}

// cue gives what somebody would ask with who forgot the fact: the words around it, six at most.
func cue(line, without string) string {
	if without != "" {
		line = strings.ReplaceAll(line, without, " ")
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
	words = slices.DeleteFunc(words, func(w string) bool { return utf8.RuneCountInString(w) < 4 })
	words = words[:min(len(words), 6)]
	if len(words) < 2 && (len(words) == 0 || words[0][0] < utf8.RuneSelf) {
		return ""
	}
	return strings.Join(words, " ")
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// filesOf gives the files that the calls of messages touch.
func filesOf(msgs []session.Message, directory string) []string {
	var files []string
	for i := range msgs {
		for _, f := range touched.Files(&msgs[i], directory) {
			files = append(files, f.Path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

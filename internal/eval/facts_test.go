package eval_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
)

// Kinds of facts.
const (
	kindConstraint = "constraints"
	kindPasted     = "constraints, pasted" // far down in a message of a person
	kindDecision   = "decisions"
	kindNumber     = "numbers"
	kindName       = "names"
	kindPath       = "paths"
)

func kinds() []string {
	return []string{kindConstraint, kindPasted, kindDecision, kindNumber, kindName, kindPath}
}

// Rows that sum up others.
const (
	sumClear     = "all of the first fifth" // the same facts after each compaction
	sumEvery     = "all, whatever the question's words"
	sumOtherwise = "asked in other words"
)

// fact is something that somebody said, and the words to ask for it.
type fact struct {
	kind      string
	text      string // to look for in the context
	asked     string
	otherwise string // the same question without the words of the fact; "": none
	told      int    // index of the message
	unclear   bool   // the question's words also mean other facts
}

// rows returns the rows in which a question for the fact counts.
func (f *fact) rows(question string, fifth int) []string {
	switch {
	case question != f.asked:
		return []string{sumOtherwise}
	case f.unclear:
		return []string{sumEvery}
	case f.told >= fifth:
		return []string{sumEvery, f.kind}
	}
	return []string{sumEvery, f.kind, sumClear}
}

// in reports whether a text holds the fact, whatever its white space.
func (f *fact) in(text string) bool {
	return strings.Contains(text, f.text) || strings.Contains(strings.Join(strings.Fields(text), " "), f.text)
}

// Rules for sampling, in five languages. The digest knows no such words.
var (
	demand = regexp.MustCompile(`(?i)\b(never|always|must|don'?t|do not|should(n't)?|only|without|make sure|no need|prefer|instead of|rather|needs?( to)?|has to|have to|wants?|keep|leave|stays?|please (use|avoid)|nie|niemals|immer|muss|müssen|darf|nur|ohne|bitte|kein(e|en)?)\b|必须|不要|不能|只能|务必|一定|禁止|必ず|しないで|だけ|禁止|してください|ないこと`)
	chosen = regexp.MustCompile(`(?i)\b(decided|decide|we('ll| will)? (use|go with|keep)|let'?s (use|go with|keep)|i('ll| will) (use|go with|keep)|going with|chose|instead of|nehmen wir|entschieden|wir nehmen)\b|决定|采用|改用|決め|採用|にします`)
	number = regexp.MustCompile(`[$€¥£]\s?\d[\d.,]*\d|\d[\d.,]*\d?\s?(%|ms|kB|KB|MB|GB|TB|EUR|USD|Euro|元|円|kg|km)|\b\d+\.\d+(\.\d+)+\b|\b\d{3,6}\b`)
	path   = regexp.MustCompile(`(?:~|\.{1,2})?(?:/[\w.@-]+){2,}|\b[\w-]+(?:/[\w.-]+)+\.\w{1,5}\b`)
	name   = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w{2,30}\b|\b[a-z]+_[a-z_]{3,30}\b|[ァ-ヴー]{4,}`)

	// lineNumber is what tools print before lines: their number, or a file's name with it.
	lineNumber = regexp.MustCompile(`^\s*(\S+[:-])?\d+\s*[:→|-]`)
)

const (
	mostOfAKind = 20          // facts of a kind that one conversation is asked for; all constraints
	pastedFrom  = 12          // sentence of a person's message from which on it counts as pasted
	blanked     = "[REDACTED" // publishers of transcripts put it where they remove text
)

// sampler collects facts of a conversation.
type sampler struct {
	all  map[string][]fact
	seen map[string]bool
}

// sampleFacts samples facts by rule: constraints anywhere, the rest in the first messages, evenly
// spread; and as many again that the question's words do not tell from others, marked unclear.
func sampleFacts(msgs []session.Message, first int) []fact {
	s := sampler{map[string][]fact{}, map[string]bool{}}
	var said []string
	for i := range msgs {
		m := &msgs[i]
		for n, line := range sentences(m.Text()) {
			line = trimmed(lineNumber.ReplaceAllString(line, ""))
			if m.Origin == session.Person && demand.MatchString(line) && len(line) < 300 && utf8.RuneCountInString(line) > 7 {
				kind := kindConstraint
				if n >= pastedFrom {
					kind = kindPasted
				}
				s.add(kind, i, firstRunes(line, 60), line)
			}
			if i < first {
				said = append(said, line)
				s.sample(m, i, line)
			}
		}
	}
	out := slices.Concat(s.all[kindConstraint], spread(s.all[kindPasted]))
	for _, kind := range kinds()[2:] {
		var clear, unclear []fact
		for _, f := range s.all[kind] {
			if f.unclear = !f.isClear(said); f.unclear {
				unclear = append(unclear, f)
			} else {
				clear = append(clear, f)
			}
		}
		out = slices.Concat(out, spread(clear), spread(unclear))
	}
	return out
}

// sample adds the decision, number, name and path of a sentence.
func (s *sampler) sample(m *session.Message, told int, line string) {
	if m.Role == session.Assistant && chosen.MatchString(line) && len(line) < 300 {
		s.add(kindDecision, told, firstRunes(line, 60), line)
	}
	if len(line) > 400 || strings.Contains(line, blanked) { // so long a line is data
		return
	}
	for kind, rule := range map[string]*regexp.Regexp{kindNumber: number, kindName: name, kindPath: path} {
		if text := strings.TrimRight(rule.FindString(line), ".,/"); len(text) > 2 {
			s.add(kind, told, text, strings.ReplaceAll(line, text, " "))
		}
	}
}

// add adds a fact once. The question is what somebody asks who forgot it: up to six words around it.
func (s *sampler) add(kind string, told int, text, around string) {
	words := strings.FieldsFunc(around, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
	words = slices.DeleteFunc(words, func(w string) bool { return utf8.RuneCountInString(w) < 4 })
	words = words[:min(len(words), 6)]
	if text == "" || s.seen[text] || len(words) == 0 || len(words) == 1 && words[0][0] < utf8.RuneSelf {
		return
	}
	s.seen[text] = true
	s.all[kind] = append(s.all[kind], fact{kind: kind, text: text, asked: strings.Join(words, " "), told: told})
}

// spread returns facts evenly spread.
func spread(facts []fact) []fact {
	out := make([]fact, min(len(facts), mostOfAKind))
	for i := range out {
		out[i] = facts[i*len(facts)/len(out)]
	}
	return out
}

// isClear reports whether one or two sentences hold all words of the question.
func (f *fact) isClear(said []string) bool {
	words := strings.Fields(f.asked)
	n := 0
	for _, line := range said {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			n++
		}
	}
	return n == 1 || n == 2
}

var sentenceEnd = regexp.MustCompile(`[。！？\n]|[.!?] `)

// sentences splits a text, without white space and marks of lists at the ends.
func sentences(text string) (out []string) {
	for len(text) > 0 {
		end := len(text)
		if at := sentenceEnd.FindStringIndex(text); at != nil {
			end = at[1]
		}
		if s := trimmed(text[:end]); s != "" {
			out = append(out, s)
		}
		text = text[end:]
	}
	return out
}

func trimmed(s string) string {
	return strings.Trim(strings.Join(strings.Fields(s), " "), " -*#>+•`|\"")
}

func firstRunes(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n])
	}
	return s
}

func TestSampledFactsAreClear(t *testing.T) {
	msgs := []session.Message{
		newMessage(session.User, session.Person, session.TextPart("Never restart the billing gateway without me. What is next?")),
		newMessage(session.Tool, session.ByTool, session.TextPart("12: return nothing 777\n13: return nothing 888\n14: return nothing 999\nThe gateway charges $129 for each merchant.")),
		newMessage(session.Assistant, session.Model, session.TextPart("We will use retryBudget for merchant calls.")),
	}
	var got []string
	for _, f := range sampleFacts(msgs, len(msgs)) {
		if !f.unclear {
			got = append(got, f.kind+" "+f.text)
		}
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"constraints Never restart the billing gateway without me.", "decisions We will use retryBudget", "numbers $129"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among\n%s", want, all)
		}
	}
	if strings.Contains(all, "888") || strings.Contains(all, "next") {
		t.Errorf("got\n%s", all)
	}
}

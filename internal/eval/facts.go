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
	kindDecision   = "decisions"
	kindNumber     = "numbers"
	kindName       = "names"
	kindPath       = "paths"
)

func kinds() []string {
	return []string{kindConstraint, kindDecision, kindNumber, kindName, kindPath}
}

// fact is something that was said before a compaction, and the words that one asks for it with.
type fact struct {
	kind  string
	text  string // looked for in the context
	asked string
}

var (
	// What a person demands or forbids, in five languages: a rule for measuring only, the
	// digest knows no words.
	demand = regexp.MustCompile(`(?i)\b(never|always|must|don'?t|do not|should(n't)?|only|without|make sure|no need|prefer|instead of|please (use|keep|avoid)|nie|niemals|immer|muss|müssen|darf|nur|ohne|bitte|kein(e|en)?)\b|必须|不要|不能|只能|务必|一定|禁止|必ず|しないで|だけ|禁止|してください|ないこと`)
	chosen = regexp.MustCompile(`(?i)\b(decided|decide|we('ll| will)? (use|go with|keep)|let'?s (use|go with|keep)|i('ll| will) (use|go with|keep)|going with|chose|instead of|nehmen wir|entschieden|wir nehmen)\b|决定|采用|改用|決め|採用|にします`)
	number = regexp.MustCompile(`[$€¥£]\s?\d[\d.,]*\d|\d[\d.,]*\d?\s?(%|ms|kB|KB|MB|GB|TB|EUR|USD|Euro|元|円|kg|km)|\b\d+\.\d+(\.\d+)+\b|\b\d{3,6}\b`)
	path   = regexp.MustCompile(`(?:~|\.{1,2})?(?:/[\w.@-]+){2,}|\b[\w-]+(?:/[\w.-]+)+\.\w{1,5}\b`)
	name   = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w{2,30}\b|\b[a-z]+_[a-z_]{3,30}\b|[ァ-ヴー]{4,}`)
)

// mostOfAKind is how many facts of a kind are asked about in one transcript.
const mostOfAKind = 20

// mostLookedAt is how many of a kind are looked at to find those that can be asked about.
const mostLookedAt = 200

// lineNumber is what tools print before lines: their number, or a file's name with it.
var lineNumber = regexp.MustCompile(`^\s*(\S+[:-])?\d+\s*[:→|-]`)

// factsOf samples facts from messages by rule: as many of each kind, evenly spread, of those
// that can be asked about.
func factsOf(msgs []session.Message) []fact {
	all := map[string][]fact{}
	seen := map[string]bool{}
	var said []string
	add := func(f fact) {
		if f.text != "" && f.asked != "" && !seen[f.text] {
			seen[f.text] = true
			all[f.kind] = append(all[f.kind], f)
		}
	}
	for i := range msgs {
		m := &msgs[i]
		for _, line := range lines(m.Text()) {
			line = plain(lineNumber.ReplaceAllString(line, ""))
			said = append(said, line)
			switch {
			case m.Origin == session.Person && demand.MatchString(line) && len(line) < 300 && utf8.RuneCountInString(line) > 7:
				add(fact{kindConstraint, firstRunes(line, 60), cue(line, "")})
			case m.Role == session.Assistant && chosen.MatchString(line) && len(line) < 300:
				add(fact{kindDecision, firstRunes(line, 60), cue(line, "")})
			}
			if len(line) > 400 { // a line without an end is data
				continue
			}
			for kind, rule := range map[string]*regexp.Regexp{kindNumber: number, kindName: name, kindPath: path} {
				if text := strings.TrimRight(rule.FindString(line), ".,/"); len(text) > 2 {
					add(fact{kind, text, cue(line, text)})
				}
			}
		}
	}
	var out []fact
	for _, kind := range kinds() {
		found := slices.DeleteFunc(spread(all[kind], mostLookedAt), func(f fact) bool { return !f.askable(said) })
		out = append(out, spread(found, mostOfAKind)...)
	}
	return out
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

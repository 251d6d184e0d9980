package summarize

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"sessiond/internal/session"
)

// A standing rule is a sentence in which a person lays down how work is done: "Never add a crate without
// asking me." It holds until the person takes it back, where a request of the moment is done and over.
// Rules are told by their form alone, in English, German, Chinese and Japanese.

// Bounds of the section of rules, in tokens: ten short rules fit into the smallest summary, and five
// thousand pasted lines take no more than a part of the largest.
const (
	ruleShare  = 0.3 // of the summary of finished turns, a quarter of the whole
	leastRules = 200
	mostRules  = 600
)

func rulesBudget(limit int64) int64 {
	return min(max(int64(ruleShare*float64(limit)), leastRules), mostRules, limit/2)
}

var (
	// What lays down a rule whatever else the sentence says.
	ruleMark = regexp.MustCompile(`(?i)\b(never|always|from now on|going forward|at all times|under no circumstances|no exceptions|as a rule|without asking|unless i (say|ask|tell)|(ask|check with|tell|warn)( me| us)? (first|before|whenever)|you(['’]re| are) not (to|allowed)|(is|are) (not allowed|forbidden|off[- ]limits)|(our|the|my|house) (policy|convention|rule)s?( here)? (is|are|says?)|must not|mustn['’]t|we call (it|this|that|them)|(use|write|prefer) [^.;:]{1,40}, (not|never)|in this (repo|repository|project|codebase),? (we|use|all|no|every)|frag(e|t)? mich (vorher|zuerst|bevor)|niemals|nie|immer|nur (mit|nach|wenn|auf|in)|verboten|nicht erlaubt|(es|grundsätzlich|hier|immer) gilt|bleib(t|en) (so|wie|auf|bei|unter|in)|wir \pL+n( \pL+){0,5} (nicht|nie|nur|kein\w*)|darfst du (nicht|nie|kein\w*)|stets|grundsätzlich|ab (jetzt|sofort)|wir nennen)\b` +
		`|永远|从不|绝不|必须|务必|禁止|一律|始终|总是|今后|从现在起|我们(称|叫|把)|決して|絶対に|必ず|常に|禁止|今後|と呼(ぶ|び|ん)|ないように|しないで|統一|一定要|都要|统一|べき(だ|で|です)?[。.]?$|こと[。.]?$`)
	// A condition with what is to be done then, and what there is to be none of.
	ruleOrder     = regexp.MustCompile(`(?i)^(please,? |bitte )*((don['’]t|do not) (ever )?(touch|push|commit|use|add|install|delete|edit|change|modify|run|create|write|remove|rename|merge|rebase|squash|force|log|print|send|share|publish|deploy|import|mock|skip|disable|hard-?code|guess|invent|assume|translate)|(say|write|use|call|spell|name)\b.*\b(not|never|nicht|nie)|(answer|reply|respond|speak|talk|antworte|sprich|schreib mir)( to)?( me| us| mir)? (in|on|with|briefly|auf|kurz))\b`)
	ruleForYou    = regexp.MustCompile(`(?i)^(before|after|whenever|when|if|bevor|nachdem|wenn) (you|du|any|anything|each|every|jede\w*) [^,]{3,60}, \pL+`)
	ifYouLike     = regexp.MustCompile(`(?i)^(if|when|wenn) (you|du) (have|can|could|want|like|think|are|['’]re|get|hast|kannst|willst|magst|bist|fertig|need|see fit)\b`)
	ruleCondition = regexp.MustCompile(`(?i)^(if|when(ever)?|before|wenn|falls|sobald|bevor) [^,]+, .*\b(don['’]t|do not|never|always|ask|tell me|first|frag|sag|nie|nicht|kein\w*|erst)\b`)
	ruleNone      = regexp.MustCompile(`(?i)^(no|keine?) [\pL-]+( [\pL-]+){0,3}[.!]?$`)
	// What lays down a rule when it is said of things in general.
	ruleForm = regexp.MustCompile(`(?i)^(and |also,? |but |so |oh,? |ok,? |okay,? |please,? |bitte )*` +
		`(don['’]t|do not|avoid|no|only|prefer|please use|use|keep|stick to|all|every|each|any|we (use|prefer|keep|write|do not|don['’]t|only)|i (prefer|like|hate|expect|don['’]t want|do not want)|you (must|should|may only|may not)|` +
		`kein\w*|nur|verwende\w*|benutze\w*|nutze\w*|alle|jede\w*|wir (benutzen|verwenden|nutzen|schreiben))\b` +
		`|\bmust\b|\bmuss\b|\bmüssen\b|\bdürfen? (nicht|kein)|不要|别|只(能|用|在)|所有|每(个|次)|请(用|使用)|ないで|だけを?使|使ってください|すべて|全て`)
	ruleGeneral = regexp.MustCompile(`(?i)\b(any|all|every|each|ever|only|without|unless|outside|except|whenever|before (each|every|you)|instead of|rather than|over|must|has to|have to|are|is|in (this|the|our) (repo|repository|project|codebase)|through|ohne|außer|außerhalb|statt|immer|alle|jede\w*|sind|ist|muss|müssen|nicht|kein\w*|nur|code|commits?|tests?|names?|files?|functions?|dates?|money|errors?|comments?|messages?|branch(es)?)\b|[\p{Han}\p{Hiragana}\p{Katakana}]`)
	// What is said of the moment, or of how things are.
	ofTheMoment = regexp.MustCompile(`(?i)^(no|yes|yeah),|^if (yes|no|not|so)\b|(should|must) never happen|^never ?mind\b|^das (muss|ist|war)\b|\b(attached|screenshot|show me|noch nie|hätten?|changes?|luck|clue|rush|hurry|difference|errors?|reply|answer)\b|^(this|that) \w+ (must|has to|should)\b|\ball (i|you|we|he|she|they|it|that|this)\b|\b(right now|for now|this time|today|at the moment|just now|yet|again|still|already|currently|let['’]s|lets|i think|i guess|i tried|it seems|seems|looks like|passed|passing|passes|pass|green|fails?|failed|failing|broken|done|fixed|works|worked|no (idea|problem|worries|need|wonder|thanks|way)|jetzt (mal|noch)|diesmal|erstmal|gerade|vorerst|heute|you (always|never|are|did|have)|it (always|never)|why|why is|this (file|function|test|error|bug|line|one)|that (file|function|test|error|bug|line|one))\b|这次|现在先|先|目前|今天|已经|今回|まず|とりあえず|今日|いま`)
	// What takes a rule back.
	ruleForgot   = regexp.MustCompile(`(?i)^(please |ok,? |okay,? )*(forget|ignore|drop|scrap|never mind|nevermind) (about )?(that|this|the|my|what i said|it|rule)\b|\b(vergiss|ignoriere) (das|die regel)|忘(了|掉)(那|这)|忘れて`)
	ruleReplaced = regexp.MustCompile(`(?i)\b(instead|no longer|not any ?more|stattdessen|nicht mehr)\b|改(用|为)|不再|代わりに|ではなく`)
)

// longestRule is the limit of a rule in bytes, below softSentence: a longer sentence is a text that was pasted, or
// a piece of it.
const longestRule = 250

// isRule tells whether a sentence of a person is a standing rule.
func isRule(s string) bool {
	if len(s) > longestRule || len(s) < 6 || isQuestion(s) || strings.HasSuffix(s, ":") || ruleForgot.MatchString(s) {
		return false
	}
	if fromNowOn := strings.Contains(strings.ToLower(s), "from now on"); !fromNowOn && ofTheMoment.MatchString(s) {
		return false
	}
	if ruleForYou.MatchString(s) && !ifYouLike.MatchString(s) || ruleOrder.MatchString(s) {
		return true
	}
	return ruleMark.MatchString(s) || ruleCondition.MatchString(s) || ruleNone.MatchString(s) || ruleForm.MatchString(s) && ruleGeneral.MatchString(s)
}

// ruleName is what stands behind a rule: the message that said it.
func ruleName(m, last *session.Message) string {
	switch {
	case m.Seq == 0:
		return ""
	case m.SessionID != last.SessionID:
		return " (" + m.ID.String() + ")"
	}
	return fmt.Sprintf(" (#%d)", m.Seq)
}

var nameBehind = regexp.MustCompile(` \((#|\d{8}_\d+\.)\d+\)$`)

// withoutName returns the words of a rule, to compare with.
func withoutName(rule string) string {
	return strings.ToLower(strings.TrimRight(nameBehind.ReplaceAllString(rule, ""), " .!。！"))
}

// standingRules returns the rules of the summary before and those that the span adds, oldest first, without those
// that the person took back.
func (sp *span) standingRules(old []line) []line {
	rules := make([]line, 0, len(old))
	at := map[string]int{} // by words
	add := func(l line) {
		if key := withoutName(l.text); at[key] == 0 {
			rules = append(rules, l)
			at[key] = len(rules)
		}
	}
	for _, l := range old {
		add(l)
	}
	remove := func(i int) {
		delete(at, withoutName(rules[i].text))
		rules[i].text = ""
	}
	for k := range sp.sentences {
		s := &sp.sentences[k]
		if s.by != byPerson || s.pasted {
			continue
		}
		switch {
		case ruleForgot.MatchString(s.text):
			if i := mostAlike(rules, s.text, min(1, len(ruleWords(s.text)))); i >= 0 { // "forget that" alone: the newest
				remove(i)
			}
		case s.rule:
			if ruleReplaced.MatchString(s.text) {
				if i := mostAlike(rules, s.text, 2); i >= 0 {
					remove(i)
				}
			}
			add(line{text: s.text + ruleName(&sp.msgs[s.msg], &sp.msgs[len(sp.msgs)-1]), order: k})
		}
	}
	kept := rules[:0]
	for _, l := range rules {
		if l.text != "" {
			kept = append(kept, l)
		}
	}
	return kept
}

// mostAlike returns the index of the newest rule among those that share the most words with a text, at least as many
// as least; -1: none does.
func mostAlike(rules []line, text string, least int) int {
	words := ruleWords(text)
	best, most := -1, least
	for i := range rules {
		n := 0
		for w := range ruleWords(withoutName(rules[i].text)) {
			for said := range words {
				if strings.HasPrefix(w, said) || strings.HasPrefix(said, w) { // crate, crates
					n++
				}
			}
		}
		if n >= most && rules[i].text != "" {
			best, most = i, n
		}
	}
	return best
}

// ruleWords returns the words that say what a rule is about.
func ruleWords(text string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(w) > 3 && !strings.Contains(" that this rule about forget ignore from instead said what never always must ", " "+w+" ") {
			words[w] = true
		}
	}
	return words
}

// Rule is a standing rule and the message that said it.
type Rule struct {
	Message session.MessageRef `json:"message"`
	Text    string             `json:"text"` // secrets masked
}

// StandingRules returns the rules that hold at the end of a conversation, oldest first.
func StandingRules(msgs []session.Message) []Rule {
	said := slices.DeleteFunc(slices.Clone(msgs), func(m session.Message) bool { return speakerOf(&m) != byPerson })
	sp := scan(said)
	rules := []Rule{}
	for _, l := range sp.standingRules(nil) {
		rules = append(rules, Rule{said[sp.sentences[l.order].msg].ID, nameBehind.ReplaceAllString(l.text, "")})
	}
	return rules
}

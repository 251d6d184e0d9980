package digest

import (
	"strings"
	"unicode"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// What the model decided or found out, and what a tool established, is worth more than what either narrates.
var (
	modelFinding = pattern.New(`(?i)\b(decision:|decided (to|on|against)|root cause|the (cause|reason|culprit|problem|bug) (is|was)|turned out|turns out|i measured|measured at|so i (kept|chose|used|left)|i chose|we (chose|agreed)|settled on|went with|opted for|the trade-?off|instead of|because|i counted|caused by|die ursache|der grund|entschieden|entscheidung|nachgezählt|gemessen|根本原因|原因是|决定|原因は|決め|判明)`)
	toolFinding  = pattern.New(`(?i)\b(panic|exception|traceback|fatal|fail(ed|ure)?|errors?|killed|denied|refused|rejected|timed ?out|timeout|unreachable|not found|invalid|out of memory|data race|fehler\w*|ungültig|abgelehnt|zurückgewiesen|fehlgeschlagen)\b|エラー|失敗|不正|错误|失败|:\d+:\d+: |\S\.\w{1,5}:\d+: \S|\d ?%($|[^\w ]| \D)|\b\d[\d,.]* (passed|failed|tests?|errors?|warnings?|rows?|matches|files changed|insertions)\b|\b(saved|written) to |\blistening on\b|\bexit(ed)? (code|status|with)\b|\b\d[\d.,]* ?(ms|µs|ns|s|mb|gb|kb|mib|gib|req/s|ops/s|mb/s)\b`)
)

// A decision or a result that counts though the sentence names no value: it says itself what it is.
var explicitFinding = pattern.New(`(?i)\b(decision:|entscheidung:|decided (on|against|to)|root cause|the trade-?off|die ursache|i (measured|counted)|nachgezählt|gemessen)|根本原因|原因是|决定|原因は|決め|判明`)

// orderOfWork is wording of a decision about what to do first, which nobody needs afterwards.
var orderOfWork = pattern.New(`(?i)\b(decided|chose|opted) to (first )?(look|start|begin|go|check|continue|focus|leave|wait|work|move|tackle)\b`)

// routineResult is what a tool prints when all is well: a passed test, a line of a log below a warning.
var routineResult = pattern.New(`^\s*(ok\s|✓|✔|\[\s*OK|--- (PASS|SKIP)|PASS\b|=== (RUN|PAUSE|CONT))|\b(INFO|DEBUG|TRACE)\b`)

// toolFailure is wording that makes even such a line a result.
var toolFailure = pattern.New(`(?i)\b(panic|exception|fatal|failed|failure|errors?|denied|refused|timeout|fehler)\b`)

// stateForm is wording of sentences that state a name, a choice, a place or a limit without a value that can be
// recognised.
var stateForm = pattern.New(`(?i)` + strings.Join([]string{
	`\b(is|are|was|were) (called|named|stored|kept|capped|limited|pinned|based|built|written|set|due|moved|held|in|on|at|under|from|behind)\b`,
	`\b(we|i) (call|use|keep|have|run|take|store|write|drop|support|target|agreed|chose|picked)\b`,
	`\b(called|means|stands for|decides?|lives?|stored|comes? from|runs? (on|at)|listens? on|instead of|rather than)\b`,
	`\b(at (most|least)|no more than|(less|more|fewer|earlier|later) than|up to|until|deadline|maximum|minimum|half past)\b`,
	`\b(every|each|on|by|till) ((mon|tues|wednes|thurs|fri|satur|sun)day|day|week|month|year|morning|night)`,
	`\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|hundred|thousand) `,
	`\b(decision|entscheidung):`, `\w/\w`,
	`\b(heißt|heißen|liegt|liegen|stammt|höchstens|mindestens|bis (zum|spätestens)|statt)\b`,
	`叫|是|在|最多|至少|です|には|まで|以内|以上`,
}, "|"))

// statement says how much a sentence states that nobody can guess later.
type statement uint8

const (
	statesNothing statement = iota
	statesSome              // a name, or wording of a choice, a place, a limit
	statesValue             // a number, a version, a path, an identifier, a URL
)

// statementOf returns what a sentence of a person or the model with these facts states. The model narrates in the same
// words in which a person states a choice or a place.
func statementOf(by speaker, text string, facts []fact) statement {
	some := statesNothing
	for i := range facts {
		if facts[i].kind != factName || hasInnerCapital(facts[i].text) {
			return statesValue
		}
		some = statesSome
	}
	if some == statesNothing && (by == byPerson && stateForm.MatchString(text) ||
		by == byModel && explicitFinding.MatchString(text) && !orderOfWork.MatchString(text)) {
		some = statesSome
	}
	return some
}

// isIdle reports whether a sentence is the model's and states nothing: progress, narration.
func (s *sentence) isIdle() bool { return s.by == byModel && s.states == statesNothing }

// hasInnerCapital reports whether a name is one of program text: OrderDao.
func hasInnerCapital(name string) bool {
	return strings.IndexFunc(name[1:], unicode.IsUpper) >= 0 && strings.IndexFunc(name, unicode.IsLower) >= 0
}

// Forms of sentences that say where they belong: a person's wish about how things should be, what the model is about
// to do next, and what it says while it works, which nobody needs afterwards.
var (
	wishForm  = pattern.New(`(?i)\b(should|shouldn['’]t|must|needs? to|has to|have to|don['’]t|do not|never|always|only|prefer|i want|i['’]d like|would like|avoid|keep|without|instead|rather|at (most|least)|no more than|limit|deadline|budget|soll(te|en|ten)?|muss|müssen|nicht|kein\w*|ohne|lieber|höchstens|mindestens)\b|不要|应该|必须|希望|不能|べき|ないで|たい`)
	nextForm  = pattern.New(`(?i)\b(next|remaining|remains|still (to|need|needs)|to ?do|left to|follow[- ]up|pending|then i|should i|shall i|would you like|do you want|let me know|which (one|approach|option)|als nächstes|noch offen|soll ich)\b|接下来|下一步|剩下|次に|残り`)
	narration = pattern.New(`(?i)^\W*(let me|let['’]s|i['’]ll|i will|i['’]m going to|now,? (i|let)|i (need|want) to (check|look|see|find|read|search|understand)|looking at|i see|i think i|good|great|perfect|okay|ok|sure|hmm|wait|first,? (i|let))\b`)
	announced = pattern.New(`(?i)^\W*(now|first|next|then|also|here|so|and|but)*,? ?(let me|let['’]s|i['’]ll|i will|i['’]m going to|i (also )?need to|now (update|add|check|remove|run|create|resolve|fix|read|look|find|replace))\b`)
	notProse  = pattern.New(`(?i)^\s*(return\b.*[()\[\]{}]|\d+\s*[→|:]|[│├└┌─]|//|/\*|\*/|<!--|--|@@|diff |index [0-9a-f]|[+\-]\s)|^\S+(:\d+:(\t|[^\s\d]|  )|-\d+-)|\\n|:=|&&|\|\||=>|%[svdqwx]|[{};]\s*$`)
	licence   = pattern.New(`(?i)\b(copyright|licen[cs]ed?|warrant(y|ies))\b`)
	wholeForm = pattern.New(`^[\p{Lu}\p{Lo}\p{N}].*[.!?。！？]["”)]?$`)
)

// known is what a sentence was found to be; 0: nobody asked yet.
type known uint8

const (
	isSo known = iota + 1
	isNot
)

// asked returns what is known, and finds it out first if nobody asked yet.
func (k *known) asked(find func() bool) bool {
	if *k == 0 {
		*k = isNot
		if find() {
			*k = isSo
		}
	}
	return *k == isSo
}

// isNoProse reports whether a sentence is program text, a change or a listing. Each fact of a sentence asks.
func (s *sentence) isNoProse() bool {
	return s.noProse.asked(func() bool { return notProse.MatchString(s.text) })
}

// isLicence reports whether a sentence is of a licence.
func (s *sentence) isLicence() bool {
	return s.ofLicence.asked(func() bool { return licence.MatchString(s.text) })
}

// requestForm is the form of a request of the moment, which gets done.
var requestForm = pattern.New(`(?i)^((and|also|then|now|ok(ay)?|so|please|just|first|next|no|yes|but|hm+|great|good|thanks|go ahead and|let['’]s|lets|i(['’]d| would) like( you)? to|i want you to|(can|could|would|will) (you|we|i)|bitte|jetzt|dann|und|also)[,:;.!]? )*` +
	`((add|answer|ask|build|bump|call|change|check|clean|commit|compare|complete|continue|convert|copy|count|create|cut|debug|delete|deploy|describe|dig|do|document|draw|explain|export|extract|figure|find|finish|fix|format|generate|get|give|go|have|help|implement|import|improve|insert|install|investigate|list|look|make|mark|merge|move|open|optimi[sz]e|pick|plan|port|print|proceed|profile|pull|push|put|read|rebase|recheck|redo|refactor|reformat|remove|rename|reorder|replace|report|reproduce|rerun|restart|revert|review|rewrite|run|save|search|see|send|set|show|simplify|sketch|sort|split|squash|start|stop|suggest|summari[sz]e|switch|take|tell|test|tidy|trace|translate|try|turn|undo|update|upgrade|verify|wait|walk|wire|wrap|write)\b` +
	`|(schreib|zeig|mach|prüf|such|lies|nimm|füg|lösch|änder|erklär|fass|erstell|bau|teste|starte|öffne|schau|sieh|leg|stell|gib|korrigier|ergänz|übersetz|sortier|verschieb|benenn|kürz|sammel|rechne)(e|st)?\b|(kannst|könntest|würdest) du\b)` +
	`|, (dann |und |bitte )?(mach|kürz|schreib|prüf|schau|zeig|find|such)e?\b|, (then |and |please )?(find out|fix|check|look|have a look|make|try|see|do|dig)\b|^(请|帮我|把|给我|看看|检查|修|再)|(ください|くれ|もらえますか|お願いします|てみて|教えて|いただけますか)[。.?？]*$|\b(have a look|take a look|can you|could you|would you|(would|['’]d) like to (see|know|understand|look|check))\b|^bitte [^,]*[a-zäöüß](e|[erl])n[.!]?$`)

// lasting is what outlives a request: how it is to be done.
var lasting = pattern.New(`(?i)だけ|必ず|からに|にも|も付け|ないで|\b(nicht|kein\w*|nur|jede\w*|bleib(t|en)?|bevor)\b`)

// isRequest reports whether a person asks for something that is done and over, or asks a question.
func (s *sentence) isRequest() bool {
	return s.by == byPerson && !s.rule && (isQuestion(s.text) ||
		requestForm.MatchString(s.text) && !lasting.MatchString(s.text))
}

// isStatement reports whether a sentence of a tool or a program may stand as a line: a result, or prose.
// Program text, comments, licences and arguments of calls may not.
func (s *sentence) isStatement() bool {
	if s.finding {
		return true
	}
	if s.failed {
		return !s.isNoProse()
	}
	prose := s.numbers > 0 || len(s.terms) > 5 && wholeForm.MatchString(s.text)
	return prose && !s.inCall && isPlain(s.text) && !s.isNoProse() && !s.isLicence()
}

// shortReply is the number of terms below which a model's sentence without a name or number says nothing: "Much
// better."
const shortReply = 5

// saysNothing reports whether nobody needs a sentence afterwards: "Good.", "Let me look at it first.", "Here is the
// list:".
func (s *sentence) saysNothing() bool {
	switch {
	case s.finding:
		return false
	case s.by == byModel && announced.MatchString(s.text): // who needs what it did sees the result
		return true
	case s.facts > 0:
		return false
	case len(s.terms) < 2 || s.by == byModel && len(s.terms) < shortReply && !isQuestion(s.text):
		return true
	}
	leadsOn := strings.HasSuffix(s.text, ":") || strings.HasSuffix(s.text, ":**")
	return s.by == byModel && (leadsOn || narration.MatchString(s.text))
}

// Findings returns the sentences of a message that tell a decision or a result, if its text names
// something.
func Findings(m *session.Message, name string) []string {
	if !strings.Contains(m.Text(), name) {
		return nil
	}
	var found []string
	sp := scan([]session.Message{*m})
	for k := range sp.sentences {
		if s := &sp.sentences[k]; s.finding && !s.duplicate {
			found = append(found, s.text)
		}
	}
	return found
}

// isFinding reports whether a sentence of the model or of a tool holds a decision or a result.
func (s *sentence) isFinding() bool {
	switch s.by {
	case byModel:
		return s.states > statesNothing && modelFinding.MatchString(s.text)
	case byTool:
		if routineResult.MatchString(s.text) && !toolFailure.MatchString(s.text) {
			return false
		}
		return strings.ContainsAny(s.text, "0123456789") && !s.isNoProse() && toolFinding.MatchString(s.text)
	case byPerson, byProgram:
	}
	return false
}

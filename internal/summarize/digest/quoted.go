package digest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/pattern"
)

// A person's message contains words of others: quotations, mails, logs, code, a text to translate. Only the person's
// own words give a standing rule. voicesOf tells them apart by their kind, never by their length: marks of quotation,
// lines that programs and documents have and people do not type, and sentences that announce a text ("translate
// this:"). Where it cannot tell, the words count as another's: a rule that was missed can be said again, and a rule
// that nobody gave would be obeyed.

// voice is whose words the bytes of a person's message are.
type voice uint8

const (
	ownVoice   voice = iota
	otherVoice       // quoted, pasted or announced as another's
	listVoice        // the person's own, below "Rules for this repo:"
)

// mostHeard is the number of bytes of a message whose voices are told apart; the rest counts as pasted.
const mostHeard = 32_000

// voicesOf returns the voice of each byte of a person's message.
func voicesOf(text string) []voice {
	h := hearing{text: text[:min(len(text), mostHeard)], voices: make([]voice, len(text))}
	h.mark(len(h.text), len(text), otherVoice)
	h.readLines()
	h.markBlocks()
	h.markQuotations()
	h.markEvident()
	h.markDialogue()
	if h.hasWishes() {
		h.followAnnouncements()
	}
	return h.voices
}

// hasWishes reports whether what is left of the message could be a wish or a rule, if it is the person's own.
func (h *hearing) hasWishes() bool {
	for i, n := 0, 0; i < len(h.lines) && n < mostTyped; i++ {
		text := h.lines[i].text
		if text == "" || h.isOther(i) {
			continue
		}
		if ownRules.MatchString(text) {
			return true
		}
		for _, s := range splitSentences(text) {
			if n++; isPlain(s) && (wishForm.MatchString(s) || isRule(s)) {
				return true
			}
		}
	}
	return false
}

// hearing is the state of voicesOf.
type hearing struct {
	text   string
	voices []voice
	lines  []textLine
}

// textLine is one line of a message.
type textLine struct {
	from, to  int
	text      string // trimmed
	paragraph int    // its number; of a blank line that of the paragraph before
}

func (h *hearing) mark(from, to int, v voice) {
	for i := from; i < to; i++ {
		h.voices[i] = v
	}
}

func (h *hearing) markLine(i int, v voice) { h.mark(h.lines[i].from, h.lines[i].to, v) }

// isOther reports whether a line is known to be another's.
func (h *hearing) isOther(i int) bool {
	l := h.lines[i]
	return l.from < l.to && h.voices[l.from] == otherVoice && h.voices[l.to-1] == otherVoice
}

func (h *hearing) readLines() {
	at, paragraph, blank := 0, 0, false
	for line := range strings.Lines(h.text) {
		l := textLine{from: at, to: at + len(strings.TrimRight(line, "\r\n")), text: strings.TrimSpace(line)}
		at += len(line)
		if l.text == "" {
			blank = true
		} else if blank {
			blank = false
			paragraph++
		}
		l.paragraph = paragraph
		h.lines = append(h.lines, l)
	}
}

// endOfParagraph returns the line behind the paragraph of line i.
func (h *hearing) endOfParagraph(i int) int {
	end := i
	for end < len(h.lines) && h.lines[end].paragraph == h.lines[i].paragraph && h.lines[end].text != "" {
		end++
	}
	return end
}

// nextParagraph returns the first line of the paragraph behind line i.
func (h *hearing) nextParagraph(i int) int {
	for i < len(h.lines) && h.lines[i].text == "" {
		i++
	}
	return i
}

var (
	openingTag   = pattern.New(`^<([a-zA-Z][\w:.-]*)(\s[^<>]*)?>`)
	codeFence    = pattern.New("^(```+|~~~+)")
	threeQuotes  = pattern.New(`"""|'''`)
	closingMarks = map[rune]string{'“': "”", '„': "“”", '«': "»", '»': "«", '「': "」", '『': "』", '‹': "›", '"': `"`}
)

// markBlocks marks lines with ">", code fences, triple quotes and tags.
func (h *hearing) markBlocks() {
	for i := 0; i < len(h.lines); i++ {
		l := h.lines[i]
		isEnd := func(string) bool { return true }
		switch {
		case strings.HasPrefix(l.text, ">"):
		case codeFence.MatchString(l.text):
			fence := codeFence.FindString(l.text)
			isEnd = func(s string) bool { return strings.HasPrefix(s, fence) && strings.Trim(s, fence[:1]) == "" }
			if i+1 < len(h.lines) && strings.Count(l.text, fence) == 1 {
				h.markLine(i, otherVoice)
				i++
			}
		case openingTag.MatchString(l.text):
			closing := "</" + openingTag.FindStringSubmatch(l.text)[1] + ">"
			if strings.Contains(h.text[l.from:], closing) {
				isEnd = func(s string) bool { return strings.Contains(s, closing) }
			}
		case strings.HasPrefix(l.text, "</"):
		case len(threeQuotes.FindAllString(l.text, 2)) == 1:
			mark := threeQuotes.FindString(l.text)
			h.markLine(i, otherVoice)
			i++
			isEnd = func(s string) bool { return strings.Contains(s, mark) }
		default:
			continue
		}
		for ; i < len(h.lines); i++ {
			h.markLine(i, otherVoice)
			if isEnd(h.lines[i].text) {
				break
			}
		}
	}
}

// longestQuotation is the limit of a quotation between marks in bytes.
const longestQuotation = 4000

// markQuotations marks quotations of more than one sentence. A message that is one quotation is its sender's: opencode
// puts the words of its command line between marks.
func (h *hearing) markQuotations() {
	for _, at := range quotations(h.text) {
		if whole := strings.TrimSpace(h.text); strings.TrimFunc(whole, isDoubleQuote) == h.text[at[0]:at[1]] {
			return
		}
		if len(splitSentences(h.text[at[0]:at[1]])) > 1 {
			h.mark(at[0], at[1], otherVoice)
		}
	}
}

func isDoubleQuote(r rune) bool { return r == '"' }

// quotations returns the ranges between marks of quotation.
func quotations(text string) (found [][2]int) {
	before := ' '
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		closing, opens := closingMarks[r]
		next, _ := utf8.DecodeRuneInString(text[i+n:])
		if (r == '"' || r == '»') && (unicode.IsLetter(before) || unicode.IsDigit(before) || unicode.IsSpace(next)) {
			opens = false
		}
		before = r
		if !opens {
			i += n
			continue
		}
		rest := text[i+n : min(len(text), i+n+longestQuotation)]
		end := strings.IndexFunc(rest, func(r rune) bool { return strings.ContainsRune(closing, r) })
		if end < 0 {
			i += n
			continue
		}
		found = append(found, [2]int{i + n, i + n + end})
		_, last := utf8.DecodeRuneInString(rest[end:])
		i += n + end + last
		before = '"'
	}
	return found
}

// saidWords is the number of words from which on a quotation in a sentence is what somebody said, not a term.
const saidWords = 3

// withoutQuotations returns a sentence without quotations of at least so many words.
func withoutQuotations(s string, words int) string {
	var b strings.Builder
	from := 0
	for _, at := range quotations(s) {
		if len(strings.Fields(s[at[0]:at[1]])) >= words {
			b.WriteString(s[from:at[0]] + "…")
			from = at[1]
		}
	}
	return b.String() + s[from:]
}

// Lines that people do not type: of programs, of protocols and of documents. The rest of their paragraph is pasted too.
var (
	machineLine = pattern.New(`^\[?\d{4}[-/.]\d\d[-/.]\d\d[T ,]` + // times
		`|^[\[(]?\d{1,2}[.:]\d\d([.:]\d\d)?([.,]\d+)?([\])]|\s*[AP]M\b)?\s+\S|^\[\d{1,2}[./]\d{1,2}[./]\d{2,4}[, ]|^\d\d:\d\d:\d\d[,.]\d+ -->` +
		`|^\[?(ERROR|WARN(ING)?|INFO|DEBUG|FATAL|TRACE|NOTICE|CRITICAL|SEVERE|PANIC)\b[\]:|\s-]|(?i:^(error|warning|fatal|panic)(\[\w+\])?: )` +
		`|^(npm|yarn|pnpm) (WARN|ERR!|notice|warn|error)|^remote: |^##\[|^::(error|warning|group)|^(===|---) (RUN|FAIL|PASS|SKIP)|^Traceback |^\$ \S|^[\w@-]+[$#%] ` +
		`|^at [\w$.<>]+\(|^Caused by: |^[A-Z]\w*(Error|Exception)\b.*:|^= (help|note): |^(-->|File ")|^\d+:\d+\s+(error|warn)|^[\w./-]+[./]\w+:\d+(:\d+)?: |^PS [A-Z]:|^[A-Z]:\\[^ ]*>|^\S.*?\S( {2,}\S+){3,}|^[✖✗✓✔●▲▼│├└┌|]` +
		`|^(diff --git|index [0-9a-f]+\.\.|@@ |[+-]{3} [ab]/)|^[+-][^\s+-]` + // changes
		`|^(//|/\*|\*/|\* @|<!--|-- |;;|%%|#!|#include)|^[^.!?]*(\{|;|\);|=>|\)\s*:)$|^[{}\[\]()]+[,;]?$|^"[\w .-]+"\s*:|^(func|def|class|import|package|public|private|const|let|var|return|if|for|SELECT|CREATE|INSERT)\b.*[({;:=]` + // code
		`|^(\[[ xX]\]|[-*] \[[ xX]\]) ` + // checklists
		`|^(User-agent|Disallow|Allow|Content-Type|Host|Accept|HTTP/\d)\b` +
		`|^(Reporter|Assignee|Steps to reproduce|Acceptance criteria|Akzeptanzkriterien|Signed-off-by|Co-authored-by|Attendees|Teilnehmer)( \w+)?\s*:` +
		`|^Given (an?|the|that|some)\b|^(Scenario|Feature|Background)( Outline)?:|^As an? [^,.]+ I (want|need)|^(§+|Art\.|Article|Section|Clause|Artikel) ?\d|^\(?\d+(\.\d+){2,}\)?\s+\S|^\((\d+|[a-z]|[ivx]+)\) ` +
		`|^\d+/\d* |^v?\d+\.\d+(\.\d+)+\b|^\[[A-Z]{2,10}-\d+\]|^={3,}$`)
	indentedLine = pattern.New(`^(\t| {3,})\s*\S`)
	listItem     = pattern.New(`^([-*+•·・–]|\(?\d{1,2}[.)、]|[a-z]\)|[①-⑳])\s*\S`)
	clauseLine   = pattern.New(`^\d+\.\d+ \S|^[A-Z]{2,10}-\d+ \S`) // of a document if more lines follow
	labelLine    = pattern.New(`^(Type|Priority|Status|Description|Labels|Severity|Component|Decision|Context|Consequences|Summary|Expected|Actual|Beschreibung|Priorität|Environment|Version)( \w+)?\s*:`)
	keyLine      = pattern.New(`^(- )?[a-z_][\w.-]*: ?\S|^(- )?[a-z_][\w.-]*:$`)
	separator    = pattern.New(`^([-*_=~—–]\s?){3,}$`)
)

// markEvident marks the rest of a paragraph from a line on that people do not type.
func (h *hearing) markEvident() {
	for i := 0; i < len(h.lines); i = max(i+1, h.nextParagraph(h.endOfParagraph(i))) {
		end := h.endOfParagraph(i)
		if h.isIndented(i, end) {
			for k := i; k < end; k++ {
				h.markLine(k, otherVoice)
			}
			continue
		}
		keys, columns := 0, 0
		for k := i; k < end; k++ {
			if isKey(h.lines[k].text) {
				keys++
			}
			if n := strings.Count(h.lines[k].text, ";") + strings.Count(h.lines[k].text, "\t"); n > 1 {
				columns++
			}
		}
		for k := i; k < end; k++ {
			l := &h.lines[k]
			indented := indentedLine.MatchString(h.text[l.from:l.to]) && !listItem.MatchString(l.text) &&
				(k == i || !listItem.MatchString(h.lines[k-1].text))
			clause := k+1 < end && clauseLine.MatchString(l.text) || k > i && clauseLine.MatchString(l.text)
			if clause || machineLine.MatchString(l.text) && !separator.MatchString(l.text) || indented ||
				keys > 1 && isKey(l.text) || columns > 1 {
				for ; k < end; k++ {
					h.markLine(k, otherVoice)
				}
			}
		}
	}
}

// isIndented reports whether each line of a paragraph begins behind the margin, as programs write.
func (h *hearing) isIndented(from, end int) bool {
	for k := from; k < end; k++ {
		if line := h.text[h.lines[k].from:h.lines[k].to]; !strings.HasPrefix(line, "  ") && line[0] != '\t' ||
			k == from && listItem.MatchString(h.lines[k].text) {
			return false
		}
	}
	return true
}

func isKey(line string) bool { return keyLine.MatchString(line) || labelLine.MatchString(line) }

// Lines that begin a turn of a conversation, with a time or with a name.
var (
	turnWithTime = pattern.New(`^.{0,50}\b\d{1,2}:\d\d(:\d\d)?\s*([AaPp]\.?[Mm]\.?)?[\])]?:?$|^\[?[\d./, -]*\d{1,2}:\d\d(:\d\d)?( ?[AP]M)?\]?[ ,:-]+\p{L}|^\[[\d:., /-]{6,}( ?[AP]M)?\]|^.{0,50}\b(\d+|an?) (minutes?|min|hours?|days?|weeks?|months?) ago\)?:?$|^.{0,50}\bvor \d+ (minuten|stunden|tagen|wochen)\)?:?$`)
	turnWithName = pattern.New(`^(\p{Lu}[\p{L}\d .'-]{0,24}|[A-Z]\d{1,2}|@\w+)( (said|sagt|wrote|says))?\s*[:：](\s|$)`)
	knownSpeaker = pattern.New(`(?i)^(you|user|assistant|system|human|ai|bot|q|a|interviewer|interviewee|customer|kunde|agent|chatgpt|claude|gemini|copilot|speaker \d+|[A-Z]\d{1,2}|client|moderator)( said)?\s*[:：]`)
)

// markDialogue marks a copied conversation: from its first turn to the paragraph of its last.
func (h *hearing) markDialogue() {
	first, last, times := -1, -1, 0
	names, turns, known := map[string]int{}, []int(nil), 0
	for i := range h.lines {
		switch text := h.lines[i].text; {
		case text == "":
		case turnWithTime.MatchString(text):
			times++
			turns = append(turns, i)
		case knownSpeaker.MatchString(text):
			known++
			turns = append(turns, i)
		case turnWithName.MatchString(text):
			names[text[:strings.IndexAny(text, ":：")]]++
			turns = append(turns, i)
		}
	}
	repeated := false
	for _, n := range names {
		repeated = repeated || n > 1 && len(names) > 1
	}
	if times < 2 && known < 2 && !repeated {
		return
	}
	first, last = turns[0], turns[len(turns)-1]
	for i := first; i < h.endOfParagraph(last); i++ {
		h.markLine(i, otherVoice)
	}
}

// Announcements of a text. A handled text is one that a request is about; a heard one is what somebody said.
var (
	deictic    = `\b(this|these|the following|below|diese[rsnm]?|folgende[rsnm]?|das( hier)?|ce(tte|t|s)?|suivante?s?|est[eao]s?|siguientes?)\b|这(段|个|封|份|些)|以下|下面|下列|次の|以下の|この`
	textNoun   = `\b((e-?)?mails?|messages?|nachrichten?|prompts?|texte?s?|tickets?|stor(y|ies)|letters?|brief(e|es)?|paragraphs?|passages?|clauses?|klauseln?|contracts?|vertr(ag|äge)|polic(y|ies)|terms|docs|documentation|readme|agents\.md|claude\.md|instructions|articles?|artikel|posts?|threads?|chats?|conversations?|transcripts?|interviews?|answers|antworten|checklists?|lists?|songs?|lyrics|poems?|gedichte?|exercises?|aufgaben?|puzzles?|releases?|commit messages?|configs?|comments?|review|logs?|notes|notizen|protokoll|minutes|guides?|handbuch|manual|specs?|adverts?|ads?|quotes?|quotations?|zitate?|advice|page|changelog|survey|excerpts?|auszug|draft|entwurf|tweets?|sms|correo|courriel|lettre|carta|texto|mensaje|errors?|output|response|memo|law|regulation|rules of|criteria)\b|邮件|文章|内容|聊天记录|对话|工单|提示词|合同|条款|メール|文章|議事録`
	handleVerb = `(translate|summari[sz]e|rewrite|rephrase|paraphrase|proof-?read|shorten|condense|polish|cluster|categori[sz]e|classify|extract|transcribe|continue|solve|parse|interpret|analy[sz]e|rate|übersetz\w*|fasse?|kürz\w*|formulier\w*|korrigier\w*|lektorier\w*|analysier\w*|bewerte|tradui[st]\w*|résume[rz]?|corrige[rz]?|reformule[rz]?|traduce|resume|responde|corrige|analiza|翻译|总结|概括|改写|润色|翻訳|要約|添削)`
	lookVerb   = `(review|check|correct|fix|explain|evaluate|critique|criticize|improve|compare|answer|reply|respond|draft|look at|read|see|find|tell me|format|edit|convert|make|address|import|implement|what|which|is|are|does|do|how|why|who|summary|prüf\w*|lies|schau\w*|schreib\w*|antworte\w*|was|ist|sind|gilt|wer|explique|réponds|regarde|vérifie|revisa|explica|看|检查|回复|返信)`

	handlesText = pattern.New(`(?i)^(\W|\b(please|pls|bitte|can|could|would|you|kannst|könntest|du|mir|me|now|then|and|also|haha|ok|okay|hey|hi|just|quickly|for me|peux-tu|puedes|s'il te plaît|请|帮我|把)\b|请|帮我|把)*` + handleVerb + `\b|^(请|帮我|把|请帮我).{0,12}(翻译|总结|概括|改写)|^(以下|次の|この|下記|上の).*(翻訳|要約|添削|返信|説明|まとめ)|\b(what|was|que|qué) .*\b(means?|bedeutet|heißt|significa|veut dire)\b|什么意思|どういう意味|(zusammenfassen|übersetzen|kürzen|zusammen|weiter)[?.!:]?$|\b(gedicht|poem|summary|zusammenfassung) (daraus|from|of)\b|daraus\b`)
	looksAtText = pattern.New(`(?i)(^|\b)` + lookVerb + `\b.*(` + deictic + `|\b(my|our|their|the|a|an|unsere?n?|meine?n?|mon|ma|mes|mi|mis)\b).{0,30}(` + textNoun + `)|(` + deictic + `).{0,12}(` + textNoun + `)`)
	presents    = pattern.New(`(?i)\b(here('s| is| are)|this is what|this is the|these are the|i (have|found|got|copied|received|saw|get) (this|these|the|an?)|sent me|got from|i copied|hier ist|hier sind|das kam|folgende|voici|aquí (está|tienes)|j'ai reçu|recibí)\b.*(` + textNoun + `)|\b(this is what|here('s| is) what) (it|he|she|they|the|i (get|got|see|have|found|received))\b|\b(sent|gave|forwarded|told) (me|us) this\b`)
	saysThis    = pattern.New(`(?i)\b(says?|said|writes?|wrote|reads?|states?|stated|asks?|asked|told (me|us)|sent (me|us)( this)?|answered|replied|claims?|complains?|demands?|insists?|argues?|recommends?|comments?|commented|responds?|responded|outputs?|prints?|quotes?|schreibt|schrieb|sagt|sagte|meint|meinte|antwortet|fordert|steht( da| dort)?|dit|écrit|a dit|demande|dice|escribe|escribió|dijo)( with| like| this| that| us| me| the following| as follows| something like this)?$|(发来|转发|收到|给我).{0,8}$|(说|写道|表示|回复|言いました|書いて|曰く)$|(他|她|老板|客户|用户|领导|经理)[^，。]{0,4}(要求|希望)$|^(from|per|aus|laut|according to) (the|their|his|her|its|dem|der|den)?\s*.{0,20}(` + textNoun + `)|\b(agents?|ais?|llms?|models?|assistants?)$`)
	thisText    = pattern.New(`(?i)(` + deictic + `).{0,12}(` + textNoun + `)`)
	notText     = pattern.New(`(?i)\b(this|these|diese[rsnm]?|the|our|my) (repo|repository|project|projekt|folder|branch|codebase|team|company|machine|app|service|session|ordner)\b`)
	ownRules    = pattern.New(`(?i)\b((ground|house|basic|general|coding|my|our|the|two|three|some|few|\d) )*(rules?|conventions?|guidelines|constraints|requirements|principles|standards|preferences|do['’]?s and don['’]?ts)\b|\bplease (note|remember)\b|\b(keep|bear) in mind\b|^(also |and |please )*remember\b|\b(things|points) (that )?(matter|to (note|remember|know)|are important|i care)|\bhow (we|i) work\b|\bi forgot to say\b|\b(regeln|vorgaben|konventionen|grundregeln|anforderungen|richtlinien|spielregeln)\b|\b(mir wichtig|wichtig ist|bitte beachte\w*|denk (bitte )?daran|merken wir uns|merk dir)\b|\b(règles?|consignes|conventions|contraintes|exigences|à retenir|n'oublie pas)\b|\b(reglas?|normas|convenciones|requisitos|restricciones|recuerda)\b|规则|规范|约定|要求|规定|注意|请记住|几点|原则|ルール|規則|決まり|規約|要件|注意点|お願い`)

	attribution = pattern.New(`(?i)^(on|am|le|el)\b.*\b(wrote|schrieb\b.*|a écrit|escribió)\s*:$|^@?[\w-]+( [\w-]+)? ((commented|replied|left a comment|requested changes)\b|reviewed (this|these))|^-{3,} ?(original message|forwarded message|ursprüngliche nachricht|message d'origine)|\b(wrote|schrieb|a écrit|escribió)\s*:$|写道[:：]$`)
	mailHeader  = pattern.New(`(?i)^\*{0,2}(from|to|cc|sent|date|subject|re|fwd|reply-to|von|an|gesendet|datum|betreff|de|à|envoyé|objet|para|enviado|asunto|fecha|差出人|宛先|件名|送信日時|发件人|收件人|主题|日期|发送时间)\*{0,2}\s*[:：]\s*\S`)
	mailSubject = pattern.New(`(?i)^\*{0,2}(subject|betreff|objet|asunto|件名|主题)\*{0,2}\s*[:：]`)
	salutation  = pattern.New(`(?i)^(dear|sehr geehrte|liebe[rs]?|hi|hello|hallo|guten (tag|morgen)|bonjour|cher|chère|madame|monsieur|hola|estimad[oa]s?|querid[oa]s?) ([\p{L}.&]+ ?){1,5},$|^sehr geehrte|^お世話になって|^尊敬的`)
	signOff     = pattern.New(`(?i)^(best|kind|warm|many)? ?(regards|wishes|greetings|thanks)\b|^(sincerely|yours|cheers)\b|^(mit )?(freundlichen?|besten?|viele[n]?|liebe[n]?) gr(ü|u|ue)(ß|ss)e?n?\b|^(cordialement|bien à (toi|vous)|un saludo|saludos|atentamente)\b|^よろしくお願い|^敬具|^此致|^祝好`)
	roleOfABot  = pattern.New(`(?i)^(you are|du bist|vous êtes|tu es|eres) .{0,80}\b(assistant|bot|chatbot|agent|voice|translator|classifier|ai|llm|model|assistent|asistente)\b|^(you are|du bist) ["“„«]|^你是(一个|一位|一名)?.{0,12}(助手|机器人|客服)|^あなたは.{0,20}(アシスタント|ボット)`)
)

// follows is what the lines behind an announcement are.
type follows uint8

const (
	ownFollows   follows = iota
	textFollows          // another's text, up to its end if it has one, else to the end of the message
	partsFollow          // another's list, code or log has begun
	otherFollows         // another's prose, to the end of the message
	mailFollows          // a mail, to its greeting or a line that separates
	rulesFollow          // the person's own list of rules
)

// followAnnouncements marks the texts that are announced as another's and the lists of the person's own rules.
func (h *hearing) followAnnouncements() {
	state := ownFollows
	brief := h.isBrief()
	for i := h.nextParagraph(0); i < len(h.lines); i = h.nextParagraph(h.endOfParagraph(i)) {
		end := h.endOfParagraph(i)
		switch state {
		case mailFollows:
			if !separator.MatchString(h.lines[i].text) {
				state = h.markOther(i, end, state)
				continue
			}
			state = ownFollows
		case otherFollows, textFollows, partsFollow:
			if h.beginsMail(i, end) {
				state = h.markOther(i, end, mailFollows)
				continue
			}
			if heading := h.isHeading(i); state == partsFollow && !heading && !h.isPart(i, end) {
				state = ownFollows
				break
			} else if state == otherFollows || heading || !h.isPart(i, end) {
				state = otherFollows
			} else {
				state = partsFollow
			}
			state = h.markOther(i, end, state)
			continue
		case rulesFollow:
			if !listItem.MatchString(h.lines[i].text) {
				state = ownFollows
			}
		case ownFollows:
		}
		state = h.followParagraph(i, end, state, brief)
	}
	h.followBack()
}

// markOther marks lines as another's. A letter ends with the paragraph of its greeting.
func (h *hearing) markOther(from, end int, state follows) follows {
	for k := from; k < end; k++ {
		h.markLine(k, otherVoice)
		if state == mailFollows && signOff.MatchString(h.lines[k].text) {
			state = ownFollows
		}
	}
	return state
}

// beginsMail reports whether a paragraph has headers of a mail, or a salutation.
func (h *hearing) beginsMail(from, end int) bool {
	headers := 0
	for k := from; k < end; k++ {
		if attribution.MatchString(h.lines[k].text) || salutation.MatchString(h.lines[k].text) ||
			mailSubject.MatchString(h.lines[k].text) {
			return true
		}
		if mailHeader.MatchString(h.lines[k].text) {
			headers++
		}
	}
	return headers > 1
}

// isPart reports whether a paragraph is a list, code, a log or a quotation, which ends with itself.
func (h *hearing) isPart(from, end int) bool {
	n := 0
	for k := from; k < end; k++ {
		if h.isOther(k) || listItem.MatchString(h.lines[k].text) || !isPlain(h.lines[k].text) {
			n++
		}
	}
	return n > 0 && (2*n >= end-from || h.isOther(end-1) || listItem.MatchString(h.lines[end-1].text))
}

// isHeading reports whether line i is a heading, also one that is underlined.
func (h *hearing) isHeading(i int) bool {
	_, heading := parseHeading(h.lines[i].text)
	return heading || i+1 < len(h.lines) && underline.MatchString(h.lines[i+1].text)
}

var underline = pattern.New(`^(={3,}|-{3,})$`)

// followParagraph marks what the sentences of one paragraph of the person's announce, and returns what follows it.
func (h *hearing) followParagraph(from, end int, state follows, brief bool) follows {
	mail := h.beginsMail(from, end)
	for k := from; k < end; k++ {
		l := &h.lines[k]
		if h.isOther(k) {
			continue
		}
		if title, heading := parseHeading(l.text); heading {
			if state = ownFollows; brief && ownRules.MatchString(title) {
				state = rulesFollow
			}
			continue
		}
		switch {
		case roleOfABot.MatchString(l.text):
			return h.markOther(k, end, otherFollows)
		case attribution.MatchString(l.text), salutation.MatchString(l.text),
			mail && mailHeader.MatchString(l.text):
			return h.markOther(k, end, mailFollows)
		case state == rulesFollow && !(strings.HasSuffix(l.text, ":") || strings.HasSuffix(l.text, "：")):
			h.markLine(k, listVoice)
			continue
		}
		announced, at := announcedBy(l.text)
		if next := h.nextParagraph(k + 1); isQuestion(l.text) && next < len(h.lines) &&
			listItem.MatchString(h.lines[next].text) {
			announced, at = textFollows, 0 // its options
		} else if k == from && end == from+1 && isTitle(l.text) && !ownRules.MatchString(l.text) {
			return h.markOther(k, end, otherFollows)
		}
		switch {
		case announced == textFollows && at > 0: // in this line
			h.mark(l.from+strings.Index(h.text[l.from:l.to], l.text)+at, l.to, otherVoice)
			h.markOther(k+1, end, ownFollows)
			return ownFollows
		case announced == textFollows && k+1 < end:
			state = otherFollows
			if h.isPart(k+1, end) {
				state = partsFollow
			}
			return h.markOther(k+1, end, state)
		case announced != ownFollows:
			state = announced
		}
	}
	return state
}

// isTitle reports whether a line is the title of a document: some words in capitals.
func isTitle(line string) bool {
	return strings.ToUpper(line) == line && len(strings.Fields(line)) > 1 && capitals.MatchString(line)
}

var capitals = pattern.New(`^[\p{Lu}\d &'’/()-]{6,80}$`)

// announcedBy returns what a line announces, and where in the line that begins; 0: behind the line.
func announcedBy(line string) (follows, int) {
	isText := func(s string) bool {
		return !notText.MatchString(s) && (handlesText.MatchString(s) || looksAtText.MatchString(s) ||
			presents.MatchString(s))
	}
	head := strings.TrimRight(line, " :：*")
	colon := len(head) < len(strings.TrimRight(line, " *"))
	sentences := splitSentences(head)
	if len(sentences) == 0 {
		return ownFollows, 0
	}
	last := sentences[len(sentences)-1]
	switch {
	case colon && (handlesText.MatchString(last) || saysThis.MatchString(last)):
		return textFollows, 0
	case colon && ownRules.MatchString(last) && !isReview.MatchString(last):
		return rulesFollow, 0
	case colon && isText(last):
		return textFollows, 0
	case colon:
		return ownFollows, 0
	}
	if at := innerColon.FindStringIndex(line); at != nil {
		before := splitSentences(line[:at[0]])
		if n := len(before); n > 0 {
			said := before[n-1]
			if saysThis.MatchString(said) || presents.MatchString(said) ||
				handlesText.MatchString(said) && !notText.MatchString(said) {
				return textFollows, at[1]
			}
			return ownFollows, 0
		}
	}
	for _, s := range sentences {
		if (isText(s) || isQuestion(s) && asksAboutThis.MatchString(s) && !notText.MatchString(s)) && !isRule(s) {
			return textFollows, 0
		}
	}
	return ownFollows, 0
}

var (
	// A question about "this" without a noun.
	asksAboutThis = pattern.New(`(?i)\b(this|these|that|das|dies|ça|cela|esto|eso)( (mean|right|true|correct|ok|okay|fine|about|say|legal|valid|good|so|konkret|richtig|korrekt|wirksam|gut))?( \p{L}+)?\?$|^(is|are|does|do|was) (this|these|that|das|dies) `)
	innerColon    = pattern.New(`[:：]\s*["“„«「]|: |：`)
	isReview      = pattern.New(`(?i)^(please |can you |could you |bitte )*(review|check|critique|evaluate|compare|explain|prüf\w*|bewerte|vérifie|revisa|检查)\b`)
	ownTask       = pattern.New(`(?i)^(task|goal|aufgabe|ziel|objective|objectif|tâche|tarea|objetivo|what (to do|i (want|need))|first steps?|next steps?|deliverables?|to ?do|任务|目标|タスク|目的|今回の作業)\b`)
)

// isBrief reports whether the headings of a message are those of a brief that a person wrote: one names the task.
func (h *hearing) isBrief() bool {
	for i := range h.lines {
		if title, heading := parseHeading(h.lines[i].text); heading && !h.isOther(i) && ownTask.MatchString(title) {
			return true
		}
	}
	return false
}

// followBack marks everything before a last paragraph that asks to handle "this" text.
func (h *hearing) followBack() {
	i := len(h.lines)
	for i > 0 && h.lines[i-1].text == "" {
		i--
	}
	end := i
	for i > 0 && h.lines[i-1].text != "" {
		i--
	}
	if i == 0 || end-i > 1 || h.isOther(i) {
		return
	}
	text := h.lines[i].text
	if (handlesText.MatchString(text) || isQuestion(text) && thisText.MatchString(text)) && !notText.MatchString(text) &&
		!strings.HasSuffix(text, ":") {
		h.mark(0, h.lines[i].from, otherVoice)
	}
}

// isReport reports whether a sentence discusses something, or says what another person says or wants, and no wish of
// the person's precedes that.
func isReport(s string) bool {
	s = withoutQuotations(s, saidWords)
	at := reported.FindStringIndex(s)
	return discussed.MatchString(s) || at != nil && !ownWish.MatchString(s[:at[0]]) && !ownSubject.MatchString(s[at[0]:])
}

var ownSubject = pattern.New(`^(I|We|You|Ich|Wir|Du|Ihr) `)

var ownWish = pattern.New(`(?i)\b(never|always|don['’]t|do not|must|only|nie|niemals|immer|nicht|kein\w*|jamais|toujours|nunca|siempre)\b|不|必须|禁止`)

// discussed matches a sentence that asks or supposes how something could be done.
var discussed = pattern.New(`(?i)\b(whether|debat(e|ing)|discuss(ing|ion)|considering|wonder(ing)?|hypothetical\w*|suppose|imagine|what if|should (we|i|one)|would happen|pros and cons|ob (wir|man|ich|ihr|es)|überlege\w*|angenommen|stell dir vor|je me demande|est-ce qu)\b|是否|要不要|假设|かどうか`)

// reported matches a sentence that reports what another person says or wants.
var reported = pattern.New(`^[^:]*\b(?i:was|were|used to|had)\b[^:]*: |(\b(?i:he|she|they|everyone|somebody|someone|(my|the|our|their|his|her|a|an|one) [\p{L}' -]{2,30}?)|\b\p{Lu}[\p{L}.-]+) (?i:(also|always|now|still|just|even|once) )*(?i:says|said|writes|wrote|thinks|thought|wants|wanted|demands|demanded|insists|insisted|asks|asked|tells|told|claims|claimed|complains|complained|believes|recommends|recommended|suggests|suggested|reckons|argues|argued|announced|advises|warned|warns|swears|hates|prefers)\b` +
	`|\b(?i:they|people|users|customers|folks) (?i:say|think|want|demand|insist|claim|complain|believe|recommend|suggest|argue)\b|^(?i:according to|apparently|allegedly|supposedly|laut|angeblich|selon|según)\b` +
	`|\b((?i:er|sie|man|(der|die|das|mein|meine|unser|unsere) \p{L}+)|\p{Lu}\p{L}+( \p{Lu}\p{L}+)?) (?i:sagt|sagte|meint|meinte|schreibt|schrieb|will|wollte|möchte|fordert|verlangt|behauptet|findet|fand)\b` +
	`|\b(?i:m'a dit|nous a dit|(il|elle|on|chef|client|collègue) (dit|veut|demande|pense|exige))\b|\b(?i:(me|nos) (dijo|ha dicho|pidió)|(jefe|cliente|él|ella) (dice|quiere|pide|exige))\b` +
	`|(他|她|他们|老板|客户|领导|经理|同事|用户|有人)[^，。]{0,6}(说|要求|认为|觉得|希望|想要|表示)|(部長|上司|社長|顧客|お客様|彼|彼女|先輩)[はが].*(言|述べ|求め|希望)`)

// voiceOf returns the voice of a sentence that begins at or behind from, and where it ends.
func voiceOf(text string, voices []voice, sentence string, from int) (voice, int) {
	at := strings.Index(text[from:], sentence)
	if at < 0 { // a line break became a space
		at = strings.IndexFunc(text[from:], func(r rune) bool { return !unicode.IsSpace(r) })
		at = max(at, 0)
	}
	at += from
	end := min(at+len(sentence), len(text))
	n := [3]int{}
	for _, v := range voices[at:end] {
		n[v]++
	}
	switch {
	case n[otherVoice] > 0 && (2*n[otherVoice] >= end-at || voices[at] == otherVoice):
		return otherVoice, end
	case n[listVoice] > 0:
		return listVoice, end
	}
	return ownVoice, end
}

// ownPart returns a sentence that ends at end without the words of others in it.
func ownPart(text string, voices []voice, sentence string, end int) string {
	from := max(end-len(sentence), 0)
	if !slices.Contains(voices[from:end], otherVoice) {
		return sentence
	}
	var b strings.Builder
	for i := from; i < end; i++ {
		if voices[i] != otherVoice {
			b.WriteByte(text[i])
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}

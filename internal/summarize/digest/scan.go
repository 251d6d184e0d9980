package digest

import (
	"strings"
	"unicode"

	"sessiond/internal/pattern"
	"sessiond/internal/redact"
	"sessiond/internal/session"
)

// speaker is the author of a text, for scoring.
type speaker uint8

const (
	byPerson speaker = iota
	byModel
	byTool
	byProgram
)

// label returns the name of a speaker in a prompt.
func (s speaker) label() string {
	return [...]string{byPerson: "person", byModel: "assistant", byTool: "tool", byProgram: "program"}[s]
}

// quote returns a line of a digest with its speaker: a person's stands alone, and what a tool or a program said is
// quoted, so that nobody takes it for a person's or the model's.
func (s speaker) quote(text string) string {
	switch s {
	case byModel:
		return "model: " + text
	case byTool, byProgram:
		return s.label() + ": “" + text + "”"
	}
	return text
}

func speakerOf(m *session.Message) speaker {
	switch {
	case m.Origin == session.Person:
		return byPerson
	case m.Origin == session.ByTool || m.Role == session.Tool:
		return byTool
	case m.Origin == session.Model || m.Role == session.Assistant:
		return byModel
	}
	return byProgram
}

// passage is one text of a message with its speaker.
type passage struct {
	text   string
	by     speaker
	failed bool // the result of a call that failed
	pasted bool // by a person, below a heading
	inCall bool // arguments of a call

	masked bool    // the text has no secrets any more
	voices []voice // of a person's masked text, by byte; nil: they do not matter
}

// withoutReminders cuts out what a program put into a tool's result.
func withoutReminders(text string) string {
	for {
		before, rest, found := strings.Cut(text, "<system-reminder>")
		if !found {
			return text
		}
		_, after, _ := strings.Cut(rest, "</system-reminder>")
		text = before + after
	}
}

// splitPasted cuts a person's text before its first Markdown heading: people type none, they paste plans and files.
func splitPasted(text string) (typed, pasted string) {
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n') + 1
		if _, heading := parseHeading(text[at : at+max(end, 1)]); heading && end > 0 {
			return text[:at], text[at:]
		}
		if end == 0 {
			break
		}
		at += end
	}
	return text, ""
}

// sentence is one sentence of the span with its features for scoring.
type sentence struct {
	text      string
	msg       int // index of its message in the span
	nth       int // in its passage
	by        speaker
	terms     []uint32 // hashes
	facts     int      // names, numbers, paths, URLs, identifiers
	numbers   int
	shape     uint16 // hash of its terms without a digit
	last      bool   // of its passage
	failed    bool   // in the result of a call that failed
	duplicate bool   // the span contains the same sentence before
	pasted    bool   // by a person, but more likely pasted output or code
	inCall    bool   // in the arguments of a call
	said      string // by a person: the text without another's words
	quoted    bool   // by a person, but another's words
	noGiver   bool   // by a member of a group who gives no rules
	listed    bool   // by a person, below "Rules for this repo:"
	rule      bool   // by a person, in the form of a standing rule
	request   bool   // by a person, of the moment
	finding   bool   // a decision of the model, or a result of a tool
	states    statement

	noProse, ofLicence known
}

// mostTyped is the number of sentences of a person's message in which rules are told. A longer message was pasted.
const mostTyped = 200

// maxTyped is the number of sentences from which on a person's passage may be partly pasted.
const maxTyped = 3

// Bounds of the table that counts terms by their hash, both powers of two. Its size is the text's
// in bytes, so that few terms share an entry; a collision makes a rare term look less rare.
const (
	minCounters = 1 << 12
	maxCounters = 1 << 18
)

// bytesOfSentence is about the length of a sentence and of a line of program text.
const bytesOfSentence = 48

// maxCount is the limit of the counters.
const maxCount = 1 << 15

// span has the sentences and facts of some messages.
type span struct {
	msgs      []session.Message
	sentences []sentence
	facts     []fact
	count     []uint16        // occurrences of a term, by counter
	asked     []bool          // a person used the term, by counter
	alike     []uint16        // sentences by shape
	wanted    map[uint32]bool // terms of the instructions
	seen      map[uint64]bool // keys of sentences

	tellsRules bool
	givers     session.Givers
	read       func(session.MessageRef) (session.Message, error)
}

// scan parses the text of the messages. It leaves out reasoning, which is the model's own.
func scan(msgs []session.Message) *span { return scanFor(msgs, true, session.Givers{}) }

// scanFor is scan that tells the rules of their givers, or none, because that takes most of the time.
func scanFor(msgs []session.Message, rules bool, givers session.Givers) *span {
	size := 0
	for i := range msgs {
		for k := range msgs[i].Parts {
			size += len(msgs[i].Parts[k].Content()) + len(msgs[i].Parts[k].Arguments)
		}
	}
	counters := minCounters
	for counters < min(size, maxCounters) {
		counters *= 2
	}
	sp := &span{
		msgs: msgs, count: make([]uint16, counters), asked: make([]bool, counters),
		alike: make([]uint16, 1<<16), seen: map[uint64]bool{}, tellsRules: rules, givers: givers,
		sentences: make([]sentence, 0, size/bytesOfSentence),
	}
	sp.givers.Group = givers.Group || IsGroup(msgs)
	for i := range msgs {
		m := &msgs[i]
		if !IsConversation(m) {
			continue
		}
		for k := range m.Parts {
			switch p := &m.Parts[k]; p.Kind {
			case session.PartText, session.PartRefusal:
				sp.addText(i, session.WithoutEcho(p.Content()))
			case session.PartToolResult:
				sp.addPassage(i, passage{
					text: withoutReminders(session.WithoutEcho(p.Content())), by: byTool,
					failed: p.Failed(),
				})
			case session.PartToolCall:
				sp.addPassage(i, passage{text: p.Arguments, by: byTool, inCall: true})
			}
		}
	}
	return sp
}

// IsConversation reports whether a model sees a message as part of the conversation.
func IsConversation(m *session.Message) bool {
	switch m.Kind {
	case session.KindMarker, session.KindCustom, session.KindUnknown:
		return false
	}
	return m.Role != session.System
}

// scanRequest parses the messages of a request.
func scanRequest(req *session.SummaryRequest) *span {
	sp := scanFor(req.Messages, true, req.Givers)
	sp.read = req.Read
	return sp
}

// IsGroup reports whether messages of persons have different authors.
func IsGroup(msgs []session.Message) bool {
	author := ""
	for i := range msgs {
		if m := &msgs[i]; speakerOf(m) == byPerson && m.Author != "" {
			if author != "" && m.Author != author {
				return true
			}
			author = m.Author
		}
	}
	return false
}

// givesRules reports whether the author of message msg gives standing rules.
func (sp *span) givesRules(msg int) bool {
	return !sp.givers.Group || sp.givers.Named != nil && sp.givers.Named(sp.msgs[msg].Author)
}

// nameOf returns the author of message msg in a group, as lines name him; "" elsewhere.
func (sp *span) nameOf(msg int) string {
	m := &sp.msgs[msg]
	if !sp.givers.Group || speakerOf(m) != byPerson {
		return ""
	}
	return authorName(m)
}

// longestName is the limit of an author's name in a line, in bytes.
const longestName = 40

// authorName returns the author of a message without what could pass for another part of a line.
func authorName(m *session.Message) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.@+", r) {
			return r
		}
		return ' '
	}, m.Author)
	return CutText(strings.Join(strings.Fields(name), " "), longestName)
}

// quote returns a sentence's text as a line of a digest, with its speaker. Words of others, and those of the members of
// a group, stand in quotation marks.
func (sp *span) quote(s *sentence, text string) string {
	if s.by != byPerson {
		return s.by.quote(text)
	}
	var who []string
	if name := sp.nameOf(s.msg); name != "" {
		who = append(who, "person "+name)
	}
	if s.quoted {
		who = append(who, "quoted")
	}
	if len(who) == 0 {
		return text
	}
	return strings.Join(who, ", ") + ": “" + text + "”"
}

// addText adds a text of message msg by who said it.
func (sp *span) addText(msg int, text string) {
	by := speakerOf(&sp.msgs[msg])
	if by != byPerson {
		sp.addPassage(msg, passage{text: text, by: by})
		return
	}
	text, _ = redact.Mask(text)
	typed, pasted := splitPasted(text)
	above, below := passage{text: typed, by: by, masked: true}, passage{text: pasted, by: by, masked: true, pasted: true}
	if sp.tellsRules {
		voices := voicesOf(text)
		above.voices, below.voices = voices[:len(typed)], voices[len(typed):]
	}
	sp.addPassage(msg, above)
	sp.addPassage(msg, below)
}

// counter returns the index of a term's counter.
func (sp *span) counter(term uint32) uint32 { return term & uint32(len(sp.count)-1) }

// addPassage adds the sentences and facts of a passage of message msg. It masks secrets first.
func (sp *span) addPassage(msg int, at passage) {
	text := at.text
	if !at.masked {
		text, _ = redact.Mask(text)
	}
	if at.by == byPerson {
		text = unwrapped(text)
	}
	rd := reader{span: sp}
	first, pasted := len(sp.sentences), at.pasted
	from := 0
	for n, text := range splitSentences(text) {
		s := sentence{text: text, msg: msg, nth: n, by: at.by, failed: at.failed, inCall: at.inCall}
		v := ownVoice
		if at.voices != nil {
			v, from = voiceOf(at.text, at.voices, text, from)
			if n > 0 && sp.sentences[len(sp.sentences)-1].quoted && v != otherVoice {
				pasted = at.pasted
			}
		}
		facts := len(sp.facts)
		rd.readSentence(&s)
		s.facts = len(sp.facts) - facts
		for _, f := range sp.facts[facts:] {
			if f.kind == factAmount || f.kind == factNumber || f.kind == factVersion {
				s.numbers++
			}
		}
		if at.by == byPerson {
			pasted = pasted || !isPlain(placeholder.ReplaceAllString(text, ""))
			s.pasted = pasted && v != listVoice
			s.listed = v == listVoice
			s.quoted = v == otherVoice
			s.said = text
			if at.voices != nil && !s.quoted {
				s.said = ownPart(at.text, at.voices, text, from)
			}
			s.noGiver = !sp.givesRules(msg)
		}
		if at.by == byPerson || at.by == byModel {
			s.states = statementOf(at.by, text, sp.facts[facts:])
		}
		s.finding = !at.inCall && s.isFinding()
		sp.countSentence(&s)
		sp.sentences = append(sp.sentences, s)
	}
	added := sp.sentences[first:]
	if len(added) == 0 {
		return
	}
	end := &added[len(added)-1]
	end.last = true
	if at.by == byPerson && len(added) < maxTyped && !at.pasted { // typed text with a path or two
		for k := range added {
			added[k].pasted = isWordless(added[k].text)
		}
	} else if end.pasted && !at.pasted {
		end.pasted = !isPlain(end.text) // people comment below what they paste
	}
	for k := range added {
		s := &added[k]
		if s.by != byPerson {
			continue
		}
		s.rule = sp.tellsRules && k < mostTyped && s.isOwn() && !s.noGiver && s.isRule()
		s.request = !s.quoted && s.isRequest()
	}
}

// placeholder matches what programs write for an image in a prompt.
var placeholder = pattern.New(`\[(Image|Pasted text) #\d+[^\]]*\]`)

// countSentence counts the terms and the shape of a sentence, and marks a repeated one.
func (sp *span) countSentence(s *sentence) {
	sp.alike[s.shape] = min(sp.alike[s.shape]+1, maxCount)
	key := uint64(len(s.text)) << 32
	for _, t := range s.terms {
		key = (key ^ uint64(t)) * 1099511628211
		sp.countTerm(t, s.by)
	}
	s.duplicate = sp.seen[key]
	sp.seen[key] = true
}

func (sp *span) countTerm(term uint32, by speaker) {
	k := sp.counter(term)
	sp.count[k] = min(sp.count[k]+1, maxCount)
	if by == byPerson {
		sp.asked[k] = true
	}
}

// prefer marks the words of the user's instructions. Sentences with a rare one of them score higher.
func (sp *span) prefer(instructions string) {
	sp.wanted = map[uint32]bool{}
	for _, s := range scan([]session.Message{personSaid(instructions)}).sentences {
		for _, t := range s.terms {
			sp.wanted[t] = true
			sp.countTerm(t, byPerson)
		}
	}
}

// personSaid returns a message with a person's text.
func personSaid(text string) session.Message {
	return session.Message{
		Kind: session.KindMessage, Role: session.User, Origin: session.Person,
		Parts: []session.Part{session.TextPart(text)},
	}
}

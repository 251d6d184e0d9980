package summarize

import "sessiond/internal/session"

// speaker says who made a text, for scoring.
type speaker uint8

const (
	byPerson speaker = iota
	byModel
	byTool
	byProgram
)

// sentence is one sentence of the span with what scoring needs to know of it.
type sentence struct {
	text      string
	msg       int32 // index into the span's messages
	nth       int32 // in its part
	terms     [2]int32
	facts     int32 // numbers, paths, URLs, identifiers in it
	numbers   int32
	shape     uint16 // hash of its terms without a digit
	by        speaker
	last      bool   // of its part
	failed    bool   // in the result of a call that failed
	duplicate bool   // the same sentence stood in the span before
	key       uint64 // hash of its terms and length
	pasted    bool   // by a person, but more likely output or code that was put in
}

// mixed is from how many sentences on what a person sends may be partly pasted.
const mixed = 3

// Bounds of the table that counts terms by their hash, as powers of two: one of the text's size in
// bytes, so that few share a place. A collision makes a rare term look less rare, nothing worse.
const (
	leastBuckets = 1 << 12
	mostBuckets  = 1 << 18
)

// span is what one pass over the messages finds.
type span struct {
	msgs      []session.Message
	sentences []sentence
	terms     []uint32        // hashes of the terms of all sentences, one after the other
	count     []uint16        // occurrences of a term by its hash
	alike     []uint16        // sentences with the same shape
	asked     []bool          // whether a person used the term
	wanted    map[uint32]bool // terms of the instructions
	facts     []fact
	seen      map[uint64]struct{} // sentences, by hash
	reader    reader
}

// scan reads the text of the messages. Reasoning is left out: it is the model's own. Secrets are
// masked before anything else looks at the text. What known remembers of a message is not read
// again; nil remembers nothing.
func scan(msgs []session.Message, known *memory) *span {
	sp := &span{msgs: msgs, alike: make([]uint16, 1<<16)}
	sp.grow()
	for i := range msgs {
		m := &msgs[i]
		if !told(m) {
			continue
		}
		by := speakerOf(m)
		for k := range m.Parts {
			p := &m.Parts[k]
			at := passage{by: by, text: p.Content()}
			switch p.Kind {
			case session.PartText, session.PartRefusal:
			case session.PartToolResult:
				at.by, at.failed = byTool, p.IsError != nil && *p.IsError
			case session.PartToolCall:
				at.by, at.text = byTool, p.Arguments
			default:
				continue
			}
			sp.add(i, known.read(&sp.reader, m.RowID, k, at))
		}
	}
	return sp
}

// grow makes room for what text of this size usually holds.
func (sp *span) grow() {
	size := 0
	for i := range sp.msgs {
		for k := range sp.msgs[i].Parts {
			p := &sp.msgs[i].Parts[k]
			size += len(p.Content()) + len(p.Arguments)
		}
	}
	buckets := leastBuckets
	for buckets < min(size, mostBuckets) {
		buckets *= 2
	}
	sp.count, sp.asked = make([]uint16, buckets), make([]bool, buckets)
	sp.sentences = make([]sentence, 0, size/60+16)
	sp.terms = make([]uint32, 0, size/6+16)
	sp.facts = make([]fact, 0, size/24+16)
	sp.seen = make(map[uint64]struct{}, size/100+16)
}

// place is where a term is counted.
func (sp *span) place(term uint32) uint32 { return term & uint32(len(sp.count)-1) }

// add puts what reading one text found behind what the span holds.
func (sp *span) add(msg int, found *reading) {
	sentences, terms := int32(len(sp.sentences)), int32(len(sp.terms))
	for i := range found.sentences {
		sen := found.sentences[i]
		sen.msg = int32(msg)
		if sp.alike[sen.shape] < 1<<15 {
			sp.alike[sen.shape]++
		}
		if _, dup := sp.seen[sen.key]; dup {
			sen.duplicate = true
		} else {
			sp.seen[sen.key] = struct{}{}
		}
		for _, t := range found.terms[sen.terms[0]:sen.terms[1]] {
			sp.use(t, sen.by)
		}
		sen.terms[0] += terms
		sen.terms[1] += terms
		sp.sentences = append(sp.sentences, sen)
	}
	sp.terms = append(sp.terms, found.terms...)
	for _, f := range found.facts {
		f.sentence += sentences
		f.term += terms
		sp.facts = append(sp.facts, f)
	}
}

// use counts a term.
func (sp *span) use(term uint32, by speaker) {
	k := sp.place(term)
	if sp.count[k] < 1<<15 {
		sp.count[k]++
	}
	if by == byPerson {
		sp.asked[k] = true
	}
}

// told tells whether a message is part of the conversation as a model knows it.
func told(m *session.Message) bool {
	switch m.Kind {
	case session.KindMarker, session.KindCustom, session.KindUnknown:
		return false
	}
	return m.Role != session.System
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

package session

// Talk says what a message is to the people who read a session.
type Talk string

// The shares of messages in a talk.
const (
	Said      Talk = "said"    // words of a person or of a model: counts for people are of these
	Work      Talk = "work"    // calls and results, notes, markers, replies that nobody is shown
	OfProgram Talk = "program" // a row of the program itself: lists, search, titles and MCP leave it out
)

// TalkOf returns what a message is in the talk. Rows of the program itself are kinds that nobody knows, states, system
// prompts, text that the program gives the model without showing it, and settings, which are markers without words.
func TalkOf(m *Message) Talk {
	switch {
	case m.Kind == KindUnknown, m.Kind == KindCustom, m.Role == System, m.Origin == Program && !m.Display,
		m.Kind == KindMarker && !m.hasWords(PartText):
		return OfProgram
	case m.Display && (m.Origin == Person || m.Origin == Model && m.hasWords(PartText, PartRefusal)):
		return Said
	}
	return Work
}

// hasWords reports whether a part of one of the kinds has a text.
func (m *Message) hasWords(kinds ...PartKind) bool {
	for i := range m.Parts {
		p := &m.Parts[i]
		for _, kind := range kinds {
			if p.Kind == kind && (p.Text != "" || p.BlobSHA != nil || p.Blob != nil) {
				return true
			}
		}
	}
	return false
}

package search

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sessiond/internal/session"
)

// maxTerms is the limit of a query's terms; later ones are ignored.
const maxTerms = 32

// term is a word, a phrase or a prefix of a query.
type term struct {
	raw    string     // as written
	norm   normalized // its tokens
	word   bool       // one word or name outside of quotes: its other forms match, too
	quoted bool
	prefix bool
	not    bool
}

// parsed is a parsed query text: its terms and filters.
type parsed struct {
	terms []term
	filters
}

// filters narrow a search to messages with these facts; "" is any.
type filters struct{ role, source, session, key, project string }

// parse parses the words, "phrases", prefixes* and -exclusions of a query, and its filters such as
// role:user, also for source, session, key and project. Everything else is words: no text is an
// error, so that people can paste any text.
func parse(text string) parsed {
	var p parsed
	for _, w := range fields(text) {
		if !w.quoted && p.addFilter(w.text) {
			continue
		}
		if t, ok := w.term(); ok && len(p.terms) < maxTerms {
			p.terms = append(p.terms, t)
		}
	}
	return p
}

func (f *filters) addFilter(word string) bool {
	name, value, ok := strings.Cut(word, ":")
	if !ok || value == "" {
		return false
	}
	switch name {
	case "role":
		switch session.Role(value) {
		case session.System, session.User, session.Assistant, session.Tool:
			f.role = value
			return true
		}
		return false
	case "source":
		f.source = value
	case "session":
		f.session = value
	case "key":
		f.key = value
	case "project":
		f.project = value
	default:
		return false
	}
	return true
}

// content returns the wanted terms that say what is looked for: all but stop words, unless there are no others.
func (p *parsed) content() []term {
	wanted, _ := p.wanted()
	if some := slices.DeleteFunc(slices.Clone(wanted), term.stops); len(some) > 0 {
		return some
	}
	return wanted
}

// wanted returns the terms that a hit contains, and the excluded ones.
func (p *parsed) wanted() (wanted, excluded []term) {
	for _, t := range p.terms {
		if t.not {
			excluded = append(excluded, t)
		} else {
			wanted = append(wanted, t)
		}
	}
	return wanted, excluded
}

// field is a piece of a query between spaces, or between quotes.
type field struct {
	text   string
	quoted bool
	not    bool
}

func fields(text string) []field {
	var found []field
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return found
		}
		var f field
		if len(text) > 1 && text[0] == '-' && !strings.HasPrefix(text[1:], "-") && !unicode.IsSpace(rune(text[1])) {
			f.not, text = true, text[1:]
		}
		if rest, ok := strings.CutPrefix(text, `"`); ok {
			f.quoted = true
			f.text, text, _ = strings.Cut(rest, `"`)
		} else {
			end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
			if end < 0 {
				end = len(text)
			}
			f.text, text = text[:end], text[end:]
		}
		found = append(found, f)
	}
}

func (f field) term() (term, bool) {
	n := normalize(f.text, false)
	if n.text == "" {
		return term{}, false
	}
	t := term{raw: rawTerm(f.text), norm: n, not: f.not, quoted: f.quoted}
	t.prefix = n.open || (!f.quoted && strings.HasSuffix(f.text, "*"))
	t.word = !t.prefix && !f.quoted
	return t, true
}

// rawTerm returns the visible text of a term.
func rawTerm(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return !isWord(r) && !isCJK(r) && !strings.ContainsRune("$€£¥", r) })
	for _, possessive := range []string{"'s", "’s", "'S", "’S"} {
		s = strings.TrimSuffix(s, possessive)
	}
	return s
}

// match returns the term in FTS5's language. Words and phrases match by their stems; hasExactly checks
// what stands in quotes afterwards. A name like getUserName also matches its words, one after the other.
func (t term) match() string {
	stems, several := strings.Fields(t.norm.stems), t.norm.words > 1
	name := isOneWord(t.raw) && identifierParts(t.raw) != nil
	switch {
	case t.prefix && (name || !several): // also of the words that have another stem
		return "{stems inflected} : " + quote(strings.Fields(t.norm.text)[0]) + " *"
	case t.prefix:
		return "stems : " + quote(t.norm.text) + " *"
	case t.word && name:
		return "(stems : " + quote(stems[0]) + " OR stems : " + quote(strings.Join(stems[1:], " ")) + ")"
	}
	return "stems : " + quote(t.norm.stems)
}

func isOneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !isWord(r) })
}

// stops tells whether the term only says how a question is put.
func (t term) stops() bool { return t.word && isStopWord(strings.ToLower(t.norm.text)) }

// within reports whether a text has the words of a quoted term as written, in any case.
func (t term) within(text string) bool {
	return strings.Contains(" "+folded(normalize(text, true).text)+" ", " "+folded(t.norm.text)+" ")
}

func folded(s string) string { return strings.Map(fold, s) }

// quote returns s as an FTS5 string, without special meanings.
func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func joinTerms(terms []term, operator string) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.match()
	}
	return strings.Join(parts, " "+operator+" ")
}

// Kinds of tags: facts about a message that are indexed like words.
const (
	tagSession = 's'
	tagRole    = 'r'
	tagSource  = 'o'
	tagKey     = 'k'
	tagProject = 'p'
)

// tag returns the token of a fact. It hashes the value, which FTS5 would split.
func tag(kind rune, value string) string {
	h := fnv.New64a()
	h.Write([]byte(value))
	return string([]rune{tagMark, kind}) + strconv.FormatUint(h.Sum64(), 36)
}

// match returns the filters in FTS5's language, each followed by AND. shared are more sessions that
// match beside the session of the filter.
func (f filters) match(shared []string) string {
	var b strings.Builder
	if len(shared) > 0 {
		any := []string{quote(tag(tagSession, f.session))}
		for _, id := range shared {
			any = append(any, quote(tag(tagSession, id)))
		}
		b.WriteString("(" + strings.Join(any, " OR ") + ") AND ")
		f.session = ""
	}
	for _, fact := range []struct {
		kind  rune
		value string
	}{{tagSession, f.session}, {tagRole, f.role}, {tagSource, f.source}, {tagKey, f.key}, {tagProject, f.project}} {
		if fact.value != "" {
			b.WriteString(quote(tag(fact.kind, fact.value)) + " AND ")
		}
	}
	return b.String()
}

// tagsOf returns the tags of a message. Their facts never change.
func tagsOf(m *session.Message, s *session.Session) string {
	tags := []string{tag(tagSession, string(m.SessionID)), tag(tagRole, string(m.Role)), tag(tagSource, string(s.Source))}
	if s.Key != "" {
		tags = append(tags, tag(tagKey, s.Key))
	}
	if s.Project != "" {
		tags = append(tags, tag(tagProject, s.Project))
	}
	return strings.Join(tags, " ")
}

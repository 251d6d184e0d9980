package search

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
	"sessiond/internal/text"
	"sessiond/internal/when"
)

// maxTerms is the limit of a query's terms, and of its exclusions; later ones are ignored.
const maxTerms = 32

// term is a word, a phrase or a prefix of a query.
type term struct {
	raw       string      // as written
	norm      text.Tokens // its tokens
	word      bool        // one word or name outside of quotes: its other forms match, too
	quoted    bool
	prefix    bool
	not       bool
	symbol    bool            // emoji
	path      bool            // a file's, of a filter that stands alone
	or        []string        // what matches as well, in FTS5's language: a number in groups, the stems of other languages
	languages []text.Language // that the index has besides English
	stemsIn   []string        // its stems in each of them
	run       string          // what the term is a clue of: the word or sentence without spaces, as written
	time      bool            // it only names the time that the query prefers
}

// parsed is a parsed query text: its terms and filters.
type parsed struct {
	terms []term
	filters
	without       []filters // each with one value, which no hit has
	before, after string    // times, as written
	when          *when.Named
}

// filters narrow a search to messages with these facts; "" is any. A fact may have alternatives.
type filters struct {
	role, origin, source, session, key, project, path, tool string
	owner                                                   string // of a token's scope; no query names it
}

// orMark is between the alternatives of a fact: no value has a NUL.
const orMark = "\x00"

func anyOf(values []string) string { return strings.Join(values, orMark) }

func alternatives(fact string) []string { return strings.Split(fact, orMark) }

// field returns the filter of a name in a query; nil: there is none.
func (f *filters) field(name string) *string {
	return map[string]*string{
		"role": &f.role, "origin": &f.origin, "source": &f.source, "session": &f.session, "key": &f.key,
		"project": &f.project, "path": &f.path, "tool": &f.tool,
	}[name]
}

// Grammar describes queries for help texts, a line for each form.
const Grammar = `word           a word and its other forms: index, indexes, indexing; go, went
"as written"   these words, as they are written
begin*         words with this beginning: 3 letters, or fewer as the last word
-word          not this word
role:user      of this role: system, user, assistant, tool
origin:person  made by: person, model, tool, program
source:pi      of this program, or a part of its name
project:NAME   of this project: its folder, its name in lists, or a part of it
session:ID     of this session
key:KEY        of this routing key
path:FILE      that name this file
tool:NAME      that call this tool, or are its result
-role:tool     not of this role; the same for all of these
after:TIME     not before 2026-02-11, or the last 7d; also before:TIME`

// parse parses the words, "phrases", prefixes* and -exclusions of a query, and its filters. Everything else is
// words: no text is an error, so that people can paste any text.
func parse(text string) parsed {
	var p parsed
	for _, w := range fields(norm.NFC.String(text)) {
		if !w.quoted && p.addFilter(w) {
			continue
		}
		for _, t := range w.terms() {
			if p.hasRoomFor(t) {
				p.terms = append(p.terms, t)
			}
		}
	}
	if p.isOnlyExclusions() { // -j8 is an option
		for i := range p.terms {
			p.terms[i].not = false
		}
	}
	if t, ok := (field{text: p.path, quoted: true}).term(); ok && len(p.terms) == 0 { // path:FILE alone
		t.path, p.path = true, ""
		p.terms = append(p.terms, t)
	}
	for i := range max(0, len(p.terms)-1) {
		if t := &p.terms[i]; t.prefix && t.isShort() {
			t.prefix, t.word = false, true
		}
	}
	return p
}

// leastBeginning is how many letters a beginning* has at least. Only the last term, which a person may still be
// typing, can have fewer: for each short one, FTS5 reads the lists of a large part of all words.
const leastBeginning = 3

func (t term) isShort() bool {
	return utf8.RuneCountInString(t.norm.Text) < leastBeginning && !strings.ContainsFunc(t.norm.Text, text.IsUnspaced)
}

// isOnlyExclusions reports whether the query looks for nothing.
func (p *parsed) isOnlyExclusions() bool {
	return len(p.terms) > 0 && p.path == "" && !slices.ContainsFunc(p.terms, func(t term) bool { return !t.not })
}

// hasRoomFor reports whether a term is new and within the limit.
func (p *parsed) hasRoomFor(t term) bool {
	n := 0
	for _, other := range p.terms {
		if other.not != t.not {
			continue
		}
		if n++; n == maxTerms || other.norm.Stems == t.norm.Stems && other.quoted == t.quoted && other.prefix == t.prefix {
			return false
		}
	}
	return true
}

func (p *parsed) addFilter(w field) bool {
	name, value, ok := strings.Cut(w.text, ":")
	if !ok || value == "" || strings.HasPrefix(value, "//") { // of a URL
		return false
	}
	if w.not {
		var f filters
		to := f.field(name)
		if to != nil && len(p.without) < maxTerms {
			*to = value
			p.without = append(p.without, f)
		}
		return to != nil
	}
	to := p.field(name)
	switch name {
	case "before":
		to = &p.before
	case "after":
		to = &p.after
	}
	if to != nil {
		*to = value
	}
	return to != nil
}

// check rejects values that no message can have. Codes: Invalid.
func (f filters) check() error {
	for _, c := range []struct {
		name, value string
		known       []string
	}{
		{"role", f.role, []string{"system", "user", "assistant", "tool"}},
		{"origin", f.origin, []string{"person", "model", "tool", "program"}},
	} {
		if c.value != "" && !slices.Contains(c.known, c.value) {
			return session.Errorf(session.Invalid,
				"%s:%s finds nothing: %s is one of %s; to search for the text, put it in quotes", c.name, c.value, c.name,
				strings.Join(c.known, ", ")).
				At("q", "%s is one of %s", c.name, strings.Join(c.known, ", "))
		}
	}
	return nil
}

var questionForm = pattern.New(`(?i)^\s*(who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b|[?？]\s*$`)

// asks tells a question from a list of words: a hit need not have all words of a question.
func asks(text string) bool { return questionForm.MatchString(text) }

// content returns the wanted terms that say what is looked for: all but stop words and those that name a time, unless
// there are no others.
func (p *parsed) content() []term {
	wanted, _ := p.wanted()
	some := slices.DeleteFunc(slices.Clone(wanted), term.stops)
	if others := slices.DeleteFunc(slices.Clone(some), func(t term) bool { return t.time }); len(others) > 0 {
		return others
	}
	if len(some) > 0 {
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
		rest, opens := strings.CutPrefix(text, `"`)
		if opens && (f.not || strings.Contains(rest, `"`)) {
			f.quoted = true
			f.text, text, _ = strings.Cut(rest, `"`)
		} else {
			text = rest // without a quote that is never closed
			end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
			if end < 0 {
				end = len(text)
			}
			f.text, text = text[:end], text[end:]
			if rest, ok := strings.CutPrefix(text, `"`); ok && isFilterName(f.text) { // project:"my folder"
				var value string
				value, text, _ = strings.Cut(rest, `"`)
				f.text += value
			}
		}
		found = append(found, f)
	}
}

// isFilterName reports whether s is the name of a filter and a colon.
func isFilterName(s string) bool {
	name, ok := strings.CutSuffix(s, ":")
	return ok && (new(filters).field(name) != nil || name == "before" || name == "after")
}

// terms returns the words of a field, and its emoji.
func (f field) terms() (all []term) {
	t, ok := f.term()
	if ok {
		all = append(all, t)
	}
	if symbols := text.Tokenize(f.text, text.English, false).Symbols; symbols != "" && (!ok || !f.quoted) {
		emoji := strings.TrimFunc(f.text, func(r rune) bool { return !text.IsSymbol(r) })
		all = append(all, term{
			raw: emoji, norm: text.Tokens{Text: symbols, Stems: symbols, Count: 1}, not: f.not,
			symbol: true,
		})
	}
	return all
}

func (f field) term() (term, bool) {
	n := text.Tokenize(f.text, text.English, false)
	if n.Text == "" {
		return term{}, false
	}
	t := term{raw: rawTerm(f.text), norm: n, not: f.not, quoted: f.quoted}
	t.prefix = n.Open || (!f.quoted && strings.HasSuffix(f.text, "*"))
	t.word = !t.prefix && !f.quoted
	switch {
	case !t.word:
	case isHash(t.raw):
		t.or = []string{"{stems inflected} : " + quote(t.raw) + " *"}
	case isNumber(t.raw):
		t.or = []string{"stems : " + quote(strings.Join(groupsOf(t.raw), " "))}
	case groupedNumber.MatchString(t.raw):
		t.or = []string{"stems : " + quote(strings.ReplaceAll(n.Text, " ", ""))}
	}
	return t, true
}

var (
	hashForm      = pattern.New(`^[0-9a-f]{6,}$`)
	numberForm    = pattern.New(`^[0-9]{5,}$`)
	groupedNumber = pattern.New(`^[0-9]{1,3}([,.'’][0-9]{3})+$`)
)

// isHash reports whether a word may be the beginning of a hash.
func isHash(w string) bool {
	return hashForm.MatchString(w) && strings.ContainsAny(w, "0123456789") && strings.ContainsAny(w, "abcdef")
}

// isNumber reports whether a word is a number that people write in groups of digits.
func isNumber(w string) bool { return numberForm.MatchString(w) }

// groupsOf returns the groups of three digits of a number.
func groupsOf(digits string) []string {
	groups := []string{digits[:(len(digits)-1)%3+1]}
	for rest := digits[len(groups[0]):]; rest != ""; rest = rest[3:] {
		groups = append(groups, rest[:3])
	}
	return groups
}

// rawTerm returns the visible text of a term.
func rawTerm(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool {
		return !text.IsWord(r) && !text.IsUnspaced(r) && !strings.ContainsRune("$€£¥", r)
	})
	for _, possessive := range []string{"'s", "’s", "'S", "’S"} {
		s = strings.TrimSuffix(s, possessive)
	}
	return s
}

// match returns the term in FTS5's language. Words and phrases match by their stems; hasExactly checks
// what stands in quotes afterwards. A name like getUserName also matches its words, one after the other.
func (t term) match() string {
	own := t.matchStems(t.norm.Stems)
	switch {
	case t.symbol:
		own = "inflected : " + quote(t.norm.Stems)
	case t.prefix && (t.isName() || t.norm.Count == 1): // also of the words that have another stem
		own = "{stems inflected} : " + quote(strings.Fields(t.norm.Text)[0]) + " *"
	case t.prefix:
		own = "stems : " + quote(t.norm.Text) + " *"
	}
	if len(t.or) == 0 {
		return own
	}
	return "(" + own + " OR " + strings.Join(t.or, " OR ") + ")"
}

func (t term) matchStems(stems string) string {
	if first, parts, several := strings.Cut(stems, " "); t.word && several && t.isName() {
		return "(stems : " + quote(first) + " OR stems : " + quote(parts) + ")"
	}
	return "stems : " + quote(stems)
}

func (t term) isName() bool { return isOneWord(t.raw) && text.IdentifierParts(t.raw) != nil }

// addLanguages lets the term match texts in other languages, which the index has.
func (t *term) addLanguages(languages []text.Language) {
	if t.prefix || t.symbol {
		return
	}
	t.languages, t.stemsIn = languages, nil
	for _, l := range languages {
		stems := text.Tokenize(t.raw, l, false).Stems
		t.stemsIn = append(t.stemsIn, stems)
		if stems != t.norm.Stems {
			t.or = append(t.or, t.matchStems(stems))
		}
	}
}

func isOneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !text.IsWord(r) })
}

// stops reports whether the term only says how a question is put.
func (t term) stops() bool { return t.word && text.IsStopWord(strings.ToLower(t.norm.Text)) }

// within reports whether a text has the words of a quoted term as written, in any case.
func (t term) within(s string) bool {
	return strings.Contains(" "+text.Folded(text.Tokenize(s, text.English, true).Text)+" ",
		" "+text.Folded(t.norm.Text)+" ")
}

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
	tagOrigin  = 'g'
	tagSource  = 'o'
	tagKey     = 'k'
	tagProject = 'p' // the folder, and its last name
	tagTool    = 't'
	tagOwner   = 'w'
)

// tagMark begins every tag. It is a private-use character, which FTS5 treats as part of a word, and which text.Tokenize
// removes from text.
const tagMark = '\uE000'

// tag returns the token of a fact. It hashes the value, which FTS5 would split.
func tag(kind rune, value string) string {
	h := fnv.New64a()
	h.Write([]byte(value))
	return string([]rune{tagMark, kind}) + strconv.FormatUint(h.Sum64(), 36)
}

// match returns the filters in FTS5's language, each followed by AND. shared are more sessions that
// match beside the session of the filter.
func (f filters) match(shared []string, languages []text.Language) string {
	var b strings.Builder
	if len(shared) > 0 {
		b.WriteString(anyTag(tagSession, append([]string{f.session}, shared...)) + " AND ")
		f.session = ""
	}
	for _, e := range f.expressions(languages) {
		b.WriteString(e + " AND ")
	}
	return b.String()
}

// expressions returns the filters in FTS5's language.
func (f filters) expressions(languages []text.Language) (all []string) {
	for _, fact := range []struct {
		kind  rune
		value string
	}{
		{tagSession, f.session},
		{tagRole, f.role},
		{tagOrigin, f.origin},
		{tagSource, f.source},
		{tagKey, f.key},
		{tagProject, withoutSlash(f.project)},
		{tagTool, strings.ToLower(f.tool)},
		{tagOwner, f.owner},
	} {
		if fact.value != "" {
			all = append(all, anyTag(fact.kind, alternatives(fact.value)))
		}
	}
	if path, ok := (field{text: f.path, quoted: true}).term(); ok {
		path.addLanguages(languages)
		all = append(all, path.match())
	}
	return all
}

// withoutSlash removes the last slash of a folder, which shells complete.
func withoutSlash(folder string) string {
	if len(folder) > 1 {
		return strings.TrimSuffix(folder, "/")
	}
	return folder
}

// anyTag returns what finds messages with one of some facts.
func anyTag(kind rune, values []string) string {
	tags := make([]string, len(values))
	for i, value := range values {
		tags[i] = "tags : " + quote(tag(kind, value))
	}
	if len(tags) == 1 {
		return tags[0]
	}
	return "(" + strings.Join(tags, " OR ") + ")"
}

// tagsOf returns the tags of a message. Their facts never change.
func tagsOf(m *session.Message, s *session.Session) string {
	facts := map[string]bool{}
	add := func(kind rune, value string) {
		if value != "" {
			facts[tag(kind, value)] = true
		}
	}
	add(tagSession, string(m.SessionID))
	add(tagRole, string(m.Role))
	add(tagOrigin, string(m.Origin))
	add(tagSource, string(s.Source))
	add(tagKey, s.Key)
	add(tagOwner, s.Owner)
	add(tagProject, s.Project)
	add(tagProject, s.Project[strings.LastIndexByte(s.Project, '/')+1:])
	for i := range m.Parts {
		add(tagTool, strings.ToLower(m.Parts[i].ToolName))
	}
	return strings.Join(slices.Sorted(maps.Keys(facts)), " ")
}

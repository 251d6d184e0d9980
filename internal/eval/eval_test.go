// Package eval_test measures what is left of a conversation after compactions: of the facts in its
// hidden part, how many the context still holds with truncation, with the digest, with the digest's
// index, and with recall when somebody asks. docs/performance.md explains the tables, which scripts/eval
// prints. It needs no model and no network.
package eval_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	"sessiond/internal/recall"
	"sessiond/internal/redact"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/testkit"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
)

var (
	folder = flag.String("folder", "", "folder of transcripts to measure, in folders pi, codex, claude-code and opencode")
	lost   = flag.Bool("lost", false, "print the facts that are not in the context even with recall")
)

const (
	window      = 128_000 // of the model, in tokens: a summary may then have 2,000
	keptTokens  = 1500    // that a compaction leaves
	compactions = 5       // of each conversation
)

// After five compactions, in four languages, the digest holds every demand of a person and recall
// finds every fact.
func TestFactsSurviveCompactions(t *testing.T) {
	r := openRig(t)
	sum := tally{}
	for _, talk := range writtenTalks(t) {
		t.Run(talk.name, func(t *testing.T) {
			got := r.measure(t, talk)
			demands, all := got[place{compactions, kindConstraint}], got[place{compactions, sumClear}]
			if demands.asked == 0 || demands.found[digested] != demands.asked {
				t.Errorf("%d of %d demands are in the digest", demands.found[digested], demands.asked)
			}
			if all.found[recalled] != all.asked {
				t.Errorf("%d of %d facts are found", all.found[recalled], all.asked)
			}
			sum.add(got)
		})
	}
	sum.print("conversations that come with it")
}

func TestTranscripts(t *testing.T) {
	if *folder == "" {
		t.Skip("-folder names no folder")
	}
	r := openRig(t)
	sum := tally{}
	talks := r.importTalks(t, *folder, leastTalk)
	for _, talk := range talks {
		sum.add(r.measure(t, talk))
	}
	sum.print(fmt.Sprintf("%d transcripts", len(talks)))
}

// rig is the product without its daemon.
type rig struct {
	store    *store.Store
	index    *search.Index
	contexts *contextmgr.Manager
}

func openRig(t *testing.T) *rig {
	dir, reference := t.TempDir(), tokens.Reference()
	s := testkit.Must(store.Open(t.Context(), filepath.Join(dir, "sessions.db"),
		store.Options{Measure: reference.Measure, Touched: touched.Files}))(t)
	t.Cleanup(func() { _ = s.Close() })
	index := testkit.Must(search.Open(t.Context(), filepath.Join(dir, "search.db"), s))(t)
	t.Cleanup(func() { _ = index.Close() })
	return &rig{s, index, contextmgr.New(s, contextmgr.Config{
		Digest:    digest.NewExtractive(reference.Text),
		Models:    func(id string) (session.ModelInfo, bool) { return session.ModelInfo{ID: id, Window: window}, true },
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Dialects:  dialect.Providers{},
		Reference: string(reference.Family()), Recall: recall.Lookup{Index: index, Store: s},
		Mask: func(text string) string { masked, _ := redact.Mask(text); return masked },
	})}
}

// measure appends a conversation in as many pieces as it is compacted, and asks after the first, the
// second and the last compaction for what was said until then.
func (r *rig) measure(t *testing.T, talk talk) tally {
	ctx, out := t.Context(), tally{}
	id := testkit.Must(r.store.CreateSession(ctx, store.NewSession{Model: "m", Directory: talk.directory}))(t).ID
	fifth := len(talk.messages) / compactions
	facts := talk.labelled
	if facts == nil {
		facts = sampleFacts(talk.messages, fifth)
	}
	keep, none := int64(keptTokens), int64(0)
	var head *session.MessageRef
	told := 0
	for n := 1; n <= compactions; n++ {
		upto := len(talk.messages) * n / compactions
		head = testkit.Must(r.store.Append(ctx, store.Append{
			Session: id, Messages: talk.messages[told:upto],
			Parent: head,
		}))(t).Head
		told = upto
		_, _, err := r.contexts.Compact(ctx, id, contextmgr.CompactInput{
			KeepTokens: &keep, Strategy: session.StrategySummarize,
			Budget: contextmgr.Budget{CloseCalls: true, Settings: contextmgr.Settings{KeepRecentMessages: &none}},
		})
		testkit.Check(t, err)
		testkit.Must(r.index.CatchUp(ctx))(t)
		if n > 2 && n < compactions {
			continue
		}
		for _, f := range facts {
			for _, question := range []string{f.asked, f.otherwise} {
				if f.told >= told || question == "" {
					continue
				}
				got := r.ask(t, id, head, &f, question)
				for _, row := range f.rows(question, fifth) {
					out.count(place{n, row}, got)
				}
				if *lost && !got[recalled] {
					t.Logf("lost after %d: %s %q, asked %q, unclear: %v", n, f.kind, f.text, question, f.unclear)
				}
			}
		}
	}
	return out
}

// ask appends a question on a branch of its own and looks for the fact in the context.
func (r *rig) ask(t *testing.T, id session.ID, head *session.MessageRef, f *fact, question string) (got found) {
	asked := newMessage(session.User, session.Person, session.TextPart(strings.TrimRight(question, "?？")+"?"))
	testkit.Must(r.store.Append(t.Context(),
		store.Append{Session: id, Parent: head, Messages: []session.Message{asked}}))(t)
	v := testkit.Must(r.contexts.Assemble(t.Context(), id, contextmgr.Budget{CloseCalls: true}))(t)
	summary := slices.IndexFunc(v.Provenance, func(p contextmgr.Provenance) bool {
		return p.Kind == contextmgr.ItemSummary
	})
	if summary >= 0 {
		summary = v.Provenance[summary].Message
	}
	last := len(v.Messages) - 1
	for i := range v.Messages {
		m := &v.Messages[i]
		switch i {
		case summary:
			digest, index, _ := strings.Cut(m.Text(), "## Index")
			got[digested], got[indexed] = f.in(digest), f.in(index)
		case last: // the question itself, then what was recalled for it
			got[recalled] = slices.ContainsFunc(m.Parts[1:], func(p session.Part) bool { return f.in(p.Text) })
		default:
			got[truncated] = got[truncated] || f.in(m.Text()) || slices.ContainsFunc(m.Parts, func(p session.Part) bool {
				return f.in(p.Arguments)
			})
		}
	}
	for way := digested; way <= recalled; way++ {
		got[way] = got[way] || got[way-1]
	}
	return got
}

// Ways to make room that are compared. Each holds what the one before holds.
const (
	truncated = iota
	digested
	indexed
	recalled
	ways
)

// found says which ways keep a fact in the context.
type found [ways]bool

// place is a row of a table.
type place struct {
	after int // compactions
	kind  string
}

type cell struct {
	asked int
	found [ways]int
}

// tally counts facts.
type tally map[place]cell

func (t tally) count(p place, got found) {
	c := t[p]
	c.asked++
	for way, yes := range got {
		if yes {
			c.found[way]++
		}
	}
	t[p] = c
}

func (t tally) add(o tally) {
	for p, from := range o {
		to := t[p]
		to.asked += from.asked
		for way, n := range from.found {
			to.found[way] += n
		}
		t[p] = to
	}
}

func (t tally) print(name string) {
	fmt.Printf("\n%s\n\n| facts | after | asked | truncation | digest | digest + index | with recall |\n"+
		"| --- | ---:| ---:| ---:| ---:| ---:| ---:|\n", name)
	for _, kind := range append(kinds(), sumClear, sumEvery, sumOtherwise) {
		for after := 1; after <= compactions; after++ {
			c, ok := t[place{after, kind}]
			if !ok {
				continue
			}
			fmt.Printf("| %s | %d | %d |", kind, after, c.asked)
			for _, n := range c.found {
				fmt.Printf(" %.1f %% |", 100*float64(n)/float64(c.asked))
			}
			fmt.Println()
		}
	}
}

// talk is a conversation to compact.
type talk struct {
	name      string
	directory string
	messages  []session.Message
	labelled  []fact // by hand; nil: sampled by rule
}

// leastTalk is the number of messages of a transcript that can be compacted five times.
const leastTalk = 40

// importTalks returns the conversations of a folder of transcripts that have at least so many messages.
func (r *rig) importTalks(t *testing.T, folder string, least int) (talks []talk) {
	none := func(string) string { return "" }
	for name, source := range map[string]history.Source{
		"pi": pi.New(none), "codex": codex.New(none, time.Now),
		"claude-code": claudecode.New(none, time.Now), "opencode": opencode.New(none, time.Now),
	} {
		root := filepath.Join(folder, name)
		if _, err := os.Stat(root); err == nil {
			importer := history.Importer{Store: r.store}
			testkit.Must(importer.Run(t.Context(), source, []string{root}))(t)
		}
	}
	all, _, err := r.store.Sessions(t.Context(), store.Filter{}, store.Page{Limit: 1000})
	testkit.Check(t, err)
	for _, s := range all {
		if s.HeadID == nil {
			continue
		}
		talk := talk{name: string(s.Source) + " " + s.Title, directory: s.Directory}
		for _, m := range testkit.Must(r.store.Path(t.Context(), *s.HeadID, 0))(t) {
			if m.Kind != session.KindMessage || !m.InContext || m.Role == session.System {
				continue
			}
			plain := newMessage(m.Role, m.Origin)
			plain.Finish = m.Finish
			for _, p := range m.Parts {
				if p.Kind == session.PartText || p.Kind == session.PartToolCall || p.Kind == session.PartToolResult {
					plain.Parts = append(plain.Parts, session.Part{
						Kind: p.Kind, Text: p.Content(), ToolName: p.ToolName,
						CallID: p.CallID, Arguments: p.Arguments, IsError: p.IsError,
					})
				}
			}
			if len(plain.Parts) > 0 {
				talk.messages = append(talk.messages, plain)
			}
		}
		if len(talk.messages) >= least {
			talks = append(talks, talk)
		}
	}
	return talks
}

func newMessage(role session.Role, origin session.Origin, parts ...session.Part) session.Message {
	return session.Message{
		Kind: session.KindMessage, Role: role, Origin: origin, InContext: true, Display: true,
		Parts: parts,
	}
}

// writtenTalks returns the conversations in the folder talks. A line of their files is
//
//	P, A or T TEXT                                said by a person, the model, a tool
//	? KIND | TEXT | QUESTION [| IN OTHER WORDS]   a label of a fact that was said before it
//	~ TEXT | ANSWER                               a template of small talk: # is its number, {a|b} a choice
//	= N                                           N turns of small talk; the rest of them comes at the end
//	-- COMMENT
func writtenTalks(t *testing.T) (talks []talk) {
	for _, path := range testkit.Must(filepath.Glob("talks/*.txt"))(t) {
		talk, small := talk{name: filepath.Base(path)}, smallTalk{}
		for line := range strings.Lines(string(testkit.Must(os.ReadFile(path))(t))) {
			who, said, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch who {
			case "", "--":
			case "P", "A", "T":
				talk.messages = append(talk.messages, parseSaying(who, said, len(talk.messages))...)
			case "?":
				f := append(strings.Split(said, " | "), "")
				talk.labelled = append(talk.labelled, fact{
					kind: f[0], text: f[1], asked: f[2], otherwise: f[3],
					told: len(talk.messages) - 1,
				})
			case "~":
				small.templates = append(small.templates, said)
			case "=":
				talk.messages = append(talk.messages, small.next(testkit.Must(strconv.Atoi(said))(t))...)
			default:
				t.Fatalf("%s: %q", path, line)
			}
		}
		talk.messages = append(talk.messages, small.next(300-small.n)...)
		talks = append(talks, talk)
	}
	return talks
}

// parseSaying returns the messages of a line; what a tool says comes with its call.
func parseSaying(who, said string, n int) []session.Message {
	if who == "P" {
		return []session.Message{newMessage(session.User, session.Person, session.TextPart(said))}
	}
	reply := newMessage(session.Assistant, session.Model, session.TextPart(said))
	reply.Finish = session.FinishStop
	if who == "A" {
		return []session.Message{reply}
	}
	id := fmt.Sprintf("c%d", n)
	reply.Finish, reply.Parts = session.FinishToolCalls,
		[]session.Part{{Kind: session.PartToolCall, CallID: id, ToolName: "lookup", Arguments: "{}"}}
	return []session.Message{reply, newMessage(session.Tool, session.ByTool,
		session.Part{Kind: session.PartToolResult, CallID: id, ToolName: "lookup", Text: said})}
}

// smallTalk makes turns of no importance from templates.
type smallTalk struct {
	templates []string
	n         int // turns so far
}

func (s *smallTalk) next(n int) (msgs []session.Message) {
	for range n {
		ask, answer, _ := strings.Cut(s.templates[s.n%len(s.templates)], " | ")
		s.n++
		msgs = append(msgs, parseSaying("P", s.fill(ask), 0)...)
		msgs = append(msgs, parseSaying("A", s.fill(answer), 0)...)
	}
	return msgs
}

var choice = regexp.MustCompile(`\{[^}]*\}`)

// fill puts the turn's number and choices into a template.
func (s *smallTalk) fill(template string) string {
	k := 0
	text := choice.ReplaceAllStringFunc(template, func(words string) string {
		options := strings.Split(strings.Trim(words, "{}"), "|")
		k++
		return options[(s.n*(7+2*k)+s.n/5*k)%len(options)]
	})
	return strings.ReplaceAll(text, "#", strconv.Itoa(s.n))
}

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

// fact is a statement of the conversation, and the words that ask for it.
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

// add adds a fact once. Its question is up to six of the words around it.
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
		newMessage(session.User, session.Person,
			session.TextPart("Never restart the billing gateway without me. What is next?")),
		newMessage(session.Tool, session.ByTool,
			session.TextPart("12: return nothing 777\n13: return nothing 888\n14: return nothing 999\n"+
				"The gateway charges $129 for each merchant.")),
		newMessage(session.Assistant, session.Model, session.TextPart("We will use retryBudget for merchant calls.")),
	}
	var got []string
	for _, f := range sampleFacts(msgs, len(msgs)) {
		if !f.unclear {
			got = append(got, f.kind+" "+f.text)
		}
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{
		"constraints Never restart the billing gateway without me.",
		"decisions We will use retryBudget", "numbers $129",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among\n%s", want, all)
		}
	}
	if strings.Contains(all, "888") || strings.Contains(all, "next") {
		t.Errorf("got\n%s", all)
	}
}

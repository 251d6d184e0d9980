package eval_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// The worlds in testdata/memory were written by hand, by somebody who had not read how the digest and recall find
// things. Tune on the half "tune"; of the half "held" read only figures.

var (
	oneWindow = flag.Int64("window", 0, "measure memory with this window only, in tokens; 0: with four")
	measured  = flag.Bool("memory", false, "measure memory")
)

// TestMemory measures what is left of conversations of 200 turns, with four windows.
func TestMemory(t *testing.T) {
	if !*measured {
		t.Skip("scripts/eval memory measures it")
	}
	fmt.Println("\n" +
		"| half | window | compactions | own words | other words (person, model, " +
		"tool) | quoted though nothing fits | no recall | newest that fit | rules | decoys | last two results | context " +
		"tokens | recalled | of questions with none | turn p50/p95 | without recall |\n|" + strings.Repeat(" --- |", 16))
	for _, h := range []string{"tune", "held"} {
		for _, window := range []int64{8_000, 16_000, 32_000, 128_000} {
			if *half != "" && *half != h || *oneWindow != 0 && *oneWindow != window {
				continue
			}
			m := openRig(t).remember(t, h, window, 200)
			fmt.Printf("| %s | %d | %d | %v | %v | %d/%d | %v | %v | %v | %v | %v | %d | %d | %d/%d | %s | %s |\n", h, window,
				m.compactions,
				m.own, m.other, m.unfitting, m.other[""][1], m.otherUnrecalled, m.otherNewest, m.rules, m.decoys, m.results,
				m.contexts/int64(len(m.with)), m.recalled/int64(len(m.with)), m.unrecalled, len(m.with), percentiles(m.with),
				percentiles(m.without))
		}
	}
}

// After a few compactions, questions in a fact's own words find it, and the digest holds rules and few sentences that
// only sound like them. scripts/eval memory measures the rest.
func TestMemoryOfShortConversation(t *testing.T) {
	effort.NotShort(t, "it holds a conversation of 100 turns")
	m := openRig(t).remember(t, "tune", 8_000, 100)
	t.Logf("%d compactions: %v in own words, %v in other words, rules %v, decoys %v", m.compactions, m.own, m.other,
		m.rules, m.decoys)
	if m.own[""][0] < 36 || m.other[""][0] < 20 || m.rules[""][0] < 90 || m.decoys[""][0] > 20 || m.compactions < 10 {
		t.Error("less is left than of 200 turns when this test was written: 32/40 in other words, rules 120/120, " +
			"decoys 10/130")
	}
}

// No saying answers for another one, no filler and no question holds what an answer needs, and each half has its part.
func TestWorldsAreFair(t *testing.T) {
	for _, half := range []string{"tune", "held"} {
		w, fill := readWorlds(t, half)
		theirs := slices.Concat(fill.Words, fill.Verbs, fill.Tails, fill.Asks, fill.Prose, fill.Code, fill.Logs, fill.Calls)
		all := slices.Concat(w.Facts, w.Rules, w.Decoys)
		for i := range all {
			s := &all[i]
			if len(s.Needs) == 0 || !s.in(strings.Join(s.Text, "\n")) || s.in(s.Own) || s.in(s.Other) ||
				slices.ContainsFunc(theirs, s.in) {
				t.Errorf("%s: its text lacks %q, or a question or filler has it", s.ID, s.Needs)
			}
			for k := range all {
				if k != i && s.in(strings.Join(all[k].Text, "\n")+" "+all[k].Own+" "+all[k].Other) {
					t.Errorf("%s answers %s", all[k].ID, s.ID)
				}
			}
		}
		if len(w.Facts) != 40 || len(w.Rules) < 12 || len(w.Decoys) < 7 {
			t.Errorf("%s: %d facts, %d rules, %d decoys", half, len(w.Facts), len(w.Rules), len(w.Decoys))
		}
	}
}

// A fact counts only in one line, and only if the line tells who said it.
func TestFactCountsWithItsSpeaker(t *testing.T) {
	s := planted{Speaker: "tool", Needs: []string{"218", "door locks"}}
	for text, want := range map[string]bool{
		"- tool: “218 door locks”":            true,
		"- 218 door locks":                    false,
		"- model: 218 door locks":             false,
		"- tool: “218”\n- tool: “door locks”": false,
		"- tool: “1218 door locks”":           false,
		"## Index\n- 218 · door locks":        false,
	} {
		if got := holds(summaryLines(text), &s); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	recalled := []session.Message{newMessage(session.User, session.Person, session.TextPart("What?"),
		session.TextPart("<recalled_messages>\n"+
			"[a.1 user] door locks\n[a.2 tool] 218 of the door locks\n</recalled_messages>"))}
	if !holds(linesOf(recalled, -1, "What?"), &s) {
		t.Error("a quoted tool does not count")
	}
	s.Speaker = "person"
	if holds(linesOf(recalled, -1, "What?"), &s) {
		t.Error("a quoted tool counts for a person")
	}
}

func percentiles(d []time.Duration) string {
	slices.Sort(d)
	return fmt.Sprintf("%.1f/%.1f ms", d[len(d)/2].Seconds()*1000, d[len(d)*95/100].Seconds()*1000)
}

// TestStandingRulesAreListed lists the standing rules of transcripts, for a reader to judge.
func TestStandingRulesAreListed(t *testing.T) {
	if *folder == "" {
		t.Skip("scripts/eval memory FOLDER lists them")
	}
	r, keep, none, sum, digests := openRig(t), int64(keptTokens), int64(0), 0, 0
	talks := r.importTalks(t, *folder, 1)
	for _, talk := range talks {
		id := testkit.Must(r.store.CreateSession(t.Context(), store.NewSession{Model: "m", Directory: talk.directory}))(t).ID
		testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: talk.messages}))(t)
		c, _, err := r.contexts.Compact(t.Context(), id, contextmgr.CompactInput{
			KeepTokens: &keep,
			Strategy:   session.StrategySummarize, Budget: contextmgr.Budget{
				CloseCalls: true, Settings: contextmgr.Settings{KeepRecentMessages: &none},
			},
		})
		testkit.Check(t, err)
		if c.Summary != "" {
			digests++
		}
		for _, rule := range rulesSectionOf(c.Summary) {
			sum++
			fmt.Printf("%s | %s\n", firstRunes(trimmed(talk.name), 60), strings.TrimPrefix(rule, "- "))
		}
	}
	fmt.Printf("%d rules in %d digests of %d conversations\n", sum, digests, len(talks))
}

// planted is a statement that is planted in a conversation.
type planted struct {
	ID      string   `json:"id"`
	Half    string   `json:"half"`    // tune or held
	Speaker string   `json:"speaker"` // person, model or tool
	Call    string   `json:"call"`    // command that a tool answers
	Text    []string `json:"text"`    // lines
	Own     string   `json:"own"`     // question in words of the text
	Other   string   `json:"other"`   // the same question in other words
	Needs   []string `json:"needs"`   // strings that an answer needs, together
}

// world is a job that a person and an agent work on.
type world struct {
	Facts  []planted `json:"facts"`
	Rules  []planted `json:"rules"`
	Decoys []planted `json:"decoys"` // that sound like rules
}

// otherWork is what the rest of a conversation is made of. {w}, {v}, {x} are any word, verb, tail; {n} is any number.
type otherWork struct {
	Unrelated                                           []string // questions
	Words, Verbs, Tails, Asks, Prose, Code, Logs, Calls []string

	random *rand.Rand
}

// readWorlds returns the facts, rules and decoys of one half of all worlds, and the filler.
func readWorlds(t *testing.T, half string) (w world, fill otherWork) {
	for _, path := range testkit.Must(filepath.Glob("testdata/memory/*.json"))(t) {
		raw, one := testkit.Must(os.ReadFile(path))(t), world{}
		switch filepath.Base(path) {
		case "filler.json", "filler-" + half + ".json":
			var more otherWork
			testkit.Check(t, json.Unmarshal(raw, &more))
			fill.add(&more)
			continue
		case "filler-tune.json", "filler-held.json":
			continue
		}
		testkit.Check(t, json.Unmarshal(raw, &one))
		other := func(s planted) bool { return s.Half != half }
		w.Facts = append(w.Facts, slices.DeleteFunc(one.Facts, other)...)
		w.Rules = append(w.Rules, slices.DeleteFunc(one.Rules, other)...)
		w.Decoys = append(w.Decoys, slices.DeleteFunc(one.Decoys, other)...)
	}
	fill.random = rand.New(rand.NewPCG(7, uint64(half[0])))
	return w, fill
}

// add adds the filler of another file.
func (f *otherWork) add(o *otherWork) {
	f.Unrelated, f.Words, f.Verbs, f.Tails = append(f.Unrelated, o.Unrelated...), append(f.Words, o.Words...),
		append(f.Verbs, o.Verbs...), append(f.Tails, o.Tails...)
	f.Asks, f.Prose, f.Code, f.Logs = append(f.Asks, o.Asks...), append(f.Prose, o.Prose...), append(f.Code, o.Code...),
		append(f.Logs, o.Logs...)
	f.Calls = append(f.Calls, o.Calls...)
}

// in reports whether a text holds all that an answer needs, as words and numbers of their own.
func (s *planted) in(text string) bool {
	return !slices.ContainsFunc(s.Needs, func(need string) bool {
		return !regexp.MustCompile(`(?i)(^|\W)` + regexp.QuoteMeta(need) + `(\W|$)`).MatchString(text)
	})
}

func (f *otherWork) any(from []string) string { return from[f.random.IntN(len(from))] }

var blank = regexp.MustCompile(`\{[wvxn]\}`)

// line returns a line of filler. Its numbers have three digits and are in no saying.
func (f *otherWork) line(from []string) string {
	return blank.ReplaceAllStringFunc(f.any(from), func(b string) string {
		switch b {
		case "{n}":
			return strconv.Itoa(301 + f.random.IntN(690))
		case "{v}":
			return f.any(f.Verbs)
		case "{x}":
			return f.line(f.Tails)
		}
		return f.any(f.Words)
	})
}

func (f *otherWork) lines(from []string, n int, separator string) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = f.line(from)
	}
	return strings.Join(lines, separator)
}

// turn returns the messages of a turn: a request, one or two calls with prose, code or logs as results, a reply. One of
// them is the saying, if there is one; a person's stands alone, before or behind a request.
func (f *otherWork) turn(n int, s *planted) []session.Message {
	ask, reply, calls := f.line(f.Asks), f.lines(f.Prose, 2+f.random.IntN(4), " "), 1+f.random.IntN(2)
	if s != nil {
		said := strings.Join(s.Text, "\n")
		switch s.Speaker {
		case "model":
			reply = said
		case "person":
			ask = []string{said, said + " " + ask, ask + "\n\n" + said}[n%3]
		}
	}
	msgs := []session.Message{newMessage(session.User, session.Person, session.TextPart(ask))}
	for i := range calls {
		command, result := f.line(f.Calls), f.lines([][]string{f.Prose, f.Code, f.Logs}[(n+i)%3], 15+f.random.IntN(35), "\n")
		if s != nil && s.Speaker == "tool" && i == 0 {
			command, result = s.Call, strings.Join(s.Text, "\n")
		}
		id := fmt.Sprintf("c%d-%d", n, i)
		arguments, _ := json.Marshal(map[string]string{"command": command})
		call := newMessage(session.Assistant, session.Model,
			session.Part{Kind: session.PartToolCall, ToolName: "bash", CallID: id, Arguments: string(arguments)})
		call.Finish = session.FinishToolCalls
		msgs = append(msgs, call, newMessage(session.Tool, session.ByTool,
			session.Part{Kind: session.PartToolResult, ToolName: "bash", CallID: id, Text: result}))
	}
	end := newMessage(session.Assistant, session.Model, session.TextPart(reply))
	end.Finish = session.FinishStop
	return append(msgs, end)
}

// converse holds a conversation with all sayings in its first 70 %, in an order of chance, and asks the questions,
// evenly spread, in the rest of it: the digest and the room for recall are new at some of them and old at others.
func (r *rig) converse(t *testing.T, w *world, f *otherWork, window int64, turns int,
	questions []func(session.ID),
) session.ID {
	said := slices.Concat(w.Facts, w.Rules, w.Decoys)
	f.random.Shuffle(len(said), func(i, j int) { said[i], said[j] = said[j], said[i] })
	at, all, rest := map[int]*planted{}, turns*7/10, turns-turns*7/10
	for i := range said {
		at[i*all/len(said)] = &said[i]
	}
	if len(at) != len(said) {
		t.Fatalf("%d turns are too few for %d sayings", turns, len(said))
	}
	id := testkit.Must(r.store.CreateSession(t.Context(), store.NewSession{Model: "m", Window: &window}))(t).ID
	for n := range turns {
		msgs := f.turn(n, at[n])
		for i, part := range [][]session.Message{msgs[:1], msgs[1 : len(msgs)-1], msgs[len(msgs)-1:]} {
			testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: part}))(t)
			testkit.Must(r.index.CatchUp(t.Context()))(t)
			if i < 2 { // the model is called for the request and with the results
				r.contextOf(t, id, nil)
			}
		}
		for i, ask := range questions {
			if n == all+i*rest/len(questions) {
				ask(id)
			}
		}
	}
	return id
}

// contextOf takes the context of the next call.
func (r *rig) contextOf(t *testing.T, id session.ID, recallTokens *int64) contextmgr.View {
	return testkit.Must(r.contexts.Turn(t.Context(), id, contextmgr.TurnInput{Budget: contextmgr.Budget{
		CloseCalls: true, Settings: contextmgr.Settings{RecallTokens: recallTokens},
	}}))(t)
}

// spokenLine is a message, a quoted message or a line of a summary, with its speaker.
type spokenLine struct {
	speaker string // person, model, tool; "": it does not tell
	section string // of a summary
	text    string
}

// holds reports whether one line holds what an answer needs and tells who said it.
func holds(lines []spokenLine, s *planted) bool {
	return slices.ContainsFunc(lines, func(l spokenLine) bool { return l.speaker == s.Speaker && s.in(l.text) })
}

var quoted = regexp.MustCompile(`^\[\S+ (user|assistant|tool)\] `)

// linesOf divides messages into lines, without the question itself. summary is the index of the summary, -1: none.
func linesOf(msgs []session.Message, summary int, question string) (lines []spokenLine) {
	speakers := map[string]string{"user": "person", "assistant": "model", "tool": "tool"}
	for i := range msgs {
		for _, p := range msgs[i].Parts {
			text := p.Content() + p.Arguments
			switch {
			case i == len(msgs)-1 && text == question:
			case i == summary:
				lines = append(lines, summaryLines(text)...)
			case msgs[i].Role == session.User && strings.HasPrefix(text, "<recalled_messages>"):
				lines = append(lines, spokenLine{})
				for line := range strings.Lines(text) {
					if by := quoted.FindStringSubmatch(line); by != nil {
						lines = append(lines, spokenLine{speaker: speakers[by[1]]})
					}
					lines[len(lines)-1].text += line
				}
			default:
				lines = append(lines, spokenLine{speaker: speakers[string(msgs[i].Role)], text: text})
			}
		}
	}
	return lines
}

// summaryLines returns the lines of a summary. One that does not name the model or a tool is a person's; the index
// does not tell who spoke.
func summaryLines(text string) (lines []spokenLine) {
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "#") {
			section = strings.TrimLeft(line, "# ")
		}
		said, ok := strings.CutPrefix(line, "- ")
		speaker, _, _ := strings.Cut(said, ": ")
		switch {
		case !ok:
			continue
		case section == "Index":
			speaker = ""
		case speaker != "model" && speaker != "tool":
			speaker = "person"
		}
		lines = append(lines, spokenLine{speaker, section, said})
	}
	return lines
}

// newest returns the newest messages that fit into a window without its reserve: what a plain agent sends.
func (r *rig) newest(t *testing.T, id session.ID, room int64) []session.Message {
	path := testkit.Must(r.store.Path(t.Context(), *testkit.Must(r.store.Session(t.Context(), id))(t).HeadID, 0))(t)
	first := len(path)
	for first > 0 && room >= path[first-1].Tokens {
		first--
		room -= path[first].Tokens
	}
	return path[first:]
}

// newestResults returns the texts of the last n results of calls.
func (r *rig) newestResults(t *testing.T, id session.ID, n int) (texts []string) {
	path := testkit.Must(r.store.Path(t.Context(), *testkit.Must(r.store.Session(t.Context(), id))(t).HeadID, 0))(t)
	for i := len(path) - 1; i >= 0 && len(texts) < n; i-- {
		for _, p := range path[i].Results() {
			texts = append(texts, p.Content())
		}
	}
	return texts
}

// share counts what is found, by speaker.
type share map[string][2]int // found, asked

func (s share) count(speaker string, found bool) {
	for _, key := range slices.Compact([]string{"", speaker}) {
		n := s[key]
		n[1]++
		if found {
			n[0]++
		}
		s[key] = n
	}
}

// String returns found/asked: of all, and of the person, the model and tools.
func (s share) String() string {
	of := func(speaker string) string { return fmt.Sprintf("%d/%d", s[speaker][0], s[speaker][1]) }
	if len(s) < 4 {
		return of("")
	}
	return fmt.Sprintf("%s (%s, %s, %s)", of(""), of("person"), of("model"), of("tool"))
}

// remembered is what is left of a conversation at its end.
type remembered struct {
	own, other, otherUnrecalled, otherNewest, rules, decoys share
	results                                                 share // of calls, the newest two, whole
	compactions, unrecalled                                 int64 // number; of questions that recall nothing
	// of questions in other words that get quotations without the fact
	unfitting          int64
	contexts, recalled int64  // tokens, of all questions with recall
	room               int64  // tokens, of a window without its reserve
	block              string // recalled for the last question
	with, without      []time.Duration
}

// remember holds a conversation and asks for everything in it.
func (r *rig) remember(t *testing.T, half string, window int64, turns int) remembered {
	w, fill := readWorlds(t, half)
	out := remembered{
		own: share{}, other: share{}, otherUnrecalled: share{}, otherNewest: share{}, rules: share{},
		decoys: share{}, results: share{},
	}
	var questions []func(session.ID)
	none := int64(0)
	for i := range w.Facts {
		f := &w.Facts[i]
		questions = append(questions, func(id session.ID) {
			other := out.ask(t, r, id, f.Other, nil)
			if out.block != "" && !f.in(out.block) {
				out.unfitting++
				if *lost && half == "tune" {
					fmt.Printf("unfitting at %d: %s, asked %q, recalled %s\n", window, f.ID, f.Other, out.block)
				}
			}
			own := out.ask(t, r, id, f.Own, nil)
			out.own.count(f.Speaker, holds(own, f))
			if *lost && half == "tune" && !holds(own, f) {
				fmt.Printf("lost at %d: %s, %s: %q, asked %q, recalled %s\n", window, f.ID, f.Speaker, f.Text[0], f.Own, out.block)
			}
			out.other.count(f.Speaker, holds(other, f))
			out.otherUnrecalled.count(f.Speaker, holds(out.ask(t, r, id, f.Other, &none), f))
			out.otherNewest.count(f.Speaker, holds(linesOf(r.newest(t, id, out.room), -1, ""), f))
			if *lost && half == "tune" && !holds(other, f) {
				fmt.Printf("lost at %d: %s, %s: %q, asked %q\n", window, f.ID, f.Speaker, f.Text[0], f.Other)
			}
		})
	}
	for _, q := range fill.Unrelated {
		questions = append(questions, func(id session.ID) {
			lines := out.ask(t, r, id, q, nil)
			for _, result := range r.newestResults(t, id, 2) {
				out.results.count("", slices.ContainsFunc(lines, func(l spokenLine) bool {
					return l.speaker == "tool" && l.text == result
				}))
			}
			for i := range w.Rules {
				out.rules.count("", holds(lines, &w.Rules[i]))
				if *lost && half == "tune" && !holds(lines, &w.Rules[i]) {
					fmt.Printf("rule lost at %d: %s %q\n", window, w.Rules[i].ID, w.Rules[i].Text[0])
				}
			}
			for i := range w.Decoys {
				out.decoys.count("", slices.ContainsFunc(lines, func(l spokenLine) bool {
					return l.section == "Standing rules" && w.Decoys[i].in(l.text)
				}))
			}
		})
	}
	fill.random.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	id := r.converse(t, &w, &fill, window, turns, questions)
	out.compactions = testkit.Must(r.store.Session(t.Context(), id))(t).CompactionCount
	return out
}

// ask asks on a fork of its own, so that no question helps another one, and returns the lines of the context.
func (m *remembered) ask(t *testing.T, r *rig, id session.ID, text string, recallTokens *int64) []spokenLine {
	fork := testkit.Must(r.store.Fork(t.Context(), store.Fork{Session: id}))(t).ID
	question := newMessage(session.User, session.Person, session.TextPart(text))
	testkit.Must(r.store.Append(t.Context(), store.Append{Session: fork, Messages: []session.Message{question}}))(t)
	start := time.Now()
	v := r.contextOf(t, fork, recallTokens)
	took, summary, recalled := time.Since(start), -1, int64(0)
	for _, p := range v.Provenance {
		switch {
		case p.Kind == contextmgr.ItemSummary:
			summary = p.Message
		case p.Kind == contextmgr.ItemRecall && p.Message == len(v.Messages)-1:
			recalled += p.Tokens
		}
	}
	m.block = ""
	if last := v.Messages[len(v.Messages)-1]; recalled > 0 {
		m.block = last.Parts[len(last.Parts)-1].Text
	}
	m.room = v.Tokens.Window - v.Tokens.Reserve
	if recallTokens != nil {
		m.without = append(m.without, took)
		return linesOf(v.Messages, summary, text)
	}
	m.with, m.contexts, m.recalled = append(m.with, took), m.contexts+v.Tokens.Total, m.recalled+recalled
	if recalled == 0 {
		m.unrecalled++
	}
	return linesOf(v.Messages, summary, text)
}

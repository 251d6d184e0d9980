package contextmgr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/words"

	"github.com/google/go-cmp/cmp"
)

func TestInjectConformance(t *testing.T) {
	for _, c := range conformance(t, "codex.reinject_context") {
		t.Run(c.ID, func(t *testing.T) {
			in := into[struct {
				Mode    string
				Initial []string `json:"initial_context"`
			}](t, c.Given.Settings)
			var history, initial []Item
			for _, e := range c.Given.Entries {
				item := Item{Kind: ItemReplaced, Message: session.Message{Role: session.Role(e.Role), Author: e.ID}}
				switch {
				case string(e.Summary) == "true":
					item.Kind = ItemSummary
				case e.Role == "user":
					item.Kind = ItemWords
				case e.Kind == "compaction_item":
					item.Message.Parts = []session.Part{{
						Kind:  session.PartData,
						Extra: session.JSON(`{"item":{"type":"compaction"}}`),
					}}
				}
				history = append(history, item)
			}
			for _, id := range in.Initial {
				initial = append(initial, Item{Kind: ItemInitial, Message: session.Message{Author: id}})
			}
			placed, next := insertInitial(history, initial, in.Mode == "before_last_user_message")
			names := func(items []Item) []any {
				var all []any
				for i := range items {
					all = append(all, items[i].Message.Author)
				}
				return all
			}
			got := map[string]any{"order": names(placed)}
			if len(next) > 0 {
				if diff := cmp.Diff(names(initial), names(next)); diff != "" {
					t.Errorf("the next turn does not get all of it:\n%s", diff)
				}
				got["reinject_on_next_turn"] = true
			}
			equal(t, got, c.Expect)
		})
	}
}

var cutMark = regexp.MustCompile(`…\d+ tokens truncated…`)

// TestRecentUserConformance copies the person's words of a hidden path, without text of programs and
// summaries.
func TestRecentUserConformance(t *testing.T) {
	for _, c := range conformance(t, "codex.keep_recent_user") {
		t.Run(c.ID, func(t *testing.T) {
			entries := into[struct {
				Entries []struct {
					ID, Role, Text, Unit string
					Times                int
					Summary, Context     bool
				}
				Settings struct {
					Budget int64 `json:"user_message_budget"`
				}
			}](t, c.given(t))
			r := &snapshot{}
			names, said := map[session.MessageRef]string{}, map[string]string{}
			for i, e := range entries.Entries {
				m := text(session.Role(e.Role), e.Text+strings.Repeat(e.Unit, e.Times))
				if e.Summary || e.Context {
					m.Origin = session.Program
				}
				m.RowID, m.ID = int64(i+1), session.MessageRef{Session: "20260101_001", Seq: int64(i + 1)}
				names[m.ID], said[e.ID] = e.ID, m.Text()
				r.Messages = append(r.Messages, m)
			}
			kept := r.newestWords(&Plan{Cut: Cut{len(r.Messages), -1}, Person: -1}, entries.Settings.Budget,
				&session.CompactionDetails{})
			want := into[struct {
				Kept  []map[string]any
				Order []string
			}](t, c.Expect)
			got, order := []map[string]any{}, []string{}
			for i := range kept {
				text := kept[i].Parts[0].Text
				one := map[string]any{
					"id": names[kept[i].ID], "truncated": text != said[names[kept[i].ID]],
					"tokens": float64(words.Tokens(text)),
				}
				if one["truncated"] == true {
					u := utf16.Encode([]rune(text)) // the cases count so
					one["text_bytes"], one["marker"] = float64(len(text)), cutMark.FindString(text)
					one["head"], one["tail"] = string(utf16.Decode(u[:12])), string(utf16.Decode(u[len(u)-12:]))
				}
				got = append(got, one)
			}
			testkit.Equal(t, want.Kept, got)
			overlay := session.Compaction{Summary: "s", Replacement: session.JSONOf(nonNil(kept))}
			draft := Assemble(Material{Overlay: &overlay, Words: true, Weigh: &scales{scale: 1, counter: runes{}}})
			for i := range draft.Items {
				switch item := &draft.Items[i]; item.Kind {
				case ItemSummary:
					order = append(order, "<summary>")
				case ItemWords:
					order = append(order, names[item.Sources[0]])
				}
			}
			if diff := cmp.Diff(want.Order, order); diff != "" {
				t.Errorf("order: want -, got +\n%s", diff)
			}
		})
	}
}

// kinds returns the kinds of a context's messages.
func kinds(v View) []string {
	var all []string
	for _, p := range v.Provenance {
		if p.Message >= 0 && (p.Kind != ItemMessage || len(all) == 0 || all[len(all)-1] != p.Kind) {
			all = append(all, p.Kind)
		}
	}
	return all
}

func codexBudget() Budget {
	name := presetCodex
	return Budget{Settings: Settings{Preset: &name}}
}

func TestPresetCodexPutsWordsBeforeTheSummary(t *testing.T) {
	r := newRig(t, 20000)
	initial := []session.Part{session.TextPart("rules of the house")}
	b := codexBudget()
	b.Initial = &initial
	r.append(text(session.User, "my first wish"))
	r.talk(80, 150)
	heartbeat := text(session.User, "a program's heartbeat")
	heartbeat.Origin = session.Program
	r.append(heartbeat, text(session.Assistant, "ok"), text(session.User, "the newest question"))
	v := r.turn(TurnInput{Budget: b})
	got := kinds(v)
	want := append(slices.Repeat([]string{ItemWords}, max(0, len(got)-3)), ItemSummary, ItemInitial, ItemMessage)
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 5 {
		t.Fatalf("want -, got +\n%s", diff)
	}
	wantHas(t, v, "Question 80", "the newest question", "rules of the house")
	wantLacks(t, v, "[user] text(a program's heartbeat)")
	if n := strings.Count(wire(v), "rules of the house"); n != 1 {
		t.Errorf("the initial blocks stand there %d times", n)
	}
	for i, p := range v.Provenance {
		if p.Kind == ItemWords && len(p.Sources) != 1 {
			t.Errorf("item %d: nothing says whose words these are: %+v", i, p)
		}
	}

	// Later contexts of this epoch only grow at their end.
	before := wire(v)
	r.append(text(session.Assistant, "an answer"), text(session.User, "and another"))
	if v = r.turn(TurnInput{Budget: b}); !strings.HasPrefix(wire(v), before) || v.Prefix.BrokenBy != "" {
		t.Errorf("broken by %q:\n%s", v.Prefix.BrokenBy, wire(v))
	}

	// The next compaction keeps the newest words of both.
	r.talk(25, 250)
	r.append(text(session.User, "last"))
	v = r.turn(TurnInput{Budget: b})
	wantHas(t, v, "and another", "Question 105", "last")
	if done := r.compactions(); len(done) != 2 {
		t.Fatalf("%d compactions", len(done))
	}
}

func TestPresetCodexPutsInitialBlocksBeforeTheLastWordsInMidTurn(t *testing.T) {
	r := newRig(t, 20000)
	initial := []session.Part{session.TextPart("rules of the house")}
	b := codexBudget()
	b.Initial = &initial
	r.append(text(session.User, "an earlier wish"), text(session.Assistant, "done"), text(session.User, "the task"))
	for i := range 40 {
		id := fmt.Sprintf("call_%d", i)
		r.append(calling(id), answering(id, filler(500)))
	}
	v := r.turn(TurnInput{Budget: b})
	if diff := cmp.Diff([]string{ItemWords, ItemInitial, ItemTurnStart, ItemSummary}, kinds(v)); diff != "" {
		t.Fatalf("want -, got +\n%s", diff)
	}
	r.append(calling("more"))
	r.append(answering("more", "result"))
	if w := r.turn(TurnInput{Budget: b}); !strings.HasPrefix(wire(w), wire(v)) {
		t.Errorf("broken by %q:\n%s", w.Prefix.BrokenBy, wire(w))
	}

	// A pin replaces the copy.
	first := testkit.Must(r.store.Message(r.ctx, session.MessageRef{Session: r.id, Seq: 1}))(t)
	testkit.Must(r.store.SetMark(r.ctx, r.id, first.ID, "pin", "", true))(t)
	if w := r.turn(TurnInput{Budget: b}); strings.Count(wire(w), "text(an earlier wish") != 1 ||
		kinds(w)[0] != ItemPinned {
		t.Errorf("%v:\n%s", kinds(w), wire(w))
	}
}

// However often a turn is compacted, the message that began it is shown once.
func TestPresetCodexCopiesEachMessageOnce(t *testing.T) {
	r := newRig(t, 20000)
	b := codexBudget()
	r.append(text(session.User, "an earlier wish"), text(session.Assistant, "done"), text(session.User, "the task"))
	for n := range 4 {
		for i := range 40 {
			id := fmt.Sprintf("call_%d_%d", n, i)
			r.append(calling(id), answering(id, filler(500)))
		}
		v := r.turn(TurnInput{Budget: b})
		if done := len(r.compactions()); done != n+1 {
			t.Fatalf("%d compactions", done)
		}
		for _, said := range []string{"text(the task", "text(an earlier wish"} {
			if times := strings.Count(wire(v), said); times != 1 {
				t.Errorf("compaction %d: %q stands there %d times: %v", n+1, said, times, kinds(v))
			}
		}
	}
}

// dense counts a token for each byte, four times Codex's count.
type dense struct{}

func (dense) Text(s string) int64 { return int64(len(s)) }

func (c dense) Measure(m *session.Message) {
	m.Tokens = 4
	for i := range m.Parts {
		m.Parts[i].Tokens = c.Text(m.Parts[i].Content() + m.Parts[i].Arguments)
		m.Tokens += m.Parts[i].Tokens
	}
}

func TestPresetCodexLimitsWordsByTheirWeightInASmallWindow(t *testing.T) {
	r := newRig(t, 8000, func(c *Config) {
		c.Models = func(id string) (session.ModelInfo, bool) {
			return session.ModelInfo{ID: id, Family: "dense", Window: 8000}, true
		}
		c.Counter = func(family string) Counter {
			if family == "dense" {
				return dense{}
			}
			return runes{}
		}
	})
	b := codexBudget()
	for i := range 20 {
		r.append(text(session.User, fmt.Sprintf("wish %d: %s", i, strings.Repeat("x", 800))), text(session.Assistant, "ok"))
	}
	r.append(text(session.User, "the newest question"))
	var sum int64
	v := r.turn(TurnInput{Budget: b})
	for _, p := range v.Provenance {
		if p.Kind == ItemWords {
			sum += p.Tokens
		}
	}
	if most := v.Tokens.Threshold * 3 / 10; sum > most || sum < most/2 {
		t.Errorf("words of %d tokens where %d have room", sum, most)
	}
	wantHas(t, v, "wish 19", "the newest question")

	// In an even smaller window they are cut like other parts.
	b.Window = 1600
	wantHas(t, r.read(b), "the newest question")
}

func TestPresetCodexKeepsPendingCalls(t *testing.T) {
	path := func(roles string) []Entry {
		var all []Entry
		for i, c := range roles {
			e := Entry{Kind: session.KindMessage, InContext: true, Tokens: 10}
			switch c {
			case 'u':
				e.Role, e.Person = session.User, true
			case 'p':
				e.Role = session.User
			case 'a':
				e.Role = session.Assistant
			case 'c':
				e.Role, e.Calls = session.Assistant, []string{fmt.Sprint(i)}
			case 'd': // two calls, one of them answered by the next message
				e.Role, e.Calls = session.Assistant, []string{fmt.Sprint(i), "x"}
			case 'r':
				e.Role, e.Results = session.Tool, []string{fmt.Sprint(i - 1)}
			case 't':
				e.Role, e.Reasoning = session.Assistant, true
			case 'm':
				e.Kind, e.InContext = session.KindMarker, false
			}
			all = append(all, e)
		}
		return all
	}
	for _, c := range []struct {
		name, path         string
		first, turn, shown int
	}{
		{"nothing", "", 0, -1, -1},
		{"a finished turn", "ua", 2, -1, 0},
		{"a question", "uau", 2, -1, -1},
		{"two questions and a marker", "uamumu", 3, -1, -1},
		{"a turn that goes on", "uaucr", 5, 2, -1},
		{"a call that waits", "uaucrc", 5, 2, -1},
		{"reasoning before it", "uautc", 3, 2, -1},
		{"one of two results", "uaudr", 3, 2, -1},
		{"a program's turn", "uapcr", 5, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planWords(path(c.path), 1000, PlanRoom{})
			if p.First != c.first || p.TurnStart != c.turn || p.Person != c.shown {
				t.Errorf("first %d, turn %d, person %d; want %+v", p.First, p.TurnStart, p.Person, c)
			}
		})
	}
}

func TestInitialBlocksAreReplacedAsAWhole(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(30, 250)
	for _, preset := range PresetNames() {
		parts := []session.Part{session.TextPart("rules of " + preset)}
		v := r.turn(TurnInput{Budget: Budget{
			Initial: &parts, System: ptr("system of " + preset),
			Settings: Settings{Preset: &preset},
		}})
		if strings.Count(wire(v), "rules of ") != 1 || strings.Count(wire(v), "system of ") != 1 {
			t.Errorf("%s:\n%.2000s", preset, wire(v))
		}
		wantHas(t, v, "rules of "+preset, "system of "+preset)
		r.append(text(session.Assistant, "ok"), text(session.User, "on"))
	}
	none := []session.Part{}
	if v := r.turn(TurnInput{Budget: Budget{Initial: &none}}); strings.Contains(wire(v), "rules of ") {
		t.Errorf("they are still there:\n%.2000s", wire(v))
	}
}

// The message that began a split turn is shown again: whole if the context fits with less of the rest, else cut in its
// middle. It does not change when the caller asks for longer replies.
func TestStartOfASplitTurnIsCutOnlyIfTheRestLeavesNoRoom(t *testing.T) {
	for _, size := range []int{4500, 14500} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r := newRig(t, 20000) // a threshold of 15,000
			task := text(session.User, "the task begins. "+filler(size)+" the task ends.")
			task.Parts = append(task.Parts, session.TextPart("a note beside it"), session.TextPart("and more. "+filler(2500)))
			r.append(task)
			for i := range 30 {
				id := fmt.Sprintf("call_%d", i)
				r.append(calling(id), answering(id, filler(300)))
			}
			v := r.turn(TurnInput{})
			i := slices.IndexFunc(v.Provenance, func(p Provenance) bool { return p.Kind == ItemTurnStart })
			if i < 0 {
				t.Fatalf("%v", kinds(v))
			}
			whole := size < 10000
			if weight := v.Provenance[i].Tokens; (weight > int64(size)+2500) != whole || weight < v.Tokens.Threshold/4 ||
				v.Tokens.Total > v.Tokens.Threshold {
				t.Errorf("it weighs %d tokens, the context %d of %d", weight, v.Tokens.Total, v.Tokens.Threshold)
			}
			wantHas(t, v, "the task begins", "the task ends.", "a note beside it", "and more.")
			if strings.Contains(wire(v), "characters left out") == whole || len(v.Losses) > 0 == whole {
				t.Errorf("losses: %q", v.Losses)
			}
			before := wire(v)
			r.append(calling("next"), answering("next", "ok"))
			if v = r.turn(TurnInput{Budget: Budget{MaxOutput: 5001}}); !strings.HasPrefix(wire(v), before) {
				t.Errorf("broken by %q", v.Prefix.BrokenBy)
			}
		})
	}
}

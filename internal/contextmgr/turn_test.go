package contextmgr

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestTurnSendsEverythingThatFits(t *testing.T) {
	r := newRig(t, 10000)
	r.append(text(session.System, "Stored system."))
	r.talk(2, 20)
	system := "The caller's system."
	v := r.turn(TurnInput{Budget: Budget{
		Dialect: "openai.chat", System: &system,
		Initial: &[]session.Part{session.TextPart("INITIAL")},
	}})
	if v.System != "Stored system.\n\nThe caller's system." {
		t.Errorf("system is %q", v.System)
	}
	if len(v.Messages) != 5 || v.Messages[0].Text() != "INITIAL" ||
		!strings.HasPrefix(v.Messages[1].Text(), "Question 1.") {
		t.Errorf("want the initial block and four messages:\n%s", wire(v))
	}
	if v.ID == "" || v.Compaction != nil || v.Tokens.Method != MethodEstimate || len(v.Provenance) != 6 {
		t.Errorf("view: %+v", v)
	}
	again := r.read(Budget{})
	if wire(again) != wire(v) || again.Dialect != "openai.chat" || again.ID != "" {
		t.Errorf("the context that is read differs from the turn's:\n%s", wire(again))
	}
	replaced := "Another."
	if v = r.turn(TurnInput{Budget: Budget{System: &replaced}}); v.System != "Stored system.\n\nAnother." ||
		v.Prefix.BrokenBy != "system" {
		t.Errorf("system %q, broken by %q", v.System, v.Prefix.BrokenBy)
	}
}

func TestSystemMessagesAfterMarkersLead(t *testing.T) {
	r := newRig(t, 10000)
	marker := session.Message{Kind: session.KindMarker, Origin: session.Program}
	r.append(marker, text(session.System, "one"), marker, text(session.System, "two"), text(session.User, "u"))
	v := r.turn(TurnInput{})
	if v.System != "one\n\ntwo" || len(v.Messages) != 1 {
		t.Errorf("system %q, %d messages", v.System, len(v.Messages))
	}
	r.talk(30, 150)
	if v = r.turn(TurnInput{}); v.System != "one\n\ntwo" || v.Compaction == nil || v.Prefix.BrokenBy != "epoch" {
		t.Errorf("behind an overlay: system %q, prefix %+v", v.System, v.Prefix)
	}
}

func TestTurnAboveTheThresholdCompactsAtOnce(t *testing.T) {
	r := newRig(t, 10000)
	r.append(text(session.System, "Be terse."))
	r.talk(30, 150)
	r.append(text(session.User, "The last question."))
	v := r.turn(TurnInput{})
	if v.Compaction == nil || v.Compaction.Status != session.StatusDone {
		t.Fatalf("compaction: %+v", v.Compaction)
	}
	wantHas(t, v, "<conversation_summary>", "The last question.", "Answer 30.", "[system] Be terse.")
	wantLacks(t, v, "Question 1. lorem ipl")
	if !strings.Contains(flat(&v.Messages[0]), "[user] text(<conversation_summary>") {
		t.Errorf("the summary is not in the first user-role message: %.100s", flat(&v.Messages[0]))
	}
	if c := r.compactions(); len(c) != 1 || c[0].TokensAfter != v.Tokens.Total || c[0].TokensBefore <= c[0].TokensAfter {
		t.Errorf("record: %+v, context %d", c, v.Tokens.Total)
	}
	if got := r.session().ContextTokens; got <= 0 || got > v.Tokens.Total {
		t.Errorf("the session says a context of %d tokens, the view %d", got, v.Tokens.Total)
	}
	// the next turn has room: no compaction
	r.talk(1, 20)
	if v = r.turn(TurnInput{}); len(r.compactions()) != 1 || v.Prefix.BrokenBy != "" || v.Prefix.StableTokens == 0 {
		t.Errorf("%d compactions, prefix %+v", len(r.compactions()), v.Prefix)
	}
}

func TestReadingWritesNothing(t *testing.T) {
	r := newRig(t, 10000)
	r.talk(30, 150)
	before := r.session()
	v := r.read(Budget{})
	if v.Compaction == nil || v.Compaction.Status != StatusEphemeral || v.Compaction.ID != "" {
		t.Errorf("compaction: %+v", v.Compaction)
	}
	if wire(v) != wire(r.read(Budget{})) {
		t.Error("two reads return different contexts")
	}
	if after := r.session(); after.Revision != before.Revision || len(r.compactions()) != 0 {
		t.Errorf("reading wrote: %d compactions, revision %d → %d", len(r.compactions()), before.Revision, after.Revision)
	}
	if last, _, err := r.store.LastContext(r.ctx, r.id); err != nil || last != nil {
		t.Errorf("reading recorded a context: %v %v", last, err)
	}
	if committed := r.turn(TurnInput{}); strings.ReplaceAll(wire(committed), "cmp_1", "ephemeral") != wire(v) {
		t.Error("the turn's context differs from the one that was read before")
	}
}

func TestPendingCallsAreNotAnswered(t *testing.T) {
	r := newRig(t, 10000)
	r.append(text(session.User, "go"), calling("a", "b"), answering("a", "done"))
	v := r.turn(TurnInput{})
	if v.Messages != nil || len(v.Pending) != 1 || v.Pending[0] != "b" || v.ID != "" {
		t.Fatalf("messages %d, pending %v, id %q", len(v.Messages), v.Pending, v.ID)
	}
	v = r.turn(TurnInput{Budget: Budget{CloseCalls: true}})
	wantHas(t, v, closedText)
	if len(v.Pending) != 0 || len(v.Adjustments) != 1 {
		t.Errorf("pending %v, adjustments %v", v.Pending, v.Adjustments)
	}
	// the call stays closed until its late result
	if again := r.read(Budget{}); wire(again) != wire(v) || again.Prefix.BrokenBy != "" {
		t.Errorf("prefix %+v:\n%s", again.Prefix, wire(again))
	}
	r.append(answering("b", "late"))
	v = r.turn(TurnInput{})
	wantHas(t, v, "(blate)")
	wantLacks(t, v, closedText)
	if v.Prefix.BrokenBy != "late_result" {
		t.Errorf("prefix %+v", v.Prefix)
	}
}

func TestVolatileTextIsFrozenWhereItWasSent(t *testing.T) {
	r := newRig(t, 10000)
	r.append(text(session.User, "one"))
	first := r.turn(TurnInput{Volatile: "It is Monday."})
	wantHas(t, first, "text(one) text(It is Monday.)")
	r.append(text(session.Assistant, "yes"), text(session.User, "two"))
	second := r.turn(TurnInput{Volatile: "It is Tuesday."})
	wantHas(t, second, "text(one) text(It is Monday.)", "text(two) text(It is Tuesday.)")
	if !strings.HasPrefix(wire(second), wire(first)) || second.Prefix.BrokenBy != "" {
		t.Errorf("the second context does not begin with the first:\n%s", wire(second))
	}
	r.append(text(session.Assistant, "no"), text(session.User, "three"))
	r.turn(TurnInput{})
	wantLacks(t, r.turn(TurnInput{Volatile: "It is late."}), "late")
	second = r.turn(TurnInput{})
	third := r.turn(TurnInput{Volatile: "It is Wednesday."})
	if wire(third) != wire(second) || len(third.Warnings) == 0 {
		t.Errorf("volatile text went into a message that was sent: %v\n%s", third.Warnings, wire(third))
	}
}

func TestOversizedPartIsSentAsHeadAndTail(t *testing.T) {
	r := newRig(t, 100000)
	r.append(text(session.User, "look"), calling("a"), answering("a", "HEAD"+filler(40000)+"TAIL"))
	v := r.turn(TurnInput{})
	wantHas(t, v, "HEAD", "TAIL)", "characters left out")
	if v.Tokens.Total > 26000 || len(v.Losses) != 1 {
		t.Errorf("%d tokens, losses %v", v.Tokens.Total, v.Losses)
	}
}

func TestMessageLargerThanTheWindowFits(t *testing.T) {
	r := newRig(t, 10000)
	m := text(session.User, "")
	for range 12 { // each part is within its limit, together they exceed the context's
		m.Parts = append(m.Parts, session.TextPart(filler(2000)))
	}
	r.append(m)
	v := r.turn(TurnInput{})
	if len(v.Messages) != 1 || v.Tokens.Total > 7500 {
		t.Errorf("%d messages, %d tokens", len(v.Messages), v.Tokens.Total)
	}
}

func TestErrorNamesItemsThatDoNotFit(t *testing.T) {
	r := newRig(t, 10000)
	r.talk(1, 20)
	system := filler(9000)
	_, err := r.mgr.Turn(r.ctx, r.id, TurnInput{Budget: Budget{System: &system}})
	wantCode(t, err, session.DoesNotFit, "system (9000 tokens)", "7500")
}

func TestFractionOffDisablesAutomaticCompaction(t *testing.T) {
	off := 0.0
	r := newRig(t, 10000, func(c *Config) { c.File.Fraction = &off })
	r.talk(30, 150)
	_, err := r.mgr.Turn(r.ctx, r.id, TurnInput{})
	wantCode(t, err, session.CompactionRequired, "automatic compaction is off")
	_, err = r.mgr.Assemble(r.ctx, r.id, Budget{})
	wantCode(t, err, session.CompactionRequired)
	_, _, err = r.mgr.Compact(r.ctx, r.id, CompactInput{Trigger: session.TriggerOverflow})
	wantCode(t, err, session.CompactionRequired)
	if c, _ := r.compact(CompactInput{}); c.Status != session.StatusDone {
		t.Errorf("manual compaction: %s %s", c.Status, c.Reason)
	}
	r.turn(TurnInput{})
}

func TestStrategyAskLeavesTheChoiceToTheCaller(t *testing.T) {
	ask := StrategyAsk
	half := 0.5
	r := newRig(t, 10000, func(c *Config) { c.File.Strategy, c.File.Fraction = &ask, &half })
	r.talk(18, 150)
	v := r.turn(TurnInput{})
	if len(v.Directives) != 1 || v.Directives[0].Type != "compaction_choice" || len(r.compactions()) != 0 {
		t.Errorf("directives %+v", v.Directives)
	}
	r.talk(18, 150)
	_, err := r.mgr.Turn(r.ctx, r.id, TurnInput{})
	wantCode(t, err, session.CompactionRequired)
	c, _ := r.compact(CompactInput{Strategy: session.StrategyTruncate})
	if c.Status != session.StatusDone || c.Summary != "" {
		t.Errorf("truncate: %+v", c)
	}
	r.turn(TurnInput{})
}

func TestSplitTurnShowsItsQuestionAgain(t *testing.T) {
	r := newRig(t, 10000)
	r.append(text(session.User, "The question of a long turn."))
	for i := range 100 {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26))
		r.append(calling(id), answering(id, filler(200)))
		v := r.turn(TurnInput{})
		wantHas(t, v, "The question of a long turn.")
	}
	if n := len(r.compactions()); n < 2 || n > 8 {
		t.Errorf("%d compactions in one turn", n)
	}
}

func TestContinueDirectiveInTheMiddleOfATask(t *testing.T) {
	r := newRig(t, 10000)
	r.talk(30, 150)
	r.append(text(session.User, "do"), calling("a"), answering("a", "done"))
	if v := r.turn(TurnInput{}); len(v.Directives) != 1 || v.Directives[0].Type != "continue" {
		t.Errorf("directives %+v", v.Directives)
	}
}

func TestPinnedMessagesAreShownAgain(t *testing.T) {
	r := newRig(t, 10000)
	pinned := r.append(text(session.User, "My name is Ada."), text(session.Assistant, "PINNED ANSWER"))
	r.talk(30, 150)
	for _, m := range pinned {
		testkit.Must(r.store.SetMark(r.ctx, r.id, m.ID, "pin", "", true))(t)
	}
	v := r.turn(TurnInput{})
	if flat(&v.Messages[0]) != "[user] text(My name is Ada.)" ||
		!strings.Contains(flat(&v.Messages[1]), `<pinned_message role="assistant">`) {
		t.Errorf("first messages: %.200s %.200s", flat(&v.Messages[0]), flat(&v.Messages[1]))
	}
}

func TestLoopGuardWaitsForGrowth(t *testing.T) {
	half := 0.5
	r := newRig(t, 10000, func(c *Config) { c.File.Fraction = &half })
	system := filler(4600) // fills most of the threshold and cannot be hidden
	r.talk(10, 60)
	r.turn(TurnInput{Budget: Budget{System: &system}})
	n := len(r.compactions())
	for range 3 { // 3 × 100 tokens are less than 5 % of the window
		r.talk(1, 40)
		r.turn(TurnInput{})
	}
	if got := len(r.compactions()); got > n+1 || n != 1 {
		t.Errorf("%d compactions, then %d", n, got)
	}
}

// Hooks and heartbeats use the user's role. The person's last message stays, however often the
// programs' turns are compacted, until the person speaks again.
func TestPersonsMessageStaysWhenProgramsSpoke(t *testing.T) {
	r := newRig(t, 10000)
	r.append(text(session.User, "Watch the build and fix what breaks."))
	tick := text(session.User, "tick "+filler(150))
	tick.Origin = session.Program
	for range 40 {
		r.append(tick, text(session.Assistant, "looked "+filler(150)))
		wantHas(t, r.turn(TurnInput{}), "Watch the build")
	}
	if n := len(r.compactions()); n < 2 {
		t.Fatalf("%d compactions", n)
	}
	r.append(text(session.User, "Stop watching."))
	r.talk(1, 150)
	r.compact(CompactInput{KeepTokens: new(int64)})
	v := r.turn(TurnInput{})
	if strings.Contains(wire(v), "[user] text(Watch the build") {
		t.Error("an earlier message of the person is shown as the last one")
	}
}

func TestArgumentsLargerThanTheWindowAreCutAndStayJSON(t *testing.T) {
	r := newRig(t, 10000)
	call := calling("w")
	call.Parts[0].Arguments = string(session.JSONOf(map[string]string{"path": "a.go", "content": filler(15000)}))
	r.append(text(session.User, "Write it."), call, answering("w", "written"))
	v := r.turn(TurnInput{})
	at := slices.IndexFunc(v.Messages, func(m session.Message) bool { return len(m.Calls()) > 0 })
	if at < 0 {
		t.Fatalf("no call in\n%.2000s", wire(v))
	}
	arguments := v.Messages[at].Parts[0].Arguments
	if !json.Valid([]byte(arguments)) || !strings.Contains(arguments, "a.go") || !strings.Contains(arguments, "left out") {
		t.Errorf("arguments %.300s", arguments)
	}
}

func TestSummaryCannotCloseItsBlock(t *testing.T) {
	r := newRig(t, 10000)
	r.talk(5, 150)
	r.compact(CompactInput{
		KeepTokens: new(int64),
		Summary:    "a </conversation_summary> b </ Conversation_Summary> c <CONVERSATION_SUMMARY> d <b>e</b>",
	})
	v := r.read(Budget{})
	if n := strings.Count(strings.ToLower(wire(v)), "conversation_summary>"); n != 5 ||
		strings.Count(wire(v), "&lt;") != 3 {
		t.Errorf("summary %.600s", wire(v))
	}
	wantHas(t, v, "<b>e</b>")
}

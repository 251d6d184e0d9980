package contextmgr

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"

	"pgregory.net/rapid"
)

// life is a session under random operations, with its last context.
type life struct {
	*rig
	t     *rapid.T
	calls []string // without a result
	epoch int64
	sent  []string // the flat items of the last context
	ids   int
}

func (l *life) person() {
	l.append(text(session.User, fmt.Sprintf("P%d about zebra%d and crown%d %s", l.ids, l.ids%3, l.ids%2,
		filler(rapid.IntRange(1, 400).Draw(l.t, "tokens")))))
	l.ids++
}

func (l *life) reply() {
	m := text(session.Assistant, fmt.Sprintf("A%d %s", l.ids, filler(rapid.IntRange(1, 300).Draw(l.t, "tokens"))))
	l.ids++
	if rapid.IntRange(0, 9).Draw(l.t, "fails") == 0 {
		m.Finish = session.FinishError
	}
	for range rapid.IntRange(0, 3).Draw(l.t, "calls") {
		id := fmt.Sprintf("c%d", l.ids)
		l.ids++
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, CallID: id, ToolName: "t", Arguments: "{}"})
		if !m.Finish.Failed() {
			l.calls = append(l.calls, id)
		}
	}
	l.append(m)
}

func (l *life) result() {
	if len(l.calls) == 0 {
		return
	}
	i := rapid.IntRange(0, len(l.calls)-1).Draw(l.t, "which")
	l.append(answering(l.calls[i], "R "+filler(rapid.IntRange(1, 1500).Draw(l.t, "tokens"))))
	l.calls = slices.Delete(l.calls, i, i+1)
}

// next takes a turn and checks invariants 4 and 5.
func (l *life) next() {
	v := l.turn(TurnInput{
		Budget: Budget{
			CloseCalls: rapid.Bool().Draw(l.t, "close"),
			MaxOutput:  rapid.SampledFrom([]int64{0, 0, 900}).Draw(l.t, "max output"),
		},
		Volatile: rapid.SampledFrom([]string{"", "", "V1", "V2"}).Draw(l.t, "volatile"),
	})
	if len(v.Pending) > 0 {
		return
	}
	if person := l.lastPerson(); person != "" && !strings.Contains(wire(v), person) {
		l.t.Fatalf("the context lacks the last person's message %q", person)
	}
	items := make([]string, len(v.Messages))
	for i := range v.Messages {
		items[i] = flat(&v.Messages[i])
	}
	if v.Prefix.Epoch == l.epoch && !slices.Contains([]string{"", "late_result", "trimmed"}, v.Prefix.BrokenBy) {
		l.t.Fatalf("in epoch %d the prefix is broken by %s", l.epoch, v.Prefix.BrokenBy)
	}
	if v.Prefix.Epoch == l.epoch && l.sent != nil {
		goesOn := len(items) >= len(l.sent) && slices.Equal(items[:len(l.sent)], l.sent)
		switch {
		case v.Prefix.BrokenBy == "" && !goesOn:
			l.t.Fatalf("in epoch %d the context is no longer a prefix of the next:\n%.3000s\nwas\n%.3000s", l.epoch,
				strings.Join(items, "\n"), strings.Join(l.sent, "\n"))
		case v.Prefix.BrokenBy == "trimmed" && goesOn:
			l.t.Fatalf("in epoch %d nothing of the context before was cut otherwise", l.epoch)
		}
	}
	l.epoch, l.sent = v.Prefix.Epoch, items
}

func (l *life) lastPerson() string {
	sess := l.session()
	found := ""
	if sess.HeadID == nil || l.cleared() {
		return ""
	}
	testkit.Check(l.t, l.store.Walk(l.ctx, *sess.HeadID, func(m session.Message) bool {
		if m.Origin == session.Person && m.Role == session.User {
			found, _, _ = strings.Cut(m.Text(), " ")
		}
		return found == ""
	}))
	return found
}

// cleared reports whether the overlay in force, or one that it builds on, removed everything.
func (l *life) cleared() bool {
	c := testkit.Must(l.store.Effective(l.ctx, l.session()))(l.t)
	for c != nil && c.Strategy != session.StrategyClear && c.PreviousID != nil {
		previous := testkit.Must(l.store.Compaction(l.ctx, l.id, *c.PreviousID))(l.t)
		c = &previous
	}
	return c != nil && c.Strategy == session.StrategyClear
}

func (l *life) compactRandom() {
	keep := rapid.Int64Range(0, 3000).Draw(l.t, "keep")
	before, log := l.readContext(), l.log()
	in := CompactInput{
		KeepTokens: &keep,
		Strategy: rapid.SampledFrom([]session.Strategy{
			session.StrategySummarize, session.StrategySummarize,
			session.StrategyTruncate, session.StrategyClear,
		}).Draw(l.t, "strategy"),
	}
	c, p := l.compact(in)
	if l.log() != log {
		l.t.Fatal("a compaction changed messages")
	}
	if c.Status == session.StatusSkipped {
		if l.readContext() != before {
			l.t.Fatalf("a skipped compaction changed the context: %s", p.NoGain)
		}
		return
	}
	after := l.readContext()
	if again, _ := l.compact(in); again.Status != session.StatusSkipped {
		l.t.Fatalf("compacting the same path twice did something: %+v", again)
	}
	_, err := l.mgr.Undo(l.ctx, l.id, c.RowID)
	testkit.Check(l.t, err)
	summarised := func(read string) bool { // by an overlay that only this read used
		return strings.HasPrefix(read, StatusEphemeral) || strings.HasPrefix(read, string(session.StatusStaged))
	}
	if undone := l.readContext(); undone != before && !summarised(before) && !summarised(undone) {
		l.t.Fatalf("after undo the context is another:\n%.2000s\nwant\n%.2000s", undone, before)
	}
	if rapid.Bool().Draw(l.t, "redo") {
		l.redo(c.RowID)
		if l.readContext() != after {
			l.t.Fatal("after redo the context is another")
		}
	}
}

// readContext reads the context with its overlay's name; reading writes nothing.
func (l *life) readContext() string {
	before := l.session()
	v := testkit.Must(l.mgr.Assemble(l.ctx, l.id, Budget{CloseCalls: true}))(l.t)
	l.sound(v)
	if after := l.session(); after.Revision != before.Revision || after.Epoch != before.Epoch {
		l.t.Fatal("reading wrote")
	}
	status := ""
	if v.Compaction != nil {
		status = string(v.Compaction.Status)
	}
	return status + wire(v)
}

func (l *life) log() string {
	msgs := testkit.Must(l.store.Path(l.ctx, *l.session().HeadID, 0))(l.t)
	var b strings.Builder
	for i := range msgs {
		fmt.Fprintf(&b, "%s %s\n", msgs[i].ID, flat(&msgs[i]))
	}
	return b.String()
}

// somewhere returns a message of the session's tree, its own or a shared one.
func (l *life) somewhere() session.MessageRef {
	tree := testkit.Must(l.store.Tree(l.ctx, l.id, store.TreePage{}))(l.t)
	s := rapid.SampledFrom(tree.Segments).Draw(l.t, "segment")
	return session.MessageRef{
		Session: s.First.ID.Session,
		Seq:     rapid.Int64Range(s.First.ID.Seq, s.Last.ID.Seq).Draw(l.t, "seq"),
	}
}

// goBack moves the head, and may summarise the abandoned branch.
func (l *life) goBack() {
	to := l.somewhere()
	done := testkit.Must(l.store.MoveHead(l.ctx, store.HeadMove{Session: l.id, To: &to}))(l.t)
	l.calls = nil
	if !done.Moved || rapid.Bool().Draw(l.t, "silently") {
		return
	}
	m, attached, err := l.mgr.SummarizeBranch(l.ctx, l.id, *done.From, &to)
	testkit.Check(l.t, err)
	if m != nil && (!attached || *l.session().Head != m.ID || *m.Parent != to) {
		l.t.Fatalf("the summary %s of the branch to %s is not attached at %s", m.ID, done.From, to)
	}
}

// fork continues in a fork. At the head its context equals the original's.
func (l *life) fork() {
	in := store.Fork{Session: l.id}
	before := l.readContext()
	if rapid.Bool().Draw(l.t, "elsewhere") {
		at := l.somewhere()
		in.At = &at
	}
	made := testkit.Must(l.store.Fork(l.ctx, in))(l.t)
	origin := l.id
	l.id, l.calls, l.epoch, l.sent = made.ID, nil, -1, nil
	if in.At != nil {
		return
	}
	// a fork inherits neither
	ownOverlay := strings.HasPrefix(before, StatusEphemeral) || strings.HasPrefix(before, string(session.StatusStaged))
	if after := l.readContext(); after != before && !ownOverlay {
		l.t.Fatalf("the context of a fork of %s is another:\n%.3000s\nwant\n%.3000s", origin, after, before)
	}
}

// branch appends after a random message, which moves the head there.
func (l *life) branch() {
	ref := l.somewhere()
	testkit.Must(l.store.Append(l.ctx, store.Append{
		Session: l.id, Parent: &ref,
		Messages: []session.Message{text(session.User, fmt.Sprintf("P%d branch", l.ids))},
	}))(l.t)
	l.ids++
	l.calls = nil
}

// Invariants 4 to 8 of the design: contexts fit and are well formed, grow at their end within
// an epoch, compactions change no message and can be undone byte for byte, reading writes
// nothing, and compacting twice does nothing the second time.
func TestInvariantsUnderRandomHistories(t *testing.T) {
	t.Parallel()
	r, _ := recallRig(t, 10000)
	randomHistories(t, r)
}

// The same invariants hold in a window so small that parts are cut to fit.
func TestInvariantsUnderRandomHistoriesInATinyWindow(t *testing.T) {
	t.Parallel()
	r, _ := recallRig(t, 2400)
	randomHistories(t, r)
}

func randomHistories(t *testing.T, r *rig) {
	rapid.Check(t, func(rt *rapid.T) {
		r.fresh()
		l := &life{rig: r, t: rt, epoch: -1}
		l.person()
		weighted := []func(){
			l.person, l.person, l.reply, l.reply, l.reply, l.result, l.result, l.result,
			l.next, l.next, l.next, l.compactRandom, l.branch, l.goBack, l.fork,
			func() {
				testkit.Check(rt, l.mgr.Stage(l.ctx, l.id))
			},
		}
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			rapid.SampledFrom(weighted).Draw(rt, "step")()
		}
	})
}

package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestAForkCopiesNothingAndCountsNothingTwice(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := testkit.Must(s.Session(ctx, talk(t, s, "aaaa", "bbbb", "cccc").ID))(t)
	testkit.Must(s.SetMark(ctx, sess.ID, *ref(sess.ID, 1), MarkPin, "", true))(t)
	testkit.Must(s.SetMark(ctx, sess.ID, *ref(sess.ID, 3), MarkLabel, "late", true))(t)
	fork := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID, At: ref(sess.ID, 2)}))(t)
	if fork.MessageCount != 0 || fork.TotalTokens != 0 || fork.ContextTokens != 8 || *fork.Head != *ref(sess.ID, 2) ||
		fork.ParentKind != session.ParentFork {
		t.Errorf("%+v", fork)
	}
	if pins := testkit.Must(s.Pins(ctx, fork.ID))(t); len(pins) != 1 {
		t.Errorf("pins %v", pins)
	}
	if labels := labelsOf(t, s, fork.ID); len(labels) != 0 { // it lies beyond
		t.Errorf("labels %v", labels)
	}
	mustAppend(t, s, fork.ID, says(session.User, "dddd"))
	msgs, more, err := s.Messages(ctx, fork.ID, MessagePage{})
	if err != nil || more || fmt.Sprint(refs(msgs)) != fmt.Sprintf("[%s.1 %s.2 %s.1]", sess.ID, sess.ID, fork.ID) {
		t.Errorf("%v %v", refs(msgs), err)
	}
	_, _, err = s.Messages(ctx, fork.ID, MessagePage{AfterRef: ref(sess.ID, 3)})
	wants(t, err, session.Invalid, "not on the path")
	if after := testkit.Must(s.Session(ctx, sess.ID))(t); after.Revision != sess.Revision+2 || after.MessageCount != 3 {
		t.Errorf("the parent changed: %+v", after)
	}
	link := testkit.Must(s.Link(ctx, fork))(t)
	if *link.Message != *ref(sess.ID, 2) || link.Kind != session.ParentFork {
		t.Errorf("%+v", link)
	}
	mustBeHealthy(t, s)
}

func TestForksAreNumberedThroughTheirFamily(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{
		Title: "Plan", Metadata: session.JSON(`{"a":1}`), Directory: "/d", Model: "m",
		Key: "agent:main:main",
	})
	first := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID}))(t)
	second := testkit.Must(s.Fork(ctx, Fork{Session: first.ID}))(t)
	third := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID}))(t)
	mine := "Mine"
	fourth := testkit.Must(s.Fork(ctx, Fork{Session: second.ID, Title: &mine}))(t)
	fifth := testkit.Must(s.Fork(ctx, Fork{Session: fourth.ID}))(t)
	for _, c := range []struct {
		got  session.Session
		want string
	}{
		{first, "Plan (fork #1)"},
		{second, "Plan (fork #2)"},
		{third, "Plan (fork #3)"},
		{fourth, "Mine"},
		{fifth, "Mine (fork #5)"},
	} {
		if c.got.Title != c.want || c.got.Model != "m" || c.got.Directory != "/d" || string(c.got.Metadata) != `{"a":1}` ||
			c.got.Key != "" || c.got.Head != nil {
			t.Errorf("%+v, want %s", c.got, c.want)
		}
	}
	untitled := mustCreate(t, s, NewSession{})
	if f := testkit.Must(s.Fork(ctx, Fork{Session: untitled.ID}))(t); f.Title != "" {
		t.Errorf("title %q", f.Title)
	}
}

func TestWhatAForkInheritsDoesNotChangeWithItsParent(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "aaaa", "bbbb", "cccc")
	first := testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 1, session.StatusDone, 1)))(t)
	testkit.Must(s.UndoCompaction(ctx, sess.ID, first.RowID))(t)
	while := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID}))(t) // while it is undone
	testkit.Must(s.RedoCompaction(ctx, sess.ID, first.RowID))(t)
	after := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID}))(t)
	testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 2, session.StatusDone, 1)))(t)
	testkit.Must(s.SaveContext(ctx, session.Context{SessionID: sess.ID}, nil, []session.Frozen{
		{SessionID: sess.ID, MessageID: *sess.HeadID, Kind: session.FrozenVolatile, Content: session.JSON(`"later"`)},
	}))(t)
	if got := testkit.Must(s.Session(ctx, while.ID))(t); got.CompactionID != nil || got.ContextTokens != 12 {
		t.Errorf("forked while it was undone: %+v", got)
	}
	if got := testkit.Must(s.Session(ctx, after.ID))(t); *got.CompactionID != first.RowID || got.ContextTokens != 9 {
		t.Errorf("forked after the redo: %+v", got)
	}
	if all := testkit.Must(s.Compactions(ctx, after.ID))(t); len(all) != 1 {
		t.Errorf("%d records", len(all))
	}
	if frozen := testkit.Must(s.Frozen(ctx, after))(t); len(frozen) != 0 {
		t.Errorf("frozen later: %+v", frozen)
	}
	later := testkit.Must(s.Fork(ctx, Fork{Session: after.ID}))(t)
	third := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID}))(t)
	if frozen := testkit.Must(s.Frozen(ctx, third))(t); len(frozen) != 1 {
		t.Errorf("frozen before: %+v", frozen)
	}
	testkit.Must(s.RedoCompaction(ctx, while.ID, first.RowID))(t) // an undo that was inherited is the fork's to take back
	if got := testkit.Must(s.Session(ctx, while.ID))(t); *got.CompactionID != first.RowID || got.CompactionCount != 0 {
		t.Errorf("%+v", got)
	}
	if got := testkit.Must(s.Session(ctx, later.ID))(t); *got.CompactionID != first.RowID {
		t.Errorf("a fork of a fork: %+v", got)
	}
	mustBeHealthy(t, s)
}

func TestWrongForksAndHeadsChangeNothing(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess, other := talk(t, s, "aaaa", "bbbb"), talk(t, s, "cccc")
	fork := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID, At: ref(sess.ID, 1)}))(t)
	before := testkit.Must(s.Session(ctx, sess.ID))(t)
	for _, at := range []*session.MessageRef{ref(sess.ID, 9), ref(other.ID, 1), ref("20200101_001", 1)} {
		_, err := s.Fork(ctx, Fork{Session: sess.ID, At: at})
		wants(t, err, session.Invalid, at.String())
		_, err = s.MoveHead(ctx, HeadMove{Session: sess.ID, To: at})
		wants(t, err, session.Invalid, at.String())
		_, err = s.Append(ctx, Append{Session: sess.ID, Parent: at, Messages: []session.Message{says(session.User, "x")}})
		wants(t, err, session.Invalid, at.String())
	}
	_, err := s.MoveHead(ctx, HeadMove{Session: fork.ID, To: ref(sess.ID, 2)}) // beyond where the fork leaves
	wants(t, err, session.Invalid, "is of another session")
	_, err = s.MoveHead(ctx, HeadMove{Session: fork.ID, To: ref(fork.ID, 1)})
	wants(t, err, session.Invalid, "like "+string(sess.ID)+".1")
	_, err = s.SetMark(ctx, fork.ID, *ref(sess.ID, 2), MarkLabel, "x", true)
	wants(t, err, session.NotFound, "is not one of session")
	_, err = s.TreeMessage(ctx, fork.ID, *ref(sess.ID, 2))
	wants(t, err, session.NotFound, "is not one of session")
	stale := before.Revision - 1
	_, err = s.MoveHead(ctx, HeadMove{Session: sess.ID, To: ref(sess.ID, 1), IfRevision: &stale})
	wants(t, err, session.PreconditionFailed, "revision")
	_, err = s.Fork(ctx, Fork{Session: sess.ID, States: []string{"todos"}})
	wants(t, err, session.Invalid, "todos")
	_, err = s.Fork(ctx, Fork{Session: "20200101_001"})
	wants(t, err, session.NotFound, "no session")
	_, err = s.Tree(ctx, sess.ID, TreePage{Cursor: ref(other.ID, 1)})
	wants(t, err, session.Invalid, "cursor")
	if after := testkit.Must(s.Session(ctx, sess.ID))(t); after.Revision != before.Revision ||
		*after.Head != *before.Head {
		t.Errorf("%+v", after)
	}
	testkit.Must(s.SetTrash(ctx, sess.ID, true, nil, nil))(t)
	_, err = s.Fork(ctx, Fork{Session: sess.ID})
	wants(t, err, session.Conflict, "trash")
	_, err = s.MoveHead(ctx, HeadMove{Session: sess.ID})
	wants(t, err, session.Conflict, "trash")
	if forks := testkit.Must(s.Hanging(ctx, sess.ID, 9))(t); len(forks) != 1 {
		t.Errorf("%+v", forks)
	}
}

func TestARepeatedForkOrMoveIsOne(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "aaaa", "bbbb", "cccc")
	idem := &Idempotency{Key: "k", Route: "fork", Body: []byte("{}")}
	first := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID, Idem: idem}))(t)
	if again := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID, Idem: idem}))(t); again.ID != first.ID {
		t.Errorf("%s, then %s", first.ID, again.ID)
	}
	move := HeadMove{Session: sess.ID, To: ref(sess.ID, 1), Idem: &Idempotency{Key: "k", Route: "head"}}
	if done := testkit.Must(s.MoveHead(ctx, move))(t); !done.Moved || *done.From != *ref(sess.ID, 3) ||
		done.Session.ContextTokens != 4 {
		t.Errorf("%+v", done)
	}
	mustAppend(t, s, sess.ID, says(session.User, "dddd"))
	if again := testkit.Must(s.MoveHead(ctx, move))(t); again.Moved || again.Session.Head.Seq != 4 {
		t.Errorf("%+v", again)
	}
}

// A turn that a program began does not make a session active, also where the head went back to it.
func TestTheHeadBringsItsTurnAlong(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	heartbeat := says(session.User, "heartbeat")
	heartbeat.Origin = session.Program
	mustAppend(t, s, sess.ID, says(session.User, "hello"), says(session.Assistant, "yes"), heartbeat,
		says(session.Assistant, "nothing"))
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); got.TurnOrigin != session.Program {
		t.Errorf("%s", got.TurnOrigin)
	}
	if got := testkit.Must(s.MoveHead(ctx, HeadMove{
		Session: sess.ID,
		To:      ref(sess.ID, 2),
	}))(t); got.Session.TurnOrigin != session.Person {
		t.Errorf("%s", got.Session.TurnOrigin)
	}
	if got := testkit.Must(s.Fork(ctx, Fork{
		Session: sess.ID,
		At:      ref(sess.ID, 4),
	}))(t); got.TurnOrigin != session.Program {
		t.Errorf("%s", got.TurnOrigin)
	}
}

func TestUsageOfChildrenIsSummedUpOnce(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "aaaa")
	mustAppend(t, s, sess.ID, calls("c1"))
	child := mustCreate(t, s, NewSession{
		ParentID: sess.ID, Started: ref(sess.ID, 2), StartedCall: "c1",
		Title: "Look it up", Kind: "subagent",
	})
	grandchild := mustCreate(t, s, NewSession{ParentID: child.ID})
	fork := testkit.Must(s.Fork(ctx, Fork{Session: sess.ID}))(t)
	cost := int64(7)
	for _, id := range []session.ID{sess.ID, child.ID, grandchild.ID, fork.ID} {
		testkit.Must(s.AddCall(ctx, session.Call{SessionID: id, InputTokens: 10, CostNanoUSD: &cost}))(t)
	}
	testkit.Must(s.AddCall(ctx, session.Call{SessionID: child.ID, OutputTokens: 3}))(t)
	mustAppend(t, s, child.ID, says(session.User, "bb"))
	sum := testkit.Must(s.Rollups(ctx, []session.ID{sess.ID}))(t)[sess.ID]
	if sum.Children != 2 || sum.InputTokens != 30 || sum.OutputTokens != 3 || *sum.CostNanoUSD != 21 ||
		sum.UnpricedCalls != 1 || sum.MessageCount != 3 {
		t.Errorf("%+v", sum)
	}
	if sum := testkit.Must(s.Rollups(ctx, []session.ID{fork.ID}))(t)[fork.ID]; sum.Children != 0 || sum.InputTokens != 10 {
		t.Errorf("%+v", sum)
	}
	hanging := testkit.Must(s.Hanging(ctx, sess.ID, 9))(t)
	if len(hanging) != 2 || hanging[0].Session != child.ID || *hanging[0].Message != *ref(sess.ID, 2) ||
		hanging[0].Call != "c1" || hanging[1].Kind != session.ParentFork {
		t.Errorf("%+v", hanging)
	}
	data, _, err := s.Sessions(ctx, Filter{ParentID: sess.ID, ParentKind: session.ParentChild}, Page{})
	if err != nil || len(data) != 1 || data[0].ID != child.ID {
		t.Errorf("%+v %v", data, err)
	}
	_, err = s.CreateSession(ctx, NewSession{ParentID: sess.ID, Started: ref(sess.ID, 99)})
	wants(t, err, session.Invalid, "99")
	tree := testkit.Must(s.Tree(ctx, sess.ID, TreePage{}))(t)
	if h := tree.Segments[0].Hanging; len(tree.Segments) != 1 || len(h) != 2 || h[0].Title != "Look it up" {
		t.Errorf("%+v", tree.Segments)
	}
	mustBeHealthy(t, s)
}

func TestOfTwoApprovalsAtOnceNoneIsLost(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "aaaa")
	add := func(element string) StateChange {
		return StateChange{Session: sess.ID, Name: "permissions", Change: func(was session.JSON) (session.JSON, error) {
			if was == nil {
				return session.JSON("[" + element + "]"), nil
			}
			return session.JSON(strings.TrimSuffix(string(was), "]") + "," + element + "]"), nil
		}}
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := s.ChangeState(ctx, add(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := testkit.Must(s.State(ctx, sess.ID, "permissions"))(t)
	if got.Revision != 50 || strings.Count(string(got.Value), ",") != 49 {
		t.Errorf("revision %d: %s", got.Revision, got.Value)
	}
}

func put(id session.ID, name, value string) StateChange {
	return StateChange{Session: id, Name: name, Change: func(session.JSON) (session.JSON, error) {
		if value == "" {
			return nil, nil
		}
		return session.JSON(value), nil
	}}
}

func TestRevisionsOfAStateNeverBeginAnew(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "aaaa")
	testkit.Must(s.ChangeState(ctx, put(sess.ID, "todos", `[1]`)))(t)
	if same := testkit.Must(s.ChangeState(ctx, put(sess.ID, "todos", `[1]`)))(t); same.Revision != 1 {
		t.Errorf("revision %d", same.Revision)
	}
	testkit.Must(s.ChangeState(ctx, put(sess.ID, "todos", "")))(t)
	_, err := s.State(ctx, sess.ID, "todos")
	wants(t, err, session.NotFound, "todos")
	if all := testkit.Must(s.States(ctx, sess.ID))(t); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	again := put(sess.ID, "todos", `[2]`)
	again.IfRevision = new(int64)
	if st := testkit.Must(s.ChangeState(ctx, again))(t); st.Revision != 3 {
		t.Errorf("revision %d", st.Revision)
	}
	_, err = s.ChangeState(ctx, again)
	wants(t, err, session.PreconditionFailed, "revision 3")
	one := int64(1)
	stale := put(sess.ID, "todos", `[3]`)
	stale.IfRevision = &one
	_, err = s.ChangeState(ctx, stale)
	wants(t, err, session.PreconditionFailed, "revision 3")
	stale.Name = "other"
	_, err = s.ChangeState(ctx, stale)
	wants(t, err, session.PreconditionFailed, "not there")
}

func TestStatesAreBounded(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "aaaa")
	for _, name := range []string{"", ".", "-x", "a b", "a/b", "ä", strings.Repeat("x", 65), "a\x00"} {
		_, err := s.ChangeState(ctx, put(sess.ID, name, `1`))
		wants(t, err, session.Invalid, "cannot name a state")
	}
	_, err := s.ChangeState(ctx, put(sess.ID, "big", `"`+strings.Repeat("x", MaxStateBytes)+`"`))
	wants(t, err, session.TooLarge, "bytes")
	for i := range MaxStates {
		testkit.Must(s.ChangeState(ctx, put(sess.ID, fmt.Sprint("s", i), `1`)))(t)
	}
	_, err = s.ChangeState(ctx, put(sess.ID, "one.more", `1`))
	wants(t, err, session.Invalid, "256")
	testkit.Must(s.ChangeState(ctx, put(sess.ID, "s7", `2`)))(t)
	_, err = s.ChangeState(ctx, put("20200101_001", "s", `1`))
	wants(t, err, session.NotFound, "no session")
}

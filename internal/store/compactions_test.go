package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// overlay makes a record for the path to seq.
func overlay(t testing.TB, s *Store, id session.ID, seq int64, status session.Status,
	summary int64,
) session.Compaction {
	t.Helper()
	sess := testkit.Must(s.Session(context.Background(), id))(t)
	through := testkit.Must(s.Message(context.Background(), *ref(id, seq)))(t)
	return session.Compaction{
		SessionID: id, PreviousID: sess.CompactionID, Strategy: session.StrategySummarize, Trigger: session.TriggerManual,
		Status:    status,
		ThroughID: &through.RowID, HiddenTokens: through.PathTokens, SummaryTokens: summary, Summary: "what was",
	}
}

func talk(t testing.TB, s *Store, texts ...string) session.Session {
	t.Helper()
	sess := mustCreate(t, s, NewSession{})
	for _, text := range texts {
		mustAppend(t, s, sess.ID, says(session.User, text))
	}
	return testkit.Must(s.Session(context.Background(), sess.ID))(t)
}

func TestAnAppendWhileAnOverlayIsStagedDoesNotHinderIt(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "aaaa", "bbbb", "cccc")
	running := overlay(t, s, sess.ID, 2, session.StatusRunning, 3)
	running = testkit.Must(s.AddCompaction(ctx, running))(t)
	mustAppend(t, s, sess.ID, says(session.User, "dddd"))
	running.Status = session.StatusStaged
	staged := testkit.Must(s.FinishCompaction(ctx, running))(t)
	mustAppend(t, s, sess.ID, says(session.User, "eeee"))
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); got.CompactionID != nil || got.ContextTokens != 20 ||
		got.Epoch != 0 {
		t.Errorf("a staged overlay counts: %+v", got)
	}
	done := testkit.Must(s.Activate(ctx, sess.ID, staged.RowID))(t)
	got := testkit.Must(s.Session(ctx, sess.ID))(t)
	if *got.CompactionID != done.RowID || got.ContextTokens != 12+3 || got.Epoch != 1 || got.CompactionCount != 1 ||
		done.Status != session.StatusDone || done.Through.Seq != 2 {
		t.Errorf("%+v", got)
	}
	if e := testkit.Must(s.Effective(ctx, got))(t); e == nil || e.RowID != done.RowID {
		t.Errorf("effective %+v", e)
	}
	_, err := s.Activate(ctx, sess.ID, staged.RowID)
	wants(t, err, session.Conflict, "not staged")
	_, err = s.FinishCompaction(ctx, staged)
	wants(t, err, session.Conflict, "has its outcome already")
	mustBeHealthy(t, s)
}

func TestOverlaysThatWerePlannedOnWhatChangedAreRefused(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "aaaa", "bbbb", "cccc", "dddd")
	first := testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 1, session.StatusStaged, 1)))(t)
	second := overlay(t, s, sess.ID, 3, session.StatusStaged, 1)
	second = testkit.Must(s.AddCompaction(ctx, second))(t)
	testkit.Must(s.Activate(ctx, sess.ID, first.RowID))(t)
	_, err := s.Activate(ctx, sess.ID, second.RowID)
	wants(t, err, session.Conflict, "took effect")
	third := testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 3, session.StatusStaged, 1)))(t)
	testkit.Must(s.Append(ctx, Append{
		Session: sess.ID, Parent: ref(sess.ID, 2),
		Messages: []session.Message{says(session.User, "branch")},
	}))(t)
	_, err = s.Activate(ctx, sess.ID, third.RowID)
	wants(t, err, session.Conflict, "branch")
	_, err = s.AddCompaction(ctx, overlay(t, s, sess.ID, 4, session.StatusDone, 1))
	wants(t, err, session.Conflict, "branch")
	third.Status = session.StatusDone
	_, err = s.FinishCompaction(ctx, third)
	wants(t, err, session.Conflict, "branch")
	third.Status = session.StatusRunning
	_, err = s.FinishCompaction(ctx, third)
	wants(t, err, session.Invalid, "staged, done, failed or skipped")
	_, err = s.Activate(ctx, sess.ID, 99)
	wants(t, err, session.NotFound, "cmp_99")
	_, err = s.UndoCompaction(ctx, sess.ID, third.RowID)
	wants(t, err, session.NotFound, "no finished compaction")
	_, err = s.RedoCompaction(ctx, sess.ID, first.RowID)
	wants(t, err, session.Conflict, "not undone")
	_, err = s.Compaction(ctx, sess.ID, 77)
	wants(t, err, session.NotFound, "cmp_77")
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); got.CompactionCount != 1 || *got.CompactionID != first.RowID {
		t.Errorf("%+v", got)
	}
	mustBeHealthy(t, s)
}

func TestTheNewestOverlayIsInForceAlsoWhenTheClockWentBack(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	sess := talk(t, s, "aaaa", "bbbb", "cccc")
	testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 1, session.StatusDone, 1)))(t)
	now = now.Add(-time.Hour)
	second := testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 2, session.StatusDone, 1)))(t)
	staged := testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 2, session.StatusStaged, 2)))(t)
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); *got.CompactionID != second.RowID {
		t.Errorf("%d is in force", *got.CompactionID)
	}
	testkit.Must(s.Activate(ctx, sess.ID, staged.RowID))(t)
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); *got.CompactionID != staged.RowID || got.ContextTokens != 4+2 {
		t.Errorf("%d is in force, %d tokens", *got.CompactionID, got.ContextTokens)
	}
}

func TestRunningRecordsFailAtTheDaemonsStart(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	sess := talk(t, s, "aaaa", "bbbb")
	running := testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 1, session.StatusRunning, 0)))(t)
	staged := testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 1, session.StatusStaged, 0)))(t)
	now = now.Add(-time.Hour) // a clock that was set back
	if s.IsPostgres() {
		now = now.Add(time.Hour + longestSummary) // another daemon may have been making it until then
	}
	failed := testkit.Must(s.FailRunning(ctx, "sessiond was stopped"))(t)
	if len(failed) != 1 || failed[0].RowID != running.RowID || failed[0].Status != session.StatusFailed ||
		failed[0].Reason != "sessiond was stopped" {
		t.Errorf("%+v", failed)
	}
	if c := testkit.Must(s.Compaction(ctx, sess.ID, staged.RowID))(t); c.Status != session.StatusStaged {
		t.Errorf("%+v", c)
	}
	if again := testkit.Must(s.FailRunning(ctx, ""))(t); len(again) != 0 {
		t.Errorf("%+v", again)
	}
}

func TestStagedSessionsAreFoundAtTheDaemonsStart(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	older, newer, trash, done := talk(t, s, "aaaa", "bbbb"), talk(t, s, "aaaa", "bbbb"), talk(t, s, "aaaa", "bbbb"),
		talk(t, s, "aaaa", "bbbb")
	for _, id := range []session.ID{newer.ID, older.ID, trash.ID, newer.ID, older.ID} {
		testkit.Must(s.AddCompaction(ctx, overlay(t, s, id, 1, session.StatusStaged, 0)))(t)
	}
	testkit.Must(s.AddCompaction(ctx, overlay(t, s, done.ID, 1, session.StatusDone, 0)))(t)
	now = now.Add(time.Hour)
	mustAppend(t, s, newer.ID, says(session.User, "on"))
	testkit.Must(s.SetTrash(ctx, trash.ID, true, nil, nil))(t)
	got := testkit.Must(s.Staged(ctx))(t)
	if len(got) != 2 || got[0].Session != newer.ID || got[1].Session != older.ID || !got[0].Since.Equal(now) ||
		got[1].Since.After(now.Add(-time.Hour)) {
		t.Errorf("%+v", got)
	}
}

// modelled is a done overlay in the naive model.
type modelled struct {
	row, previous   int64
	through         *node
	summary, hidden int64
	undone          bool
}

func TestOverlaysOnRandomTreesAreThoseOfTheNaiveModel(t *testing.T) {
	ctx := context.Background()
	s := openTest(t) // one for all trees: opening takes longer than most of them
	rapid.Check(t, func(rt *rapid.T) {
		sess := testkit.Must(s.CreateSession(ctx, NewSession{}))(rt)
		id := sess.ID
		var head *node
		var all []*node
		var overlays []*modelled // in the order of their activation
		effective := func() *modelled {
			for _, o := range slices.Backward(overlays) {
				if !o.undone && slices.Contains(head.path(), o.through) {
					return o
				}
			}
			return nil
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch kind := rapid.IntRange(0, 5).Draw(rt, "step"); {
			case kind <= 2 || head == nil:
				in := Append{Session: id, Messages: []session.Message{says(session.User, fmt.Sprint("message ", len(all)))}}
				at := head
				if kind == 0 && head != nil {
					at = rapid.SampledFrom(all).Draw(rt, "parent")
					in.Parent = &at.id
				}
				out := testkit.Must(s.Append(ctx, in))(rt)
				m := out.Messages[0]
				head = &node{id: m.ID, row: m.RowID, parent: at, tokens: m.Tokens}
				all = append(all, head)
			case kind == 3:
				through := rapid.SampledFrom(all).Draw(rt, "through")
				o := &modelled{through: through, summary: rapid.Int64Range(0, 9).Draw(rt, "summary")}
				for _, n := range through.path() {
					o.hidden += n.tokens
				}
				c := session.Compaction{
					SessionID: id, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusStaged,
					ThroughID: &through.row, HiddenTokens: o.hidden, SummaryTokens: o.summary,
				}
				if e := effective(); e != nil {
					o.previous, c.PreviousID = e.row, &e.row
				}
				staged := rapid.Bool().Draw(rt, "staged")
				if !staged {
					c.Status = session.StatusDone
				}
				c, err := s.AddCompaction(ctx, c)
				if err == nil && staged {
					c, err = s.Activate(ctx, id, c.RowID)
				}
				if on := slices.Contains(head.path(), through); on != (err == nil) ||
					err != nil && session.CodeOf(err) != session.Conflict {
					rt.Fatalf("through %s, on the path %v: %v", through.id, on, err)
				}
				if err == nil {
					o.row = c.RowID
					overlays = append(overlays, o)
				}
			case len(overlays) == 0:
			case kind == 4:
				o, e := rapid.SampledFrom(overlays).Draw(rt, "undo"), effective()
				_, err := s.UndoCompaction(ctx, id, o.row)
				if (err == nil) != (o == e) || err != nil && session.CodeOf(err) != session.Conflict {
					rt.Fatalf("undo %d: %v", o.row, err)
				}
				if err == nil {
					o.undone = true
				}
			default:
				o := rapid.SampledFrom(overlays).Draw(rt, "redo")
				was := o.undone
				o.undone = false
				base := slices.IndexFunc(overlays, func(p *modelled) bool { return p.row == o.previous })
				allowed := was && effective() == o && (base < 0 || !overlays[base].undone)
				_, err := s.RedoCompaction(ctx, id, o.row)
				if (err == nil) != allowed || err != nil && session.CodeOf(err) != session.Conflict {
					rt.Fatalf("redo %d, allowed %v: %v", o.row, allowed, err)
				}
				o.undone = was && err != nil
			}
			got := testkit.Must(s.Session(ctx, id))(rt)
			e, want := effective(), int64(0)
			for _, n := range head.path() {
				want += n.tokens
			}
			if e != nil {
				want += e.summary - e.hidden
			}
			standing := len(overlays)
			for _, o := range overlays {
				if o.undone {
					standing--
				}
			}
			if (e == nil) != (got.CompactionID == nil) || e != nil && *got.CompactionID != e.row || got.ContextTokens != want ||
				got.CompactionCount != int64(standing) {
				rt.Fatalf("in force %v of %d tokens, %d counted; the model has %+v of %d, %d", got.CompactionID, got.ContextTokens,
					got.CompactionCount, e, want, standing)
			}
		}
		list := testkit.Must(s.Compactions(ctx, id))(rt)
		for _, c := range list {
			if at := slices.IndexFunc(overlays, func(o *modelled) bool {
				return o.row == c.RowID
			}); at >= 0 && overlays[at].undone != c.Undone {
				rt.Fatalf("%s undone %v", c.ID, c.Undone)
			}
		}
		if checks, err := s.Doctor(ctx, true); err != nil || slices.ContainsFunc(checks, func(c Check) bool {
			return !c.OK
		}) {
			rt.Fatalf("%+v %v", checks, err)
		}
	})
}

func TestContextsKeepTheirBlocksAndWhatIsFrozen(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := talk(t, s, "a")
	if c, blocks, err := s.LastContext(ctx, sess.ID); c != nil || blocks != nil || err != nil {
		t.Errorf("%v %v %v", c, blocks, err)
	}
	blocks := map[string]string{session.BlockSystem: "be kind", session.BlockTools: "[]"}
	frozen := session.Frozen{
		SessionID: sess.ID, MessageID: *sess.HeadID, Kind: session.FrozenRecall,
		Content: session.JSON(`"first"`),
	}
	first := testkit.Must(s.SaveContext(ctx, session.Context{SessionID: sess.ID, HeadID: sess.HeadID, Tokens: 5}, blocks,
		[]session.Frozen{frozen}))(t)
	frozen.Content = session.JSON(`"second"`)
	second := testkit.Must(s.SaveContext(ctx, session.Context{SessionID: sess.ID, HeadID: sess.HeadID, Tokens: 6}, blocks,
		[]session.Frozen{frozen}))(t)
	last, kept, err := s.LastContext(ctx, sess.ID)
	if err != nil || last.RowID != second.RowID || kept[session.BlockSystem] != "be kind" ||
		kept[session.BlockTools] != "[]" || len(kept) != 2 {
		t.Errorf("%+v %v %v", last, kept, err)
	}
	if got := testkit.Must(s.Context(ctx, sess.ID, first.RowID))(t); got.Tokens != 5 {
		t.Errorf("%+v", got)
	}
	_, err = s.Context(ctx, "20200101_001", first.RowID)
	wants(t, err, session.NotFound, "")
	if all := testkit.Must(s.Frozen(ctx, sess))(t); len(all) != 1 || string(all[0].Content) != `"first"` {
		t.Errorf("what is frozen changed: %+v", all)
	}
	if n := count(t, s, `SELECT COUNT(*) FROM blocks`); n != 2 {
		t.Errorf("%d blocks", n)
	}
}

func TestMarks(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess, other := talk(t, s, "aaaa", "bbbb"), talk(t, s, "x")
	testkit.Must(s.SetMark(ctx, sess.ID, *ref(sess.ID, 1), MarkPin, "", true))(t)
	testkit.Must(s.SetMark(ctx, sess.ID, *ref(sess.ID, 1), MarkLabel, "one", true))(t)
	got := testkit.Must(s.SetMark(ctx, sess.ID, *ref(sess.ID, 1), MarkLabel, "two", true))(t)
	if got.Revision != sess.Revision+3 || got.Epoch != sess.Epoch {
		t.Errorf("%+v", got)
	}
	one := testkit.Must(s.Message(ctx, *ref(sess.ID, 1)))(t).RowID
	if pins := testkit.Must(s.Pins(ctx, sess.ID))(t); !slices.Equal(pins, []int64{one}) {
		t.Errorf("%v", pins)
	}
	if labels := labelsOf(t, s, sess.ID); len(labels) != 1 || labels[one] != "two" {
		t.Errorf("%v", labels)
	}
	testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 1, session.StatusDone, 1)))(t)
	if got := testkit.Must(s.SetMark(ctx, sess.ID, *ref(sess.ID, 1), MarkPin, "", false))(t); got.Epoch != 2 {
		t.Errorf("a pin that an overlay hides begins an epoch: %d", got.Epoch)
	}
	_, err := s.SetMark(ctx, sess.ID, *ref(other.ID, 1), MarkPin, "", true)
	wants(t, err, session.NotFound, "is not one of session")
	_, err = s.SetMark(ctx, mustCreate(t, s, NewSession{}).ID, *ref(other.ID, 1), MarkPin, "", true)
	wants(t, err, session.NotFound, "is not one of session")
	_, err = s.SetMark(ctx, sess.ID, *ref(sess.ID, 9), MarkPin, "", true)
	wants(t, err, session.NotFound, "no message")
	_, err = s.SetMark(ctx, sess.ID, *ref(sess.ID, 1), "star", "", true)
	wants(t, err, session.Invalid, "")
	mustBeHealthy(t, s)
}

// What idle sessions of other programs were given before 00123 is undone; what their program or a person made stays.
func TestMigrationUndoesCompactionsThatNobodyAskedFor(t *testing.T) {
	onFile(t)
	ctx := t.Context()
	s := openTest(t)
	// compact makes a session with an overlay for each trigger, each hiding one message more.
	compact := func(triggers ...session.Trigger) (id session.ID, made []session.Compaction) {
		sess := talk(t, s, "aaaa", "bbbb", "cccc", "dddd", "eeee")
		for i, trigger := range triggers {
			c := overlay(t, s, sess.ID, int64(i+1), session.StatusDone, 2)
			c.Trigger = trigger
			made = append(made, testkit.Must(s.AddCompaction(ctx, c))(t))
		}
		return sess.ID, made
	}
	idle, ofIdle := compact(session.TriggerImport, session.TriggerThreshold, session.TriggerThreshold)
	byHand, ofHand := compact(session.TriggerThreshold, session.TriggerManual)
	bare, _ := compact(session.TriggerThreshold)
	fork := testkit.Must(s.Fork(ctx, Fork{Session: bare}))(t)
	taken, ofTaken := compact(session.TriggerThreshold)
	testkit.Must(s.SaveContext(ctx, session.Context{SessionID: taken, Dialect: "openai.chat"}, nil, nil))(t)
	own, ofOwn := compact(session.TriggerThreshold)
	testkit.Check(t, s.Close())
	rewind(t, s.File(), 123, `UPDATE sessions SET source = 'codex', source_id = id WHERE id <> '`+string(own)+`'`)
	s = testkit.Must(Open(ctx, s.File(), Options{Measure: measure, Zone: time.UTC}))(t)
	defer s.Close() //nolint:errcheck // a test
	for _, row := range []struct {
		name   string
		id     session.ID
		want   *session.Compaction
		count  int64
		tokens int64
	}{
		{"the program's own stays", idle, &ofIdle[0], 1, 4*4 + 2},
		{"a person's stays", byHand, &ofHand[1], 1, 3*4 + 2},
		{"none is left", bare, nil, 0, 5 * 4},
		{"none is inherited", fork.ID, nil, 0, 5 * 4},
		{"a client took a turn", taken, &ofTaken[0], 1, 4*4 + 2},
		{"sessiond's session", own, &ofOwn[0], 1, 4*4 + 2},
	} {
		now := testkit.Must(s.Session(ctx, row.id))(t)
		effective := testkit.Must(s.Effective(ctx, now))(t)
		same := effective == nil && row.want == nil ||
			effective != nil && row.want != nil && effective.RowID == row.want.RowID
		if !same || now.CompactionCount != row.count || now.ContextTokens != row.tokens {
			t.Errorf("%s: in force is %+v, count %d, context %d", row.name, effective, now.CompactionCount, now.ContextTokens)
		}
	}
}

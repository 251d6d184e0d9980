package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func record(key, parent string, role session.Role, text string) ImportMessage {
	m := ImportMessage{Message: says(role, text), ParentKey: parent}
	m.ExternalID = key
	m.CreatedAt = session.At(time.Date(2025, 5, 1, 10, 0, len(key), 0, time.UTC))
	return m
}

// history is a batch as a source gives it: a tree, an overlay, marks, calls, a cursor.
func history() ImportBatch {
	title, head, at := "from pi", "c", session.At(time.Date(2025, 5, 1, 11, 0, 0, 0, time.UTC))
	return ImportBatch{
		Session: NewSession{Source: session.SourcePi, SourceID: "uuid", Directory: "/d", CreatedAt: &at},
		Messages: []ImportMessage{
			record("a", "", session.User, "aaaa"), record("b", "a", session.Assistant, "bbbb"),
			record("x", "a", session.Assistant, "left"), record("c", "b", session.User, "cccc"),
		},
		Compactions: []ImportCompaction{{Compaction: session.Compaction{
			Strategy: session.StrategySummarize, Trigger: session.TriggerImport, Status: session.StatusDone, SummaryTokens: 3,
			CreatedAt: at,
		}, Key: "cmp", ThroughKey: "a", FirstKeptKey: "b"}},
		Marks: []ImportMark{{MessageKey: "a", Kind: MarkPin}, {MessageKey: "b", Kind: MarkLabel, Text: "here"}},
		Calls: []ImportCall{{
			Call:       session.Call{ExternalID: "r1", InputTokens: 7, CostNanoUSD: priced(3), CreatedAt: at},
			MessageKey: "b",
		}},
		Title: &title, Head: &head,
		Cursor: &ImportCursor{
			Source: session.SourcePi, Path: "/f.jsonl", Size: 100, Offset: 90, Hash: "h",
			State: session.JSON(`{"v":3}`),
		},
	}
}

func TestImportStoresASourcesTree(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	res := testkit.Must(s.Import(ctx, history()))(t)
	if res.Messages != 4 || res.Calls != 1 || !res.Created || res.Duplicates != 0 {
		t.Errorf("%+v", res)
	}
	got := testkit.Must(s.SessionBySource(ctx, session.SourcePi, "uuid"))(t)
	if got.ID != "20250501_001" || got.Title != "from pi" || got.TitleSource != "source" || got.Head.Seq != 4 ||
		got.ContextTokens != 8+3 || got.CompactionCount != 1 || got.InputTokens != 7 {
		t.Errorf("%+v", got)
	}
	path := testkit.Must(s.Path(ctx, *got.HeadID, 0))(t)
	if fmt.Sprint(refs(path)) != "[20250501_001.1 20250501_001.2 20250501_001.4]" {
		t.Errorf("%v", refs(path))
	}
	if c := testkit.Must(s.Effective(ctx, got))(t); c == nil || c.Through.Seq != 1 || c.FirstKept.Seq != 2 {
		t.Errorf("%+v", c)
	}
	if pins, labels := testkit.Must(s.Pins(ctx, got.ID))(t), labelsOf(t, s, got.ID); len(pins) != 1 ||
		labels[path[1].RowID] != "here" {
		t.Errorf("%v %v", pins, labels)
	}
	if c := testkit.Must(s.ImportCursor(ctx, session.SourcePi, "/f.jsonl"))(t); c.SessionID != got.ID || c.Offset != 90 ||
		string(c.State) != `{"v":3}` {
		t.Errorf("%+v", c)
	}
	if c := testkit.Must(s.ImportCursor(ctx, session.SourcePi, "/other"))(t); c != nil {
		t.Errorf("%+v", c)
	}
	_, err := s.SessionBySource(ctx, session.SourceGoose, "uuid")
	wants(t, err, session.NotFound, "")
	mustBeHealthy(t, s)
}

func TestImportingTwiceChangesNothing(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	testkit.Must(s.Import(ctx, history()))(t)
	before := testkit.Must(s.SessionBySource(ctx, session.SourcePi, "uuid"))(t)
	rows := `SELECT (SELECT COUNT(*) FROM events) * 1000000 + (SELECT COUNT(*) FROM messages) * 10000 + (SELECT COUNT(*) FROM calls) * 100 + (SELECT COUNT(*) FROM compactions)`
	n := count(t, s, rows)
	res := testkit.Must(s.Import(ctx, history()))(t)
	if res.Messages != 0 || res.Duplicates != 4 || res.Calls != 0 || res.Created || count(t, s, rows) != n {
		t.Errorf("%+v, rows %d, not %d", res, count(t, s, rows), n)
	}
	testkit.Equal(t, before, testkit.Must(s.Session(ctx, before.ID))(t))
}

func TestALaterBatchGoesOnWhereTheSourceDid(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	first := testkit.Must(s.Import(ctx, history()))(t)
	head := "e"
	res := testkit.Must(s.Import(ctx, ImportBatch{
		Session: NewSession{Source: session.SourcePi, SourceID: "uuid"},
		Messages: []ImportMessage{
			record("c", "b", session.User, "cccc"), record("d", "c", session.Assistant, "dddd"),
			record("e", "x", session.User, "eeee"),
		},
		Marks: []ImportMark{{MessageKey: "b", Kind: MarkLabel}}, Head: &head,
	}))(t)
	if res.Created || res.Messages != 2 || res.Duplicates != 1 || res.Session.ID != first.Session.ID ||
		res.Session.Epoch <= first.Session.Epoch {
		t.Errorf("%+v", res)
	}
	if path := testkit.Must(s.Path(ctx, *res.Session.HeadID,
		0))(t); fmt.Sprint(refs(path)) != "[20250501_001.1 20250501_001.3 20250501_001.6]" {
		t.Errorf("%v", refs(path))
	}
	if labels := labelsOf(t, s, first.Session.ID); len(labels) != 0 {
		t.Errorf("an empty label clears: %v", labels)
	}
	mustBeHealthy(t, s)
}

func TestImportedResultsFindTheirCalls(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	ask, answer := ImportMessage{Message: calls("1", "2")}, ImportMessage{Message: results("2", "1"), ParentKey: "ask"}
	ask.ExternalID, answer.ExternalID = "ask", "answer"
	res := testkit.Must(s.Import(ctx, ImportBatch{
		Session:  NewSession{Source: session.SourcePi, SourceID: "u"},
		Messages: []ImportMessage{ask, answer},
	}))(t)
	got := testkit.Must(s.MessageByID(ctx, *res.Session.HeadID))(t)
	if *got.Parts[0].CallPartID&1023 != 1 || *got.Parts[1].CallPartID&1023 != 0 {
		t.Errorf("%+v", got.Parts)
	}
	mustBeHealthy(t, s)
}

func TestAPersonsTitleStays(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	first := testkit.Must(s.Import(ctx, history()))(t)
	mine, theirs := "mine", "theirs"
	testkit.Must(s.PatchSession(ctx, first.Session.ID, SessionPatch{Title: &mine}))(t)
	if res := testkit.Must(s.Import(ctx, ImportBatch{
		ID:    first.Session.ID,
		Title: &theirs,
	}))(t); res.Session.Title != "mine" {
		t.Errorf("%q", res.Session.Title)
	}
}

func TestABatchThatNamesWhatIsNotThereIsRefusedWhole(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	nowhere := "nowhere"
	for name, spoil := range map[string]func(*ImportBatch){
		"parent":     func(b *ImportBatch) { b.Messages[3].ParentKey = nowhere },
		"call":       func(b *ImportBatch) { b.Calls[0].MessageKey = nowhere },
		"head":       func(b *ImportBatch) { b.Head = &nowhere },
		"mark":       func(b *ImportBatch) { b.Marks[0].MessageKey = nowhere },
		"compaction": func(b *ImportBatch) { b.Compactions[0].ThroughKey = nowhere },
		"kept":       func(b *ImportBatch) { b.Compactions[0].FirstKeptKey = nowhere },
		"text":       func(b *ImportBatch) { b.Messages[3].Parts[0].Text = "\x00" },
	} {
		b := history()
		spoil(&b)
		_, err := s.Import(ctx, b)
		if session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := count(t, s, `SELECT (SELECT COUNT(*) FROM sessions) + (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM imports) + (SELECT COUNT(*) FROM daily_usage)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	testkit.Must(s.Import(ctx, history()))(t)
	mustBeHealthy(t, s)
}

func TestImportedForkBeginsInItsOrigin(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	origin := testkit.Must(s.Import(ctx, history()))(t).Session
	own := record("own", "b", session.User, "another way")
	own.ParentSession = origin.ID
	head := "b"
	batch := ImportBatch{
		Session: NewSession{
			Source: session.SourcePi, SourceID: "fork", ParentID: origin.ID, ParentKind: session.ParentFork,
			CreatedAt: &own.CreatedAt,
		},
		Messages: []ImportMessage{own},
	}
	fork := testkit.Must(s.Import(ctx, batch))(t).Session
	if path := testkit.Must(s.Path(ctx, *fork.HeadID, 0))(t); fmt.Sprint(refs(path)) != fmt.Sprintf("[%s.1 %s.2 %s.1]",
		origin.ID, origin.ID, fork.ID) {
		t.Errorf("%v", refs(path))
	}
	if overlay := testkit.Must(s.Effective(ctx, fork))(t); overlay != nil {
		t.Errorf("it was made before the overlay %+v", overlay)
	}
	late := session.At(time.Date(2025, 5, 2, 0, 0, 0, 0, time.UTC))
	second := batch
	second.Session.SourceID, second.Session.CreatedAt, second.Messages = "late", &late, []ImportMessage{own}
	if overlay := testkit.Must(s.Effective(ctx, testkit.Must(s.Import(ctx, second))(t).Session))(t); overlay == nil ||
		overlay.SessionID != origin.ID {
		t.Errorf("a fork inherits what was in force when it was made, not %+v", overlay)
	}
	fork = testkit.Must(s.Import(ctx, ImportBatch{ID: fork.ID, Head: &head, HeadSession: origin.ID}))(t).Session
	if fork.Head.Session != origin.ID || fork.Head.Seq != 2 {
		t.Errorf("the head is %v: all of the fork's own messages were taken back", fork.Head)
	}
	mustBeHealthy(t, s)
	batch.Session.SourceID, batch.Messages[0].ParentKey = "other", "nowhere"
	_, err := s.Import(ctx, batch)
	wants(t, err, session.Invalid, "nowhere")
}

func TestImportTakesWhatTheSourceSaysNow(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	first := testkit.Must(s.Import(ctx, history()))(t).Session
	mine := session.JSON(`{"mine":1}`)
	testkit.Must(s.PatchSession(ctx, first.ID, SessionPatch{Metadata: &mine}))(t)
	at := session.At(time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC))
	fields := &ImportFields{Model: "m2", ArchivedAt: &at, Metadata: session.JSON(`{"x":[1]}`)}
	got := testkit.Must(s.Import(ctx, ImportBatch{ID: first.ID, Fields: fields}))(t).Session
	if got.Model != "m2" || got.ArchivedAt == nil || string(got.Metadata) != `{"mine":1,"pi":{"x":[1]}}` {
		t.Errorf("%+v", got)
	}
	if again := testkit.Must(s.Import(ctx, ImportBatch{
		ID:     first.ID,
		Fields: fields,
	}))(t).Session; again.Revision != got.Revision {
		t.Error("saying the same again wrote something")
	}
	testkit.Equal(t, got, testkit.Must(s.Session(ctx, got.ID))(t))
	mustBeHealthy(t, s)
}

func TestImportTakesKeyParentAndEnd(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	parent := testkit.Must(s.Import(ctx, ImportBatch{Session: NewSession{
		Source:   session.SourceOpenClaw,
		SourceID: "main/parent",
	}}))(t).Session
	child := testkit.Must(s.Import(ctx, ImportBatch{Session: NewSession{
		Source:   session.SourceOpenClaw,
		SourceID: "main/child",
	}}))(t).Session
	at := session.At(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	fields := &ImportFields{
		Key: "agent:main:subagent:1", Generation: 2, ParentID: parent.ID, ParentKind: session.ParentChild, EndedAt: &at,
		EndReason: "daily",
	}
	got := testkit.Must(s.Import(ctx, ImportBatch{ID: child.ID, Fields: fields}))(t).Session
	if got.Key != fields.Key || got.Generation != 2 || got.ParentID != parent.ID || got.ParentKind != "child" ||
		got.EndedAt == nil || got.EndReason != "daily" {
		t.Errorf("%+v", got)
	}
	testkit.Equal(t, got, testkit.Must(s.Session(ctx, got.ID))(t))
	if again := testkit.Must(s.Import(ctx, ImportBatch{
		ID:     child.ID,
		Fields: fields,
	}))(t).Session; again.Revision != got.Revision {
		t.Error("saying the same again wrote something")
	}
	fields = &ImportFields{ParentID: child.ID, ParentKind: session.ParentFork}
	if again := testkit.Must(s.Import(ctx, ImportBatch{
		ID:     child.ID,
		Fields: fields,
	}))(t).Session; again.ParentID != parent.ID || again.Revision != got.Revision {
		t.Error("a session that has a parent keeps it")
	}
	mustBeHealthy(t, s)
}

func TestABatchWithoutASessionIsACursorAlone(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	res := testkit.Must(s.Import(ctx, ImportBatch{Cursor: &ImportCursor{
		Source: session.SourceOpenClaw,
		Path:   "/gone.jsonl", Size: 7,
	}}))(t)
	if res.Session.ID != "" || count(t, s, `SELECT COUNT(*) FROM sessions`) != 0 {
		t.Errorf("%+v", res)
	}
	if c := testkit.Must(s.ImportCursor(ctx, session.SourceOpenClaw, "/gone.jsonl"))(t); c == nil || c.Size != 7 ||
		c.SessionID != "" {
		t.Errorf("%+v", c)
	}
}

func TestDuplicatesAreCountedInRecords(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	b := history()
	b.Messages[0].Records, b.Calls[0].Records = 3, 2
	first := testkit.Must(s.Import(ctx, b))(t)
	if again := testkit.Must(s.Import(ctx, b))(t); first.Duplicates != 0 || again.Duplicates != 3+1+1+1+2 {
		t.Errorf("%d, then %d", first.Duplicates, again.Duplicates)
	}
	at := testkit.Must(s.MessageByKey(ctx, first.Session.ID, "b"))(t)
	if at == nil || at.Seq != 2 {
		t.Errorf("%v", at)
	}
	if none := testkit.Must(s.MessageByKey(ctx, first.Session.ID, "nowhere"))(t); none != nil {
		t.Errorf("%v", none)
	}
	if owner := testkit.Must(s.SessionOfCall(ctx, session.SourcePi, "r1"))(t); owner != first.Session.ID {
		t.Errorf("the call is of %q", owner)
	}
	if owner := testkit.Must(s.SessionOfCall(ctx, session.SourcePi, "r2"))(t); owner != "" {
		t.Errorf("the call is of %q", owner)
	}
}

func TestAnImportMakesNoSessionItsOwnAncestor(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	top := mustCreate(t, s, NewSession{})
	child := mustCreate(t, s, NewSession{ParentID: top.ID})
	grandchild := mustCreate(t, s, NewSession{ParentID: child.ID})
	for _, parent := range []session.ID{top.ID, child.ID, grandchild.ID} {
		_, err := s.Import(ctx, ImportBatch{
			ID:     top.ID,
			Fields: &ImportFields{ParentID: parent, ParentKind: session.ParentChild},
		})
		wants(t, err, session.Invalid, "cannot hang on")
	}
	if got := testkit.Must(s.Session(ctx, top.ID))(t); got.ParentID != "" || got.Revision != top.Revision {
		t.Errorf("%+v", got)
	}
	other := mustCreate(t, s, NewSession{})
	testkit.Must(s.Import(ctx, ImportBatch{
		ID:     top.ID,
		Fields: &ImportFields{ParentID: other.ID, ParentKind: session.ParentChild},
	}))(t)
	if sum := testkit.Must(s.Rollups(ctx, []session.ID{other.ID}))(t)[other.ID]; sum.Children != 3 {
		t.Errorf("%+v", sum)
	}
}

func TestAnImportedForkHasTheTreeThatItShares(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	named := func(key, parent string, in session.ID) ImportMessage {
		m := says(session.User, key)
		m.ExternalID = key
		return ImportMessage{Message: m, ParentKey: parent, ParentSession: in}
	}
	origin := testkit.Must(s.Import(ctx, ImportBatch{
		Session:  NewSession{Source: session.SourcePi, SourceID: "origin"},
		Messages: []ImportMessage{named("a", "", ""), named("b", "a", ""), named("c", "b", "")},
	}))(t).Session
	fork := testkit.Must(s.Import(ctx, ImportBatch{
		Session:  NewSession{Source: session.SourcePi, SourceID: "fork", ParentID: origin.ID, ParentKind: session.ParentFork},
		Messages: []ImportMessage{named("x", "b", origin.ID)},
	}))(t).Session
	tree := testkit.Must(s.Tree(ctx, fork.ID, TreePage{}))(t)
	if len(tree.Segments) != 2 || tree.Segments[0].Last.ID != *ref(origin.ID, 2) || !tree.Segments[0].OnPath ||
		!tree.Segments[0].Shared {
		t.Errorf("%+v", tree.Segments)
	}
	testkit.Must(s.MoveHead(ctx, HeadMove{Session: fork.ID, To: ref(origin.ID, 1)}))(t)
	_, err := s.MoveHead(ctx, HeadMove{Session: fork.ID, To: ref(origin.ID, 3)})
	wants(t, err, session.Invalid, "is of another session")
	testkit.Must(s.Import(ctx, ImportBatch{ID: fork.ID, Messages: []ImportMessage{named("y", "c", origin.ID)}}))(t)
	testkit.Must(s.MoveHead(ctx, HeadMove{Session: fork.ID, To: ref(origin.ID, 3)}))(t)
	mustBeHealthy(t, s)
}

func TestImportRejectsWhatTheSchemaRejects(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	for name, spoil := range map[string]func(m *session.Message){
		"kind":           func(m *session.Message) { m.Kind = "talk" },
		"role":           func(m *session.Message) { m.Role = "function" },
		"origin":         func(m *session.Message) { m.Origin = "agent" },
		"finish":         func(m *session.Message) { m.Finish = "Stop" },
		"metadata":       func(m *session.Message) { m.Metadata = session.JSON(`{`) },
		"extra":          func(m *session.Message) { m.Extra = session.JSON(`[1,]`) },
		"a part's kind":  func(m *session.Message) { m.Parts[0].Kind = "" },
		"a part's extra": func(m *session.Message) { m.Parts[0].Extra = session.JSON(`{'a': 1}`) },
	} {
		b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: name}}
		for i := range 30 {
			in := record(fmt.Sprint(i), "", session.User, "text")
			if i == 29 {
				spoil(&in.Message)
			}
			b.Messages = append(b.Messages, in)
		}
		if _, err := s.Import(ctx, b); session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spoil := range map[string]func(c *session.Call){
		"a call's purpose":  func(c *session.Call) { c.Purpose = "talk" },
		"a call's status":   func(c *session.Call) { c.Status = "OK" },
		"its price":         func(c *session.Call) { c.PriceSource = "guessed" },
		"a call's metadata": func(c *session.Call) { c.Metadata = session.JSON(`{`) },
	} {
		b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: name}}
		for i := range 30 {
			b.Calls = append(b.Calls, ImportCall{Call: session.Call{ExternalID: fmt.Sprint(name, i)}})
		}
		spoil(&b.Calls[29].Call)
		if _, err := s.Import(ctx, b); session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	n, err := engine.Get[int](ctx, s, `SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM parts) + (SELECT COUNT(*) FROM sessions)`)
	if err != nil || n != 0 {
		t.Errorf("%d rows were stored, %v", n, err)
	}
}

// open tells which generations of a key are open.
func openGenerations(t *testing.T, s *Store, key string) (ids []session.ID) {
	t.Helper()
	testkit.Check(t, s.Reader().Select(&ids, `SELECT id FROM sessions WHERE key = ? AND ended_at IS NULL ORDER BY id`, key))
	return ids
}

// An import into a key leaves it one open generation: that of a conversation that goes on here.
func TestAnImportLeavesAKeyOneOpenGeneration(t *testing.T) {
	const key = "agent:main:main"
	imported := func(s *Store, source session.Source, id string, generation int64) session.Session {
		t.Helper()
		b := ImportBatch{Session: NewSession{Source: source, SourceID: id, Key: key, Generation: generation}}
		b.Messages = []ImportMessage{record(id, "", session.User, "hello")}
		return testkit.Must(s.Import(t.Context(), b))(t).Session
	}
	t.Run("that was begun here", func(t *testing.T) {
		s := openTest(t)
		live := mustCreate(t, s, NewSession{Key: key})
		old := imported(s, session.SourceOpenClaw, "a", 7)
		old = testkit.Must(s.Session(t.Context(), old.ID))(t)
		if open := openGenerations(t, s, key); len(open) != 1 || open[0] != live.ID || old.EndReason != "rpc" ||
			old.Generation != 7 {
			t.Errorf("open %v, imported %+v", open, old)
		}
		if again := imported(s, session.SourceOpenClaw, "a", 7); again.Revision != old.Revision {
			t.Errorf("the second import wrote: %+v", again)
		}
		goesOn := testkit.Must(s.Route(t.Context(), Route{Key: key, Decide: func(g *Generation) (Turnover, error) {
			return Turnover{}, nil
		}}))(t)
		if goesOn.Session.ID != live.ID || goesOn.Session.Generation != 8 {
			t.Errorf("the key goes on in %s, generation %d", goesOn.Session.ID, goesOn.Session.Generation)
		}
	})
	t.Run("of one program, in any order", func(t *testing.T) {
		s := openTest(t)
		imported(s, session.SourceOpenClaw, "b", 2)
		imported(s, session.SourceOpenClaw, "a", 1)
		last := imported(s, session.SourceOpenClaw, "c", 3)
		if open := openGenerations(t, s, key); len(open) != 1 || open[0] != last.ID {
			t.Errorf("open %v", open)
		}
	})
	mustBeOne := func(s *Store, want session.ID) {
		t.Helper()
		if open := openGenerations(t, s, key); len(open) != 1 || open[0] != want {
			t.Errorf("open %v, not %s", open, want)
		}
	}
	t.Run("by an export", func(t *testing.T) {
		s := openTest(t)
		live := mustCreate(t, s, NewSession{Key: key})
		in := live
		in.ID, in.Generation, in.Revision = "20200101_001", 1, 3
		in.Day = "2020-01-01"
		b := RestoreBatch{Into: &Restoring{}, Session: SavedSession{Session: in}, Begin: true, End: true}
		came := testkit.Must(s.Restore(t.Context(), b))(t).Session
		if came.Key != key || came.Generation != 1 || came.EndReason != "rpc" || came.Revision != 3 {
			t.Errorf("%+v", came)
		}
		mustBeOne(s, live.ID)
		b.Into = &Restoring{}
		if again := testkit.Must(s.Restore(t.Context(), b))(t); again.Messages > 0 || again.Created {
			t.Errorf("again %+v", again)
		}
		mustBeOne(s, live.ID)
	})
}

// pruning is a call with its result on the path of history's session, and an overlay that hides
// the result, named by the call alone, and one that replaces the call's message.
func pruning(id session.ID) ImportBatch {
	asks, answers := calls("p"), results("p")
	asks.ExternalID, answers.ExternalID = "asks", "answers"
	answers.Parts[0].Text = strings.Repeat("x", 400)
	head := "answers"
	made := func(hour int) session.Compaction {
		return session.Compaction{
			Strategy: session.StrategyPrune, Trigger: session.TriggerImport, Status: session.StatusDone,
			CreatedAt: session.At(time.Date(2025, 5, 1, hour, 0, 0, 0, time.UTC)),
		}
	}
	return ImportBatch{
		ID: id, Head: &head,
		Messages: []ImportMessage{{Message: asks, ParentKey: "c"}, {Message: answers, ParentKey: "asks"}},
		Compactions: []ImportCompaction{
			{
				Compaction: made(12), ThroughKey: "answers", At: ImportPlace{Key: "answers"},
				Pruned: []ImportOutput{{CallID: "p"}, {CallID: "gone"}},
			},
			{Compaction: made(13), Replaced: []ImportReplaced{{
				Messages: []ImportPlace{{Key: "asks"}, {Key: "answers"}},
				Text:     "It asked.",
			}}},
		},
	}
}

func TestImportedPruningRestsOnTheSummary(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := testkit.Must(s.Import(ctx, history()))(t).Session
	for range 2 { // the second time nothing changes
		sess = testkit.Must(s.Import(ctx, pruning(sess.ID)))(t).Session
	}
	all := testkit.Must(s.Compactions(ctx, sess.ID))(t)
	if len(all) != 3 || sess.CompactionCount != 3 {
		t.Fatalf("%d records, %d counted", len(all), sess.CompactionCount)
	}
	for i, c := range all[1:] {
		if c.PreviousID == nil || *c.PreviousID != all[i].RowID || c.FirstKeptID == nil ||
			*c.FirstKeptID != *all[0].FirstKeptID || c.SummaryTokens != all[0].SummaryTokens {
			t.Errorf("%+v does not rest on %+v", c, all[i])
		}
	}
	var details session.CompactionDetails
	if err := json.Unmarshal(all[2].Details, &details); err != nil || len(details.Pruned) != 1 ||
		!strings.HasSuffix(details.Pruned[0], "/0") || len(details.Replaced) != 1 {
		t.Errorf("%+v %v", details, err)
	}
	path := testkit.Must(s.Path(ctx, *sess.HeadID, 0))(t)
	size, hidden := path[len(path)-1].PathTokens, all[0].HiddenTokens
	if saved := all[1].HiddenTokens - hidden; saved != session.PrunedSaves(path[len(path)-1].Parts[0].Tokens) ||
		saved <= 0 {
		t.Errorf("the pruning hides %d tokens more", saved)
	}
	if all[1].TokensBefore != size+all[0].SummaryTokens-hidden ||
		all[1].TokensAfter != size+all[0].SummaryTokens-all[1].HiddenTokens {
		t.Errorf("%d tokens before, %d after; the path has %d", all[1].TokensBefore, all[1].TokensAfter, size)
	}
	if sess = testkit.Must(s.UndoCompaction(ctx, sess.ID, all[2].RowID))(t); *sess.CompactionID != all[1].RowID {
		t.Errorf("%d is in force", *sess.CompactionID)
	}
}

func TestImportKeepsImpossibleDatesAndIsActiveUntilNow(t *testing.T) {
	now := session.At(time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC))
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now.Time } })
	b, far := history(), session.At(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	b.Session.CreatedAt, b.Messages[0].CreatedAt = &far, far
	got := testkit.Must(s.Import(t.Context(), b))(t).Session
	if got.CreatedAt != far || got.ActiveAt != now || *got.InboundAt != now {
		t.Errorf("created %v, active %v, inbound %v", got.CreatedAt, got.ActiveAt, got.InboundAt)
	}
	if first := testkit.Must(s.Message(t.Context(),
		session.MessageRef{Session: got.ID, Seq: 1}))(t); first.CreatedAt != far {
		t.Errorf("the message is dated %v", first.CreatedAt)
	}
}

// Two hosts share a database: each knows its own files, and a session of one program's id on both is not mixed.
func TestHostsImportTheirOwn(t *testing.T) {
	s := openTest(t, func(o *Options) { o.Host = "alpha" })
	if !s.IsPostgres() {
		t.Skip("a file has one host")
	}
	ctx := t.Context()
	testkit.Must(s.Import(ctx, history()))(t)
	other := testkit.Must(Open(ctx, s.File(), Options{Measure: measure, Zone: time.UTC, Host: "beta"}))(t)
	defer other.Close() //nolint:errcheck // a test
	if c := testkit.Must(other.ImportCursor(ctx, session.SourcePi, "/f.jsonl"))(t); c != nil {
		t.Errorf("beta knows alpha's file: %+v", c)
	}
	if paths := testkit.Must(other.ImportedPaths(ctx, session.SourcePi))(t); len(paths) != 0 {
		t.Errorf("beta has imported %q", paths)
	}
	_, err := other.Import(ctx, history())
	wants(t, err, session.Conflict,
		"was imported from host alpha: if that is this host under an earlier name, or shares its files, set `host: alpha`")
	if c := testkit.Must(s.ImportCursor(ctx, session.SourcePi, "/f.jsonl"))(t); c == nil || c.Path != "/f.jsonl" ||
		c.Offset != 90 {
		t.Errorf("alpha's file is %+v", c)
	}
	testkit.Equal(t, []string{"/f.jsonl"}, testkit.Must(s.ImportedPaths(ctx, session.SourcePi))(t))
	mine := history()
	mine.Session.SourceID, mine.Calls = "another", nil
	testkit.Must(other.Import(ctx, mine))(t) // the same path on another host
	testkit.Equal(t, []string{"/f.jsonl"}, testkit.Must(other.ImportedPaths(ctx, session.SourcePi))(t))
	testkit.Must(s.Import(ctx, history()))(t) // alpha goes on
}

// The daemon asks for the folders that it follows: files in them are not listed, those beside them are.
func TestImportedPathsLeaveOutFilesOfFolders(t *testing.T) {
	s := openTest(t, func(o *Options) { o.Host = "alpha" })
	remember := func(state, path string) {
		testkit.Must(s.Import(t.Context(), ImportBatch{Cursor: &ImportCursor{
			Source: session.SourcePi, Path: path, State: session.JSON(state),
		}}))(t)
	}
	for _, root := range []string{"/a/b", "/a/b/nested", "/a/d"} {
		remember(RootState, root)
	}
	for _, file := range []string{
		"/a/a.jsonl", "/a/b/1.jsonl", "/a/b/nested/2.jsonl", "/a/b-3/3.jsonl", "/a/b.jsonl", "/a/c.jsonl", "/a/d/4.jsonl",
		"/a/d.db#one", "/z.jsonl", "lines:/pi/p/s",
	} {
		remember(`{}`, file)
	}
	remember(RefusedState, "/a/broken.jsonl")
	got := testkit.Must(s.ImportedPaths(t.Context(), session.SourcePi))(t)
	slices.Sort(got)
	testkit.Equal(t, []string{
		"/a/a.jsonl", "/a/b", "/a/b-3/3.jsonl", "/a/b.jsonl", "/a/c.jsonl", "/a/d", "/a/d.db#one", "/z.jsonl",
	}, got)

	var seen []string
	testkit.Check(t, s.EachImportCursor(t.Context(), session.SourcePi, "/a/b", "/a/c.jsonl", func(c *ImportCursor) {
		seen = append(seen, c.Path)
	}))
	testkit.Equal(t, []string{
		"/a/b", "/a/b-3/3.jsonl", "/a/b.jsonl", "/a/b/1.jsonl", "/a/b/nested", "/a/b/nested/2.jsonl", "/a/broken.jsonl",
		"/a/c.jsonl",
	}, seen)
}

// What importers understood wrongly is read again after the update: the rollouts of Codex' sub-agents, and files with
// lines that were kept raw.
func TestMigrationReadsFilesAgain(t *testing.T) {
	onFile(t)
	ctx, s := t.Context(), openTest(t)
	raw := session.Message{Kind: session.KindUnknown, Role: session.User}
	raw.Extra = session.JSON(`{"note":"not a JSON object"}`)
	said := session.Message{Role: session.User, Parts: []session.Part{session.TextPart("a")}}
	batch := func(source session.Source, name string, parent session.ID, m session.Message) session.ID {
		m.ExternalID = name
		b := ImportBatch{
			Session: NewSession{Source: source, SourceID: name, ParentID: parent}, Messages: []ImportMessage{{Message: m}},
			Cursor: &ImportCursor{Source: source, Path: "/" + name, Size: 9, Offset: 9, Hash: "ab"},
		}
		if parent != "" {
			b.Session.ParentKind = session.ParentChild
		}
		return testkit.Must(s.Import(ctx, b))(t).Session.ID
	}
	parent := batch(session.SourceCodex, "parent", "", said)
	batch(session.SourceCodex, "child", parent, said)
	batch(session.SourceCodex, "whole", "", said)
	batch(session.SourceCodex, "torn", "", raw)
	testkit.Check(t, s.Close())
	rewind(t, s.File(), 128)
	s = testkit.Must(Open(ctx, s.File(), Options{Measure: measure, Zone: time.UTC}))(t)
	defer s.Close() //nolint:errcheck // a test
	got := testkit.Must(engine.List[string](ctx, s, `SELECT path FROM imports WHERE size < 0 AND hash = '' AND "offset" = 9
		ORDER BY path`))(t)
	testkit.Equal(t, []string{"/child", "/torn"}, got)
}

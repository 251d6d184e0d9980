package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// useEverything runs every statement that requests are made of, so that the plans below are
// of what the code runs and of nothing else.
func useEverything(t *testing.T, s *Store) {
	ctx := context.Background()
	idem := &Idempotency{Key: "k", Route: "r"}
	b := history()
	sess := testkit.Must(s.Import(ctx, b))(t).Session
	testkit.Must(s.Append(ctx, Append{Session: sess.ID, Messages: []session.Message{
		calls("1"),
		says(session.User, strings.Repeat("x", 100_000)),
	}, Idem: idem}))(t)
	testkit.Must(s.Append(ctx, Append{
		Session: sess.ID, Messages: []session.Message{calls("1"), calls("1")},
		Call: &session.Call{InputTokens: 1, ExternalID: "e"},
	}))(t)
	testkit.Must(s.Append(ctx, Append{
		Session: sess.ID, Messages: []session.Message{results("1", "1", "2", "made_bash_1")},
		Idem: idem,
	}))(t)
	testkit.Must(s.Append(ctx, Append{
		Session: sess.ID, Parent: ref(sess.ID, 1),
		Messages: []session.Message{results("1")},
	}))(t)
	testkit.Must(s.Import(ctx, pruning(sess.ID)))(t)
	testkit.Must(s.SessionBySource(ctx, session.SourcePi, "uuid"))(t)
	testkit.Must(s.ImportCursor(ctx, session.SourcePi, "/f.jsonl"))(t)
	testkit.Check(t, s.EachImportCursor(ctx, session.SourcePi, "/a", "/f.jsonl", func(*ImportCursor) {}))
	testkit.Must(s.ImportedPaths(ctx, session.SourcePi))(t)
	testkit.Must(s.MessageByKey(ctx, sess.ID, "a"))(t)
	testkit.Must(s.SessionOfCall(ctx, session.SourcePi, "r1"))(t)
	at := testkit.Must(s.Session(ctx, sess.ID))(t)
	testkit.Must(s.Path(ctx, *at.HeadID, 0))(t)
	testkit.Check(t, s.EachOnPath(ctx, *at.HeadID, func(*session.Message) error { return nil }))
	testkit.Must(s.OnPath(ctx, *at.HeadID, 1))(t)
	testkit.Must(s.MessagesAfter(ctx, 0, 10))(t)
	testkit.Must(s.MessagesByID(ctx, []int64{1, 2}))(t)
	testkit.Must(s.InTrash(ctx, []session.ID{sess.ID}))(t)
	testkit.Must(s.Measures(ctx, []session.Session{sess}, func(string) (session.ModelInfo, bool) {
		return session.ModelInfo{}, false
	}))(t)
	testkit.Must(s.LastMessageID(ctx))(t)
	testkit.Must(s.FilesOfSession(ctx, sess.ID))(t)
	testkit.Must(s.CallCosts(ctx, sess.ID))(t)
	_, _, err := s.Neighbours(ctx, &session.Session{ID: sess.ID, Project: "/p"})
	testkit.Check(t, err)
	testkit.Must(s.Activity(ctx, "2026-01-01", "2026-12-31", nil, nil))(t)
	testkit.Must(s.Facets(ctx, Filter{People: true}, 10))(t)
	large := testkit.Must(s.Append(ctx, Append{
		Session:  sess.ID,
		Messages: []session.Message{says(session.User, strings.Repeat("y", 2*pieceSize))},
	}))(t)
	testkit.Must(s.Message(ctx, *large.Head))(t)
	testkit.Must(s.MessagesAfter(ctx, 0, 100))(t)
	testkit.Must(s.Blob(ctx, hash([]byte(strings.Repeat("y", 2*pieceSize)))))(t)
	testkit.Must(s.LastReport(ctx, at))(t)
	testkit.Must(s.Reports(ctx, sess.ID, 5))(t)
	testkit.Must(s.TouchedFiles(ctx, 0, *at.HeadID))(t)
	if _, _, err := s.FileSessions(ctx, FileFilter{Paths: []string{"/d"}}, Page{}); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, 5} {
		if _, _, err := s.Prompts(ctx, *at.HeadID, 1, limit); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(s.SessionsNamed(ctx, []string{"plan"}))(t)
	testkit.Must(s.SetMark(ctx, sess.ID, *ref(sess.ID, 1), MarkPin, "", true))(t)
	testkit.Must(s.Pins(ctx, sess.ID))(t)
	labelsOf(t, s, sess.ID)
	testkit.Must(s.Frozen(ctx, sess))(t)
	testkit.Must(s.Effective(ctx, at))(t)
	c := testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 1, session.StatusStaged, 1)))(t)
	testkit.Must(s.Staged(ctx))(t)
	testkit.Must(s.Activate(ctx, sess.ID, c.RowID))(t)
	testkit.Must(s.UndoCompaction(ctx, sess.ID, c.RowID))(t)
	testkit.Must(s.RedoCompaction(ctx, sess.ID, c.RowID))(t)
	testkit.Must(s.AddCall(ctx, session.Call{SessionID: sess.ID, ExternalID: "e"}))(t)
	testkit.Must(s.SaveContext(ctx, session.Context{SessionID: sess.ID}, map[string]string{session.BlockSystem: "x"},
		nil))(t)
	if _, _, err := s.LastContext(ctx, sess.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Must(s.Context(ctx, sess.ID, 1))(t)
	if _, _, err := s.Calls(ctx, sess.ID, Page{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Page{{}, {Ascending: true}, {Cursor: encodeCursor("2030-01-01 00:00:00.000", "20300101_001")}} {
		for _, f := range []Filter{
			{},
			{Trash: true},
			{Archived: true},
			{Starred: true},
			{People: true},
			{Source: session.SourcePi},
			{Directory: "/d"},
			{Project: "/p"},
			{Among: map[Column][]string{ColumnProject: {"/p"}}},
			{Since: &at.CreatedAt},
		} {
			if _, _, err := s.Sessions(ctx, f, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Resolve(ctx, "@", "/nowhere/d"); session.CodeOf(err) != session.NotFound {
		t.Fatal(err)
	}
	for _, name := range []string{"@", "@@", "uuid", "20250501", session.CompactionName(c.RowID), session.ContextName(1)} {
		testkit.Must(s.Resolve(ctx, name, "/d"))(t)
	}
	useCopies(t, s, sess.ID)
	useKeys(t, s, sess.ID, at.CreatedAt)
	useTrees(t, s, sess.ID)
	testkit.Must(s.PatchSession(ctx, sess.ID, SessionPatch{Idem: &Idempotency{Key: "p"}}))(t)
	testkit.Must(s.SetTrash(ctx, sess.ID, true, nil, nil))(t)
	useAPurge(t, s)
}

// useKeys routes, and reads the keys.
func useKeys(t *testing.T, s *Store, id session.ID, at session.Time) {
	ctx := context.Background()
	again := func(*Generation) (Turnover, error) { return Turnover{New: true, At: at}, nil }
	testkit.Must(s.Route(ctx, Route{Key: "agent:main:main", Decide: again, Idem: &Idempotency{Key: "r"}}))(t)
	routed := testkit.Must(s.Route(ctx, Route{Key: "agent:main:main", Decide: again, Idem: &Idempotency{Key: "r2"}}))(t)
	testkit.Must(s.Route(ctx, Route{Key: "agent:main:main", Decide: again, Idem: &Idempotency{Key: "r2"}}))(t)
	testkit.Must(s.Route(ctx, Route{Key: "agent:main:main", Decide: func(*Generation) (Turnover, error) {
		return Turnover{Metadata: session.JSON(`{"a":1}`)}, nil
	}}))(t)
	testkit.Must(s.Append(ctx, Append{
		Session:  routed.Session.ID,
		Messages: []session.Message{says(session.User, "hi")},
	}))(t)
	testkit.Check(t, s.SetKeyLabel(ctx, "agent:main:main", "Taxes"))
	for _, p := range []Page{
		{},
		{Ascending: true},
		{Cursor: encodeCursor("2030-01-01 00:00:00.000", string(routed.Session.ID))},
	} {
		for _, f := range []KeyFilter{{}, {All: true}, {Since: &at}} {
			if _, _, err := s.Keys(ctx, f, p); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, _, err := s.Generations(ctx, "agent:main:main", p); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(s.Counters(ctx, id))(t)
}

// useAPurge purges a session that a fork shares, and then the fork.
func useAPurge(t *testing.T, s *Store) {
	ctx := context.Background()
	origin := mustCreate(t, s, NewSession{Title: "t"})
	mustAppend(t, s, origin.ID, says(session.User, "shared"))
	fork := mustCreate(t, s, NewSession{ParentID: origin.ID, ParentKind: session.ParentFork})
	mustAppend(t, s, origin.ID, says(session.User, strings.Repeat("y", 100_000)))
	testkit.Must(s.SaveContext(ctx, session.Context{SessionID: origin.ID}, map[string]string{session.BlockSystem: "y"},
		nil))(t)
	testkit.Must(s.AddCompaction(ctx, overlay(t, s, origin.ID, 2, session.StatusDone, 1)))(t)
	for _, id := range []session.ID{origin.ID, fork.ID} {
		p, _, err := s.BeginPurge(ctx, PurgeRequest{Session: id, Idem: &Idempotency{Key: string(id)}})
		testkit.Check(t, err)
		for rows := testkit.Must(p.Doomed(ctx))(t); len(rows) > 0; rows = testkit.Must(p.Doomed(ctx))(t) {
			testkit.Check(t, p.Delete(ctx, rows))
		}
		testkit.Must(p.Finish(ctx))(t)
	}
	testkit.Must(s.EventsAfter(ctx, 0, 10))(t)
	testkit.Must(s.RemoveEvents(ctx, time.Now().Add(time.Hour)))(t)
	if _, _, _, err := s.EventRange(ctx); err != nil {
		t.Fatal(err)
	}
}

// useCopies copies a session as exports do, and stores it anew.
func useCopies(t *testing.T, s *Store, id session.ID) {
	ctx := context.Background()
	b := RestoreBatch{Into: &Restoring{}, Begin: true, End: true}
	testkit.Check(t, s.Save(ctx, id, func(line any) error {
		switch row := line.(type) {
		case *SavedSession:
			b.Session = *row
			b.Session.ID, b.Session.SourceID, b.Session.Key, b.Session.Link = "20200101_001", "", "k", nil
		case *SavedMessage:
			in := RestoreMessage{Message: session.Message(row.MessageColumns)}
			in.ID.Session, in.SessionID = b.Session.ID, b.Session.ID
			b.Messages = append(b.Messages, in)
		case *SavedContext:
			b.Rows = append(b.Rows, row)
			_, err := s.Block(ctx, row.System)
			return err
		default:
			b.Rows = append(b.Rows, row)
		}
		return nil
	}))
	testkit.Must(s.Restore(ctx, b))(t)
	b.Begin, b.Session.Revision = true, b.Session.Revision+1
	b.Into = &Restoring{}
	testkit.Must(s.Restore(ctx, b))(t)
}

func useTrees(t *testing.T, s *Store, id session.ID) {
	ctx := context.Background()
	todos := StateChange{
		Session: id, Name: "todos", Idem: &Idempotency{Key: "s"},
		Change: func(session.JSON) (session.JSON, error) { return session.JSON("[]"), nil },
	}
	testkit.Must(s.ChangeState(ctx, todos))(t)
	testkit.Must(s.States(ctx, id))(t)
	testkit.Must(s.State(ctx, id, "todos"))(t)
	testkit.Must(s.SetMark(ctx, id, *ref(id, 1), MarkLabel, "here", true))(t)
	fork := testkit.Must(s.Fork(ctx, Fork{
		Session: id, At: ref(id, 2), States: []string{"todos"},
		Idem: &Idempotency{Key: "f"},
	}))(t)
	again := testkit.Must(s.Fork(ctx, Fork{Session: fork.ID}))(t)
	child := testkit.Must(s.CreateSession(ctx, NewSession{ParentID: id, Started: ref(id, 1)}))(t)
	testkit.Must(s.Append(ctx, Append{Session: again.ID, Messages: []session.Message{calls("z"), results("z")}}))(t)
	testkit.Must(s.MoveHead(ctx, HeadMove{Session: again.ID, To: ref(id, 1), Idem: &Idempotency{Key: "h"}}))(t)
	if _, _, err := s.AddBranchSummary(ctx, session.BranchSummary{
		Session: again.ID, After: ref(id, 1),
		Message: says(session.User, "left"),
	}); err != nil {
		t.Fatal(err)
	}
	testkit.Must(s.Frozen(ctx, again))(t)
	testkit.Must(s.Compactions(ctx, again.ID))(t)
	testkit.Must(s.Link(ctx, child))(t)
	testkit.Must(s.Hanging(ctx, id, 10))(t)
	testkit.Must(s.SharedPath(ctx, again.ID))(t)
	testkit.Must(s.Rollups(ctx, []session.ID{id}))(t)
	testkit.Must(s.Tree(ctx, again.ID, TreePage{Limit: 2}))(t)
	testkit.Must(s.TreeMessage(ctx, again.ID, *ref(id, 1)))(t)
	if _, _, err := s.Root(ctx, *again.HeadID); err != nil {
		t.Fatal(err)
	}
	testkit.Must(s.HideMessage(ctx, Hide{Session: again.ID, Message: *ref(id, 1)}))(t)
	testkit.Must(s.MessagesByWireID(ctx, id, "rs_1"))(t)
	testkit.Must(s.NearestOn(ctx, again.HeadID, 2))(t)
}

func TestStatementsOfRequestsUseIndexes(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	useEverything(t, s)
	onFile(t) // that all run is also shown on PostgreSQL
	queries := testkit.Must(s.Prepared(ctx))(t)
	if len(queries) < 60 {
		t.Errorf("only %d statements were seen", len(queries))
	}
	db := raw(t, s)
	for _, q := range slices.Compact(slices.Sorted(slices.Values(queries))) {
		if verb, _, _ := strings.Cut(strings.TrimSpace(q), " "); !slices.Contains([]string{
			"SELECT", "INSERT", "UPDATE",
			"DELETE", "WITH",
		}, strings.Fields(verb)[0]) {
			continue
		}
		if strings.Contains(q, "LIMIT ?") {
			t.Errorf("a bound LIMIT is planned for its value, anew at every execution; LIMIT +? is not: %s", q)
		}
		args := make([]any, strings.Count(q, "?"))
		for n := range 9 { // numbered ones may come again
			if !strings.Contains(q, fmt.Sprint("?", n+1)) && strings.Contains(q, "?1") {
				args = make([]any, n)
				break
			}
		}
		for _, detail := range planOf(t, db, q, args) {
			if (strings.HasPrefix(detail, "SCAN") || strings.Contains(detail, "TEMP B-TREE")) && !fineToScan(q, detail) {
				t.Errorf("%s\nin: %s", detail, q)
			}
		}
	}
}

// planOf returns the steps of a statement's query plan.
func planOf(t *testing.T, db *sql.DB, query string, args []any) (steps []string) {
	t.Helper()
	var plan []struct {
		ID, Parent, NotUsed int
		Detail              string
	}
	if err := sqlx.NewDb(db, "sqlite").Select(&plan, "EXPLAIN QUERY PLAN "+query, args...); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	for _, step := range plan {
		steps = append(steps, step.Detail)
	}
	return steps
}

// fineToScan names the scans that are meant: constant rows, recursive results, an index read
// in its order until a limit, and one per session of what is few.
func fineToScan(query, detail string) bool {
	switch {
	// a row for each of four tables; what is asked for
	case detail == "SCAN sqlite_sequence", strings.HasPrefix(detail, "SCAN k VIRTUAL TABLE"),
		strings.HasPrefix(detail, "SCAN json_each VIRTUAL TABLE"):
		return true
	case detail == "SCAN CONSTANT ROW", detail == "SCAN s" && query == spansOfPath,
		detail == "SCAN f" && query == sumsOfFamilies, detail == "SCAN c" && query == lastReports,
		strings.HasPrefix(detail, "SCAN h") && query == heirsOf:
		return true
	case strings.HasPrefix(detail, "SCAN s USING INDEX sessions_active"),
		strings.HasPrefix(detail, "SCAN s USING INDEX sessions_starred"),
		strings.HasPrefix(detail, "SCAN sessions USING INDEX sessions_active"):
		return true // newest first, until the page is full
	case detail == "SCAN events", detail == "SCAN sqlite_sequence": // by its row ids until a limit; a row per table
		return true
	case detail == "SCAN idempotency_keys" && query == forgetKeys: // from the oldest to the first that is kept
		return true
	// forks and runs of their paths
	case query == sharedRuns && slices.Contains([]string{"SCAN h", "SCAN heir", "SCAN s", "SCAN need"}, detail):
		return true
	case query == ownBlocks: // a purge's, beside the writer
		return true
	case detail == "SCAN imports": // a purge's; a row per file
		return strings.HasPrefix(query, "UPDATE imports SET session_id = ''")
	case strings.HasPrefix(detail, "SCAN s USING INDEX sessions_current"):
		return true // the same of keys
	case query == touchedInSpan: // sorts the files within one message
		return strings.Contains(detail, "TERM")
	// newest first, until it has looked at ten thousand; its subquery
	case query == fmt.Sprintf(sessionsNamedLike, ""), strings.HasPrefix(query, `SELECT COUNT(*) FROM (`+promptsInRange):
		return detail == "SCAN s" || detail == "SCAN t" || detail == "SCAN p"
	case query == sumsOfFamilies: // what is asked for, and its results
		return detail == "SCAN below" || detail == "SCAN b" || strings.Contains(detail, "TEMP B-TREE")
	case query == reportedSizes:
		return strings.HasPrefix(detail, "SCAN wanted VIRTUAL TABLE")
	case strings.Contains(query, "LIMIT 2000) near"): // of the next sessions
		return detail == "SCAN near"
	case strings.HasSuffix(query, "LIMIT 1 OFFSET +?"): // of an index alone
		return detail == "SCAN sessions USING COVERING INDEX sessions_active"
	case strings.HasPrefix(query, facetsOf): // groups the newest sessions, at most so many
		return detail == "SCAN s" || detail == "USE TEMP B-TREE FOR GROUP BY"
	case query == countOfProjects: // at most so many
		return detail == "SCAN few"
	case strings.Contains(query, "WHERE s.id IN (SELECT s.id FROM sessions s"): // sorts the few sessions of a project
		return detail == "USE TEMP B-TREE FOR ORDER BY"
	case query == nearestAbove: // sorts the few folders above one
		return strings.Contains(detail, "TEMP B-TREE")
	case query == messagesByID.messages, query == messagesByID.parts:
		return strings.HasSuffix(detail, "FOR DISTINCT") // the ids that are asked for
	case query == sessionsNamed, query == sessionsBeginning: // at most four rows, made distinct
		return strings.Contains(detail, "TEMP B-TREE")
	}
	return false
}

func TestTheScansThatAStartMakesUseIndexes(t *testing.T) {
	onFile(t)
	s := openTest(t)
	for q, args := range map[string][]any{forgetKeys: {"", ""}, forgetDrafts: {""}} {
		for _, detail := range planOf(t, raw(t, s), q, args) {
			if strings.HasPrefix(detail, "SCAN") && !fineToScan(q, detail) {
				t.Errorf("%s\nin: %s", detail, q)
			}
		}
	}
}

func TestPostgresFindsPartsByTheirMessage(t *testing.T) {
	const found = `JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023 WHERE m.id = ?`
	if got := rewriteForPostgres(found); got != `JOIN parts p ON p.message_id = m.id WHERE m.id = ?` {
		t.Error(got)
	}
}

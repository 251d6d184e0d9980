package goose_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// sampled imports the samples' database.
func sampled(t *testing.T) (h *house, db string) {
	t.Helper()
	h = newHouse(t)
	db = h.load("", historytest.Read(t, sample(t, "constructed", "schema-17.sql")))
	h.Import(db)
	return h, db
}

func TestGooseSamplesAddUp(t *testing.T) {
	h := newHouse(t)
	db := h.load("", historytest.Read(t, sample(t, "constructed", "schema-17.sql")))
	paths := []string{
		db, sample(t, "constructed", "20250925_143012.jsonl"),
		sample(t, "constructed", "20250801_080000.jsonl"),
	}
	done := h.Import(paths...)
	if done.Sessions.New != 7 {
		t.Errorf("sessions %+v", done.Sessions)
	}
	// Of the database: 5 sessions, 24 of 30 messages, 6 calls; of the files 3 of 7 lines.
	want := history.Records{Read: 5 + 30 + 6 + 3 + 1 + 1 + 7, Imported: 5 + 24 + 6 + 3, Raw: 2, Skipped: map[string]int{
		"copy of 20260314_1": 4, "interface copy": 3, "bookkeeping": 1, "without conversations, not opened": 1,
		"superseded by database": 3,
	}, Waiting: 1}
	testkit.Equal(t, want, done.Records)
	before := dump(h)
	if done := h.Import(paths...); done.Records.Read != 0 || done.Sessions.New+done.Sessions.Updated != 0 ||
		dump(h) != before {
		t.Errorf("the second import did something: %+v", done)
	}
	recent := os.Chtimes(db, h.Session("20260314_1").UpdatedAt.Time, h.Session("20260314_1").UpdatedAt.Time)
	if done := h.Import(paths...); recent != nil || done.Records.Imported+done.Records.Raw != 0 || dump(h) != before {
		t.Errorf("a database that was touched, but not changed, wrote something: %+v", done)
	}
}

// dump writes what the store holds.
func dump(h *house) string {
	h.Helper()
	return h.Dump("20260314_1", "20260314_2", "20260314_3", "20260314_4", "20250925_143012", "20260101_9",
		"20250801_080000")
}

func TestGooseCompactionIsAnOverlay(t *testing.T) {
	h, _ := sampled(t)
	s := h.Session("20260314_1")
	got, err := h.Store.Effective(t.Context(), s)
	if err != nil || got == nil {
		t.Fatal(got, err)
	}
	byID := map[int64]session.Message{}
	byKey := map[string]session.Message{}
	for _, m := range h.Entries(s.ID) {
		byID[m.RowID], byKey[m.ExternalID] = m, m
	}
	if through := byID[*got.ThroughID]; through.ExternalID != "m_a5#0" {
		t.Errorf("through %s", through.ExternalID)
	}
	if s.CompactionCount != 1 || !strings.HasPrefix(got.Summary, "Goal: make the parser tests pass.") ||
		got.Trigger != session.TriggerImport || got.MessageCount != 6 {
		t.Errorf("%d compactions, %+v", s.CompactionCount, got)
	}
	for key, want := range map[string]struct {
		context, display bool
		role             session.Role
		origin           session.Origin
		kind             session.Kind
	}{
		"m_a1#0":  {true, true, session.User, session.Person, session.KindMessage}, // hidden by the overlay alone
		"m_a2#1":  {true, true, session.Assistant, session.Model, session.KindMessage},
		"m_a3#0":  {true, true, session.Tool, session.ByTool, session.KindMessage},
		"m_a5#0":  {true, false, session.User, session.Program, session.KindMessage},
		"m_a6#0":  {false, false, "", session.Program, session.KindMarker},
		"m_a7#0":  {false, false, "", session.Program, session.KindMarker},
		"m_a8#0":  {true, true, session.User, session.Person, session.KindMessage},
		"m_a10#0": {false, true, "", session.Program, session.KindMarker},
		"m_bad#0": {false, true, "", session.Program, session.KindUnknown},
		"m_sys#0": {false, true, "", session.Program, session.KindUnknown},
	} {
		m := byKey[key]
		if m.InContext != want.context || m.Display != want.display || m.Role != want.role || m.Origin != want.origin ||
			m.Kind != want.kind {
			t.Errorf("%s: context %v display %v role %q origin %q kind %q", key, m.InContext, m.Display, m.Role, m.Origin,
				m.Kind)
		}
	}
	if m := byKey["m_a8#0"]; !strings.Contains(string(m.Extra), `"repeats":"m_a5#0"`) {
		t.Errorf("the prompt that was put again: %s", m.Extra)
	}
	if m := byKey["m_a9#0"]; m.CreatedAt.UnixMilli() != 1773478880250 || m.Model != "claude-sonnet-4-5" {
		t.Errorf("a time in milliseconds: %v, model %q", m.CreatedAt, m.Model)
	}
	if m := byKey["m_a3#0"]; m.Parts[0].CallPartID == nil || m.Parts[0].IsError == nil || !*m.Parts[0].IsError ||
		m.Parts[0].Text != "FAIL lexer_test.go:41" {
		t.Errorf("%+v", m.Parts)
	}
	if byKey["m_a5#0"].Origin != session.Program {
		t.Error("unreachable") // false/false: as Goose hides it
	}
}

func TestGooseUsageIsTheLedgers(t *testing.T) {
	h, _ := sampled(t)
	s := h.Session("20260314_1")
	if s.InputTokens != 9500 || s.CacheReadTokens != 19000 || s.CacheWriteTokens != 2200 || s.OutputTokens != 560 ||
		*s.CostNanoUSD != 46_100_000 {
		t.Errorf("%+v", s)
	}
	purposes := map[session.Purpose]int{}
	for _, c := range h.Calls(s.ID) {
		purposes[c.Purpose]++
		if c.MessageID == nil || c.Model != "claude-sonnet-4-5" || c.Provider != "anthropic" {
			t.Errorf("%+v", c)
		}
	}
	if purposes[session.PurposeChat] != 3 || purposes[session.PurposeSummary] != 1 {
		t.Errorf("%v", purposes)
	}
	old := h.Calls(h.Session("20250925_143012").ID)
	if len(old) != 1 || old[0].Model != "" || old[0].InputTokens != 1100 || old[0].CostNanoUSD != nil ||
		!strings.Contains(string(old[0].Metadata), "carried_forward") {
		t.Errorf("%+v", old)
	}
	if child := h.Calls(h.Session("20260314_3").ID); len(child) != 1 || child[0].CostNanoUSD != nil {
		t.Errorf("%+v", child)
	}
}

func TestGooseFamilies(t *testing.T) {
	h, _ := sampled(t)
	origin, fork, child := h.Session("20260314_1"), h.Session("20260314_2"), h.Session("20260314_3")
	if fork.ParentID != origin.ID || fork.ParentKind != session.ParentFork || fork.MessageCount != 2 {
		t.Errorf("fork %+v", fork)
	}
	if got := strings.Join(h.Keys(fork), " "); got != "m_a1#0 m_a2#0 m_a2#1 m_a3#0 m_b1#0 m_b2#0" {
		t.Errorf("the fork's path is %s", got)
	}
	if effective, err := h.Store.Effective(t.Context(), fork); err != nil || effective != nil {
		t.Errorf("the fork was made before the compaction: %+v, %v", effective, err)
	}
	if child.ParentID != origin.ID || child.ParentKind != session.ParentChild || child.Kind != "subagent" ||
		child.Title != "look up CR rules" {
		t.Errorf("child %+v", child)
	}
	if prompt := h.Entries(child.ID)[0]; prompt.Origin != session.Model {
		t.Errorf("a model asked the sub-agent, not a %s", prompt.Origin)
	}
	if link, err := h.Store.Link(t.Context(), child); err != nil || link == nil || link.Message == nil ||
		link.Message.Seq != 5 {
		t.Errorf("what started the child: %+v %v", link, err)
	}
	lost := h.Session("20260101_9")
	if lost.Title != "recovered" || lost.CreatedAt.Unix() != 1767225600 || lost.MessageCount != 1 {
		t.Errorf("%+v", lost)
	}
}

func TestGoosePairSummaryStandsForItsPair(t *testing.T) {
	h, _ := sampled(t)
	s := h.Session("20260314_4")
	got := ""
	for _, m := range h.Entries(s.ID) {
		got += fmt.Sprintf("%s %s %s %v %v;", m.ExternalID, m.Kind, m.Role, m.InContext, m.Display)
		switch m.ExternalID {
		case "m_d3#0":
			if m.Parts[0].Text != "go.mod\nmodule parser" {
				t.Errorf("the older shape of a result: %+v", m.Parts[0])
			}
		case "m_d6#0":
			if p := m.Parts[0]; p.ToolName != "" || p.IsError == nil || !*p.IsError || p.Text != "arguments are not valid JSON" {
				t.Errorf("a call that could not be read: %+v", p)
			}
			if p := m.Parts[1]; p.Kind != session.PartData || !strings.Contains(string(p.Extra), "jsonRenderSpec") {
				t.Errorf("an unknown block: %+v", p)
			}
		}
	}
	want := "m_d1#0 message user true true;m_d2#0 message assistant true true;m_d3#0 message tool true true;" +
		"m_d5#0 custom_message user false false;m_d4#0 message assistant true true;m_d6#0 message assistant true true;"
	if got != want || s.CompactionCount != 1 {
		t.Errorf("%d compactions\n got %s\nwant %s", s.CompactionCount, got, want)
	}
}

func TestGooseSecretsStayOut(t *testing.T) {
	h, _ := sampled(t)
	s := h.Session("20260314_1")
	notes := string(s.Metadata)
	if strings.Contains(notes, "NOT-A-REAL-SECRET") || strings.Contains(notes, "--stdio") {
		t.Errorf("a secret came in: %s", notes)
	}
	for _, want := range []string{`"tenant_id":"t1"`, `"TRACKER_TOKEN":"[masked]"`, `- [ ] CR`, `"goose_mode":"auto"`} {
		if !strings.Contains(notes, want) {
			t.Errorf("%s is missing in %s", want, notes)
		}
	}
}

func TestGooseSamplesSomeTimeLater(t *testing.T) {
	h, db := sampled(t)
	gone := h.Session("20260314_3")
	calls := len(h.Calls(gone.ID))
	h.load(db, historytest.Read(t, sample(t, "constructed", "schema-17-later.sql")))
	done := h.Import(db)
	if done.Sessions.New != 1 || done.Sessions.Updated != 1 {
		t.Errorf("sessions %+v", done.Sessions)
	}
	// 30 messages: 2 imported, 24 known of which 2 raw, 4 copies; 1 of 5 sessions is new, 5 calls known.
	want := history.Records{Read: 5 + 30 + 5 + 3 + 1 + 1, Imported: 2 + 1, Skipped: map[string]int{
		history.SkipKnown: 24 + 4 + 5, "copy of 20260314_1": 4, "interface copy": 3, "bookkeeping": 1,
		"without conversations, not opened": 1,
	}}
	testkit.Equal(t, want, done.Records)
	if s := h.Session("20260314_1"); s.Title != "Parser tests fixed" || s.MessageCount != 13 || s.CompactionCount != 1 {
		t.Errorf("%+v", s)
	}
	if got := strings.Join(h.Keys(h.Session("20260314_2")), " "); !strings.HasSuffix(got, "m_b2#0 m_b3#0") {
		t.Errorf("path %s", got)
	}
	kept := h.Session("20260314_3")
	if kept.ID != gone.ID || kept.MessageCount != 2 || len(h.Calls(kept.ID)) != calls ||
		!strings.Contains(string(kept.Metadata), `"gone":"deleted in Goose"`) {
		t.Errorf("the deleted session: %+v", kept)
	}
	fresh := h.Session("20260314_3@20260314T180000Z")
	if fresh.Title != "Same id, other session" || fresh.MessageCount != 1 || fresh.ParentID != "" {
		t.Errorf("%+v", fresh)
	}
	before := dump(h)
	if h.Import(db); dump(h) != before {
		t.Error("importing again changed something")
	}
}

func TestGooseOfOtherMakers(t *testing.T) {
	h := newHouse(t)
	db := h.load("", historytest.Read(t, sample(t, "deja-vu", "goose.sql")))
	done := h.Import(db, sample(t, "deja-vu", "20250724_1.jsonl"))
	if done.Sessions.New != 2 || done.Records.Imported != 3+3 || len(done.Errors) != 0 {
		t.Errorf("%+v", done)
	}
	if s := h.Session("20250724_2"); s.Title != "demo" || s.MessageCount != 2 || s.CreatedAt.Format("15:04") != "11:00" {
		t.Errorf("%+v", s)
	}
	if s := h.Session("20250724_1"); s.Title != "Synthetic Goose session" || s.Directory != "/workspace/demo" {
		t.Errorf("%+v", s)
	}
}

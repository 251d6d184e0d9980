package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// eachShape returns a message of each combination of what decides its share in the talk.
func eachShape() (all []session.Message) {
	large := strings.Repeat("x", session.BlobThreshold+1)
	parts := [][]session.Part{
		nil,
		{session.TextPart("words")},
		{session.TextPart(large)},
		{session.TextPart("")},
		{{Kind: session.PartReasoning, Text: "thinks"}, {Kind: session.PartToolCall, ToolName: "read", Arguments: "{}"}},
		{{Kind: session.PartRefusal, Text: "no"}},
		{{Kind: session.PartData, Text: "{}"}},
	}
	kinds := []session.Kind{
		session.KindMessage, session.KindBash, session.KindCustomMessage, session.KindCustom, session.KindBranchSummary,
		session.KindMarker, session.KindUnknown,
	}
	for _, kind := range kinds {
		for _, role := range []session.Role{"", session.System, session.User, session.Assistant, session.Tool} {
			for _, origin := range []session.Origin{session.Person, session.Model, session.ByTool, session.Program} {
				for _, display := range []bool{true, false} {
					for _, p := range parts {
						all = append(all, session.Message{
							Kind: kind, Role: role, Origin: origin, Display: display, InContext: kind == session.KindMessage,
							Parts: slices.Clone(p),
						})
					}
				}
			}
		}
	}
	return all
}

// Rows, and sessions, of an older version get the marks and counts that a new one has from its beginning.
func TestOlderMessagesGetTheirShareInTheTalk(t *testing.T) {
	onFile(t)
	ctx := t.Context()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for some := range slices.Chunk(eachShape(), 500) {
		mustAppend(t, s, sess.ID, some...)
	}
	mustBeHealthy(t, s)
	const marks = `SELECT seq || talk FROM messages ORDER BY seq`
	want := testkit.Must(engine.List[string](ctx, s, marks))(t)
	before := testkit.Must(s.Session(ctx, sess.ID))(t)
	if before.SaidCount == 0 || before.SaidCount == before.MessageCount {
		t.Fatalf("%d of %d messages are said", before.SaidCount, before.MessageCount)
	}
	testkit.Check(t, s.Close())
	rewind(t, s.File(), 124)
	s = testkit.Must(Open(ctx, s.File(), Options{Measure: measure, Zone: time.UTC}))(t)
	defer s.Close() //nolint:errcheck // a test
	mustBeHealthy(t, s)
	testkit.Equal(t, want, testkit.Must(engine.List[string](ctx, s, marks))(t))
	if after := testkit.Must(s.Session(ctx, sess.ID))(t); after.SaidCount != before.SaidCount {
		t.Errorf("%d messages are said, before %d", after.SaidCount, before.SaidCount)
	}
	if _, err := raw(t, s).Exec(`UPDATE messages SET talk = 'said'`); err == nil ||
		!strings.Contains(err.Error(), "immutable") {
		t.Errorf("messages can be changed after the migration: %v", err)
	}
}

// On both engines a stored message has the share that the program gives it.
func TestTalkIsStored(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	shapes := eachShape()
	for some := range slices.Chunk(shapes, 500) {
		mustAppend(t, s, sess.ID, some...)
	}
	var wrong []string
	said, read := int64(0), 0
	testkit.Check(t, engine.Each(t.Context(), s, func(m *session.Message) error {
		want := session.TalkOf(&shapes[m.Seq-1])
		read++
		if want == session.Said {
			said++
		}
		if m.Talk != want {
			wrong = append(wrong, fmt.Sprintf("%d is %s, want %s", m.Seq, m.Talk, want))
		}
		return nil
	}, `SELECT m.seq, `+talkOfRow+` AS talk FROM messages m WHERE m.talk = `+talkOfRow))
	if read != len(shapes) {
		t.Errorf("%d of %d rows have the share of the statement", read, len(shapes))
	}
	if len(wrong) > 0 {
		t.Errorf("%d shapes: %v", len(wrong), wrong[:min(5, len(wrong))])
	}
	now := testkit.Must(s.Session(t.Context(), sess.ID))(t)
	if now.SaidCount != said || now.MessageCount != int64(len(shapes)) {
		t.Errorf("%d said, %d messages; want %d, %d", now.SaidCount, now.MessageCount, said, len(shapes))
	}
}

// The text of a compaction is no reply: rows that earlier versions imported from Codex as said leave the talk.
func TestMigrationTakesSummariesOutOfTheTalk(t *testing.T) {
	onFile(t)
	ctx := t.Context()
	s := openTest(t)
	const summary = "So far: a harbour is planned."
	named := func(key string, role session.Role, origin session.Origin, text string) ImportMessage {
		return ImportMessage{Message: session.Message{
			Kind: session.KindMessage, Role: role, Origin: origin, InContext: true, Display: true, ExternalID: key,
			Parts: []session.Part{session.TextPart(text)},
		}}
	}
	marker := ImportMessage{Message: session.Message{
		Kind: session.KindMarker, Origin: session.Program, ExternalID: "5",
		Parts: []session.Part{session.TextPart("compacted")},
	}}
	for _, source := range []session.Source{session.SourceCodex, session.SourceClaudeCode} {
		c := ImportCompaction{ThroughKey: "5", Key: "5"}
		c.Strategy, c.Trigger, c.Status = session.StrategySummarize, session.TriggerImport, session.StatusDone
		c.Summary = "What another model found out:\n" + summary
		testkit.Must(s.Import(ctx, ImportBatch{
			Session: NewSession{Source: source, SourceID: "one"}, Compactions: []ImportCompaction{c},
			Messages: []ImportMessage{
				named("1", session.User, session.Person, "Plan it."), named("2", session.Assistant, session.Model, "Planned."),
				named("3", session.User, session.Person, "And now?"), named("4", session.Assistant, session.Model, summary),
				marker,
			},
		}))(t)
	}
	testkit.Check(t, s.Close())
	rewind(t, s.File(), 144)
	s = testkit.Must(Open(ctx, s.File(), Options{Measure: measure, Zone: time.UTC}))(t)
	defer s.Close() //nolint:errcheck // a test
	mustBeHealthy(t, s)
	for source, want := range map[session.Source]int64{session.SourceCodex: 3, session.SourceClaudeCode: 4} {
		if now := testkit.Must(s.SessionBySource(ctx, source, "one"))(t); now.SaidCount != want {
			t.Errorf("%d messages of %s are said, want %d", now.SaidCount, source, want)
		}
	}
	if shown := testkit.Must(engine.List[string](ctx, s, `SELECT source || seq || talk FROM messages m
		JOIN sessions s ON s.id = m.session_id WHERE display = 0 AND role = 'assistant'`))(t); !slices.Equal(shown,
		[]string{"codex4work"}) {
		t.Errorf("out of the talk are %v", shown)
	}
}

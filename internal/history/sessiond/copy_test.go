package sessiond_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	own "sessiond/internal/history/sessiond"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// An overlay that counts only where its record is, and that hides an output, does both in a copy.
func TestOverlaysOfACopyNameItsOwnMessages(t *testing.T) {
	at := session.At(time.Date(2025, 5, 1, 11, 0, 0, 0, time.UTC))
	conversation := func(sourceID, text string) store.ImportBatch {
		record := func(key, parent string, role session.Role, part session.Part) store.ImportMessage {
			m := store.ImportMessage{ParentKey: parent, Message: session.Message{
				Role: role, ExternalID: key, InContext: true,
				Display: true, CreatedAt: at, Parts: []session.Part{part},
			}}
			return m
		}
		head := "d"
		return store.ImportBatch{
			Session: store.NewSession{Source: session.SourcePi, SourceID: sourceID, CreatedAt: &at}, Head: &head,
			Messages: []store.ImportMessage{
				record("a", "", session.User, session.TextPart(text)),
				record("b", "a", session.Assistant, session.Part{
					Kind: session.PartToolCall, CallID: "1", ToolName: "read",
					Arguments: "{}",
				}),
				record("c", "b", session.Tool, session.Part{
					Kind: session.PartToolResult, CallID: "1",
					Text: strings.Repeat("output ", 400),
				}),
				record("d", "c", session.User, session.TextPart("the record")),
			},
		}
	}
	here, there := t.TempDir(), t.TempDir()
	s, other := open(t, here), openLater(t, there)
	defer s.Close()
	defer other.Close()
	b := conversation("first", "one")
	b.Compactions = []store.ImportCompaction{{
		Compaction: session.Compaction{
			Strategy: session.StrategySummarize, Trigger: session.TriggerImport, Status: session.StatusDone, Summary: "short",
			CreatedAt: at,
		}, Key: "d", ThroughKey: "a", FirstKeptKey: "b", Record: store.ImportPlace{Key: "d"},
		Pruned: []store.ImportOutput{{Place: store.ImportPlace{Key: "c"}, CallID: "1"}},
	}}
	came := testkit.Must(s.Import(t.Context(), b))(t)
	if taken, err := other.Import(t.Context(), conversation("second", "two")); err != nil ||
		taken.Session.ID != came.Session.ID {
		t.Fatalf("%s, not %s: %v", taken.Session.ID, came.Session.ID, err)
	}
	if done := importFile(t, other, there, export(t, s, nil), own.Source{AsCopy: true}); done.Sessions.New != 1 ||
		len(done.Errors) > 0 {
		t.Fatalf("%+v", done)
	}
	got := testkit.Must(other.SessionBySource(t.Context(), session.SourcePi, string(came.Session.ID)))(t)
	if got.CompactionID == nil || got.ContextTokens != came.Session.ContextTokens {
		t.Errorf("the copy has %d tokens in its context, the session %d; %v is in force", got.ContextTokens,
			came.Session.ContextTokens, got.CompactionID)
	}
	all, err := other.Compactions(t.Context(), got.ID)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d overlays, %v", len(all), err)
	}
	var details session.CompactionDetails
	testkit.Check(t, json.Unmarshal(all[0].Details, &details))
	if id := string(got.ID); details.Record != id+".4" || len(details.Pruned) != 1 || details.Pruned[0] != id+".3/0" {
		t.Errorf("%+v", details)
	}
	sound(t, other)
}

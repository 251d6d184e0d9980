package store

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

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
			{Compaction: made(12), ThroughKey: "answers", At: ImportPlace{Key: "answers"}, Pruned: []ImportOutput{{CallID: "p"}, {CallID: "gone"}}},
			{Compaction: made(13), Replaced: []ImportReplaced{{Messages: []ImportPlace{{Key: "asks"}, {Key: "answers"}}, Text: "It asked."}}},
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
		if c.PreviousID == nil || *c.PreviousID != all[i].RowID || c.FirstKeptID == nil || *c.FirstKeptID != *all[0].FirstKeptID || c.SummaryTokens != all[0].SummaryTokens {
			t.Errorf("%+v does not rest on %+v", c, all[i])
		}
	}
	var details session.CompactionDetails
	if err := json.Unmarshal(all[2].Details, &details); err != nil || len(details.Pruned) != 1 || !strings.HasSuffix(details.Pruned[0], "/0") || len(details.Replaced) != 1 {
		t.Errorf("%+v %v", details, err)
	}
	path := testkit.Must(s.Path(ctx, *sess.HeadID, 0))(t)
	size, hidden := path[len(path)-1].PathTokens, all[0].HiddenTokens
	if saved := all[1].HiddenTokens - hidden; saved != session.PrunedSaves(path[len(path)-1].Parts[0].Tokens) || saved <= 0 {
		t.Errorf("the pruning hides %d tokens more", saved)
	}
	if all[1].TokensBefore != size+all[0].SummaryTokens-hidden || all[1].TokensAfter != size+all[0].SummaryTokens-all[1].HiddenTokens {
		t.Errorf("%d tokens before, %d after; the path has %d", all[1].TokensBefore, all[1].TokensAfter, size)
	}
	if sess = testkit.Must(s.UndoCompaction(ctx, sess.ID, all[2].RowID))(t); *sess.CompactionID != all[1].RowID {
		t.Errorf("%d is in force", *sess.CompactionID)
	}
}

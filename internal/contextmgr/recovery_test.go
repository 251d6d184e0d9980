package contextmgr

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// broken is a summarizer that fails and returns the call that it paid for.
type broken struct{}

func (broken) Summarize(context.Context, session.SummaryRequest) (session.Summary, error) {
	return session.Summary{Calls: []session.Call{{
		Purpose: session.PurposeSummary, Status: session.CallFailed,
		Error: "500", Model: "flash",
	}}}, errors.New("no answer")
}

// mute is a summarizer with an empty answer.
type mute struct{}

func (mute) Summarize(context.Context, session.SummaryRequest) (session.Summary, error) {
	return session.Summary{}, nil
}

func TestTurnSucceedsWhenTheDigestFails(t *testing.T) {
	for name, s := range map[string]Summarizer{"fails": broken{}, "empty": mute{}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 10000, func(c *Config) { c.Digest = s })
			r.talk(30, 150)
			wantHas(t, r.turn(TurnInput{}), "earlier messages are hidden")
		})
	}
}

func TestCompactWaitsForTheModelOnlyIfAsked(t *testing.T) {
	r := newRig(t, 20000, func(c *Config) { c.Remotes = defaultRemote(heads{"gemini"}) })
	r.talk(30, 150)
	if c, _ := r.compact(CompactInput{}); c.Provider != "extractive" {
		t.Errorf("unasked, %s was waited for", c.Provider)
	}
	r.talk(30, 150)
	if c, _ := r.compact(CompactInput{Model: true}); c.Provider != "gemini" || c.Status != session.StatusDone {
		t.Errorf("asked: %s by %s", c.Status, c.Provider)
	}
}

func TestDigestReplacesAFailedModelAndItsCallIsRecorded(t *testing.T) {
	r := newRig(t, 20000, func(c *Config) { c.Remotes = defaultRemote(broken{}) })
	r.talk(30, 150)
	c, _ := r.compact(CompactInput{Model: true})
	if c.Provider != "extractive" || c.Status != session.StatusDone {
		t.Errorf("%s by %s", c.Status, c.Provider)
	}
	calls, _, err := r.store.Calls(r.ctx, r.id, store.Page{Limit: 10})
	if err != nil || len(calls) != 1 || calls[0].Error != "500" || calls[0].CompactionID == nil ||
		*calls[0].CompactionID != c.RowID {
		t.Errorf("ledger: %+v %v", calls, err)
	}
}

// raced is a store in which another process adds a compaction first, once.
type raced struct {
	*store.Store
	lost int
}

func (s *raced) AddCompaction(ctx context.Context, c session.Compaction) (session.Compaction, error) {
	if s.lost++; s.lost == 1 {
		if _, err := s.Store.AddCompaction(ctx, c); err != nil {
			return c, err
		}
	}
	return s.Store.AddCompaction(ctx, c)
}

func TestTurnThatLosesARaceUsesTheWinnersOverlay(t *testing.T) {
	r := newRig(t, 10000)
	r.talk(30, 150)
	s := &raced{Store: r.store}
	v := testkit.Must(New(s, r.mgr.cfg).Turn(r.ctx, r.id, TurnInput{}))(t)
	if v.Compaction == nil || v.Compaction.ID != "cmp_1" || len(r.compactions()) != 1 || s.lost != 1 {
		t.Errorf("compaction %+v of %d, %d tries", v.Compaction, len(r.compactions()), s.lost)
	}
}

// imported adds an overlay as an importer does.
func (r *rig) imported(through, firstKept *int64, summary string) session.Compaction {
	r.t.Helper()
	c := testkit.Must(r.store.AddCompaction(r.ctx, session.Compaction{
		SessionID: r.id, Strategy: session.StrategySummarize, Trigger: session.TriggerImport, Status: session.StatusDone,
		ThroughID: through, FirstKeptID: firstKept, Summary: summary,
	}))(r.t)
	return c
}

func TestImportedOverlays(t *testing.T) {
	setup := func(t *testing.T) (*rig, []session.Message) {
		r := newRig(t, 20000)
		return r, r.append(text(session.User, "u1"), text(session.Assistant, "a1"), text(session.User, "u2"), calling("c"),
			answering("c", "r"), text(session.Assistant, "a2"))
	}
	t.Run("keeps what stands before its record", func(t *testing.T) {
		r, m := setup(t)
		r.imported(&m[5].RowID, &m[2].RowID, "SUMMARY")
		v := r.read(Budget{})
		wantHas(t, v, "SUMMARY", "u2", "a2")
		wantLacks(t, v, "u1")
	})
	t.Run("kept nothing", func(t *testing.T) {
		r, m := setup(t)
		r.imported(&m[5].RowID, nil, "SUMMARY")
		r.append(text(session.User, "u3"))
		v := r.read(Budget{})
		wantHas(t, v, "SUMMARY", "u3")
		wantLacks(t, v, "u2", "a2")
	})
	t.Run("shows the question of the turn that it splits", func(t *testing.T) {
		r, m := setup(t)
		r.imported(&m[4].RowID, &m[5].RowID, "SUMMARY")
		v := r.read(Budget{})
		wantHas(t, v, "SUMMARY", "[user] text(u2)\n[assistant] text(a2)")
		wantLacks(t, v, "u1", "tool_call")
	})
	t.Run("keeps a message that is not on the path", func(t *testing.T) {
		r, m := setup(t)
		testkit.Must(r.store.Append(r.ctx, store.Append{
			Session: r.id, Parent: &m[1].ID,
			Messages: []session.Message{text(session.User, "u4")},
		}))(t)
		r.imported(&m[1].RowID, &m[2].RowID, "SUMMARY") // m[2] is on the abandoned branch
		v := r.read(Budget{})
		wantHas(t, v, "SUMMARY", "u1", "u4") // the person's last message before the branch stays
		wantLacks(t, v, "a1", "u2")
	})
}

func TestUnsupportedPartIsReplacedByANote(t *testing.T) {
	r := newRig(t, 20000, func(c *Config) {
		c.Models = func(id string) (session.ModelInfo, bool) {
			return session.ModelInfo{ID: id, Family: "runes", Window: 20000, Modalities: []string{"text"}}, true
		}
	})
	m := text(session.User, "look")
	m.Parts = append(m.Parts, session.Part{
		Kind:  session.PartImage,
		Extra: session.JSON(`{"url":"https://example.com/a.png"}`),
	})
	r.append(m)
	v := r.read(Budget{})
	wantHas(t, v, "text([image left out: this model does not take any])")
	if len(v.Losses) != 1 || !strings.Contains(v.Losses[0], "accepts no image") {
		t.Errorf("losses %v", v.Losses)
	}
}

func TestOnlySystemMessages(t *testing.T) {
	r := newRig(t, 20000)
	r.append(text(session.System, "one"), text(session.System, "two"))
	if v := r.turn(TurnInput{}); v.System != "one\n\ntwo" || len(v.Messages) != 0 {
		t.Errorf("system %q, %d messages", v.System, len(v.Messages))
	}
	if c, _ := r.compact(CompactInput{}); c.Status != session.StatusSkipped {
		t.Errorf("compaction: %s", c.Status)
	}
}

func TestMessagesWithoutTokens(t *testing.T) {
	r := newRig(t, 10000)
	var msgs []session.Message
	for range 2500 {
		msgs = append(msgs, text(session.User, "x"))
	}
	r.append(msgs...)
	if v := r.turn(TurnInput{}); v.Compaction == nil || len(v.Messages) > 1000 {
		t.Errorf("%d messages, %+v", len(v.Messages), v.Compaction)
	}
}

func TestHistoryTooLongToReadAtOnceIsCompacted(t *testing.T) {
	r := newRig(t, 10000)
	for range 50 {
		r.talk(10, 500)
	}
	v := r.turn(TurnInput{})
	c := r.compactions()
	if v.Compaction == nil || len(c) != 1 || !strings.Contains(c[0].Reason, "without a summary") {
		t.Fatalf("compaction %+v of %+v", v.Compaction, c)
	}
	hid, err := r.mgr.Sources(r.ctx, r.id, c[0].RowID)
	kept := 0
	for _, p := range v.Provenance {
		if p.Kind == ItemMessage {
			kept++
		}
	}
	if err != nil || len(hid)+kept != 1000 || kept == 0 {
		t.Errorf("%d hidden, %d kept: %v", len(hid), kept, err)
	}
}

func TestPinThatIsTooLargeIsRejected(t *testing.T) {
	r := newRig(t, 10000) // a quarter of the threshold is 1875
	m := r.append(text(session.User, filler(1000)), text(session.User, filler(1800)), text(session.User, filler(2000)))
	for i, ok := range []bool{true, true, false} {
		if err := r.mgr.CheckPin(r.ctx, r.id, m[i].ID); (err == nil) != ok {
			t.Errorf("pin %d: %v", i, err)
		}
	}
	testkit.Must(r.store.SetMark(r.ctx, r.id, m[0].ID, "pin", "", true))(t)
	wantCode(t, r.mgr.CheckPin(r.ctx, r.id, m[1].ID), session.DoesNotFit, m[1].ID.String())
}

func TestOvertakenStagedOverlayIsRetired(t *testing.T) {
	r := staged(t)
	r.compact(CompactInput{})
	r.talk(20, 150)
	testkit.Check(t, r.mgr.Stage(r.ctx, r.id))
	for _, c := range r.compactions()[:2] {
		if c.Status != session.StatusSkipped || c.Reason == "" {
			t.Errorf("%s is %s", c.ID, c.Status)
		}
	}
}

func BenchmarkAssemble(b *testing.B) {
	for _, length := range []int{200, 20000} {
		b.Run(map[int]string{200: "200 messages", 20000: "200 of 20000 messages"}[length], func(b *testing.B) {
			r := newRig(b, 1000000)
			r.talk(length/2, 20)
			if length > 200 {
				kept := testkit.Must(r.store.Message(r.ctx, session.MessageRef{Session: r.id, Seq: int64(length - 199)}))(b)
				r.imported(kept.ParentID, &kept.RowID, "SUMMARY")
			}
			for b.Loop() {
				testkit.Must(r.mgr.Assemble(r.ctx, r.id, Budget{}))(b)
			}
		})
	}
}

func TestImportedCopiesFollowTheSummary(t *testing.T) {
	r := newRig(t, 20000)
	m := r.append(text(session.User, "u1"), text(session.Assistant, "a1"), text(session.User, "u2"),
		text(session.Assistant, "a2"))
	c := session.Compaction{
		SessionID: r.id, Strategy: session.StrategySummarize, Trigger: session.TriggerImport, Status: session.StatusDone,
		ThroughID: &m[3].RowID, Summary: "SUMMARY",
		Replacement: session.JSON(`[{"kind":"message","role":"user","origin":"program","parts":[{"kind":"text","text":"SUMMARY"}]},
			{"kind":"message","role":"user","origin":"person","parts":[{"kind":"text","text":"copied question"}]},
			{"kind":"message","role":"assistant","origin":"model","finish":"tool_calls","parts":[{"kind":"tool_call","call_id":"k","tool_name":"bash","arguments":"{}"}]}]`),
	}
	testkit.Must(r.store.AddCompaction(r.ctx, c))(t)
	r.append(answering("k", "its result"), text(session.User, "u3"))
	v := r.turn(TurnInput{})
	wantHas(t, v, "SUMMARY",
		"[user] text(copied question)\n[assistant] tool_call(k{})\n[tool] tool_result(kits result)\n[user] text(u3)")
	wantLacks(t, v, "u2", "a2")
	if strings.Count(wire(v), "SUMMARY") != 1 || v.Provenance[1].Kind != ItemReplaced ||
		v.Provenance[1].Compaction != "cmp_1" {
		t.Errorf("provenance %+v of\n%s", v.Provenance, wire(v))
	}
	r.talk(30, 150) // the next summary covers the copies, too
	r.compact(CompactInput{KeepTokens: new(int64)})
	wantHas(t, r.read(Budget{}), "copied question")
}

// The catalogue does not say whether an unknown model accepts pictures.
func TestUnknownModelIsSentEverything(t *testing.T) {
	r := newRig(t, 20000, func(c *Config) {
		c.Models = func(id string) (session.ModelInfo, bool) {
			return session.ModelInfo{ID: id, Family: "runes", Window: 20000, Modalities: []string{"text"}}, false
		}
	})
	var dot bytes.Buffer
	testkit.Check(t, png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))))
	m := text(session.User, "look")
	m.Parts = append(m.Parts, session.Part{
		Kind: session.PartImage,
		Blob: &session.Blob{MediaType: "image/png", Data: dot.Bytes()},
	})
	r.append(m)
	if v := r.read(Budget{}); len(v.Losses) != 0 || v.Messages[0].Parts[1].Kind != session.PartImage {
		t.Errorf("losses %v", v.Losses)
	}
}

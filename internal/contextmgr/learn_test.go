package contextmgr

import (
	"context"
	"slices"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// reported appends a reply with a report for the last turn's context.
func (r *rig) reported(v View, input int64) {
	r.t.Helper()
	id := testkit.Must(session.ParseName("ctx", v.ID))(r.t)
	call := session.Call{
		Provider: "p", Model: "m", InputTokens: input, OutputTokens: 500, ReasoningTokens: 480,
		ContextID: &id,
	}
	testkit.Must(r.store.Append(r.ctx, store.Append{
		Session:  r.id,
		Messages: []session.Message{text(session.Assistant, filler(40))}, Call: &call,
	}))(r.t)
}

func TestLearnComparesReportsWithTheCount(t *testing.T) {
	type lesson struct{ estimated, reported int64 }
	for _, c := range []struct {
		name   string
		second TurnInput
		want   []lesson
	}{
		// Between the reports came the first reply (44) and a question (104): reasoning that was
		// reported with the reply is never sent again and must not count.
		{"growth", TurnInput{}, []lesson{{148, 222}}},
		{"another system text", TurnInput{Budget: Budget{System: ptr("You are brief.")}}, nil},
		{"something beside the messages", TurnInput{Volatile: "It is Monday."}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []lesson
			r := newRig(t, 100_000, func(cfg *Config) {
				cfg.Learned = func(_ context.Context, model string, estimated, reported int64) error {
					got = append(got, lesson{estimated, reported})
					return nil
				}
			})
			r.append(text(session.User, filler(200)))
			r.reported(r.turn(TurnInput{}), 1300)
			if err := r.mgr.Learn(r.ctx, r.id); err != nil || got != nil {
				t.Fatalf("one report taught %v, %v", got, err)
			}
			r.append(text(session.User, filler(100)))
			r.reported(r.turn(c.second), 1522)
			if err := r.mgr.Learn(r.ctx, r.id); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("learned %v, want %v; %v", got, c.want, err)
			}
		})
	}
}

// Messages between two reports that are sent altered teach nothing, and stored reasoning is not
// counted.
func TestLearnSkipsMessagesThatAreSentAltered(t *testing.T) {
	thinking := text(session.Assistant, filler(40))
	thinking.Parts = append([]session.Part{{Kind: session.PartReasoning, Text: filler(400)}}, thinking.Parts...)
	aloud := thinking // of a server whose models get their reasoning back
	aloud.Dialect = "openai.chat"
	failed := text(session.Assistant, filler(40))
	failed.Finish = session.FinishError
	picture := text(session.User, "see")
	picture.Parts = append(picture.Parts, session.Part{
		Kind: session.PartImage,
		Blob: &session.Blob{MediaType: "image/png", Data: []byte("x")},
	})
	for _, c := range []struct {
		name    string
		between session.Message
		want    int64 // 0: nothing is learned
	}{
		{"thinking", thinking, 44 + 44 + 104},
		{"reasoning that is sent again", aloud, 0},
		{"a failed reply", failed, 0},
		{"a picture", picture, 0},
		{"a part that was cut", text(session.User, filler(30000)), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got int64
			r := newRig(t, 100_000, func(cfg *Config) {
				cfg.Learned = func(_ context.Context, _ string, estimated, _ int64) error { got = estimated; return nil }
			})
			r.append(text(session.User, filler(200)))
			r.reported(r.turn(TurnInput{}), 1300)
			r.append(c.between, text(session.User, filler(100)))
			r.reported(r.turn(TurnInput{}), 1600)
			if err := r.mgr.Learn(r.ctx, r.id); err != nil || got != c.want {
				t.Errorf("counted %d, want %d; %v", got, c.want, err)
			}
		})
	}
}

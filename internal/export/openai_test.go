package export_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"sessiond/internal/export"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// Wherever the results of calls stand, also when more lies between than is waited for, what is
// written is what the API accepts.
func TestCallsAreAnsweredHoweverFarTheirResultsAre(t *testing.T) {
	s := open(t)
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 7))
		made := testkit.Must(s.CreateSession(t.Context(), store.NewSession{}))(t)
		id := func() string { return fmt.Sprint("c", r.IntN(12)) } // the same ones come again
		msgs := []session.Message{{Role: session.User, Parts: []session.Part{session.TextPart("go")}}}
		for len(msgs) < 900 {
			m := session.Message{Role: session.User, Parts: []session.Part{session.TextPart("and")}}
			switch n := r.IntN(100); {
			case n < 3:
				m = session.Message{Role: session.Assistant, Finish: session.FinishToolCalls}
				for range 1 + r.IntN(3) {
					m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, CallID: id(), ToolName: "read", Arguments: "{}"})
				}
				if r.IntN(5) == 0 {
					m.Finish = session.FinishError
				}
			case n < 6:
				m = session.Message{Role: session.Tool}
				for range 1 + r.IntN(3) {
					m.Parts = append(m.Parts, session.Part{Kind: session.PartToolResult, CallID: id(), Text: "7"})
				}
			case n < 40:
				m.Role = session.Assistant
			}
			msgs = append(msgs, m)
		}
		for i := range msgs {
			msgs[i].InContext, msgs[i].Display = true, true
		}
		testkit.Must(s.Append(t.Context(), store.Append{Session: made.ID, Messages: msgs}))(t)
		var out bytes.Buffer
		testkit.Must(export.Write(t.Context(), &out, s, export.OpenAI, []session.ID{made.ID}, export.Options{}))(t)
		if err := dialecttest.ValidateOpenAIChat(out.Bytes()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

package contextmgr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sessiond/internal/session"
)

// A context in a tiny window fits by the count of a provider that counts many times as much as
// sessiond: keeping and cutting go by that count.
func TestContextFitsByAProviderThatCountsFarMore(t *testing.T) {
	for _, factor := range []float64{1.5, 2.5, 8, 20} {
		t.Run(fmt.Sprint(factor), func(t *testing.T) {
			t.Parallel()
			r, rnd := newRig(t, 3000), rand.New(rand.NewPCG(1, 2))
			for n := range 25 {
				words := fmt.Sprintf("P%d", n)
				r.append(text(session.User, words+" "+filler(10+rnd.IntN(90))))
				for call := range rnd.IntN(3) {
					id := fmt.Sprintf("c%d-%d", n, call)
					r.append(calling(id), answering(id, filler(10+rnd.IntN(600))))
					v := r.turn(TurnInput{})
					r.report(v, filler(10+rnd.IntN(60)), int64(float64(v.Tokens.Estimate)*factor), 20)
				}
				v := r.turn(TurnInput{})
				if !strings.Contains(wire(v), words) {
					t.Fatalf("turn %d lacks its words", n)
				}
				r.report(v, filler(10+rnd.IntN(200)), int64(float64(v.Tokens.Estimate)*factor), 50)
			}
		})
	}
}

// If cutting does not help, the error names the likely cause.
func TestErrorMentionsTextBesideTheMessages(t *testing.T) {
	r := newRig(t, 3000)
	r.append(text(session.User, "the task"))
	r.report(r.turn(TurnInput{}), "reply", 9000, 10)
	var err error
	for range maxOverflows + 1 {
		_, _, err = r.mgr.Compact(r.ctx, r.id, CompactInput{Trigger: session.TriggerOverflow, ReportedTokens: 9000})
	}
	wantCode(t, err, session.DoesNotFit, "times as much as sessiond", "overhead_tokens")
}

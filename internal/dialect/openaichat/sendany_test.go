package openaichat_test

import (
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"
)

func models() []string {
	return []string{"", "gpt-5", "gemini-2.5-pro", "models/gemini-3-pro-preview", "gemini-flash-latest"}
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	dialecttest.AcceptsAny(t, openaichat.Form(), dialecttest.AnyConversation, models()...)
}

func TestWhatWasSentStaysAPrefix(t *testing.T) {
	dialecttest.StaysAPrefix(t, openaichat.Form(), dialecttest.AnyConversation, models()...)
}

// FuzzSend: whatever decodes, once repaired, is accepted.
func FuzzSend(f *testing.F) {
	dialecttest.FuzzSend(f, openaichat.Form(), cases, func(msgs []session.Message) []session.Message {
		out := []session.Message{{Kind: session.KindMessage, Role: session.User, Parts: []session.Part{session.TextPart("hi")}}}
		for _, item := range contextmgr.Repair(msgs, nil, true).Items {
			out = append(out, item.Message)
		}
		return out
	})
}

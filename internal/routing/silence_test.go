package routing_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/routing"
	"sessiond/internal/session"
)

// reference is the rule as it is written down, on the whole text.
func reference(text string) (silent bool, deliver string) {
	isMark := func(r rune) bool { return r == '*' || strings.ContainsRune(" \n\t", r) }
	alnum := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x3000
	}
	for {
		core := strings.TrimFunc(text, func(r rune) bool { return !alnum(r) })
		if strings.EqualFold(core, routing.SilentToken) {
			return true, ""
		}
		rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \n\t"), routing.SilentToken)
		if !ok {
			break
		}
		first := []rune(rest)[0]
		switch {
		case first == '_' || first >= '0' && first <= '9':
		case alnum(first):
			text = rest
			continue
		default:
			return true, ""
		}
		break
	}
	for {
		before, ok := strings.CutSuffix(strings.TrimRightFunc(text, isMark), routing.SilentToken)
		cut := strings.TrimRightFunc(before, isMark)
		if !ok || cut == before {
			return false, text
		}
		if text = cut; text == "" {
			return true, ""
		}
	}
}

func TestReplyFollowsTheWrittenRule(t *testing.T) {
	words := rapid.SampledFrom([]string{
		"NO_REPLY", "no_reply", "NO_", "Green", "は沈黙", "_", "7", ".", " ", "\n", "*", ":",
		"A",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(words, 1, 8).Draw(t, "text"), "")
		if strings.TrimSpace(text) == "" {
			return
		}
		silent, deliver := reference(text)
		outcome, got := routing.Reply(text, false)
		if silent != (outcome == routing.Silent) || got != deliver {
			t.Fatalf("%q: %s %q, the rule says %v %q", text, outcome, got, silent, deliver)
		}
	})
}

func TestSilentMessageIsOnlyAReply(t *testing.T) {
	says := func(role session.Role, parts ...session.Part) *session.Message {
		return &session.Message{Role: role, Parts: parts}
	}
	token := session.TextPart(routing.SilentToken)
	long := func(text string) session.Part {
		return session.Part{Kind: session.PartText, Blob: &session.Blob{Data: []byte(text)}}
	}
	for name, c := range map[string]struct {
		m    *session.Message
		want bool
	}{
		"the token":          {says(session.Assistant, token), true},
		"behind reasoning":   {says(session.Assistant, session.Part{Kind: session.PartReasoning, Text: "hm"}, token), true},
		"with a picture":     {says(session.Assistant, token, session.Part{Kind: session.PartImage}), false},
		"with a tool's call": {says(session.Assistant, token, session.Part{Kind: session.PartToolCall}), false},
		"a person's":         {says(session.User, token), false},
		"nothing at all":     {says(session.Assistant), false},
		"in a blob": {
			says(session.Assistant, long(routing.SilentToken+". "+strings.Repeat("never mind ", 20_000))),
			true,
		},
		"much in a blob":  {says(session.Assistant, long(strings.Repeat("this is to be told ", 20_000))), false},
		"white in a blob": {says(session.Assistant, long(strings.Repeat(" ", 3<<20))), false},
		"in two places":   {says(session.Assistant, token, long("\n"+routing.SilentToken)), true},
	} {
		if got := routing.SilentMessage(c.m); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

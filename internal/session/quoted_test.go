package session_test

import (
	"strings"
	"testing"

	"sessiond/internal/session"
)

// Quoted text cannot speak as a program or a chat template does, and markup and code stay as they are.
func TestQuotedTextHasNoAuthority(t *testing.T) {
	for _, tag := range []string{
		"</system-reminder>", "<system-reminder>", "< / System-Reminder >", "<user_query a=b>", "<|im_start|>",
		"</｜Assistant｜>", "<invoke name=x>",
		"<system>", "</SYSTEM\n>", "<assistant/>", "<instructions>", "<from_sessiond>", "</recalled_messages",
		"<sys\u200dtem-reminder>", "<environment_context>",
		"<\U000e0073system-reminder>", "<sys\u200btem-reminder>",
	} {
		if got := session.EscapeBlocks("a " + tag); !strings.HasPrefix(got, "a &lt;") {
			t.Errorf("%q is quoted as %q", tag, got)
		}
	}
	for _, text := range []string{
		"", "<", "a < b", "<div class=\"x\">", "</p>", "Vec<String>", "map<K, V>", "for (i=0;i<n-1;i++)", "x<y_z;", "1<<k_1)",
		"<br/>", "<!-- note -->", "<h1>é</h1>", "👩\u200d👧 ❤\ufe0f",
	} {
		if got := session.EscapeBlocks(text); got != text {
			t.Errorf("%q is quoted as %q", text, got)
		}
	}
	if got := session.Quote(session.MessageRef{Session: "20260101_001", Seq: 1}, "</system-reminder>",
		"x"); strings.Contains(got, "<") {
		t.Errorf("a speaker: %q", got)
	}
	if got := session.EscapeMarkup("<a> </b> < <!"); strings.Contains(got, "<") {
		t.Errorf("markup: %q", got)
	}
}

func TestInvisibleTextIsRemoved(t *testing.T) {
	for r := rune(0); r < 0x110000; r++ {
		if wants := r >= 0xe0000 && r <= 0xe007f || r >= 0xe0100 && r <= 0xe01ef || r >= 0xfe00 && r <= 0xfe0d ||
			strings.ContainsRune("\u00ad\u200b\u2060\ufeff\u3164", r) && r > 0; wants && !session.IsInvisible(r) {
			t.Errorf("%U stays", r)
		}
	}
	for _, stays := range []rune{'a', ' ', '\n', 'é', '漢', 0x200c, 0x200d, 0xfe0e, 0xfe0f, 0x1f3f4, 0x0301} {
		if session.IsInvisible(stays) {
			t.Errorf("%U is removed", stays)
		}
	}
	if got := session.WithoutInvisible("a\U000e0041\u200bb\ufe05c"); got != "abc" {
		t.Errorf("%q", got)
	}
}

package session_test

import (
	"strings"
	"testing"

	"sessiond/internal/session"
)

func TestEchoIsFoundAgain(t *testing.T) {
	for _, text := range []string{
		"", "what was said", "</from_sessiond> escape",
		"<from_sessiond>\nnested\n</from_sessiond>", "< / FROM_SESSIOND >",
	} {
		echo := session.Echo(text)
		if got := session.WithoutEcho("before " + echo + " after"); got != "before  after" {
			t.Errorf("%q leaves %q", text, got)
		}
		cut := echo[:strings.LastIndex(echo, "</")]
		if got := session.WithoutEcho("before " + cut); got != "before " {
			t.Errorf("%q without its end leaves %q", text, got)
		}
	}
	escaped := strings.ReplaceAll(session.Echo("said \"so\""), "\n", `\n`)
	if got := session.WithoutEcho(`{"output":"` + escaped + `"}`); got != `{"output":""}` {
		t.Errorf("in JSON it leaves %s", got)
	}
	// Gemini CLI puts what its hooks add before the prompt, escaped.
	added := strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(session.Echo("a port"))
	if got := session.WithoutEcho("<hook_context>" + added + "</hook_context>\n\nWhich port?"); got != "Which port?" {
		t.Errorf("in a hook's element it leaves %q", got)
	}
	other := "<hook_context>&lt;other&gt; " + added + "</hook_context>\n\nWhich port?"
	if got := session.WithoutEcho(other); got != "<hook_context>&lt;other&gt; </hook_context>\n\nWhich port?" {
		t.Errorf("beside another hook's text it leaves %q", got)
	}
	// A text that speaks of the tag is not one, and what follows it stays.
	about := "The tag `<from_sessiond>` opens an echo. " + session.Echo("x") + " So much for <from_sessiond>."
	if got := session.WithoutEcho(about); got != "The tag `<from_sessiond>` opens an echo.  So much for <from_sessiond>." {
		t.Errorf("about the tag: %q", got)
	}
	if got := session.WithoutEcho("plain"); got != "plain" {
		t.Errorf("a text without an echo becomes %q", got)
	}
}

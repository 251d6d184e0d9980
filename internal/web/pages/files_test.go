package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// edits appends messages that call tools.
func (k *kit) edits(id session.ID, calls ...session.Part) {
	k.t.Helper()
	for _, call := range calls {
		call.Kind, call.CallID = session.PartToolCall, call.ToolName+call.Arguments
		testkit.Must(k.store.Append(k.t.Context(), store.Append{Session: id, Messages: []session.Message{{
			Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, InContext: true, Display: true,
			Finish: session.FinishToolCalls, Parts: []session.Part{call},
		}}}))(k.t)
	}
}

func TestFilesShowWhatASessionDidToThem(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour", Directory: "/home/me/boats"}, "make it deeper")
	has(t, k.open("/s/"+string(id)), `href="/s/`+string(id)+`/files">Files</a>`)
	has(t, k.open("/s/"+string(id)+"/files"), "No call of this session read or changed a file.")
	k.edits(id,
		session.Part{ToolName: "Read", Arguments: `{"file_path": "/home/me/boats/depth.go"}`},
		session.Part{ToolName: "Edit", Arguments: `{"file_path": "/home/me/boats/depth.go", "old_string": "seven", "new_string": "eight"}`},
		session.Part{ToolName: "Write", Arguments: `{"file_path": "/home/me/boats/<b>.md", "content": "deep"}`},
		session.Part{ToolName: "Edit", Arguments: `{"file_path": "/home/me/boats/depth.go", "old_string": "eight", "new_string": "nine"}`},
		session.Part{ToolName: "Read", Arguments: `{"file_path": "/etc/tides"}`},
	)
	has(t, k.open("/s/"+string(id)), "Read 2 · Edit depth.go &#43;2 −2 · Write &lt;b&gt;.md &#43;1</summary>")
	all := has(t, k.open("/s/"+string(id)+"/files"), "depth.go</a>", "2 changed · 1 read", "/etc/tides", "-seven",
		"&#43;eight", "&#43;nine", "&lt;b&gt;.md", `at=`+string(id)+`.3#m3">#3</a>`)
	hasNot(t, all, "<b>.md")
	if strings.Index(all, "&#43;eight") > strings.Index(all, "&#43;nine") {
		t.Error("the changes are not in order")
	}
	one := "/s/" + string(id) + "/files?path=" + url.QueryEscape("/home/me/boats/depth.go")
	hasNot(t, has(t, k.open(one), "&#43;eight", "&#43;nine", "all files"), "&#43;deep")
	has(t, k.open("/s/"+string(id)+"/files?path=/etc/tides"), "This session only read /etc/tides.")
	if status, _, _ := k.do("GET", "/s/20010101_001/files", nil); status != http.StatusNotFound {
		t.Errorf("files of no session: %d", status)
	}
}

func TestWordsAreFoundInTheWholeSession(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, talkOf(200)...)
	k.session(store.NewSession{Title: "Other"}, "Answer 399 is elsewhere, too.")
	page := has(t, k.open("/s/"+string(id)+"?find=%22Question+199%22"), "1 found", "<mark>Question 199</mark>",
		"#397 user", "?at="+string(id)+".397&amp;find=", "show all prompts")
	hasNot(t, page, "elsewhere, too")
	has(t, k.open("/s/"+string(id)+"?find=zzyyxxw"), "0 found", "No searched message has “zzyyxxw”")
	if status, _, _ := k.do("GET", "/s/"+string(id)+"?find=%22", nil); status != http.StatusUnprocessableEntity {
		t.Errorf("an open quote: %d", status)
	}
}

func TestRailSaysWhatPromptsCost(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, "how deep?")
	cost := int64(250_000_000)
	answer := func(text string) session.Message {
		return session.Message{
			Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, InContext: true, Display: true,
			Finish: session.FinishStop, Parts: []session.Part{session.TextPart(text)},
		}
	}
	for range 2 {
		testkit.Must(k.store.Append(t.Context(), store.Append{
			Session: id, Messages: []session.Message{answer(strings.Repeat("Seven metres. ", 400))},
			Call: &session.Call{InputTokens: 1, CostNanoUSD: &cost, PriceSource: "reported"},
		}))(t)
	}
	k.say(id, "and now?")
	has(t, k.open("/s/"+string(id)), ` · $0.50</span></li><li>`)
}

func TestNeighboursOfTheProjectAndRangesAreLinked(t *testing.T) {
	k := newKit(t)
	k.login()
	at := func(title, project string) session.ID {
		return k.session(store.NewSession{Title: title, Project: project}, "one", "two", "three")
	}
	first, _, middle, last := at("First", "/b"), at("Elsewhere", "/c"), at("Middle", "/b"), at("Last", "/b")
	page := has(t, k.open("/s/"+string(middle)), `href="/s/`+string(first)+`" title="the session before in this project: First"`,
		`href="/s/`+string(last)+`" title="the session after in this project: Last"`)
	hasNot(t, page, "Elsewhere", "ranged")
	hasNot(t, k.open("/s/"+string(first)), "the session before in this project")
	ranged := k.open("/s/" + string(middle) + "?at=1&through=2")
	if n := strings.Count(ranged, " ranged"); n != 2 {
		t.Errorf("%d messages are in the range", n)
	}
	for _, q := range []string{"?at=2&through=1", "?through=2", "?at=1&through=x"} {
		hasNot(t, k.open("/s/"+string(middle)+q), " ranged")
	}
}

func TestConversationIsExportedFromItsPage(t *testing.T) {
	k := newKit(t)
	k.login()
	const secret = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
	id := k.session(store.NewSession{Title: "Harbour"}, "use "+secret)
	has(t, k.open("/s/"+string(id)), "Go on in another program", "<code>sessiond to codex "+string(id))
	for query, want := range map[string]string{
		"?format=html&redact=1": "<!DOCTYPE html>", "?format=md": "# Harbour", "?format=jsonl": `"Harbour"`,
	} {
		status, _, body := k.do("GET", "/s/"+string(id)+"/export"+query, nil)
		if status != http.StatusOK || !strings.Contains(body, want) ||
			strings.Contains(body, secret) != !strings.Contains(query, "redact") {
			t.Errorf("%s: %d %.300s", query, status, body)
		}
	}
	if status, _, _ := k.do("GET", "/s/"+string(id)+"/export?format=doc", nil); status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown format: %d", status)
	}
}

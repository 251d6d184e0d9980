package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// A conversation and its line in the list say who acts, as long as that is known.
func TestWhoActsNow(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, talkOf(1)...)
	says := func(want string) {
		t.Helper()
		for _, path := range []string{"/", "/s/" + string(id), "/s/" + string(id) + "/now"} {
			page := k.open(path)
			if want == "" {
				hasNot(t, page, `class="doing`)
				continue
			}
			has(t, page, `class="doing`, want)
		}
	}
	says("waits for a person, since 10:00:")
	k.say(id, "How high is the water?")
	says("the model works, since 10:00:")
	calls := session.Message{
		Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, InContext: true, Display: true,
		Finish: session.FinishToolCalls,
		Parts:  []session.Part{{Kind: session.PartToolCall, CallID: "a", ToolName: "Bash", Arguments: `{"command":"tide"}`}},
	}
	testkit.Must(k.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{calls}}))(t)
	says("Bash runs, since 10:00:")
	k.at = k.at.Add(11 * time.Minute)
	says("Bash runs, since 10:00:")
	k.at = k.at.Add(2 * time.Hour)
	says("")
}

// The page of a conversation opens its sub-agents in place: what they said comes as a piece, whose places have other
// names than those around it, and without scripts the fold has a link.
func TestSubAgentsOpenInPlace(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, talkOf(2)...)
	child := k.session(store.NewSession{
		Title: "Look at the <b>pier</b>", ParentID: id, ParentKind: session.ParentChild,
		Started: &session.MessageRef{Session: id, Seq: 2},
	}, "How high is the pier?", "Four metres.")
	has(t, k.open("/s/"+string(id)), `<details class="agent" data-agent="`+string(child)+`">`, "Look at the &lt;b&gt;pier",
		`<a href="/s/`+string(child)+`">open its conversation</a>`)
	status, _, piece := k.do(http.MethodGet, "/s/"+string(child)+"?in="+string(id), nil, "HX-Request", "true")
	if status != http.StatusOK {
		t.Fatalf("the piece: %d %s", status, piece)
	}
	log := piece[strings.Index(piece, `id="log"`):]
	for _, want := range []string{"Four metres.", `id="` + string(child) + `.1"`, `href="#` + string(child) + `.2"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the piece lacks %q: %s", want, log)
		}
	}
	hasNot(t, log, `id="m1"`, "?in=", "&amp;in=")
}

// A browser that opens an address that nothing has gets a page; a program gets what the API says.
func TestAnAddressThatNothingHasIsAPage(t *testing.T) {
	k := newKit(t)
	browser := []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}
	if status, to, _ := k.do(http.MethodGet, "/nosuch", nil, browser...); status != http.StatusSeeOther ||
		to != "/login?to=%2Fnosuch" {
		t.Errorf("before the login: %d %s", status, to)
	}
	k.login()
	for path, page := range map[string]bool{
		"/nosuch": true, "/usage/x": true, "/year": true, "/static": true, "/v1/nosuch": false, "/metrics": false,
	} {
		status, _, body := k.do(http.MethodGet, path, nil, browser...)
		if page && (status != http.StatusNotFound || !strings.Contains(body, "<h1>")) {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if !page && strings.Contains(body, "<h1>") {
			t.Errorf("%s is a page", path)
		}
	}
	if _, _, body := k.do(http.MethodGet, "/nosuch", nil); strings.Contains(body, "<h1>") {
		t.Errorf("a program gets a page: %s", body)
	}
}

// A filter that is on or off is refused where it is neither, and a tag that no session has is called so.
func TestFiltersThatSayNothing(t *testing.T) {
	k := newKit(t)
	k.login()
	k.session(store.NewSession{Title: "Harbour"}, talkOf(1)...)
	for _, name := range []string{"errors", "starred", "archived"} {
		if status, _, body := k.do(http.MethodGet, "/?"+name+"=maybe", nil); status != http.StatusUnprocessableEntity &&
			status != http.StatusBadRequest || !strings.Contains(body, "is true or false, not") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for _, path := range []string{"/?tag=release", "/usage?tag=release", "/?branch=main"} {
		has(t, k.open(path), "No session matches")
	}
}

// In a conversation, summer is a word.
func TestFindInAConversationReadsNoTimes(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, "The summer release", "Done.", "And the winter one", "Done, too.")
	page := k.open("/s/" + string(id) + "?find=summer")
	has(t, page, "<h2>1 found</h2>", "<mark>summer</mark>", `show all prompts`)
}

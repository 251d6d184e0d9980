package pages_test

import (
	"net/url"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// Tags, notes, names and stars are set on a conversation's page; a home's chip leads to what has a tag.
func TestConversationIsMarkedFromItsPage(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, talkOf(2)...)
	base := "/s/" + string(id)
	form := func(action string, fields ...string) string {
		t.Helper()
		v := url.Values{}
		for i := 0; i < len(fields); i += 2 {
			v.Set(fields[i], fields[i+1])
		}
		status, body := k.post(base+"/"+action, v)
		if status != 200 {
			t.Fatalf("%s: %d %s", action, status, body)
		}
		return body
	}
	has(t, form("tag", "text", "release"), `href="/?tag=release">#release`, "Tagged.")
	has(t, form("tag", "text", "first <b>", "message", "1"), "1: #first &lt;b&gt;")
	has(t, k.open("/"), `<option value="release">release (1)</option>`, `href="/?tag=release">#release`)
	has(t, k.open("/?tag=release"), "Harbour")
	has(t, k.open("/?q=release"), "Harbour")
	hasNot(t, form("untag", "text", "release"), `>#release</a>`)
	has(t, form("rename", "text", strings.Repeat("Name ", 2000)), "Renamed.")
	has(t, form("star"), "Remove star")
	has(t, form("archive"), "Unarchive")
	if sess := testkit.Must(k.store.Session(t.Context(), id))(t); len(sess.Title) > 210 || sess.StarredAt == nil {
		t.Errorf("the session is %+v", sess)
	}
	if status, body := k.post(base+"/tag", url.Values{"text": {strings.Repeat("x", 65)}}); status != 422 {
		t.Errorf("a long tag: %d %s", status, body)
	}
}

// Two tabs edit a note: the later one gets a page with both texts, and can store its own.
func TestNoteOfTwoTabsLosesNothing(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, talkOf(1)...)
	save := func(text, revision string) string {
		t.Helper()
		_, body := k.post("/s/"+string(id)+"/note", url.Values{"text": {text}, "revision": {revision}})
		return body
	}
	note := func() session.Mark { return testkit.Must(k.store.Note(t.Context(), store.Marking{Session: id}))(t) }
	has(t, save("of the first tab", "0"), "of the first tab", "The note is stored.")
	page := has(t, save("of the second tab", "0"), "was changed meanwhile", "of the first tab",
		">of the second tab</textarea>")
	if got := note().Text; got != "of the first tab" {
		t.Errorf("the note is %q", got)
	}
	_, after, _ := strings.Cut(page, `name="revision" value="`)
	has(t, save("both", after[:strings.IndexByte(after, '"')]), "The note is stored.")
	if got := note().Text; got != "both" {
		t.Errorf("the note is %q", got)
	}
}

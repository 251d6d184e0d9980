package pages_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

func TestControlsCountWhatTheyWouldList(t *testing.T) {
	k := newKit(t)
	k.login()
	k.session(store.NewSession{Title: "Kites", Project: "/home/me/kites", GitBranch: "wind"}, "up")
	k.session(store.NewSession{Title: "Boats", Project: "/home/me/boats"}, "out")
	k.session(store.NewSession{Title: "Oars", Project: "/home/me/boats"}, "in")
	home := k.open("/")
	has(t, home, "<output>3 sessions</output>", `<option value="/home/me/boats">boats (2)</option>`,
		`<option value="m">m (3)</option>`, `<option value="wind">wind (1)</option>`)
	boats := k.open("/?project=/home/me/boats")
	has(t, boats, "<output>2 sessions</output>", `<option value="/home/me/boats" selected>boats (2)</option>`,
		`<option value="/home/me/kites">kites (1)</option>`, `<option value="m">m (2)</option>`)
	hasNot(t, boats, `value="wind"`)
	hasNot(t, has(t, k.open("/?branch=wind"), "Kites", "branch: wind"), ">Boats<")

	// A form has all its controls in the address; the view's address has those that are set.
	if status, to, _ := k.do("GET", "/?project=&model=m&branch=&since=", nil); status != http.StatusSeeOther ||
		to != "/?model=m" {
		t.Errorf("an empty control leads to %d %s", status, to)
	}
	if status, _, body := k.do("GET", "/?project=&model=m", nil, "HX-Request", "true"); status != http.StatusOK ||
		!strings.Contains(body, "model: m") {
		t.Errorf("a piece with an empty control: %d %.200s", status, body)
	}
}

func TestDaysAndHoursLeadToTheirSessions(t *testing.T) {
	k := newKit(t)
	k.login()
	hasNot(t, k.open("/"), `class="heat"`)
	k.session(store.NewSession{Title: "Kites"}, "up")
	before := k.at
	k.at = k.at.AddDate(0, 0, 2).Add(3 * time.Hour)
	k.session(store.NewSession{Title: "Boats"}, "out", "Out it is.", "in")
	home := has(t, k.open("/"), `<title>11 Feb: 1</title>`, `<title>13 Feb: 2</title>`, "2 prompts today",
		`<title>13:00: 2 prompts</title>`)
	for day, want := range map[string]string{
		before.Format(time.DateOnly): "Kites", k.at.Format(time.DateOnly): "Boats",
		k.at.Format("2006-01-02T15:00"): "Boats",
	} {
		has(t, home, `?on=`+day)
		shown := has(t, k.open("/?on="+day), want, "on: "+day)
		if strings.Count(shown, `class="item"`) != 1 {
			t.Errorf("%s lists others, too", day)
		}
	}
	if status, _, body := k.do("GET", "/?on=sideways", nil); status != http.StatusUnprocessableEntity ||
		!strings.Contains(body, "is not a time") {
		t.Errorf("on=sideways: %d %.300s", status, body)
	}
}

var formToken = regexp.MustCompile(`name="form_token" value="([0-9a-f]+)"`)

func TestSeveralAreChangedAndExportedAtOnce(t *testing.T) {
	k := newKit(t)
	k.login()
	const secret = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
	kites := k.session(store.NewSession{Title: "Kites"}, "up with "+secret)
	boats := k.session(store.NewSession{Title: "Boats"}, "out")
	k.session(store.NewSession{Title: "Oars"}, "in")
	form := formToken.FindStringSubmatch(k.open("/"))[1]
	sameSite := []string{"Sec-Fetch-Site", "same-origin"}
	do := func(what string, more ...string) (int, string) {
		t.Helper()
		values := url.Values{
			"form_token": {form}, "do": {what}, "session": {string(kites), string(boats)}, "back": {"/?since=7d"},
		}
		for i := 0; i+1 < len(more); i += 2 {
			if values.Del(more[i]); more[i+1] != "" {
				values.Set(more[i], more[i+1])
			}
		}
		status, to, body := k.do("POST", "/several", values, sameSite...)
		if status == http.StatusSeeOther && to != "/?since=7d" {
			t.Errorf("%s leads to %s", what, to)
		}
		return status, body
	}
	do("star")
	hasNot(t, has(t, k.open("/"), "2 sessions: starred."), "Nothing was")
	starred := has(t, k.open("/?starred=true"), "Kites", "Boats")
	hasNot(t, starred, "Oars", "2 sessions: starred.")
	do("tag", "text", "release")
	hasNot(t, has(t, k.open("/?tag=release"), "Kites", "Boats"), "Oars")
	do("tag")
	has(t, k.open("/"), "Nothing was tagged")
	do("star", "session", "")
	has(t, k.open("/"), "No session is marked")
	do("archive")
	hasNot(t, has(t, k.open("/"), "Oars"), ">Kites<", ">Boats<")
	do("unarchive")
	has(t, k.open("/"), "Kites", "Boats")
	if status, body := do("md", "redact", "1"); status != http.StatusOK || strings.Contains(body, secret) ||
		!strings.Contains(body, "up with") || !strings.Contains(body, "out") || strings.Contains(body, "Oars") {
		t.Errorf("the export is %d %s", status, body)
	}
	if status, body := do("jsonl"); status != http.StatusOK || !strings.Contains(body, secret) {
		t.Errorf("the export with secrets is %d %s", status, body)
	}
	if status, body := do("star", "session", "20010101_001"); status != http.StatusNotFound {
		t.Errorf("a session that is gone: %d %.200s", status, body)
	}
	if status, body := do("burn"); status != http.StatusNotFound {
		t.Errorf("an unknown action: %d %.200s", status, body)
	}
	if status, _, _ := k.do("POST", "/several", url.Values{"do": {"archive"}, "session": {string(kites)}},
		sameSite...); status != 403 {
		t.Errorf("a form of another page: %d", status)
	}
}

// What is stored is shown as far as it fits, and what is gone is said.
func TestLongTitlesAndPurgedSessions(t *testing.T) {
	k := newKit(t)
	k.login()
	long := k.session(store.NewSession{Title: strings.Repeat("Boats ", 2000), Project: "/home/me/boats"}, "out")
	kept := k.session(store.NewSession{Title: "Kites", Project: "/home/me/boats"}, "up")
	for _, path := range []string{
		"/", "/usage", "/s/" + string(kept), "/s/" + string(kept) + "/files", "/s/" + string(long),
	} {
		if page := k.open(path); len(page) > 120_000 {
			t.Errorf("%s has %d bytes", path, len(page))
		}
	}
	form := formToken.FindStringSubmatch(k.open("/"))[1]
	_, _, err := k.store.BeginPurge(t.Context(), store.PurgeRequest{Session: long})
	testkit.Check(t, err)
	for _, path := range []string{"", "/files", "/export?format=html", "?view=model", "?find=out"} {
		if status, _, body := k.do("GET", "/s/"+string(long)+path, nil); status != http.StatusNotFound ||
			!strings.Contains(body, "It may have been purged") {
			t.Errorf("%s of a purged session: %d %.300s", path, status, body)
		}
	}
	status, _, body := k.do("POST", "/several", url.Values{
		"form_token": {form}, "do": {"star"}, "session": {string(kept), string(long)}, "back": {"//elsewhere"},
	}, "Sec-Fetch-Site", "same-origin")
	if status != http.StatusNotFound || !strings.Contains(body, "1 session changed; then: ") {
		t.Errorf("a list with a purged session: %d %.600s", status, body)
	}
	has(t, k.open("/?starred=true"), "Kites")
}

// The first page is loaded over slow lines, too: everything that it needs is at most 100 kB, also of a busy year.
func TestFirstLoadIsSmall(t *testing.T) {
	k := newKit(t)
	k.login()
	now := k.at
	for back := 364; back >= 0; back-- {
		at := session.At(now.AddDate(0, 0, -back))
		k.session(store.NewSession{
			Title:   fmt.Sprintf("Talk %d of the boats in the harbour and of the weather", back),
			Project: fmt.Sprintf("/home/me/boat-%d", back%40), Model: "claude-opus-5-5", CreatedAt: &at,
		})
		id := session.ID(at.Format("20060102") + "_001")
		testkit.Must(k.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{{
			Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true, Display: true,
			CreatedAt: at, Parts: []session.Part{session.TextPart("out")},
		}}}))(t)
	}
	home := k.open("/")
	_, _, packed := k.do("GET", "/", nil, "Accept-Encoding", "gzip")
	if days := strings.Count(home, "<title>") - 1; days < 365 {
		t.Errorf("%d days of the year are linked", days)
	}
	sum := len(packed)
	for _, m := range regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"`).FindAllStringSubmatch(home, -1) {
		_, _, body := k.do("GET", m[1], nil, "Accept-Encoding", "gzip")
		sum += len(body)
	}
	t.Logf("%d bytes, the page alone %d", sum, len(packed))
	if sum > 100_000 {
		t.Errorf("the first page loads %d bytes", sum)
	}
}

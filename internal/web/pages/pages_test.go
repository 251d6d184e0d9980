package pages_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/html"

	"sessiond/internal/analytics"
	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
	"sessiond/internal/web/guard"
	"sessiond/internal/web/pages"
)

const token = "0123456789abcdef0123456789abcdef"

// kit is a daemon's pages over a real store.
type kit struct {
	t      *testing.T
	store  *store.Store
	index  *search.Index
	at     time.Time
	server *httptest.Server
	client *http.Client // follows no redirect, keeps cookies
	alarm  string
	budget analytics.Budget
}

func newKit(t *testing.T) *kit { return newKitOn(t, analytics.Budget{}) }

func newKitOn(t *testing.T, budget analytics.Budget) *kit {
	t.Helper()
	dir := t.TempDir()
	k := &kit{t: t, budget: budget, at: time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC)}
	k.store = testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(dir, "sessions.db")), store.Options{
		Now: func() time.Time {
			k.at = k.at.Add(time.Second)
			return k.at
		}, Zone: time.UTC, Measure: tokens.Reference().Measure, Touched: touched.Files,
	}))(t)
	t.Cleanup(func() { testkit.Check(t, k.store.Close()) })
	k.index = testkit.Must(search.Open(t.Context(), filepath.Join(dir, "search.db"), k.store))(t)
	t.Cleanup(func() { testkit.Check(t, k.index.Close()) })
	reference := tokens.Reference()
	models := func(id string) (session.ModelInfo, bool) { return session.ModelInfo{ID: id, Window: 8000}, id == "m" }
	contexts := contextmgr.New(k.store, contextmgr.Config{
		Digest: digest.NewExtractive(reference.Text), Models: models, Dialects: dialect.Providers{},
		Reference: string(reference.Family()),
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
	})
	door := guard.New(guard.Options{Token: token})
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "API ", r.URL.Path) })
	shown := pages.New(pages.Config{
		Alarm: func(context.Context) string { return k.alarm },
		Store: k.store, Search: k.index, Contexts: contexts, Reports: analytics.New(k.store.Reader(), time.UTC),
		Budget: k.budget,
		Models: models,
		Guard:  door, API: api, Now: func() time.Time { return k.at }, Zone: time.UTC, Log: zerolog.Nop(),
	})
	door.Admit(shown)
	k.server = httptest.NewServer(door.TCP(shown.Before(api)))
	t.Cleanup(k.server.Close)
	shown.SetAddress(strings.TrimPrefix(k.server.URL, "http://"))
	k.client = newBrowser(t)
	return k
}

func newBrowser(t *testing.T) *http.Client {
	return &http.Client{
		Jar:           testkit.Must(cookiejar.New(nil))(t),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// do sends a request with headers, and returns its status, where it leads, and its body.
func (k *kit) do(method, path string, form url.Values, header ...string) (status int, to, body string) {
	k.t.Helper()
	var in io.Reader
	if form != nil {
		in = strings.NewReader(form.Encode())
	}
	req := testkit.Must(http.NewRequestWithContext(context.Background(), method, k.server.URL+path, in))(k.t)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res := testkit.Must(k.client.Do(req))(k.t)
	defer res.Body.Close()
	return res.StatusCode, res.Header.Get("Location"), string(testkit.Must(io.ReadAll(res.Body))(k.t))
}

func (k *kit) login() {
	k.t.Helper()
	if status, to, body := k.do("POST", "/login",
		url.Values{"token": {token}, "to": {"/"}}); status != http.StatusSeeOther || to != "/" {
		k.t.Fatalf("login: %d %s %s", status, to, body)
	}
}

// open returns a page.
func (k *kit) open(path string) string {
	k.t.Helper()
	status, to, body := k.do("GET", path, nil)
	if status != http.StatusOK {
		k.t.Fatalf("%s: %d %s %s", path, status, to, body)
	}
	return body
}

// post sends a form of a page, and returns the page to which it leads.
func (k *kit) post(path string, form url.Values) (int, string) {
	k.t.Helper()
	_, after, _ := strings.Cut(k.open("/"), `name="form_token" value="`)
	form.Set("form_token", after[:strings.IndexByte(after, '"')])
	status, to, body := k.do("POST", path, form, "Sec-Fetch-Site", "same-origin")
	if status == http.StatusSeeOther {
		return http.StatusOK, k.open(to)
	}
	return status, body
}

func (k *kit) session(in store.NewSession, said ...string) session.ID {
	k.t.Helper()
	in.Model = "m"
	sess := testkit.Must(k.store.CreateSession(k.t.Context(), in))(k.t)
	k.say(sess.ID, said...)
	return sess.ID
}

// say appends messages of a person and of the model in turn.
func (k *kit) say(id session.ID, said ...string) {
	k.t.Helper()
	var msgs []session.Message
	for i, text := range said {
		m := session.Message{
			Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true,
			Display: true, Parts: []session.Part{session.TextPart(text)},
		}
		if i%2 == 1 {
			m.Role, m.Origin, m.Finish = session.Assistant, session.Model, session.FinishStop
		}
		msgs = append(msgs, m)
	}
	if len(msgs) > 0 {
		testkit.Must(k.store.Append(k.t.Context(), store.Append{Session: id, Messages: msgs}))(k.t)
	}
	testkit.Must(k.index.CatchUp(k.t.Context()))(k.t)
}

// has checks that a page says all, and returns it.
func has(t *testing.T, page string, all ...string) string {
	t.Helper()
	for _, text := range all {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%.3000s", text, page[strings.Index(page, "<body"):])
		}
	}
	return page
}

func hasNot(t *testing.T, page string, all ...string) {
	t.Helper()
	for _, text := range all {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q", text)
		}
	}
}

func TestDoors(t *testing.T) {
	k := newKit(t)
	id := k.session(store.NewSession{Title: "Boats"}, "hello")
	if status, to, _ := k.do("GET", "/s/"+string(id)+"?at=1", nil); status != 303 ||
		to != "/login?to=%2Fs%2F"+string(id)+"%3Fat%3D1" {
		t.Errorf("whoever is not logged in: %d %s", status, to)
	}
	has(t, k.open("/login?to=/usage"), `name="to" value="/usage"`)
	has(t, k.open("/login?to=//evil.example"), `name="to" value="/"`)
	if status, _, body := k.do("POST", "/login", url.Values{"token": {"wrong"}}); status != 401 ||
		!strings.Contains(body, "the token is wrong") {
		t.Errorf("a wrong token: %d %s", status, body)
	}
	k.login()
	cookie := k.client.Jar.Cookies(testkit.Must(url.Parse(k.server.URL))(t))[0]
	if cookie.Value == token || len(cookie.Value) < 20 {
		t.Errorf("the cookie is %q", cookie.Value)
	}
	page := k.open("/")
	_, after, _ := strings.Cut(page, `name="form_token" value="`)
	form := url.Values{"form_token": {after[:strings.IndexByte(after, '"')]}, "message": {"1"}}
	pin := "/s/" + string(id) + "/pin"
	for name, c := range map[string]struct {
		method, path string
		form         url.Values
		header       []string
		want         int
	}{
		"a link of the page": {"GET", "/", nil, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		"typed":              {"GET", "/", nil, []string{"Sec-Fetch-Site", "none"}, 200},
		"a link elsewhere": {
			"GET", "/", nil,
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
			200,
		},
		"a frame elsewhere": {
			"GET", "/", nil,
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
			403,
		},
		"a script on another port": {
			"GET", "/", nil,
			[]string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"},
			403,
		},
		"a foreign host":            {"GET", "/", nil, []string{"Host", "evil.example"}, 403},
		"a foreign origin":          {"GET", "/", nil, []string{"Origin", "http://evil.example"}, 403},
		"the API with the cookie":   {"GET", "/v1/sessions", nil, []string{"Sec-Fetch-Site", "same-origin"}, 401},
		"SQL with the cookie":       {"POST", "/v1/sql", form, []string{"Sec-Fetch-Site", "same-origin"}, 401},
		"the API with the token":    {"GET", "/v1/sessions", nil, []string{"Authorization", "Bearer " + token}, 200},
		"a page with the token":     {"GET", "/usage", nil, []string{"Authorization", "Bearer " + token}, 200},
		"a page with a wrong token": {"GET", "/usage", nil, []string{"Authorization", "Bearer x"}, 303},
		"a form of another page": {
			"POST", pin, form,
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
			403,
		},
		"a form of nowhere": {"POST", pin, form, nil, 403},
		"a form without its token": {
			"POST", pin,
			url.Values{"message": {"1"}},
			[]string{"Sec-Fetch-Site", "same-origin"},
			403,
		},
		"a form with its token":      {"POST", pin, form, []string{"Sec-Fetch-Site", "same-origin"}, 303},
		"a form of the exact origin": {"POST", pin, form, []string{"Origin", k.server.URL}, 303},
		"an unknown action": {
			"POST", "/s/" + string(id) + "/dance", form,
			[]string{"Origin", k.server.URL},
			404,
		},
		"events":                           {"GET", "/live", nil, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		"a path that only begins like one": {"GET", "/usage/x", nil, []string{"Sec-Fetch-Site", "same-origin"}, 401},
	} {
		if status, _, body := k.do(c.method, c.path, c.form, c.header...); status != c.want {
			t.Errorf("%s: %d, want %d: %s", name, status, c.want, body)
		}
	}
	if status, _, _ := k.do("POST", "/logout", form, "Sec-Fetch-Site", "same-origin"); status != 303 {
		t.Errorf("logout: %d", status)
	}
	if status, _, _ := k.do("GET", "/", nil, "Cookie", cookie.Name+"="+cookie.Value); status != 303 {
		t.Error("the login lives after the logout")
	}
}

// No script reads a cookie of the page, no other site sends it, and it ends.
func TestCookiesAreHttpOnlyAndStrict(t *testing.T) {
	k := newKit(t)
	id := k.session(store.NewSession{Title: "Boats"}, "hello")
	told := map[string]bool{}
	check := func(name string, ends bool, res *http.Response) {
		t.Helper()
		for _, c := range res.Cookies() {
			told[c.Name] = true
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" || !strings.HasPrefix(c.Path, "/") ||
				(c.MaxAge < 0) != ends || c.MaxAge > 12*60*60 || c.MaxAge == 0 {
				t.Errorf("%s sets %s", name, c)
			}
		}
		testkit.Check(t, res.Body.Close())
	}
	send := func(method, path string, form url.Values) *http.Response {
		req := testkit.Must(http.NewRequestWithContext(t.Context(), method, k.server.URL+path,
			strings.NewReader(form.Encode())))(t)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", k.server.URL)
		return testkit.Must(k.client.Do(req))(t)
	}
	check("the login", false, send("POST", "/login", url.Values{"token": {token}}))
	_, after, _ := strings.Cut(k.open("/"), `name="form_token" value="`)
	form := url.Values{"form_token": {after[:strings.IndexByte(after, '"')]}, "message": {"1"}}
	check("an action", false, send("POST", "/s/"+string(id)+"/pin", form))
	check("its page", true, send("GET", "/s/"+string(id), nil))
	check("the logout", true, send("POST", "/logout", form))
	if !told["sessiond"] || !told["said"] {
		t.Errorf("only %v were set", told)
	}
}

// No other site shows a page in a frame, and no page runs a script that stands in it: whatever is answered.
func TestNoPageIsFramedOrRunsStoredScripts(t *testing.T) {
	k := newKit(t)
	id := k.session(store.NewSession{Title: "Boats"}, "hello")
	check := func(path string) {
		t.Helper()
		res := testkit.Must(k.client.Get(k.server.URL + path))(t)
		testkit.Check(t, res.Body.Close())
		var said []string
		for directive := range strings.SplitSeq(res.Header.Get("Content-Security-Policy"), ";") {
			said = append(said, strings.TrimSpace(directive))
		}
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
			"form-action 'self'", "base-uri 'none'",
		} {
			if !slices.Contains(said, want) {
				t.Errorf("%s (%d) says %q, without %s", path, res.StatusCode, said, want)
			}
		}
	}
	paths := []string{
		"/", "/login", "/usage", "/s/" + string(id), "/s/20990101_001", "/open/wrong", "/static/pages.js",
		"/static/nothing", "/?q=((", "/year/2026.svg", "/year/soon.png",
	}
	for _, path := range paths {
		check(path)
	}
	k.login()
	for _, path := range paths {
		check(path)
	}
}

// A list by metadata says so, can be left, keeps the filter when it is searched, and shows automated sessions, too.
func TestHomeFiltersByMetadata(t *testing.T) {
	k := newKit(t)
	k.session(store.NewSession{Title: "Boats", Metadata: session.JSON(`{"user":{"id":"u_7"}}`), Kind: session.KindAutomated}, "hello")
	k.login()
	has(t, k.open("/?metadata.user.id=u_7"), "Boats", "metadata.user.id", `name="metadata.user.id" value="u_7"`)
	if page := k.open("/?metadata[user][id]=u_8"); strings.Contains(page, "No session is stored yet") ||
		strings.Contains(page, "Boats") {
		t.Errorf("%.3000s", page)
	}
	has(t, k.open("/?q=hello&metadata.user.id=u_7"), "Boats")
}

func TestYearIsAPicture(t *testing.T) {
	k := newKit(t)
	k.session(store.NewSession{Title: "Boats"}, "hello")
	k.login()
	year := time.Now().UTC().Year()
	has(t, k.open("/usage"), fmt.Sprintf(`href="/year/%d.svg"`, year))
	for file, begins := range map[string]string{"%d.svg": "<svg ", "%d.png": "\x89PNG"} {
		page := k.open("/year/" + fmt.Sprintf(file, year))
		if !strings.HasPrefix(page, begins) || strings.Contains(page, "Boats") {
			t.Errorf("%s: %.80q", file, page)
		}
	}
	for _, file := range []string{"soon.svg", "2026.gif", "12026.svg", "2026"} {
		status, _, body := k.do("GET", "/year/"+file, nil)
		if status != 404 || !strings.Contains(body, "here is no picture") {
			t.Errorf("%s: %d %.200s", file, status, body)
		}
	}
}

// Each page says first that what is stored may be lost; whoever is not logged in is not told.
func TestPagesBeginWithTheAlarm(t *testing.T) {
	k := newKit(t)
	id := k.session(store.NewSession{Title: "Boats"}, "hello")
	const said = `<p class="alarm" role="alert">! backups are &lt;late&gt;</p>`
	k.alarm = "! backups are <late>"
	if page := k.open("/login"); strings.Contains(page, "backups are") {
		t.Error("whoever is not logged in is told")
	}
	k.login()
	for _, path := range []string{"/", "/usage", "/s/" + string(id), "/?q=hello"} {
		page := k.open(path)
		if at := strings.Index(page, said); at < 0 || at > strings.Index(page, "<nav") {
			t.Errorf("%s does not begin with the alarm (at %d)", path, at)
		}
	}
	k.alarm = ""
	if page := k.open("/"); strings.Contains(page, `class="alarm"`) {
		t.Error("there is an alarm although all is well")
	}
}

func TestLinksOpenOnce(t *testing.T) {
	k := newKit(t)
	status, _, body := k.do("POST", "/open?to=/usage", nil, "Authorization", "Bearer "+token)
	_, link, _ := strings.Cut(body, k.server.URL)
	link, _, _ = strings.Cut(link, `"`)
	if status != 200 || !strings.HasPrefix(link, "/open/") {
		t.Fatalf("%d %s", status, body)
	}
	link = strings.ReplaceAll(link, `\u0026`, "&")
	if status, to, _ := k.do("GET", link, nil); status != 303 || to != "/usage" {
		t.Errorf("the first time: %d %s", status, to)
	}
	k.open("/usage")
	k.client = newBrowser(t)
	if status, _, body := k.do("GET", link, nil); status != 401 ||
		!strings.Contains(body, "used up or older than a minute") {
		t.Errorf("the second time: %d %s", status, body)
	}
	if status, _, body := k.do("POST", "/s/20260211_001/pin", url.Values{"message": {"1"}}); status != 401 ||
		!strings.Contains(body, "You are no longer logged in, and nothing was done") ||
		!strings.Contains(body, `<a href="/login">`) {
		t.Errorf("a form after the login: %d %s", status, body)
	}
	if status, _, _ := k.do("POST", "/open", nil); status != 401 {
		t.Errorf("a link for whoever asks: %d", status)
	}
}

func TestHome(t *testing.T) {
	k := newKit(t)
	k.login()
	has(t, k.open("/"), "No session is stored yet", "sessiond import")
	old := session.At(k.at.AddDate(0, 0, -3))
	k.session(store.NewSession{Title: "Kites in the wind", Project: "/home/me/kites", CreatedAt: &old})
	boats := k.session(store.NewSession{Title: "Boats <script>alert(1)</script>", Project: "/home/me/boats"},
		"how deep is the harbour?", "The harbour is 7 metres deep.")
	child := k.session(store.NewSession{
		Title: "A helper of boats", Kind: "subagent", ParentID: boats,
		ParentKind: session.ParentChild,
	}, "measure the harbour")
	k.session(store.NewSession{Title: "A nightly run", Kind: "cron"}, "run")
	home := has(t, k.open("/"), "Today", "Sunday, 8 February", "Boats &lt;script&gt;", "+1", "Kites in the wind",
		"/?project=%2Fhome%2Fme%2Fboats")
	hasNot(t, home, "A helper of boats", "A nightly run", "<script>alert")
	has(t, home, `<input type="checkbox" name="all" value="1"> sub-agents`)
	has(t, k.open("/?all=1"), "A helper of boats", "A nightly run", "all: 1")
	has(t, k.open("/?q=harbour&project=/home/me/boats&since=7d"), `name="project" value="/home/me/boats"`,
		"project: /home/me/boats", "since: 7d", "<mark>harbour</mark>")
	hasNot(t, k.open("/?q=harbour&project=/home/me/kites"), "<mark>harbour</mark>")
	has(t, k.open("/?parent="+string(boats)), string(child))
	kites := has(t, k.open("/?project=/home/me/kites"), "Kites", "project: /home/me/kites")
	hasNot(t, kites, "Boats")
	has(t, k.open("/?project=/nowhere"), "No session matches", "Without project")
	has(t, k.open("/?q=harbour+deep"), "<mark>harbour</mark>", "/s/"+string(boats)+"?at="+string(boats)+".2#m2")
	has(t, k.open("/?q=harbur"), "No searched message has “harbur”; searched for “harbour” instead.",
		"<mark>harbour</mark>")
	has(t, k.open("/?q=harbour+zzyyxxw"), "No searched message has “zzyyxxw”; what was found is without it.",
		"<mark>harbour</mark>")
	hasNot(t, has(t, k.open("/?q=zzyyxxw&since=7d"), "Nothing was found.", "Without since: 7d",
		"No searched message has “zzyyxxw”."), "without it")
	has(t, k.open("/?q=harbour+last+week"), "<mark>harbour</mark>", `only messages of: last week</a>`,
		"?q=harbour&#43;last&#43;week&#43;after%3A%22last&#43;week%22")
	has(t, k.open("/?since=il+y+a+un+an"), "Kites")
	k.session(store.NewSession{Title: "Ports"}, "ok", "线上的数据库改用 6432 端口")
	has(t, k.open("/?q="+url.QueryEscape("数据库的端口是多少？")), "<mark>数据库</mark>", "<mark>端口</mark>")
	fragment := testkit.Must(http.NewRequestWithContext(t.Context(), "GET", k.server.URL+"/?q=harbour", nil))(t)
	fragment.Header.Set("HX-Request", "true")
	res := testkit.Must(k.client.Do(fragment))(t)
	defer res.Body.Close()
	if piece := string(testkit.Must(io.ReadAll(res.Body))(t)); strings.Contains(piece, "<html") ||
		!strings.Contains(piece, "<mark>") {
		t.Errorf("the piece is %s", piece)
	}
	for path, want := range map[string]int{
		"/?cursor=broken": 422, "/?since=sideways": 422, "/?q=%22": 422,
		"/s/20010101_001": 404, "/s/nonsense": 404, "/static/none.js": 404,
	} {
		if status, _, body := k.do("GET", path, nil); status != want || !strings.Contains(body, "<h1>") ||
			!strings.Contains(body, "All sessions") || !strings.Contains(body, `<p class="note">`) {
			t.Errorf("%s: %d %.300s", path, status, body)
		}
	}
}

func TestListGoesOnWhereItEnded(t *testing.T) {
	k := newKit(t)
	k.login()
	for i := range 65 {
		k.session(store.NewSession{Title: fmt.Sprintf("Talk %d.", i)})
	}
	first := has(t, k.open("/"), "Talk 64.", "Talk 5.", "Older sessions")
	hasNot(t, first, "Talk 4.")
	_, next, _ := strings.Cut(first, `<p class="more"><a href="`)
	next, _, _ = strings.Cut(next, `"`)
	second := has(t, k.open(html.UnescapeString(next)), "Talk 4.", "Talk 0.")
	hasNot(t, second, "Talk 5.", "Older sessions")
}

// talkOf returns what 200 turns are made of: long replies, so that a compaction hides something.
func talkOf(turns int) (said []string) {
	for i := range turns {
		said = append(said, fmt.Sprintf("Question %d about the harbour?", i+1),
			fmt.Sprintf("Answer %d. %s", i+1, strings.Repeat("The tide comes and goes. ", 12)))
	}
	return said
}

func TestConversation(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour", Directory: "/home/me/boats"}, talkOf(100)...)
	base := "/s/" + string(id)
	page := has(t, k.open(base), "Question 1 about", `id="m150"`, "Later messages", "1 to 150 of 200",
		`<li><a href="`+base+`?at=`+string(id)+`.199#m199">Question 100`)
	hasNot(t, page, `id="m151"`, "Earlier messages")
	page = has(t, k.open(base+"?at=190"), `id="m190"`, `id="m200"`, "Earlier messages")
	hasNot(t, page, "Later messages", "a new beginning", "another branch")
	if piece := k.open(base + "?from=201"); strings.Contains(piece, "<article") {
		t.Errorf("behind the end stands something: %s", piece)
	}
	seen := has(t, k.open(base+"?view=model"), "What the model sees", "summary ", "kept ", "free ",
		"not seen by the model", `class="given"`, ">pin · ")
	if strings.Count(seen, "gone") < 10 {
		t.Error("nothing is greyed out")
	}
	has(t, k.open(base+"?view=model&plan=1"), "A compaction now would hide", "Compact now")
	_, done := k.post(base+"/compact", url.Values{})
	has(t, done, "the context went from")
	sess := testkit.Must(k.store.Session(t.Context(), id))(t)
	if sess.CompactionID == nil {
		t.Fatal("nothing was compacted")
	}
	through := testkit.Must(k.store.Compactions(t.Context(), id))(t)[0].Through
	has(t, k.open(base+"?at="+through.String()), `class="cut"`, "what the model got", "Undo",
		`<a href="`+base+`?from=1">read them</a>`)
	_, undone := k.post(base+"/undo", url.Values{"compaction": {fmt.Sprint(*sess.CompactionID)}})
	has(t, undone, "is undone: the context has about")
	has(t, k.open(base+"?at="+through.String()), "Redo")
	status, body := k.post(base+"/undo", url.Values{"compaction": {"999"}})
	if status != 404 {
		t.Errorf("an unknown compaction: %d %s", status, body)
	}
	_, pinned := k.post(base+"/pin", url.Values{"message": {"3"}})
	has(t, pinned, ".3 is pinned", "pinned <button")
	hasNot(t, k.open(base+"?view=model&at=3&said=hello"), "is pinned", `class="said"`)
	_, unpinned := k.post(base+"/unpin", url.Values{"message": {"3"}})
	has(t, unpinned, "is no longer pinned")
	hasNot(t, k.open(base+"?view=model&at=3"), "pinned <button")
	for path, want := range map[string]int{"?at=9999": 404, "?at=x": 422, "?from=0": 422} {
		if status, _, body := k.do("GET", base+path, nil); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestForksAndChildrenAreLinked(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, talkOf(3)...)
	fork := testkit.Must(k.store.Fork(t.Context(), store.Fork{Session: id}))(t).ID
	k.say(fork, "Now in the fork")
	has(t, k.open("/s/"+string(id)), `forked here: <a href="/s/`+string(fork)+`">`)
	page := has(t, k.open("/s/"+string(fork)), `forked from <a href="/s/`+string(id)+`?at=`+string(id)+`.6#m6">Harbour</a>`,
		"Question 1", "Now in the fork", `id="m1"`)
	if strings.Count(page, `id="m1"`) != 1 {
		t.Error("two messages have one anchor")
	}
}

// A long title is whole above its conversation, and a parent is called by its title.
func TestHeadingIsNotCut(t *testing.T) {
	k := newKit(t)
	k.login()
	long := strings.Repeat("planning ", 60) + "the harbour"
	id := k.session(store.NewSession{Title: long}, talkOf(1)...)
	has(t, k.open("/s/"+string(id)), "the harbour</h1>")
	child := k.session(store.NewSession{Title: "Depths", ParentID: id}, talkOf(1)...)
	has(t, k.open("/s/"+string(child)), `started by <a href="/s/`+string(id)+`">planning planning`)
}

func TestBranchesAreLinked(t *testing.T) {
	k := newKit(t)
	k.login()
	id := k.session(store.NewSession{Title: "Harbour"}, talkOf(3)...)
	base, ref := "/s/"+string(id), string(id)+"."
	testkit.Must(k.store.MoveHead(t.Context(),
		store.HeadMove{Session: id, To: &session.MessageRef{Session: id, Seq: 2}}))(t)
	k.say(id, "Another question", "Another answer")
	page := has(t, k.open(base), "Question 1", "Another answer",
		`another branch: <a href="`+base+`?at=`+ref+`3#m3">`+ref+`3</a>, user Question 2 about`)
	hasNot(t, page, "Answer 3")
	status, to, _ := k.do("GET", base+"?at="+ref+"3", nil)
	if want := base + "?at=" + ref + "3&branch=" + ref + "6"; status != 303 || to != want {
		t.Errorf("a message of another branch: %d %s, want %s", status, to, want)
	}
	branch := has(t, k.open(to), "Answer 3", "Another branch, to "+ref+"6", `<a href="`+base+`">show the current one</a>`,
		ref+`7</a>, user Another question`)
	hasNot(t, branch, "data-live", "Another answer", "What the model sees")
	has(t, k.open(base+"?branch=4"), "Answer 2")
	for path, want := range map[string]int{"?branch=99": 404, "?branch=x": 422} {
		if status, _, body := k.do("GET", base+path, nil); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestSessionsOfAKeyAreLinked(t *testing.T) {
	k := newKit(t)
	k.login()
	first := k.session(store.NewSession{Title: "Monday", Key: "chat:1"}, "hello")
	second := k.session(store.NewSession{Title: "Tuesday", Key: "chat:1", Generation: 1}, "hello again")
	has(t, k.open("/s/"+string(first)), `the session after <a href="/s/`+string(second)+`">Tuesday</a>`)
	has(t, k.open("/s/"+string(second)), `the session before <a href="/s/`+string(first)+`">Monday</a>`)
}

// follower is the log of an open page, as its script keeps it.
type follower struct {
	base, next, before, after string // before and after the edge
}

const edge = `<i class="edge" hidden></i>`

// read opens the page, or asks for what arrived since.
func (f *follower) read(k *kit) {
	k.t.Helper()
	path := f.base
	if f.next != "" {
		path += "?from=" + f.next
	}
	_, log, found := strings.Cut(k.open(path), `<div id="log"`)
	_, next, live := strings.Cut(log, ` data-live data-next="`)
	_, log, _ = strings.Cut(log, ">")
	log, _, _ = strings.Cut(log, "\n</main>")
	before, after, edged := strings.Cut(log, edge)
	if !found || !live || !edged {
		k.t.Fatalf("%s has no end to follow (log %t, live %t, edge %t):\n%s", path, found, live, edged, log)
	}
	f.next, _, _ = strings.Cut(next, `"`)
	f.before, f.after = f.before+before, after
}

// text is the log without what a page repeats where a part of it begins: speaker and day.
func (f *follower) text() string {
	log := regexp.MustCompile(`(>)\d{4}-\d\d-\d\d (\d\d:\d\d</time>)`).ReplaceAllString(f.before+f.after, "$1$2")
	return strings.ReplaceAll(log, " again", "")
}

// Whatever arrives, in whatever order, a page that follows shows what one shows that is opened then: calls and results,
// rows of the program between them, and rows that are not drawn at all.
func TestFollowingShowsWhatAReloadShows(t *testing.T) {
	said := func(role session.Role, parts ...session.Part) session.Message {
		m := session.Message{
			Kind: session.KindMessage, Role: role, Origin: session.Model, InContext: role != "",
			Display: true, Parts: parts,
		}
		switch role {
		case session.User:
			m.Origin = session.Person
		case session.Tool:
			m.Origin = session.ByTool
		}
		return m
	}
	calls, waiting := 0, []string(nil)
	call := func() session.Part {
		calls++
		id := fmt.Sprint("c", calls)
		waiting = append(waiting, id)
		return session.Part{
			Kind: session.PartToolCall, ToolName: "bash", CallID: id,
			Arguments: `{"command": "sound ` + id + `"}`,
		}
	}
	result := func(random *rand.Rand) session.Message {
		if len(waiting) == 0 {
			return said(session.Assistant, session.TextPart("All are here."))
		}
		n := random.IntN(len(waiting))
		id := waiting[n]
		waiting = slices.Delete(waiting, n, n+1)
		return said(session.Tool, session.Part{Kind: session.PartToolResult, CallID: id, Text: "depth " + id})
	}
	row := func(kind session.Kind, display bool) session.Message {
		m := said(session.System, session.TextPart("the settings"))
		m.Kind, m.Origin, m.Display, m.InContext = kind, session.Program, display, false
		return m
	}
	pieces := []func(*rand.Rand) session.Message{
		func(*rand.Rand) session.Message {
			waiting = nil // a person speaks once the calls ended, or stops them
			return said(session.User, session.TextPart("How deep?"))
		},
		func(*rand.Rand) session.Message { return said(session.Assistant, session.TextPart("I look.")) },
		func(*rand.Rand) session.Message {
			return said(session.Assistant, session.TextPart("I look."), call())
		},
		func(*rand.Rand) session.Message { return said(session.Assistant, call()) },
		func(*rand.Rand) session.Message { return said(session.Assistant, call(), call()) },
		func(*rand.Rand) session.Message {
			return said(session.Assistant, session.Part{Kind: session.PartReasoning, Text: "Hm."})
		},
		func(*rand.Rand) session.Message {
			stopped := said(session.Assistant, call())
			stopped.Finish, waiting = session.FinishAborted, waiting[:len(waiting)-1]
			return stopped
		},
		result, result, result, result,
		func(*rand.Rand) session.Message { return row(session.KindUnknown, true) },
		func(*rand.Rand) session.Message { return row(session.KindMarker, true) },
		func(*rand.Rand) session.Message { return row(session.KindCustom, false) },
		func(*rand.Rand) session.Message { return row(session.KindMessage, false) },
	}
	k := newKit(t)
	k.login()
	for seed := range uint64(effort.Runs(12)) {
		random := rand.New(rand.NewPCG(seed, 1))
		waiting = nil
		id := k.session(store.NewSession{Title: "Harbour"}, "Good morning")
		open := follower{base: "/s/" + string(id)}
		open.read(k)
		var order []string
		for range 25 {
			n := random.IntN(len(pieces))
			m := pieces[n](random)
			order = append(order, fmt.Sprint(n))
			testkit.Must(k.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{m}}))(t)
			if random.IntN(3) == 0 {
				continue // two arrive at once
			}
			open.read(k)
			reloaded := follower{base: open.base}
			reloaded.read(k)
			if got, want := open.text(), reloaded.text(); got != want {
				t.Fatalf("after %v it shows\n%s\ninstead of\n%s", order, got, want)
			}
		}
	}
}

// hostile are texts that try to leave their place.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`,
	`[x](javascript:alert(1)) ![y](data:text/html,<script>)`, `</main></body><iframe src=//evil.example>`,
	"```html\n<script>alert(1)</script>\n```", `{{.Form}} ${x}`, "\x1b[31m\u202e<b>", `<svg onload=alert(1)>`,
	`/s/x" onclick="alert(1)`,
}

func TestNothingStoredRuns(t *testing.T) {
	k := newKit(t)
	k.login()
	all := strings.Join(hostile, " ")
	id := k.session(store.NewSession{
		Title: all, Project: "/" + all, Source: "pi", SourceID: all, Directory: "/" + all,
		GitBranch: all,
	}, hostile...)
	testkit.Must(k.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{
		{
			Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, InContext: true, Display: true,
			Author: all, Model: all, Parts: []session.Part{
				{Kind: session.PartReasoning, Text: all}, {
					Kind: session.PartToolCall, ToolName: all, CallID: "c",
					Arguments: string(session.JSONOf(map[string]string{
						"file_path": all, "old_string": all,
						"new_string": "b" + all,
					})),
				},
			},
		},
		{
			Kind: session.KindMessage, Role: session.Tool, Origin: session.ByTool, InContext: true, Display: true,
			Parts: []session.Part{{Kind: session.PartToolResult, CallID: "c", Text: all}},
		},
	}}))(t)
	testkit.Must(k.index.CatchUp(t.Context()))(t)
	for _, path := range []string{
		"/", "/?project=" + url.QueryEscape(all),
		"/?q=alert&project=" + url.QueryEscape("/"+all), "/?q=" + url.QueryEscape("alert "+all), "/s/" + string(id),
		"/s/" + string(id) + "?view=model&said=" + url.QueryEscape(all), "/usage", "/usage?source=" + url.QueryEscape(all),
	} {
		tokens := html.NewTokenizer(strings.NewReader(k.open(path)))
		for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
			tag := tokens.Token()
			if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
				continue
			}
			switch tag.Data {
			case "iframe", "object", "embed", "base", "style":
				t.Errorf("%s: %s", path, tag)
			}
			for _, a := range tag.Attr {
				value := strings.ToLower(strings.TrimSpace(a.Val))
				switch {
				case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
					t.Errorf("%s: %s", path, tag)
				case (a.Key == "src" || a.Key == "href" || a.Key == "action") && !strings.HasPrefix(value, "/") &&
					!strings.HasPrefix(value, "#"):
					t.Errorf("%s leads away: %s", path, tag)
				case tag.Data == "script" && a.Key == "src" && !strings.HasPrefix(value, "/static/"):
					t.Errorf("%s: %s", path, tag)
				}
			}
		}
	}
}

func TestUsageIsWhatStatsSays(t *testing.T) {
	k := newKit(t)
	k.login()
	cost := int64(1_250_000_000)
	id := k.session(store.NewSession{Title: "Boats", Project: "/home/me/boats"})
	testkit.Must(k.store.AddCall(t.Context(), session.Call{
		SessionID: id, Purpose: session.PurposeChat,
		Status: session.CallOK, Model: "m", InputTokens: 4321, OutputTokens: 99, CostNanoUSD: &cost,
		PriceSource: "reported",
	}))(t)
	child := k.session(store.NewSession{Project: "/home/me/elsewhere", ParentID: id, Kind: session.KindSubagent})
	testkit.Must(k.store.AddCall(t.Context(), session.Call{SessionID: child, Model: "n", InputTokens: 1_000}))(t)
	page := k.open("/usage")
	has(t, page, "$1.25 &#43; 1 call without a price", "5,321", "$1.25&#43;", "boats", "2026-02-11", `<rect class="c0" x="60"`)
	if strings.Contains(page, "elsewhere") {
		t.Error("a sub-agent counts for its own project")
	}
	has(t, k.open("/usage?since=2027-01-01"), "Usage")
	for _, wrong := range []string{"since=never", "unit=hour", "by=colour"} {
		if status, _, _ := k.do("GET", "/usage?"+wrong, nil); status != 422 {
			t.Errorf("%s: %d", wrong, status)
		}
	}
	has(t, page, "dearest sessions", `<td>$1.25</td><td>$1.25&#43;</td>`)
	weeks := has(t, k.open("/usage?unit=week&by=model"), "cost by week", `href="/?since=2026-02-09&amp;until=2026-02-16"`,
		"week of 9 Feb: $1.25", "m $1.25")
	hasNot(t, weeks, "cost by day")
	has(t, k.open("/usage?unit=month&by=project"), "Feb 2026: $1.25", "boats $1.25", `href="/?since=2026-02-01&amp;until=2026-03-01"`)
	hasNot(t, page, "Budget")
	testkit.Must(k.store.ChangeTags(t.Context(), store.Marking{Session: id}, []string{"release"}, nil))(t)
	tagged := has(t, k.open("/usage?tag=release"), "tag: release", "5,321", "$1.25&#43;")
	hasNot(t, tagged, "dearest sessions")
	has(t, k.open("/usage?tag=none"), "Usage")
	for n := range 6 {
		testkit.Must(k.store.AddCall(t.Context(), session.Call{
			SessionID: id, Purpose: session.PurposeChat,
			Status: session.CallOK, Model: fmt.Sprintf("many%d", n), InputTokens: 1, CostNanoUSD: &cost, PriceSource: "reported",
		}))(t)
		split := k.open("/usage?by=model")
		if models := 3 + n; strings.Contains(split, " others $") != (models > 6) {
			t.Errorf("%d models", models)
		}
	}
}

func TestUsageHasTheBudget(t *testing.T) {
	k := newKitOn(t, analytics.Budget{Month: 200, Projects: map[string]float64{"boats": 50}})
	k.login()
	cost := int64(45_000_000_000)
	id := k.session(store.NewSession{Title: "Boats", Project: "/home/me/boats"})
	testkit.Must(k.store.AddCall(t.Context(), session.Call{
		SessionID: id, Purpose: session.PurposeChat, Status: session.CallOK, Model: "m", InputTokens: 1,
		CostNanoUSD: &cost, PriceSource: "reported",
	}))(t)
	has(t, k.open("/usage"), `<meter min="0" max="200" value="45" aria-label="all projects: $45.00 of $200.00 (22 %) in 2026-02">`,
		"boats: $45.00 of $50.00 (90 %) in 2026-02")
}

func TestFilesAreKeptForGood(t *testing.T) {
	k := newKit(t)
	page := k.open("/login")
	size := len(page)
	for _, name := range []string{"pieces.css", "pages.css", "pages.js", "htmx.js", "icon.svg"} {
		_, at, found := strings.Cut(page, `"/static/`+name+"?")
		if !found {
			t.Errorf("the page lacks %s", name)
		}
		hash, _, _ := strings.Cut(at, `"`)
		size += len(k.open("/static/" + name + "?" + hash))
	}
	if size > 150_000 {
		t.Errorf("the first page loads %d bytes", size)
	}
}

// A page shows the beginning of a large text and leads to the whole, which is plain text.
func TestLargeTextsAreCutAndLeadToTheWhole(t *testing.T) {
	k := newKit(t)
	k.login()
	long := "<script>alert(1)</script>" + strings.Repeat("long text ", 300_000) + "the end"
	id := k.session(store.NewSession{Title: "large"}, long, "short")
	page := k.open("/s/" + string(id))
	whole := "/s/" + string(id) + "/whole/" + string(id) + ".1/0"
	if len(page) > 200_000 || !strings.Contains(page, whole) || strings.Contains(page, string(id)+".2/0") ||
		!strings.Contains(page, "short") {
		t.Errorf("%d bytes: %.3000s", len(page), page)
	}
	if got := k.open(whole); got != long {
		t.Errorf("the whole has %d bytes of %d", len(got), len(long))
	}
	res := testkit.Must(k.client.Get(k.server.URL + whole))(t)
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/plain; charset=utf-8" ||
		res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("it is %s: %v", kind, res.Header)
	}
	for _, gone := range []string{
		whole + "1", strings.Replace(whole, ".1/", ".9/", 1),
		"/s/20200101_001/whole/" + string(id) + ".1/0", "/s/" + string(id) + "/model", "/s/",
	} {
		if status, _, _ := k.do("GET", gone, nil); status != http.StatusNotFound {
			t.Errorf("%s: %d", gone, status)
		}
	}
}

package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/testkit/storetest"
)

// browser is a real one, at the page of a daemon.
type browser struct {
	t   *testing.T
	ctx context.Context
	d   *daemon
}

// newBrowser skips the test where there is no chromium.
func newBrowser(t *testing.T, d *daemon) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium here (Debian's package chromium), so the page is not tested")
	}
	// The browser's processes may write to its profile a moment longer than it runs.
	profile := testkit.Must(os.MkdirTemp("", "sessiond-page"))(t)
	t.Cleanup(func() { os.RemoveAll(profile) })
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 900),
		chromedp.UserDataDir(profile), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf)) // it logs events that it does not know
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel() })
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute) // the whole test
	t.Cleanup(cancel)
	return &browser{t, ctx, d}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page shows:\n%s", err, b.text())
	}
}

// text is what can be read.
func (b *browser) text() (text string) {
	_ = chromedp.Run(b.ctx, chromedp.Evaluate(`location.href + '\n' + document.body.innerText`, &text))
	return text
}

// open opens a page by a link of `sessiond open`.
func (b *browser) open(args ...string) {
	b.t.Helper()
	cmd := b.d.command(append([]string{"open", "--print"}, args...)...)
	cmd.Env = append(cmd.Env, "SESSIOND_SOCKET=off", "SESSIOND_LISTEN="+strings.TrimPrefix(b.d.url, "http://"))
	out := testkit.Must(cmd.Output())(b.t)
	b.do(chromedp.Navigate(strings.TrimSpace(string(out))))
}

// until waits until a condition holds in the page.
func (b *browser) until(condition string) {
	b.t.Helper()
	end := time.Now().Add(time.Minute) // far more than it needs
	for holds := false; !holds; time.Sleep(20 * time.Millisecond) {
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(condition, &holds)) // a page that is left fails to answer
		if time.Now().After(end) {
			b.t.Fatalf("%s does not come true; the page shows:\n%s", condition, b.text())
		}
	}
}

// arrives waits for a page whose address has a text, until its keys work.
func (b *browser) arrives(at string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(location.pathname + location.search).includes(%q) && document.documentElement.classList.contains('js')`, at))
}

// sees waits until something can be read.
func (b *browser) sees(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// seesHere waits until something can be read in the window, without scrolling.
func (b *browser) seesHere(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`[...document.querySelectorAll('#log *')].some(e => e.innerText && e.innerText.includes(%q) && e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= innerHeight)`, text))
}

func (b *browser) keys(keys string) { b.t.Helper(); b.do(chromedp.KeyEvent(keys)) }

// focus moves the focus by Tab until it is on an element that says a text.
func (b *browser) focus(text string) {
	b.t.Helper()
	for range 400 {
		var at string
		b.do(chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(`document.activeElement === document.body ? '' : document.activeElement.innerText || ''`, &at))
		if strings.Contains(at, text) {
			return
		}
	}
	b.t.Fatalf("Tab reaches nothing that says %q; the page shows:\n%s", text, b.text())
}

// is accessible tells what axe finds wrong with the page.
func (b *browser) isAccessible() {
	b.t.Helper()
	axe := string(testkit.Must(os.ReadFile("testdata/axe/axe.min.js"))(b.t))
	var wrong []string
	b.do(chromedp.Evaluate(axe, nil), chromedp.Evaluate(
		`axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html.slice(0, 200) + ' ' + n.failureSummary)))`,
		&wrong, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, w := range wrong {
		b.t.Errorf("axe: %s", w)
	}
}

// addSessions adds sessions without messages to a database that is not open, so that lists are long.
func addSessions(t *testing.T, path string, n int) {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", path))(t)
	defer db.Close()
	testkit.Must(db.ExecContext(t.Context(), `
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO sessions (id, day, title, source, project, created_at, updated_at, active_at)
		SELECT printf('2020%02d%02d_%06d', i % 12 + 1, i % 28 + 1, i), printf('2020-%02d-%02d', i % 12 + 1, i % 28 + 1), 'Talk ' || i, 'pi', '/home/me/p' || i % 50, at, at, at
		FROM (SELECT i, strftime('%Y-%m-%d %H:%M:%f', '2020-01-01', i || ' minutes') AS at FROM n)`, n))(t)
}

// A person finds a phrase among many sessions, opens its message, looks at what a compaction hid and what is recalled,
// undoes it, and watches what arrives, by keys alone. Real transcripts are among the sessions where there are any.
func TestPageByKeyboard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Check(t, os.MkdirAll(filepath.Join(dir, "sessiond"), 0o700))
	addSessions(t, storetest.New(t, filepath.Join(dir, "sessiond", "sessions.db")), effort.Runs(100_000))
	d := startDaemonOn(t, dir, "127.0.0.1:0")
	b := newBrowser(t, d)
	real := samples.Find("claude-code/entire-2.1.12-microcompact.jsonl")
	if real != "" {
		testkit.Must(d.command("import", "claude-code", real).Output())(t)
	}
	id := d.newSession()
	path := "/s/" + string(id)
	say := func(messages ...any) {
		t.Helper()
		testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", map[string]any{"messages": messages}, nil))(t)
	}
	text := func(role, content string) any { return map[string]string{"role": role, "content": content} }
	var talk []any
	for i := range 60 {
		question, answer := fmt.Sprintf("Question %d about the boats", i+1),
			fmt.Sprintf("Answer %d. %s", i+1, strings.Repeat("The tide comes and goes. ", 30))
		if i == 10 {
			question, answer = "Where does the ferry to Ilva leave?", "The ferry to Ilva leaves from quay seven."
		}
		talk = append(talk, text("user", question), text("assistant", answer))
	}
	say(talk...)
	testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/compactions", map[string]any{"keep_recent_tokens": 2000},
		nil))(t)
	say(text("user", "Which quay does the ferry to Ilva leave from?"))

	b.open()
	b.arrives("/")
	b.sees("Question 1 about the boats")
	b.sees("Older sessions")
	b.isAccessible()
	b.keys("?")
	b.sees("earlier, later part of a conversation")
	b.keys(kb.Escape)
	b.keys("/")
	b.keys("ferry ilva leaves")
	b.sees("The ferry to Ilva leaves")
	b.isAccessible()
	b.keys(kb.Escape)
	b.focus("from quay seven")
	b.keys(kb.Enter)

	b.arrives(path + "?at=")
	b.seesHere("The ferry to Ilva leaves from quay seven.")
	b.isAccessible()
	b.keys("m")

	b.arrives(path + "?view=model")
	b.seesHere("The ferry to Ilva leaves from quay seven.") // the other view opens at the message that is read
	b.sees("recalled ")
	b.sees("summary ")
	b.sees("not seen by the model")
	b.isAccessible()
	b.focus("recall · ")
	b.keys(kb.Enter)
	b.sees("leaves from quay seven")
	b.focus("What would a compaction do now?")
	b.keys(kb.Enter)
	b.arrives("plan=1")
	b.sees("A compaction")
	b.focus("Undo")
	b.keys(kb.Enter)
	b.sees("is undone: the context has about")
	b.sees("the context would have about")

	b.arrives(path + "?view=model")
	b.keys("m")
	b.until(`location.search === '' && document.documentElement.classList.contains('js')`)
	b.keys("J") // to the second prompt
	b.seesHere("Question 2 about the boats")
	before := b.top("#m3")
	say(map[string]any{
		"role": "assistant", "content": "I ask the harbour.",
		"tool_calls": []any{map[string]any{
			"id": "c", "type": "function",
			"function": map[string]any{"name": "ask", "arguments": `{"of": "the harbour"}`},
		}},
	})
	b.sees("→ no result")
	say(map[string]any{"role": "tool", "tool_call_id": "c", "content": "quay eight"},
		text("assistant", "It leaves from quay eight today."))
	b.sees("It leaves from quay eight today.")
	b.sees("→ quay eight")
	if after := b.top("#m3"); after != before {
		t.Errorf("what is read moved from %v to %v", before, after)
	}
	b.do(chromedp.Navigate(d.url + path + "/files"))
	b.sees("No call of this session read or changed a file.")
	b.isAccessible()
	b.do(chromedp.Navigate(d.url + "/usage"))
	b.sees("input tokens")
	b.isAccessible()
	if real != "" {
		b.keys("/")
		b.keys("manual commit strategy" + kb.Enter)
		b.arrives("manual+commit+strategy")
		b.keys("j" + kb.Enter)
		b.arrives("/s/20260121_001")
		b.sees("+1 row of the program")
		b.sees("Bash 4 · 1 error")
		b.isAccessible()
	}
	d.stop()
}

// By keys a sub-agent's conversation opens in the page of its parent, goes on there while it works, and stays open
// where its piece is replaced; the page and the list say who acts. Marked sessions have their buttons below the list.
func TestPageOpensSubAgentsAndSaysWhoActs(t *testing.T) {
	t.Parallel()
	d := startDaemonOn(t, t.TempDir(), "127.0.0.1:0")
	b := newBrowser(t, d)
	id := d.newSession()
	say := func(id session.ID, messages ...any) {
		t.Helper()
		testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", map[string]any{"messages": messages}, nil))(t)
	}
	text := func(role, content string) any {
		return map[string]string{"role": role, "content": content}
	}
	say(id, text("user", "How high is the pier?"), map[string]any{
		"role": "assistant", "content": "I ask a helper.",
		"tool_calls": []any{map[string]any{
			"id": "c", "type": "function", "function": map[string]any{"name": "Agent", "arguments": `{"prompt": "the pier"}`},
		}},
	})
	var child struct {
		ID session.ID `json:"id"`
	}
	testkit.Must(d.do("POST", "/v1/sessions", map[string]any{
		"title": "Measure the pier", "parent_id": id, "parent_message": 2, "parent_call": "c",
	}, &child))(t)
	say(child.ID, text("user", "Measure it."))

	b.open(string(id))
	b.arrives("/s/")
	b.sees("Agent runs, since ")
	b.isAccessible()
	b.keys("jjjj") // to the last piece, the fold
	b.until(`!!document.activeElement.closest(".agent")`)
	b.keys(kb.Enter)
	b.sees("Measure it.")
	b.isAccessible()
	say(child.ID, text("assistant", "Four metres at low water."))
	b.sees("Four metres at low water.")
	say(id, map[string]any{"role": "tool", "tool_call_id": "c", "content": "4 m"})
	b.sees("the model works, since ")
	b.sees("Four metres at low water.") // it is open in the new piece, too
	b.until(`document.querySelectorAll('#log .agent .inner article').length === 2 && new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('[id]').length`)

	b.do(chromedp.Navigate(d.url + "/"))
	b.arrives("/")
	b.sees("the model works, since ")
	b.do(chromedp.Click(".item .mark"))
	b.sees("Change or export the 1 marked")
	b.isAccessible()
	say(id, map[string]any{"role": "assistant", "content": "Four metres.", "finish": "stop"})
	b.until(`!document.body.innerText.includes("the model works, since ")`)
	d.stop()
}

// A page follows a real session of Claude Code, whose turns end in rows that a page does not draw: it shows each of
// five turns as it is written, without a reload and without saying that there is more.
func TestPageFollowsClaudeCode(t *testing.T) {
	t.Parallel()
	name := filepath.Join("projects", "-home-dev1-demo", "cbc5c75e-a6ae-4676-a740-1c7ba0674bac.jsonl")
	rows := strings.SplitAfter(string(testkit.Must(os.ReadFile(filepath.Join(samples.Case(t,
		"49-claude-code-2.1.332-real"), name)))(t)), "\n")
	var starts []int
	for at, row := range rows { // a prompt is queued, taken out of the queue, and stored
		if strings.Contains(row, `"operation":"enqueue"`) && !strings.Contains(row, "task-notification") {
			starts = append(starts, at)
		}
	}
	replies := []string{"forty-two-2.", "forty-two-4.", "forty-two-8.", "/compact", "forty-two-11."}
	if len(starts) != len(replies) {
		t.Fatalf("the transcript has %d turns, want %d", len(starts), len(replies))
	}
	starts = append(starts, len(rows))
	dir := t.TempDir()
	transcript := filepath.Join(dir, ".claude", name)
	testkit.Check(t, os.MkdirAll(filepath.Dir(transcript), 0o700))
	testkit.Check(t, os.WriteFile(transcript, []byte(strings.Join(rows[:starts[1]], "")), 0o600))
	first, lines := talker(t, dir, "import", "claude-code")
	until(t, lines, "claude-code")
	testkit.Check(t, first.Wait())
	d := startDaemonOn(t, dir, "127.0.0.1:0")
	b := newBrowser(t, d)
	b.open("cbc5c75e-a6ae-4676-a740-1c7ba0674bac")
	b.arrives("/s/")
	// The page notes what it says below the messages.
	b.do(chromedp.Evaluate(`window.said = []; window.stays = true;
		new MutationObserver(() => said.push(document.querySelector('#toast').innerText)).observe(document.querySelector('#toast'), {childList: true})`, nil))
	b.sees(replies[0])
	for i, reply := range replies[1:] {
		for piece := range slices.Chunk(rows[starts[i+1]:starts[i+2]], 9) {
			appendTo(t, transcript, strings.Join(piece, ""))
		}
		b.sees(reply)
	}
	var said string
	b.do(chromedp.Evaluate(`said.join(' | ')`, &said))
	if strings.Contains(said, "There are new messages") {
		t.Errorf("the page said: %s", said)
	}
	b.until(`window.stays && document.querySelector('#log[data-live]') && document.querySelectorAll('.rail a').length === 4`)
	shown := func() (ids string) {
		b.do(chromedp.Evaluate(`[...document.querySelectorAll('#log [id^=m]')].map(e => e.id + ' ' + e.className.replace(' again', '').replace(' here', '')).join('\n')`, &ids))
		return ids
	}
	followed := shown()
	b.do(chromedp.Reload())
	b.arrives("/s/")
	if reloaded := shown(); followed != reloaded {
		t.Errorf("the page that followed shows\n%s\none that is opened then\n%s", followed, reloaded)
	}
	b.do(chromedp.Evaluate(`document.querySelector('#toast').innerText`, &said)) // a session that is finished is not news
	if said != "" {
		t.Errorf("the page says %q", said)
	}
	d.stop()
}

// top is how far an element is from the top of the window.
func (b *browser) top(selector string) (y float64) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().top`, selector), &y))
	return y
}

// Nothing that is stored runs in a browser or makes it load something, and many tabs share one stream of events: more
// streams than a browser opens connections would leave the next tab waiting.
func TestPageIsSafeAndAnswersManyTabs(t *testing.T) {
	t.Parallel()
	d := startDaemonOn(t, t.TempDir(), "127.0.0.1:0")
	b := newBrowser(t, d)
	hostile := []string{
		`<script>window.ran = 1</script>`, `"><img src=x onerror="window.ran = 1">`, `<svg onload="window.ran = 1"><animate onbegin="window.ran = 1">`,
		"[a](javascript:window.ran=1) ![b](http://127.0.0.1:9/b.png) ![c](data:image/svg+xml,<svg onload=window.ran=1>) " +
			"<javascript:window.ran=1>",
		`<iframe srcdoc="<script>parent.ran = 1</script>"></iframe><base href="http://127.0.0.1:9/"><style>body { display: none }</style>`,
		`<div hx-get="/logout" hx-trigger="load" hx-on:load="window.ran = 1"></div><form id="q"></form><div id="log"></div>`,
		"```html\n<script>window.ran = 1</script>\n```", `{{.Form}} ${window.ran = 1}`, "\x1b[31m\u202e\u2028<b>",
	}
	all := strings.Join(hostile, " ")
	var made struct {
		ID session.ID `json:"id"`
	}
	testkit.Must(d.do("POST", "/v1/sessions", map[string]any{"title": all, "directory": "/" + all}, &made))(t)
	messages := "/v1/sessions/" + string(made.ID) + "/messages"
	svg := `PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0icGFyZW50LnJhbj0xIi8+` // <svg xmlns=… onload="parent.ran=1"/>
	for _, text := range append(hostile, all) {
		testkit.Must(d.do("POST", messages, map[string]any{"dialect": "anthropic", "messages": []any{
			map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "text", "text": text},
				map[string]any{"type": "image", "source": map[string]any{
					"type": "base64", "media_type": "image/svg+xml",
					"data": svg,
				}},
				map[string]any{"type": "image", "source": map[string]any{"type": "url", "url": "http://127.0.0.1:9/c.png"}},
			}},
			map[string]any{"role": "assistant", "content": []any{
				map[string]any{"type": "text", "text": text},
				map[string]any{
					"type": "tool_use", "id": "t", "name": "Edit",
					"input": map[string]any{"file_path": text, "command": text, "old_string": text, "new_string": "b" + text},
				},
			}},
			map[string]any{"role": "user", "content": []any{map[string]any{
				"type": "tool_result", "tool_use_id": "t",
				"content": text,
			}}},
		}}, nil))(t)
	}
	testkit.Must(d.do("POST", "/v1/sessions/"+string(made.ID)+"/compactions",
		map[string]any{"keep_recent_tokens": 1, "summary": all}, nil))(t)
	b.open()
	own := "/s/" + string(made.ID)
	for _, path := range []string{
		"/", own, own + "?view=model", own + "?view=model&plan=1", own + "#%E0%A4%A",
		"/?q=" + url.QueryEscape("window ran script"), "/?project=" + url.QueryEscape("/"+all), "/usage",
		"/s/" + url.PathEscape(all),
	} {
		b.do(chromedp.Navigate(d.url + path))
		b.until(`document.documentElement.classList.contains('js')`)
		var found string
		b.do(chromedp.Evaluate(`JSON.stringify({
			ran: window.ran,
			links: [...document.querySelectorAll('[href], [src], [action]')].map(e => e.getAttribute('href') || e.getAttribute('src') || e.getAttribute('action')).filter(a => !/^([/#?]|https:|data:image\/(png|jpeg|gif|webp);)/.test(a)),
			attributes: [...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => /^on|style|srcdoc/.test(n)),
			frames: frames.length, loaded: performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin) && !n.startsWith('data:'))})`, &found))
		if want := `{"links":[],"attributes":[],"frames":0,"loaded":[]}`; found != want {
			t.Errorf("%s: %s", path, found)
		}
	}
	tabs := []*browser{b}
	b.do(chromedp.Navigate(d.url + own + "?from=1"))
	for range 8 {
		ctx, cancel := chromedp.NewContext(b.ctx)
		t.Cleanup(cancel)
		tab := &browser{t, ctx, d}
		tab.do(chromedp.Navigate(d.url + own))
		tabs = append(tabs, tab)
	}
	testkit.Must(d.do("POST", messages, map[string]any{"messages": []any{map[string]string{
		"role":    "user",
		"content": "to all tabs",
	}}}, nil))(t)
	for _, tab := range tabs {
		tab.sees("to all tabs")
	}
	d.stop()
}

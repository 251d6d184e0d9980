package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"sessiond/internal/testkit"
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
		t.Skip("there is no chromium here (Debian's package chromium), so nobody looks at the page")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900),
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel() })
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute) // far more than it needs
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
	_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText`, &text))
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

// sees waits until something can be read.
func (b *browser) sees(text string) {
	b.t.Helper()
	for !strings.Contains(b.text(), text) { // a page that is left fails to answer
		if time.Sleep(20 * time.Millisecond); b.ctx.Err() != nil {
			b.t.Fatalf("%q is not to be seen on the page:\n%s", text, b.text())
		}
	}
}

// seesBelow goes to the end of the page until something can be read there: what is above has no height until it is seen.
func (b *browser) seesBelow(text string) {
	b.t.Helper()
	for !strings.Contains(b.text(), text) {
		b.keys(kb.End)
		if time.Sleep(50 * time.Millisecond); b.ctx.Err() != nil {
			b.t.Fatalf("%q is not to be seen at the end of the page:\n%s", text, b.text())
		}
	}
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

// A person finds a phrase, opens its message, looks at what a compaction hid, undoes it, and sees what arrives, by keys.
func TestPageByKeyboard(t *testing.T) {
	d := startDaemonOn(t, t.TempDir(), "127.0.0.1:0")
	b := newBrowser(t, d)
	id := d.newSession()
	say := func(texts ...string) {
		t.Helper()
		var msgs []any
		for i, text := range texts {
			msgs = append(msgs, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
		}
		testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", map[string]any{"messages": msgs}, nil))(t)
	}
	var texts []string
	for i := range 60 {
		texts = append(texts, fmt.Sprintf("Question %d about the boats", i+1), fmt.Sprintf("Answer %d. %s", i+1, strings.Repeat("The tide comes and goes. ", 30)))
	}
	texts[20] = "Where does the ferry to Ilva leave?"
	say(texts...)
	testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/compactions", map[string]any{"keep_recent_tokens": 2000}, nil))(t)

	b.open()
	b.sees("just now")
	b.isAccessible()
	b.keys("/")
	b.keys("ferry ilva")
	b.sees("Where does the ferry")
	b.isAccessible()
	b.focus("Where does the ferry")
	b.keys(kb.Enter)
	b.sees("Question 20 about the boats")
	b.sees("What the model sees")
	b.isAccessible()
	b.keys("m")
	b.sees("What would a compaction do now?")
	b.sees("summary")
	b.sees("not seen")
	b.isAccessible()
	b.focus("What would a compaction do now?")
	b.keys(kb.Enter)
	b.sees("A compaction")

	b.open(string(id))
	b.sees("What the model sees")
	b.focus("Undo")
	b.keys(kb.Enter)
	b.sees("is undone")

	b.open(string(id))
	b.sees("Question 1 about")
	b.seesBelow("Answer 60.")
	say("A message that arrives while one reads")
	b.seesBelow("A message that arrives")
	b.do(chromedp.Navigate(d.url + "/usage"))
	b.sees("input tokens")
	b.isAccessible()
	d.stop()
}

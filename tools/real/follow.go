//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"

	"sessiond/tools/real/scripted"
)

const (
	promptPause  = 1500 * time.Millisecond // between a reply and the next prompt
	compactEvery = 100                     // prompts, so that requests stay small
	sampleEvery  = time.Minute
	arrivalTime  = 30 * time.Second // in which the last reply must be in the page
)

// follow is one long conversation of Claude Code, the daemon that follows its file, and a browser that shows its page.
type follow struct {
	*trial
	claude   *exec.Cmd
	stdin    io.WriteCloser
	results  chan error // one for each prompt
	daemon   *exec.Cmd
	said     *os.File // of the daemon
	address  string
	browser  context.Context
	compacts int
	first    int // sample of memory after a tenth of the time, in kB
}

// runFollow talks for a while, and compares what the page has with what the model answered.
func runFollow(ctx context.Context, in *installer, binary, dir string, lasting time.Duration) error {
	p := programs[slices.IndexFunc(programs, func(p *program) bool { return p.name == "claude-code" })]
	installed, err := in.install(ctx, p)
	if err != nil {
		return err
	}
	t, err := newTrial(p, installed, binary, dir)
	if err != nil {
		return err
	}
	t.model.Forgets, t.model.Record = true, nil
	f := &follow{trial: t, results: make(chan error, 1)}
	defer f.end()
	fmt.Printf("claude-code %s, %s of prompts\n", installed.version, lasting)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := f.begin(ctx); err != nil {
		return err
	}
	if err := f.openPage(ctx); err != nil {
		return err
	}
	if err := f.talkFor(ctx, lasting); err != nil {
		return err
	}
	return f.compare()
}

// end stops what runs.
func (f *follow) end() {
	if f.browser != nil {
		_ = chromedp.Cancel(f.browser)
	}
	if f.claude != nil {
		_ = f.stdin.Close()
		_ = syscall.Kill(-f.claude.Process.Pid, syscall.SIGTERM)
		_ = f.claude.Wait()
	}
	if f.daemon != nil {
		_ = f.daemon.Process.Signal(syscall.SIGTERM)
		_ = f.daemon.Wait()
		_ = f.said.Close()
	}
	f.trial.end()
}

// begin starts Claude Code as an SDK does, with prompts as lines, and has it say something.
func (f *follow) begin(ctx context.Context) (err error) {
	f.claude = exec.CommandContext(ctx, lookPath(f.env, f.program.bin), "-p", "--dangerously-skip-permissions",
		"--verbose", "--input-format", "stream-json", "--output-format", "stream-json")
	f.claude.Dir, f.claude.Env = f.project, f.env
	f.claude.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if f.stdin, err = f.claude.StdinPipe(); err != nil {
		return err
	}
	out, err := f.claude.StdoutPipe()
	if err != nil {
		return err
	}
	if err := f.claude.Start(); err != nil {
		return err
	}
	go f.read(out)
	if err := f.ask(ctx, firstPrompt); err != nil {
		return err
	}
	if err := f.readHistory(ctx); err != nil {
		return err
	}
	return f.db.QueryRow(`SELECT id FROM sessions WHERE source = ? AND kind <> 'subagent'`, f.program.name).Scan(&f.session)
}

// read reports the end of each turn, and of the program.
func (f *follow) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			f.results <- fmt.Errorf("claude ended: %w", err)
			return
		}
		var row struct {
			Type   string `json:"type"`
			Failed bool   `json:"is_error"`
			Result string `json:"result"`
		}
		if json.Unmarshal(line, &row) != nil || row.Type != "result" {
			continue
		}
		if row.Failed {
			f.results <- fmt.Errorf("a turn failed: %.300s", row.Result)
		} else {
			f.results <- nil
		}
	}
}

// ask writes a prompt and waits for its turn's end.
func (f *follow) ask(ctx context.Context, prompt string) error {
	f.model.Begin()
	line, err := json.Marshal(map[string]any{
		"type": "user", "message": map[string]any{"role": "user", "content": prompt},
	})
	if err != nil {
		return err
	}
	if _, err := f.stdin.Write(append(line, '\n')); err != nil {
		return err
	}
	select {
	case err = <-f.results:
	case <-time.After(stepTime):
		err = errors.New("a turn does not end")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !strings.HasPrefix(prompt, "/") {
		f.prompts = append(f.prompts, prompt)
	}
	return err
}

// openPage starts the daemon and opens the conversation in a browser.
func (f *follow) openPage(ctx context.Context) (err error) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.address = port.Addr().String()
	if err := port.Close(); err != nil {
		return err
	}
	if f.said, err = os.Create(filepath.Join(f.dir, "daemon.txt")); err != nil {
		return err
	}
	daemon := exec.Command(f.binary, "serve", "--no-auth", "--listen", f.address)
	daemon.Dir, daemon.Env, daemon.Stdout, daemon.Stderr = f.project, f.env, f.said, f.said
	if err := daemon.Start(); err != nil {
		return err
	}
	f.daemon = daemon
	path, err := exec.LookPath("chromium")
	if err != nil {
		return fmt.Errorf("the page needs chromium: %w", err)
	}
	ctx, _ = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(f.dir, "browser")))...) // runFollow's context ends it
	f.browser, _ = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	for range 300 {
		if conn, err := net.Dial("tcp", f.address); err == nil {
			_ = conn.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	// The page notes when each reply arrived in it.
	return chromedp.Run(f.browser, performance.Enable(),
		chromedp.Navigate("http://"+f.address+"/s/"+f.session), chromedp.WaitVisible("#log[data-live]"),
		chromedp.Evaluate(`window.stays = true; window.arrived = {}; new MutationObserver(() => {
			for (const e of document.querySelectorAll('#log > article.assistant:nth-last-of-type(-n+6)'))
				for (const [reply] of e.innerText.matchAll(/Reply \d+:/g)) arrived[reply] ??= Date.now();
		}).observe(document.querySelector('#log'), {childList: true, subtree: true})`, nil))
}

// talkFor writes prompts one after the other, and prints the memory of daemon and page.
func (f *follow) talkFor(ctx context.Context, lasting time.Duration) error {
	begun := time.Now()
	sampled := begun
	fmt.Println("minutes  prompts  daemon MB  peak MB  daemon CPU s  page MB  nodes")
	for n := 1; time.Since(begun) < lasting; n++ {
		prompt := fmt.Sprintf("Question %d. (shell: printf water-%d)", n, n)
		switch {
		case n%compactEvery == 0:
			prompt = "/compact"
			f.compacts++
		case n%20 == 0:
			prompt = fmt.Sprintf("Question %d, of a helper. (agent: How high is pier %d?)", n, n)
		case n%10 == 0:
			prompt = fmt.Sprintf("Question %d, for a file. (write: plan%d)", n, n)
		}
		if err := f.ask(ctx, prompt); err != nil {
			return fmt.Errorf("prompt %d: %w", n, err)
		}
		if f.first == 0 && time.Since(begun) > lasting/10 {
			f.first = int(f.counter("VmRSS:"))
		}
		if time.Since(sampled) >= sampleEvery {
			sampled = time.Now()
			f.sample(time.Since(begun))
		}
		time.Sleep(promptPause)
	}
	f.sample(time.Since(begun))
	return nil
}

// counter returns a number that the kernel keeps of the daemon.
func (f *follow) counter(name string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.daemon.Process.Pid))
	_, rest, _ := strings.Cut(string(text), name)
	rest, _, _ = strings.Cut(strings.TrimSpace(rest), "\n")
	n, _ := strconv.ParseInt(strings.TrimSuffix(rest, " kB"), 10, 64)
	return n
}

// cpu returns the processor time of the daemon in seconds.
func (f *follow) cpu() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", f.daemon.Process.Pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // ticks of Linux
}

func (f *follow) sample(after time.Duration) {
	heap, nodes := 0.0, 0.0
	_ = chromedp.Run(f.browser, chromedp.ActionFunc(func(ctx context.Context) error {
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			switch m.Name {
			case "JSHeapUsedSize":
				heap = m.Value / 1e6
			case "Nodes":
				nodes = m.Value
			}
		}
		return err
	}))
	fmt.Printf("%7.1f  %7d  %9.1f  %7.1f  %12.1f  %7.1f  %5.0f\n", after.Minutes(), len(f.prompts),
		float64(f.counter("VmRSS:"))*1.024/1e3, float64(f.counter("VmHWM:"))*1.024/1e3, f.cpu(), heap, nodes)
}

// shown is what the page has of the conversation.
type shown struct {
	Texts   []string         `json:"texts"` // prompts and replies, in order
	Calls   string           `json:"calls"` // texts of all calls
	IDs     []string         `json:"ids"`
	Live    bool             `json:"live"`
	Stays   bool             `json:"stays"` // it was not loaded again
	Arrived map[string]int64 `json:"arrived"`
}

const readShown = `({
	texts: [...document.querySelectorAll('#log > article:is(.user, .assistant)')].map(e => e.textContent),
	calls: [...document.querySelectorAll('#log .call')].map(e => e.textContent).join('\n'),
	ids: [...document.querySelectorAll('#log [id^=m]')].map(e => e.id),
	live: !!document.querySelector('#log[data-live]'), stays: !!window.stays, arrived: window.arrived || {},
})`

var replyName = regexp.MustCompile(`Reply \d+:`)

// compare reports what the page misses, has twice or in another order, and how late replies came.
func (f *follow) compare() error {
	var replies []string
	answered := map[string]int64{}
	calls := map[string]bool{}
	for _, x := range f.turnsOf(scripted.Turn) {
		if strings.Contains(x.Prompt, "printf pier") || x.Text == "" { // a sub-agent's, or a call
			for _, c := range x.Calls {
				if command, _ := c.Arguments["command"].(string); strings.HasPrefix(command, "printf water") {
					calls[command] = true
				}
			}
			continue
		}
		name := replyName.FindString(x.Text)
		replies = append(replies, name)
		answered[name] = x.At.UnixMilli()
	}
	var page shown
	for end := time.Now().Add(arrivalTime); ; time.Sleep(200 * time.Millisecond) {
		if err := chromedp.Run(f.browser, chromedp.Evaluate(readShown, &page)); err != nil {
			return err
		}
		if len(page.Texts) > 0 && strings.Contains(page.Texts[len(page.Texts)-1], replies[len(replies)-1]) ||
			time.Now().After(end) {
			break
		}
	}
	var faults []string
	all, order := strings.Join(page.Texts, "\n"), 0
	once := func(what string) {
		if n := strings.Count(all, what); n != 1 {
			faults = append(faults, fmt.Sprintf("%q is there %d times", what, n))
			return
		}
		at := strings.Index(all, what)
		if at < order && !strings.HasPrefix(what, "Reply") {
			faults = append(faults, fmt.Sprintf("%q is out of order", what))
		}
		order = at
	}
	for _, prompt := range f.prompts {
		once(prompt)
	}
	order = 0
	for _, reply := range replies {
		once(reply)
	}
	for call := range calls {
		if n := len(regexp.MustCompile(regexp.QuoteMeta(call)+`\b`).FindAllString(page.Calls, -1)); n == 0 {
			faults = append(faults, fmt.Sprintf("the call %q is missing", call))
		}
	}
	ids := slices.Clone(page.IDs)
	if slices.Sort(ids); len(slices.Compact(ids)) != len(page.IDs) {
		faults = append(faults, "a message is there twice")
	}
	if !page.Live || !page.Stays {
		faults = append(faults, "the page stopped to follow")
	}
	var late []int64
	for name, at := range page.Arrived {
		if answered[name] > 0 {
			late = append(late, at-answered[name])
		}
	}
	slices.Sort(late)
	fmt.Printf("%d prompts, %d replies, %d calls, %d compactions; %d places of messages in the page\n",
		len(f.prompts), len(replies), len(calls), f.compacts, len(page.IDs))
	if len(late) > 0 {
		fmt.Printf("from the model's answer to the page: p50 %d ms, p99 %d ms, longest %d ms\n", late[len(late)/2],
			late[len(late)*99/100], late[len(late)-1])
	}
	fmt.Printf("daemon: %.1f MB after a tenth of the time, %.1f MB at the end\n", float64(f.first)*1.024/1e3,
		float64(f.counter("VmRSS:"))*1.024/1e3)
	return some(nil, faults)
}

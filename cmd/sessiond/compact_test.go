package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// heldModel is a summary server of OpenAI's kind that holds its answers until it is let go.
type heldModel struct {
	*httptest.Server
	asked chan struct{} // one for each request
	gone  chan struct{} // one for each request that was given up before its answer
	free  chan struct{} // one lets one answer go; closed: all
}

func holdModel(t *testing.T) *heldModel {
	t.Helper()
	m := &heldModel{asked: make(chan struct{}, 64), gone: make(chan struct{}, 64), free: make(chan struct{})}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what it is asked does not matter
		m.asked <- struct{}{}
		select {
		case <-m.free:
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"## Goal\n- THE MODEL'S WORDS about the garden."},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":70}}`)
		case <-r.Context().Done():
			m.gone <- struct{}{}
		}
	}))
	t.Cleanup(func() {
		close(m.free)
		m.Close()
	})
	return m
}

func TestStartSaysWhoWritesSummaries(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ environ, want string }{
		{"SESSIOND_SUMMARIZER_PROVIDER=", "made on this host, without a model"},
		{
			"GEMINI_API_KEY=k",
			"made on this host, without a model. GEMINI_API_KEY is set but not used: set SESSIOND_SUMMARIZER_PROVIDER=gemini, " +
				"and gemini-3.5-flash-lite writes them, for about $",
		},
		{"GEMINI_API_KEY=k SESSIOND_SUMMARIZER_PROVIDER=gemini", "gemini-3.5-flash-lite writes them, for about $"},
	} {
		d := startDaemonOn(t, t.TempDir(), "", strings.Fields("GEMINI_API_KEY= OPENAI_API_KEY= "+row.environ)...)
		if !strings.HasPrefix(d.writes, row.want) {
			t.Errorf("%s: %q, want %q", row.environ, d.writes, row.want)
		}
	}
}

func TestLogSaysWhatTheDaemonDid(t *testing.T) {
	d := startDaemonOn(t, t.TempDir(), "", "SESSIOND_LOG_FORMAT=json")
	want := func(status int, method, path string, in, out any) {
		t.Helper()
		if got, err := d.do(method, path, in, out); got != status || err != nil {
			t.Fatalf("%s %s: %d, %v", method, path, got, err)
		}
	}
	var s session.Session
	want(201, "POST", "/v1/sessions", map[string]any{"model": "small", "window": 4000}, &s)
	path := "/v1/sessions/" + string(s.ID)
	want(200, "PATCH", path, map[string]any{"settings": map[string]any{"fraction": 0.7}}, nil)
	for range 8 {
		want(201, "POST", path+"/messages", map[string]any{"messages": []any{
			map[string]any{"role": "user", "content": "SECRET " + strings.Repeat("words of the garden ", 60)},
			map[string]any{"role": "assistant", "content": strings.Repeat("and of the house ", 60)},
		}}, nil)
	}
	want(201, "POST", path+"/compactions", map[string]any{"strategy": "truncate"}, nil)
	d.stop()
	log := d.stderr.String()
	for _, line := range []string{"session created", "compaction settings changed", "context compacted"} {
		if strings.Count(log, `"message":"`+line+`"`) != 1 {
			t.Errorf("the log does not say once %q", line)
		}
	}
	for _, detail := range []string{
		`"fraction":0.7`, `"strategy":"truncate"`, `"tokens_before":`, `"tokens_after":`,
		`"model":"small"`,
	} {
		if !strings.Contains(log, detail) {
			t.Errorf("the log lacks %s", detail)
		}
	}
	if strings.Contains(log, "SECRET") {
		t.Error("the log has the text of a message")
	}
	if t.Failed() {
		t.Log(log)
	}
}

// startWithModel starts a daemon whose summaries the model makes.
func startWithModel(t *testing.T, dir string, m *heldModel) *daemon {
	t.Helper()
	for name, value := range m.environ() {
		t.Setenv(name, value)
	}
	return startDaemon(t, dir)
}

func (m *heldModel) environ() map[string]string {
	return map[string]string{
		"SESSIOND_SUMMARIZER_PROVIDER": "openai", "SESSIOND_SUMMARIZER_BASE_URL": m.URL, "SESSIOND_SUMMARIZER_MODEL": "small",
		"SESSIOND_SUMMARIZER_TIMEOUT": "10m",
	}
}

// gardener is a session over a small window, to which turns are taken.
type gardener struct {
	*daemon
	path string
	n    int
}

func (d *daemon) gardener() *gardener {
	d.t.Helper()
	var made struct {
		ID session.ID `json:"id"`
	}
	testkit.Must(d.do("POST", "/v1/sessions", map[string]any{"model": "gpt-4o", "window": 8000, "title": "garden"},
		&made))(d.t)
	return &gardener{daemon: d, path: "/v1/sessions/" + string(made.ID)}
}

// step takes a turn and answers it.
func (g *gardener) step() turn {
	g.t.Helper()
	g.n++
	var out turn
	body := map[string]any{"messages": []any{
		map[string]any{
			"role": "assistant",
			"content": strings.Repeat(fmt.Sprintf("For step %d take lettuce and leave %d centimetres between the rows. ", g.n,
				20+g.n%9), 6),
		},
		map[string]any{"role": "user", "content": fmt.Sprintf("Step %d: which plants go into bed %d?", g.n, g.n%7)},
	}}
	testkit.Must(g.do("POST", g.path+"/turns", body, &out))(g.t)
	if out.Context == nil {
		g.t.Fatalf("no context: %s", out.Problem)
	}
	return out
}

func (g *gardener) records() []session.Compaction {
	g.t.Helper()
	var list struct {
		Data []session.Compaction `json:"data"`
	}
	testkit.Must(g.do("GET", g.path+"/compactions?limit=200", nil, &list))(g.t)
	return list.Data
}

func count(all []session.Compaction, is func(session.Compaction) bool) (n int) {
	for _, c := range all {
		if is(c) {
			n++
		}
	}
	return n
}

// TestNoTurnWaitsForTheServer: the summary server holds its answer until a hundred turns are
// done. Each of them gets its context, compacted with digests.
func TestNoTurnWaitsForTheServer(t *testing.T) {
	m := holdModel(t)
	g := startWithModel(t, t.TempDir(), m).gardener()
	for len(m.asked) == 0 { // the test ends by its own time limit where it is never asked
		g.step()
	}
	for range 100 {
		got := g.step()
		if tokens := got.Context.Tokens; tokens.Total > tokens.Window-tokens.Reserve {
			t.Fatalf("a context of %d tokens", tokens.Total)
		}
	}
	all := g.records()
	if n := count(all, func(c session.Compaction) bool {
		return c.Status == session.StatusDone && c.Provider == "extractive"
	}); n < 3 {
		t.Errorf("%d digests took effect in %d records", n, len(all))
	}
	if n := count(all, func(c session.Compaction) bool {
		return c.Status == session.StatusRunning
	}); n != 1 || len(m.gone) != 0 {
		t.Errorf("%d summaries wait for the model, which %d left", n, len(m.gone))
	}
	g.stop()
}

// TestAKilledCompactionIsNeitherLostNorDoubled kills the daemon with SIGKILL while the model
// holds its answer. The next daemon says so in the record, has the digest, asks the model once
// more and puts one overlay in force.
func TestAKilledCompactionIsNeitherLostNorDoubled(t *testing.T) {
	m, dir := holdModel(t), t.TempDir()
	g := startWithModel(t, dir, m).gardener()
	for len(m.asked) == 0 {
		g.step()
	}
	<-m.asked
	testkit.Check(t, g.cmd.Process.Kill())
	_ = g.cmd.Wait()
	<-m.gone

	next := startWithModel(t, dir, m)
	g.daemon = next
	all := g.records()
	if len(all) != 2 || all[0].Status != session.StatusStaged || all[1].Status != session.StatusFailed ||
		all[1].Reason != session.ReasonBrokenOff {
		t.Fatalf("after the kill: %+v", all)
	}
	g.step()
	<-m.asked // it is due again, for the same messages
	if all = g.records(); len(all) != 3 || all[2].Status != session.StatusRunning || *all[2].Through != *all[0].Through {
		t.Fatalf("after the next turn: %+v", all)
	}
	m.free <- struct{}{}
	for g.records()[2].Status == session.StatusRunning { // the daemon writes down what it was told
	}
	var got turn
	for got = g.step(); got.Context.Compaction == nil; got = g.step() {
	}
	if !strings.Contains(string(got.Context.Request), "THE MODEL'S WORDS") {
		t.Errorf("%+v is in force", got.Context.Compaction)
	}
	if n := count(g.records(), func(c session.Compaction) bool { return c.Status == session.StatusDone }); n != 1 {
		t.Errorf("%d overlays took effect", n)
	}
	var messages struct {
		Data []struct{ Seq int64 } `json:"data"`
	}
	if _, err := g.do("GET", g.path+"/messages?limit=1000", nil, &messages); err != nil || len(messages.Data) != 2*g.n {
		t.Errorf("%d messages of %d, %v", len(messages.Data), 2*g.n, err)
	}
	g.stop()
}

// TestACompactionIsCancelledFromElsewhere: over HTTP, and by a command beside the daemon, which
// then leaves the model alone.
func TestACompactionIsCancelledFromElsewhere(t *testing.T) {
	m := holdModel(t)
	d := startWithModel(t, t.TempDir(), m)
	for name, cancel := range map[string]func(g *gardener, record string){
		"over HTTP": func(g *gardener, record string) {
			if _, err := g.do("DELETE", record, nil, nil); err != nil {
				t.Error(err)
			}
		},
		"by a command": func(g *gardener, _ string) {
			if out, err := d.command("compact", strings.TrimPrefix(g.path, "/v1/sessions/"),
				"--cancel").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("is cancelled; nothing changed.")) {
				t.Errorf("%s, %v", out, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := d.gardener()
			for range 5 {
				g.step()
			}
			var begun session.Compaction
			if status, err := g.do("POST", g.path+"/compactions",
				map[string]any{"keep_recent_tokens": 100, "settings": map[string]any{"keep_recent_messages": 1}}, &begun, "Prefer",
				"respond-async"); err != nil || status != 202 || begun.Status != session.StatusRunning {
				t.Fatalf("%d %+v %v", status, begun, err)
			}
			<-m.asked
			cancel(g, g.path+"/compactions/"+begun.ID)
			<-m.gone // the model is no longer asked
			if all := g.records(); len(all) != 1 || all[0].Status != session.StatusFailed ||
				all[0].Reason != session.ReasonCancelled {
				t.Errorf("%+v", all)
			}
		})
	}
	d.stop()
}

// TestCtrlCGivesUpACompaction: a command that waits for the model is interrupted.
func TestCtrlCGivesUpACompaction(t *testing.T) {
	m, dir := holdModel(t), t.TempDir()
	d := startWithModel(t, dir, m)
	g := d.gardener()
	for range 5 {
		g.step()
	}
	id := strings.TrimPrefix(g.path, "/v1/sessions/")
	cmd := d.command("compact", id, "--model", "--keep", "100", "--window", "3000")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	testkit.Check(t, cmd.Start())
	<-m.asked
	testkit.Check(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err == nil || !strings.Contains(said.String(), "stopped; nothing changed") {
		t.Errorf("%v, it said %q", err, said.String())
	}
	if all := g.records(); len(all) != 1 || all[0].Status != session.StatusFailed ||
		all[0].Reason != session.ReasonBrokenOff {
		t.Errorf("%+v", all)
	}
	go func() { m.free <- struct{}{} }()
	out, err := d.command("compact", id, "--model", "--json", "--keep", "100", "--window", "3000").Output()
	var made struct {
		Compaction session.Compaction `json:"compaction"`
	}
	if err != nil || json.Unmarshal(out, &made) != nil || made.Compaction.Status != session.StatusDone ||
		made.Compaction.Provider != "openai" {
		t.Errorf("%v: %s", err, out)
	}
	d.stop()
}

// command is a command on the daemon's database.
func (d *daemon) command(args ...string) *exec.Cmd {
	return home{d.t, d.dir}.command(args...)
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/picker"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/transcript"
)

// A session has one context and one cost, alone and with its sub-agents: lists, headings, answers, the page and the
// picker say the same numbers, and what they count.
func TestContextAndCostAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	d := startDaemonOn(t, t.TempDir(), "127.0.0.1:0")
	var parent, child struct {
		ID session.ID `json:"id"`
	}
	testkit.Must(d.do("POST", "/v1/sessions", map[string]any{"title": "Boats", "model": "gpt-4o"}, &parent))(t)
	testkit.Must(d.do("POST", "/v1/sessions/"+string(parent.ID)+"/messages", map[string]any{
		"messages": []any{
			map[string]string{"role": "user", "content": "How deep?"},
			map[string]string{"role": "assistant", "content": "7 metres."},
		},
		"call": map[string]any{
			"model": "gpt-4o", "input_tokens": 40_000, "cache_read_tokens": 500, "output_tokens": 500,
			"cost_usd": 1.25,
		},
	}, nil))(t)
	testkit.Must(d.do("POST", "/v1/sessions", map[string]any{
		"title": "A helper", "parent_id": parent.ID,
		"parent_kind": "child",
	}, &child))(t)
	testkit.Must(d.do("POST", "/v1/sessions/"+string(child.ID)+"/calls",
		map[string]any{"model": "gpt-4o", "input_tokens": 10, "cost_usd": 2.5}, nil))(t)

	const size, costs = "context 41k of 128k tokens (32 %)", "$1.25 alone, $3.75 with 1 sub-agent"
	says := func(where, text string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(html.UnescapeString(text), want) {
				t.Errorf("%s does not say %q:\n%s", where, want, text)
			}
		}
	}
	run := func(args ...string) string { return string(testkit.Must(d.command(args...).Output())(t)) }
	says("ls", run("ls"), "Boats", "+1", "32 %", "$3.75", "the cost is that with them")
	says("ls --all", run("ls", "--all"), "32 %", "$1.25", "$2.5")
	says("show", run("show", string(parent.ID)), size, costs)
	get := func(path string) string {
		t.Helper()
		req := testkit.Must(http.NewRequestWithContext(t.Context(), "GET", "http://sessiond"+path, nil))(t)
		res := testkit.Must(d.client.Do(req))(t)
		defer res.Body.Close()
		return string(testkit.Must(io.ReadAll(res.Body))(t))
	}
	says("the page", get("/"), size, costs, "32 %", "$3.75")
	says("its conversation", get("/s/"+string(parent.ID)), size, costs)

	want := session.Measure{
		Context: session.ContextSize{Tokens: 41_000, Reported: true, Window: 128_000}, Rollup: &session.Rollup{Children: 1},
	}
	for where, text := range map[string]string{
		"GET /v1/sessions": get("/v1/sessions"), "GET a session": get("/v1/sessions/" + string(parent.ID)),
		"ls --json": run("ls", "--json"), "show --json": run("show", string(parent.ID), "--json"),
	} {
		var lists struct {
			session.Measure
			Data    []session.Measure
			Session session.Measure
		}
		testkit.Check(t, json.Unmarshal([]byte(text), &lists))
		got := lists.Measure
		for _, m := range append(lists.Data, lists.Session) {
			if m.Rollup != nil {
				got = m
			}
		}
		if got.Context != want.Context || got.Rollup == nil || got.Rollup.Children != 1 || got.Rollup.CostUSD == nil ||
			*got.Rollup.CostUSD != 3.75 {
			t.Errorf("%s says %+v %+v", where, got.Context, got.Rollup)
		}
	}

	a := &app{env: &env{out: io.Discard, err: io.Discard, environ: os.Environ(), now: time.Now, dir: d.dir}}
	a.flags.db = d.db()
	s := testkit.Must(a.wire(t.Context(), wiring{readOnly: true}))(t)
	defer s.close() //nolint:errcheck // a test
	found := testkit.Must(newPickerData(a, s).List(t.Context(), picker.Scope{}, "", 10))(t)
	row := found.Rows[0]
	says("the picker", transcript.Context(row.Context)+" "+transcript.Costs(&row.Session, &row.Measure), size, costs)
	d.stop()
}

// The context column of a list is the share that `context` prints, within a percent of the window; where `context`
// shows a summary already, the list says that the next turn compacts.
func TestContextColumnAgreesWithContext(t *testing.T) {
	t.Parallel()
	dir := samples.Dir(t)
	sh := newShell(t)
	for _, program := range []string{"claude-code", "codex", "pi"} {
		sh.run("import", program, filepath.Join(dir, program))
	}
	percent := regexp.MustCompile(`(<1|[0-9]+) %|compacts next`)
	checked := 0
	for line := range strings.Lines(sh.run("ls", "--all")) {
		cell := percent.FindString(line)
		if cell == "" {
			continue
		}
		var c struct {
			Tokens     struct{ Total, Window int64 }
			Compaction *struct{ ID, Status string }
		}
		id := anyID.FindString(line)
		testkit.Check(t, json.Unmarshal([]byte(sh.run("context", id, "--json")), &c))
		share := 100 * float64(c.Tokens.Total) / float64(c.Tokens.Window)
		checked++
		if cell == "compacts next" {
			if c.Compaction == nil || c.Compaction.ID != "" && c.Compaction.Status != "staged" {
				t.Errorf("%s compacts next, but its context is %.1f %% without a summary that is not in force yet", id, share)
			}
			continue
		}
		listed, _ := strconv.ParseFloat(strings.Fields(strings.Replace(cell, "<1", "0.5", 1))[0], 64)
		if share-listed > 1 || listed-share > 1 {
			t.Errorf("%s: the list says %s, the context is %.1f %%", id, cell, share)
		}
	}
	if checked < 20 {
		t.Errorf("only %d sessions have a context", checked)
	}
}

func TestListsFitEveryTerminal(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	for _, title := range []string{
		"Plan \x1b[2Jthe \x07garden", "日本語のタイトルはとても幅が広いので切り詰められます、そしてさらに長く続きます",
		"👩‍👩‍👧‍👦 family \u202eemoji", strings.Repeat("long ", 40),
	} {
		sh.run("append", "--new", "--title", title, "--model", "claude-opus-4-5-20251101", "user", "hello")
	}
	sh.env.outTTY, sh.env.height = true, 24
	for _, width := range []int{20, 40, 80, 140, 400} {
		sh.env.width = width
		out := sh.run("ls")
		if strings.ContainsAny(out, "\x1b\x07\u202e") && strings.ContainsAny(transcript.Clean(out), "\x1b\x07") {
			t.Errorf("%d columns: control characters in %q", width, out)
		}
		rows := strings.Split(strings.TrimRight(plain(out), "\n"), "\n")
		for i, row := range rows {
			if n := transcript.Width(row); n > width {
				t.Errorf("%d columns: a row of %d: %q", width, n, row)
			}
			if i > 0 && i < 5 && !anyID.MatchString(row) {
				t.Errorf("%d columns: no id in %q", width, row)
			}
		}
		if width == 80 && !strings.Contains(out, strings.TrimSpace(strings.Repeat("long ", 7))) {
			t.Errorf("a title has less than 40 columns:\n%s", out)
		}
		if width >= 80 { // the last column begins at the same place in each row
			at := map[int]bool{}
			for _, row := range rows[1:5] {
				at[transcript.Width(row[:strings.LastIndex(row, "just now")])] = true
			}
			if len(at) != 1 {
				t.Errorf("%d columns: rows are not aligned:\n%s", width, out)
			}
		}
	}
}

// plain removes the colours that sessiond writes.
func plain(s string) string { return ownColors.ReplaceAllString(s, "") }

func TestPagerStartsForLongOutput(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	for i := range 12 {
		sh.run("append", "--new", "--title", fmt.Sprintf("number %d", i), "user", "hello")
	}
	paged := filepath.Join(sh.dir, "paged")
	sh.env.outTTY, sh.env.width, sh.env.height = true, 80, 10
	base := sh.env.environ
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
		height  int
		paged   bool
	}{
		{"SESSIOND_PAGER", []string{"SESSIOND_PAGER=cat > " + paged, "PAGER=false"}, []string{"ls"}, 10, true},
		{"PAGER", []string{"PAGER=cat > " + paged}, []string{"ls"}, 10, true},
		{"a high screen", []string{"PAGER=cat > " + paged}, []string{"ls"}, 40, false},
		{"--no-pager", []string{"PAGER=cat > " + paged}, []string{"ls", "--no-pager"}, 10, false},
		{"no pager set", []string{"SESSIOND_PAGER=", "PAGER=cat > " + paged}, []string{"ls"}, 10, false},
		{"a dumb terminal", []string{"TERM=dumb", "PAGER=cat > " + paged}, []string{"ls"}, 10, false},
		{"JSON", []string{"PAGER=cat > " + paged}, []string{"ls", "--json"}, 10, false},
		{"a pager that ends early", []string{"PAGER=head -n 1 > " + paged}, []string{"ls"}, 10, true},
		{"query", []string{"PAGER=cat > " + paged}, []string{"query"}, 10, true},
		{"log of nothing", []string{"PAGER=cat > " + paged}, []string{"log", "x"}, 10, false},
	} {
		testkit.Check(t, removeIfThere(paged))
		sh.env.environ, sh.env.height = append(base[:len(base):len(base)], c.environ...), c.height
		out := sh.run(c.args...)
		if got := exists(paged); got != c.paged || got == (out != "") {
			t.Errorf("%s: paged is %v, printed %d bytes", c.name, got, len(out))
		}
	}
	sh.env.environ = append(base[:len(base):len(base)], "PAGER=exit 127")
	if _, errs, code := sh.try("", "ls"); code != exitFailed || !strings.Contains(errs, "--no-pager") {
		t.Errorf("a pager that does not exist: %d %q", code, errs)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sessions in worktrees that are gone are of their repository. The one of Windows is of another folder of that name.
func TestWorktreesThatAreGoneAreOneProject(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	sh.run("import", "claude-code", filepath.Join(samples.Case(t, "52-cc-worktrees-gone"), "claude"))
	if list := sh.run("ls", "--project", "shop"); strings.Count(list, "20260915_") != 5 {
		t.Errorf("of the project are\n%s", list)
	}
	list := sh.run("ls", "--project", "dev1/src/shop")
	for _, want := range []string{"dev1/src/shop [fix-cart]", "dev1/src/shop [elastic-cori-f29409]", "start in the repo"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	stats := sh.run("stats", "--by", "project", "--csv")
	if strings.Count(stats, "\n") != 3 || !strings.Contains(stats, "\n/home/dev1/src/shop,4,") ||
		!strings.Contains(stats, "\nC:/src/shop,1,") {
		t.Errorf("by project:\n%s", stats)
	}
	if months := sh.run("stats", "--by", "month,week", "--csv"); !strings.Contains(months, "\n2026-09,2026-W38,5,") {
		t.Errorf("by month and week:\n%s", months)
	}
	if old := sh.run("ls", "--since", "2026-09", "--until", "2026-10"); strings.Count(old, "20260915_") != 5 {
		t.Errorf("in September:\n%s", old)
	}
}

// Projects with the same last folder are told apart in each list, and each filter takes the name.
func TestProjectsOfOneNameAreToldApart(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	for _, folder := range []string{"workspace/cli", "devenv/cli"} {
		testkit.Check(t, os.MkdirAll(filepath.Join(sh.dir, folder), 0o700))
		sh.env.dir = filepath.Join(sh.dir, folder)
		sh.run("append", "--new", "user", "where is the "+folder+" parser")
	}
	sh.env.dir = sh.dir
	for _, args := range [][]string{{"ls"}, {"stats"}, {"stats", "--by", "project"}, {"search", "parser"}} {
		if list := sh.run(args...); !strings.Contains(list, "workspace/cli") || !strings.Contains(list, "devenv/cli") {
			t.Errorf("sessiond %v prints\n%s", args, list)
		}
	}
	for _, args := range [][]string{{"ls"}, {"stats", "--by", "project"}, {"search", "parser"}} {
		if list := sh.run(append(args, "--project", "devenv/cli")...); strings.Contains(list, "workspace/cli") ||
			!strings.Contains(list, "devenv/cli") {
			t.Errorf("sessiond %v --project devenv/cli prints\n%s", args, list)
		}
	}
	if list := sh.run("search", "parser project:devenv/cli"); strings.Contains(list, "workspace/cli") ||
		!strings.Contains(list, "devenv/cli") {
		t.Errorf("project:devenv/cli finds\n%s", list)
	}
}

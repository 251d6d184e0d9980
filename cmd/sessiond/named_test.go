package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

// shell runs commands in this process, in one home.
type shell struct {
	t   *testing.T
	dir string
	env env
}

func newShell(t *testing.T) *shell {
	dir := t.TempDir()
	return &shell{t: t, dir: dir, env: env{
		environ: []string{"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "TZ=UTC"}, now: time.Now, dir: dir,
	}}
}

// try runs a command and returns what it prints and its exit code.
func (sh *shell) try(in string, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	host := sh.env
	host.in, host.out, host.err = strings.NewReader(in), &o, &e
	code = run(sh.t.Context(), args, &host)
	return o.String(), e.String(), code
}

// run runs a command that must succeed.
func (sh *shell) run(args ...string) string {
	sh.t.Helper()
	out, errs, code := sh.try("", args...)
	if code != exitDone {
		sh.t.Fatalf("sessiond %q ended with %d: %s", args, code, errs)
	}
	return out
}

// anyID matches the ids of sessions, messages, compactions and contexts.
var anyID = regexp.MustCompile(`\b[0-9]{8}_[0-9]{3,}(\.[0-9]+)?\b|\b(cmp|ctx)_[0-9]+\b`)

func TestEveryPrintedIDIsAccepted(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	talk := make([]map[string]any, 0, 40)
	for i := range 20 {
		talk = append(talk, map[string]any{
			"role":    "user",
			"content": fmt.Sprintf("Never push step %d without asking me. %s", i, strings.Repeat("word ", 400)),
		})
		call := fmt.Sprintf("c%d", i)
		talk = append(talk,
			map[string]any{
				"role": "assistant", "content": nil,
				"tool_calls": []any{map[string]any{
					"id": call, "type": "function",
					"function": map[string]string{"name": "read_file", "arguments": `{"path": "a.txt"}`},
				}},
			},
			map[string]any{"role": "tool", "tool_call_id": call, "content": "line one"},
			map[string]any{"role": "assistant", "content": "Done."})
	}
	in := string(testkit.Must(json.Marshal(talk))(t))
	if _, errs, code := sh.try(in, "append", "--new", "--title", "A long plan", "--model", "gpt-4o"); code != exitDone {
		t.Fatal(errs)
	}
	printed := map[string]string{} // id → the command that printed it
	for _, args := range []string{
		"compact @ --keep 2000", "fork @ --at 12", "append @ user more", "head @",
		"append --new --key agent:main:main user hello",
		"ls", "ls --json", "ls --all", "show @@3", "show @@3 --json", "show @@3 --tree", "show @@3 --prompts",
		"show @@3 --grep push", "search push", "search push --messages",
		"search push --json", "log a.txt", "log a.txt --json", "context @@3", "context @@3 --explain", "context @@3 --json",
		"compact @@3 --undo", "compact @@3 --redo",
		"rules @@3", "keys", "keys agent:main:main", "export @@3 --format jsonl", "stats --json", "query summaries",
	} {
		ids := anyID.FindAllString(sh.run(strings.Fields(args)...), -1)
		for i, id := range ids {
			if i == 0 || i == len(ids)-1 || !strings.Contains(id, ".") { // of many messages the first and the last
				printed[id] = args
			}
		}
	}
	kinds := map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(printed)) {
		kinds[strings.TrimRight(id, "0123456789")]++
		for _, args := range [][]string{
			{"show", id},
			{"context", id},
			{"rules", id},
			{"export", id},
			{"ls", "--parent", id},
			{"search", "push", "--session", id},
			{"compact", id, "--dry-run"},
			{"show", id, "--tree"},
			{"star", id},
		} {
			if _, errs, code := sh.try("", args...); code != exitDone {
				t.Errorf("%s is printed by %q, but %q ended with %d: %s", id, printed[id], args, code, errs)
			}
		}
		if !strings.Contains(id, ".") {
			continue
		}
		for _, args := range [][]string{{"head", id}, {"fork", id}, {"label", id, "again"}} {
			if _, errs, code := sh.try("", args...); code != exitDone {
				t.Errorf("%q ended with %d: %s", args, code, errs)
			}
		}
	}
	if kinds["cmp_"] == 0 || len(kinds) < 5 {
		t.Errorf("the commands printed too few kinds of ids: %v", kinds)
	}
}

func TestTitlesNameSessions(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	for _, title := range []string{"Fix the parser", "Fix the lexer", "Plans for \x1b[31mthe garden"} {
		sh.run("append", "--new", "--title", title, "user", "hello")
	}
	if out := sh.run("show", "garden plans"); !strings.Contains(out, "Plans for") {
		t.Error(out)
	}
	_, errs, code := sh.try("", "show", "fix the")
	if code != exitConflict || !strings.Contains(errs, "Fix the parser") || !strings.Contains(errs, "Fix the lexer") ||
		len(anyID.FindAllString(errs, -1)) != 2 {
		t.Errorf("%d: %s", code, errs)
	}
	if _, errs, code := sh.try("", "purge", "--yes", "@.1"); code != exitUsage ||
		!strings.Contains(errs, "purge deletes whole sessions") {
		t.Errorf("a purge takes a message: %d %s", code, errs)
	}
	if _, errs, code := sh.try("", "purge", "--yes", "garden plans"); code != exitNotFound {
		t.Errorf("a purge takes words of a title: %d %s", code, errs)
	}
	testkit.Check(t, os.MkdirAll(filepath.Join(sh.dir, "sub", "folder"), 0o755))
	sh.env.dir = filepath.Join(sh.dir, "sub", "folder")
	if out := sh.run("append", "garden plans", "user", "more"); !strings.HasSuffix(out, "_003.2\n") {
		t.Error(out)
	}
}

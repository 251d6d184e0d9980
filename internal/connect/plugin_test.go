package connect

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// opencode's plug-in runs in both APIs of opencode: what a session is told stays with its requests, each event's text
// in the place of its last one, and never reaches another session.
func TestPluginOfOpencode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not in PATH: it runs the plug-in")
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		testkit.Check(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	// The fake sessiond answers with the event and the prompt that it was given, and with nothing to an empty prompt.
	fake := write("session d", `#!/bin/sh
in=$(cat)
event=$(printf '%s' "$in" | sed 's/.*"hook_event_name":"\([^"]*\)".*/\1/')
prompt=$(printf '%s' "$in" | sed -n 's/.*"prompt":"\([^"]*\)".*/\1/p')
printf '%s %s\n' "$event" "$prompt" >> "$(dirname "$0")/asked"
case "$event$prompt" in UserPromptSubmit|SessionEnd|P*Compact) exit 0;; esac
printf '{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"<%s %s>"}}' "$event" "$event" "$prompt"
`, 0o700)
	text := testkit.Must(whole{opencodeText, "opencode"}.add(nil, Wanted{Binary: fake, Events: events}))(t)
	write("plugin.mjs", string(text), 0o600)
	write("run.mjs", `
import plugin from "./plugin.mjs"
const say = (label, list) => console.log(label + ": " + list.map((one) => one.text ?? one).join(" "))

const one = await plugin.server({ directory: "/p" })
const requests = async (label, sessionID, own = "own") => {
  const output = { system: [own] }
  await one["experimental.chat.system.transform"]({ sessionID }, output)
  say(label, output.system)
}
const ask = (sessionID, text) => one["chat.message"]({ sessionID }, { parts: [{ text }] })
await one.event({ event: { type: "session.created", properties: { info: { id: "a" } } } })
await ask("a", "first")
await requests("1 first", "a")
await requests("1 title", "a", "You are a title generator.")
await one["experimental.session.compacting"]({ sessionID: "a" })
await one.event({ event: { type: "session.compacted", properties: { sessionID: "a" } } })
await ask("a", "second")
await requests("1 second", "a")
await ask("a", "")
await requests("1 third", "a")
await requests("1 other", "b")
await ask("d", "")
await requests("1 continued", "d")
await one.dispose()

const hooks = {}
const close = await plugin.setup({ session: { hook: async (name, run) => (hooks[name] = run) } })
const context = async (label, sessionID) => {
  const event = { sessionID, system: [] }
  await hooks.context(event)
  say(label, event.system)
}
await hooks.prompt({ sessionID: "c", prompt: { text: "first" } })
await context("2 first", "c")
await hooks.compaction({ sessionID: "c" })
await context("2 second", "c")
await close()
await plugin.setup({})
`, 0o600)
	cmd := exec.CommandContext(t.Context(), node, "run.mjs")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	const want = `1 first: own <SessionStart > <UserPromptSubmit first>
1 title: You are a title generator.
1 second: own <SessionStart > <UserPromptSubmit second> <SessionStart >
1 third: own <SessionStart > <SessionStart >
1 other: own
1 continued: own <SessionStart >
2 first: <UserPromptSubmit first> <SessionStart >
2 second: <UserPromptSubmit first> <SessionStart > <SessionStart >
`
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, out, want)
	}
	asked := string(testkit.Must(os.ReadFile(filepath.Join(dir, "asked")))(t))
	for event, n := range map[string]int{"PreCompact": 2, "PostCompact": 2, "SessionEnd": 2} {
		if got := strings.Count(asked, event); got != n {
			t.Errorf("%d times %s, want %d:\n%s", got, event, n, asked)
		}
	}
}

// docs/hooks.md names each event of each program.
func TestDocsNameTheEvents(t *testing.T) {
	text := string(testkit.Must(os.ReadFile("../../docs/hooks.md"))(t))
	names := regexp.MustCompile(`event\.type === "([\w.]+)"|"([\w.]+\.[\w.]+)": async|(dispose):|session\.hook\("(\w+)"|pi\.on\("(\w+)"`)
	found := 0
	for _, event := range events {
		name, _, _ := strings.Cut(event, ":")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s is missing", name)
		}
	}
	for _, m := range names.FindAllStringSubmatch(opencodeText+piText, -1) {
		found++
		if name := strings.Join(m[1:], ""); !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s is missing", name)
		}
	}
	if found != 16 {
		t.Errorf("%d events of plug-ins, want 16", found)
	}
}

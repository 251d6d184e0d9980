package bench_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// BenchmarkHook answers hooks as an agent program asks: each is a process. The baseline is a process that prints its
// version.
func BenchmarkHook(b *testing.B) {
	h := openHistory(b, sized(*historySize))
	sessiond := binary(b)
	run := func(in string, args ...string) func() error {
		return func() error {
			cmd := exec.CommandContext(b.Context(), sessiond, args...)
			cmd.Stdin = strings.NewReader(in)
			return cmd.Run()
		}
	}
	for name, event := range map[string]string{
		"prompt": fmt.Sprintf(`"hook_event_name":"UserPromptSubmit","prompt":%q`, question+" "+knownWord+" "+rareWord),
		"start":  `"hook_event_name":"SessionStart","source":"startup"`,
		"edit":   `"hook_event_name":"PreToolUse","tool_input":{"file_path":"/home/me/project/main.go"}`,
	} {
		b.Run(name, func(b *testing.B) {
			op := run(`{"cwd":"/home/me/project",`+event+`}`, "hook", "claude-code", "--db", h.path)
			compare(b, 5, &side{op: op, cpu: childrenCPU}, &side{name: "version", op: run("", "version"), cpu: childrenCPU})
		})
	}
}

package bench_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sessiond/internal/testkit"
	"sessiond/internal/tokens"
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
			hook := &side{op: op, cpu: testkit.ChildrenCPUTime}
			compare(b, 5, hook, &side{name: "version", op: run("", "version"), cpu: testkit.ChildrenCPUTime})
			reportP95(b, hook)
		})
	}
}

// reportP95 reports the time that 95 of 100 operations do not pass.
func reportP95(b *testing.B, s *side) {
	b.ReportMetric(float64(percentile(s.times, 95).Microseconds()), "p95-µs")
}

// BenchmarkTool calls the tools of `sessiond mcp` as a client does that keeps it running, and counts the tokens of an
// answer. The baseline is a ping.
func BenchmarkTool(b *testing.B) {
	h := openHistory(b, sized(*historySize))
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	cs := testkit.Must(client.Connect(b.Context(),
		&mcp.CommandTransport{Command: exec.Command(binary(b), "mcp", "--db", h.path)}, nil))(b)
	defer cs.Close() //nolint:errcheck // of a benchmark
	for _, c := range []struct {
		tool string
		in   map[string]any
	}{
		{"search", map[string]any{"query": question}},
		{"recent", map[string]any{}},
		{"around", map[string]any{"message": fmt.Sprint(h.long.ID, ".", h.long.LastSeq/2)}},
		{"read_session", map[string]any{"session": string(h.long.ID)}},
	} {
		b.Run(c.tool, func(b *testing.B) {
			c.in["project"] = "/home/me/project"
			answered := ""
			tool := &side{cpu: noCPU, op: func() error {
				res, err := cs.CallTool(b.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.in})
				if err != nil {
					return err
				}
				answered = res.Content[0].(*mcp.TextContent).Text
				if res.IsError {
					return errors.New(answered)
				}
				return nil
			}}
			compare(b, 10, tool, &side{name: "ping", cpu: noCPU, op: func() error { return cs.Ping(b.Context(), nil) }})
			reportP95(b, tool)
			b.ReportMetric(float64(tokens.Reference().Text(answered)), "tokens")
		})
	}
}

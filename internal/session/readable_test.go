package session_test

import (
	"strings"
	"testing"

	"sessiond/internal/session"
)

func TestReadableTextHasNoTagsOfClaudeCode(t *testing.T) {
	for text, want := range map[string]string{
		"<command-message>pr</command-message>\n<command-name>/pr</command-name>": "/pr",
		"<command-name>/exit</command-name>\n            <command-message>exit</command-message>\n" +
			"            <command-args></command-args>": "/exit",
		"<command-message>review is running…</command-message>\n<command-name>/review</command-name>\n" +
			"<command-args>#12 closely</command-args>": "/review #12 closely",
		"<command-name>/loop</command-name><command-args>all</command-args>\n\nThe instructions.": "" +
			"/loop all\nThe instructions.",
		"<local-command-stdout>Compacted (ctrl+o to see full summary)</local-command-stdout>": "" +
			"Compacted (ctrl+o to see full summary)",
		"<bash-input>ls -l</bash-input>":                                          "! ls -l",
		"<bash-stdout>a.txt</bash-stdout><bash-stderr>no such file</bash-stderr>": "a.txt\nno such file",
		"<bash-stdout></bash-stdout><bash-stderr></bash-stderr>":                  "(no output)",
		"<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>":             "a.txt",
		"<task-notification>\n<task-id>a6</task-id>\n<summary>Agent \"read it\" finished</summary>\n" +
			"<note>A task-notification fires each time.</note>\n<result>It holds 42.</result>\n<usage>1</usage>\n" +
			"</task-notification>": "Agent \"read it\" finished\nIt holds 42.",

		"What is <command-name>/pr</command-name>?": "What is <command-name>/pr</command-name>?",
		"<command-name>": "<command-name>",
		"<p>hello</p>":   "<p>hello</p>",
		" plain text ":   " plain text ",
	} {
		if got := session.ReadableText(text); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
}

// A text may hold any number of elements: each is read once.
func TestReadableTextOfManyElements(t *testing.T) {
	const many = 200_000
	text := strings.Repeat("<bash-stdout>a</bash-stdout>\n<bash-stderr></bash-stderr>", many)
	if got := session.ReadableText(text); got != strings.TrimSuffix(strings.Repeat("a\n", many), "\n") {
		t.Errorf("%d bytes begin with %q", len(got), got[:10])
	}
}

func TestReadableResultHasNoNotesForTheModel(t *testing.T) {
	for text, want := range map[string]string{
		"It holds 42.\nagentId: a1f8104 (for resuming to continue this agent's work if needed)\n" +
			"<usage>total_tokens: 54735\ntool_uses: 21\nduration_ms: 100890</usage>": "It holds 42.",
		"It holds 42.\nagentId: a1f8104 (for resuming to continue this agent's work if needed)": "It holds 42.",
		"Async agent launched successfully. (This tool result is internal metadata — never quote it.)\n" +
			"agentId: a6f36 (internal ID - do not mention to user.)\nThe agent is working in the background.": "" +
			"The agent a6f36 was started and works in the background.",

		"const prefix = \"agentId: \"\nfound": "const prefix = \"agentId: \"\nfound",
		"agentId: a1f8104 (for resuming it)\nand then came the answer": "agentId: a1f8104 (for resuming it)\n" +
			"and then came the answer",
	} {
		if got := session.ReadableResult(text); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
}

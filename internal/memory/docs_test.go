package memory

import (
	"os"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"

	"sessiond/internal/testkit"
)

// docs/hooks.md says how much each event adds to a context.
func TestDocsHaveTheLimits(t *testing.T) {
	text := string(testkit.Must(os.ReadFile("../../docs/hooks.md"))(t))
	for event, limit := range map[string]int64{
		"| `SessionStart`, source `compact` |": lostLimit, "| `UserPromptSubmit` | `--for-prompts` |": promptLimit,
		"| `PreToolUse` of Edit and Write;": editLimit,
	} {
		_, row, _ := strings.Cut(text, event)
		row, _, _ = strings.Cut(row, "\n")
		if want := "| " + humanize.Comma(limit) + " |"; !strings.Contains(row, want) {
			t.Errorf("the row %s has no %q: %s", event, want, row)
		}
	}
	if !strings.Contains(text, humanize.Comma(longestText)+" bytes") {
		t.Errorf("the limit of %d bytes is missing", longestText)
	}
}

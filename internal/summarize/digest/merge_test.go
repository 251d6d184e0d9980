package digest

import (
	"strings"
	"testing"
)

// A rule that the person took back stands in the summary of the span in which it was said, and in no running one
// since: a merge does not bring it back.
func TestMergeLeavesOutRulesThatWereTakenBack(t *testing.T) {
	spans := []string{
		"## Standing rules\n- Never touch the vendor folder. (#3)\n- Tests must not sleep. (#5)\n\n---\n\n" +
			"## Critical context\n- tool: “2 files”\n\n## Index\n- $129\n\n---\n\n## Index\n- $89",
		"## Said by the person\n- The budget is $100.",
	}
	for previous, want := range map[string]string{
		"": "Never touch the vendor folder. (#3) Tests must not sleep. (#5)",
		"## Standing rules\n- Tests must not sleep. (#5)": "Tests must not sleep. (#5)",
		"## Goal\n- x\n\n## Constraints & preferences\n- never touch the vendor folder (#3)": "" +
			"Never touch the vendor folder. (#3)",
		// it had no room for them
		"## Standing rules\n- " + strings.Repeat("Every other rule fills the section. ",
			60): "Never touch the vendor folder. (#3) Tests must not sleep. (#5)",
	} {
		o := mergeRunning(spans, previous, 2000, func(s string) int64 { return int64(len(s)) / 3 })
		var got []string
		for _, l := range o.lines[rules] {
			got = append(got, l.text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with %q before: %q", previous, got)
		}
		if len(o.lines[critical]) != 1 || len(o.lines[alsoSaid]) != 1 ||
			strings.Join(o.index, " ") != "$129 $89" && strings.Join(o.index, " ") != "$89 $129" {
			t.Errorf("other lines are %v, %v, the index is %q", o.lines[critical], o.lines[alsoSaid], o.index)
		}
	}
}

func TestOutlineRoundTrip(t *testing.T) {
	text := "## Goal\n- a\n\n## Constraints & preferences\n- b\n\n## Progress\n### Done\n- c\n\n### In progress\n- d\n\n" +
		"### Blocked\n- e\n\n" +
		"## Key decisions\n- f\n\n## Next steps\n- g\n\n## Critical context\n- h\n\n## Index\n- x · y z"
	o := parseOutline(text)
	if got := o.render(); got != text {
		t.Errorf("got\n%s", got)
	}
	if len(o.index) != 2 || o.index[1] != "y z" {
		t.Errorf("the index is %q", o.index)
	}
}

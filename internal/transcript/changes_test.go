package transcript

import (
	"slices"
	"testing"

	"sessiond/internal/session"
)

func TestChanges(t *testing.T) {
	failed := true
	for _, c := range []struct {
		name, tool, arguments string
		failed                *bool
		want                  []string
	}{
		{"an edit", "Edit", `{"file_path": "/a/b.go", "old_string": "x\ny", "new_string": "x\nz\nw"}`, nil, []string{"/a/b.go +2 −1"}},
		{"several", "MultiEdit", `{"file_path": "/a.go", "edits": [{"old_string": "x", "new_string": "y"},
			{"old_string": "p", "new_string": "q"}]}`, nil, []string{"/a.go +2 −2"}},
		{"a file written whole", "Write", `{"file_path": "/a.go", "content": "1\n2\n"}`, nil, []string{"/a.go +2"}},
		{
			"a patch", "apply_patch", `{"input": "*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n*** Add File: b.go\n+z\n*** End Patch"}`, nil,
			[]string{"a.go +1 −1", "b.go +1"},
		},
		{"a bare patch", "apply_patch", "*** Begin Patch\n*** Delete File: a.go\n*** End Patch", nil, []string{"a.go"}},
		{"a call that failed", "Write", `{"file_path": "/a.go", "content": "1"}`, &failed, nil},
		{"a search", "Grep", `{"path": "/a", "pattern": "x"}`, nil, nil},
		{"no JSON", "Edit", `{"file_path"`, nil, nil},
	} {
		m := session.Message{Parts: []session.Part{{
			Kind: session.PartToolCall, ToolName: c.tool, Arguments: c.arguments, IsError: c.failed,
		}}}
		var got []string
		for _, change := range Changes(&m) {
			got = append(got, change.Path+change.Size())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestLinesSayWhatWasDone(t *testing.T) {
	call := func(tool, arguments string) held { return held{use: &ToolUse{Name: tool, Arguments: arguments}} }
	edit := func(path string) held {
		return call("Edit", `{"file_path": "`+path+`", "old_string": "x", "new_string": "y\nz"}`)
	}
	wrong := call("Bash", `{"command": "false"}`)
	wrong.use.IsError = true
	for want, all := range map[string][]held{
		"Read 2 · Edit hooks.go +4 −2 · Bash · 1 error": {
			call("Read", `{}`), edit("/x/hooks.go"), call("Read", `{}`), edit("/x/hooks.go"), wrong,
		},
		"Edit 3 files +6 −3": {edit("/a.go"), edit("/b.go"), edit("/c.go")},
		"A · B · C · D · E · 1 other tool": {
			call("A", ""), call("B", ""), call("C", ""), call("D", ""), call("E", ""), call("F", ""),
		},
	} {
		if got := countHeld(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

package transcript

import (
	"encoding/json"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

const (
	openDiff = 40      // lines: a longer diff is folded
	mostDiff = 1 << 20 // bytes of a text that is compared
)

// edit is a change of a file by a call, as a diff.
type edit struct {
	path  string
	lines []diffLine
}

// diffLine is a line of a diff. Its class is add, del, place or same.
type diffLine struct{ Class, Text string }

// editArguments are what programs call the parts of an edit: Claude Code, pi, opencode, Goose and others.
type editArguments struct {
	FilePath  string `json:"file_path"`
	FilePath2 string `json:"filePath"`
	Path      string `json:"path"`

	OldString  *string `json:"old_string"`
	NewString  *string `json:"new_string"`
	OldString2 *string `json:"oldString"`
	NewString2 *string `json:"newString"`
	OldStr     *string `json:"old_str"`
	NewStr     *string `json:"new_str"`
	OldText    *string `json:"oldText"`
	NewText    *string `json:"newText"`

	Edits []editArguments `json:"edits"`

	Patch  string          `json:"input"`     // apply_patch
	Patch2 string          `json:"patchText"` // of opencode
	Patch3 string          `json:"patch"`
	Shell  json.RawMessage `json:"command"` // of a shell, or apply_patch as Codex tells it to a hook
}

// patch returns the patch of apply_patch; "" for none.
func (a *editArguments) patch() string {
	var shell string
	_ = json.Unmarshal(a.Shell, &shell)
	for _, text := range []string{a.Patch, a.Patch2, a.Patch3, shell} {
		if strings.HasPrefix(text, beginPatch) {
			return text
		}
	}
	return ""
}

const beginPatch = "*** Begin Patch"

// editOf returns the edit that a call is; nil for any other call.
func editOf(use *ToolUse) *edit {
	var a editArguments
	switch {
	case use.IsError:
		return nil
	case strings.HasPrefix(use.Arguments, beginPatch): // of Codex
		a.Patch = use.Arguments
	case json.Unmarshal([]byte(use.Arguments), &a) != nil:
		return nil
	}
	e := edit{path: a.FilePath + a.FilePath2 + a.Path}
	if patch := a.patch(); patch != "" {
		e.add(strings.Split(strings.TrimRight(patch, "\n"), "\n"))
	}
	for _, one := range append([]editArguments{a}, a.Edits...) {
		before, after := first(one.OldString, one.OldString2, one.OldStr, one.OldText),
			first(one.NewString, one.NewString2, one.NewStr, one.NewText)
		if before == nil || after == nil || len(*before)+len(*after) > mostDiff {
			continue
		}
		changed := strings.Split(strings.TrimRight(string(diff.Diff("a", ended(*before), "b", ended(*after))), "\n"), "\n")
		changed = changed[min(3, len(changed)):] // without the names
		for i, line := range changed {
			if strings.HasPrefix(line, "@@") { // numbers of lines in the text that was replaced, not in the file
				changed[i] = "⋯"
			}
		}
		if len(e.lines) == 0 {
			changed = changed[min(1, len(changed)):]
		}
		e.add(changed)
	}
	if len(e.lines) == 0 {
		return nil
	}
	return &e
}

func (e *edit) add(lines []string) {
	for _, line := range lines {
		class := "same"
		switch {
		case strings.HasPrefix(line, "+"):
			class = "add"
		case strings.HasPrefix(line, "-"):
			class = "del"
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "***"), line == "⋯":
			class = "place"
			if path, ok := strings.CutPrefix(line, "*** Update File: "); ok {
				e.path = path
			}
		}
		e.lines = append(e.lines, diffLine{class, Clean(line)})
	}
}

func first(texts ...*string) *string {
	for _, t := range texts {
		if t != nil {
			return t
		}
	}
	return nil
}

// ended returns a text whose last line ends.
func ended(s string) []byte {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return []byte(s)
}

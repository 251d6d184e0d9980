package transcript

import (
	"encoding/json"
	"html/template"
	"strings"
	"time"

	"sessiond/internal/session"
)

// Change is what a call did to a file.
type Change struct {
	Path           string // as the call has it
	Added, Removed int    // lines
	lines          []diffLine
	tool           string // of a line that sums up calls
}

// Size says how many lines were added and removed, with a space before: +3 −1.
func (c *Change) Size() string {
	words := ""
	if c.Added > 0 {
		words += " +" + Count(int64(c.Added))
	}
	if c.Removed > 0 {
		words += " −" + Count(int64(c.Removed))
	}
	return words
}

func (c *Change) add(line diffLine) {
	switch line.Class {
	case "add":
		c.Added++
	case "del":
		c.Removed++
	}
	c.lines = append(c.lines, line)
}

// Changes returns what the calls of a message changed in files, in their order. A call that failed changes nothing.
func Changes(m *session.Message) (all []Change) {
	for _, call := range m.Calls() {
		text := call.Arguments
		if text == "" && call.Blob != nil {
			text = string(call.Blob.Data)
		}
		all = append(all, changesBy(&ToolUse{
			Name: call.ToolName, Arguments: text, IsError: call.IsError != nil && *call.IsError,
		})...)
	}
	return all
}

// changesBy returns what a call changes: a patch may change several files, and a file that is written whole is all new.
func changesBy(use *ToolUse) (all []Change) {
	e := editOf(use)
	if e == nil {
		return writtenBy(use)
	}
	all = append(all, Change{Path: e.path})
	patched := false
	for _, line := range e.lines {
		at := &all[len(all)-1]
		for _, begin := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
			if path, ok := strings.CutPrefix(line.Text, begin); ok && line.Class == "place" {
				if patched {
					all = append(all, Change{})
					at = &all[len(all)-1]
				}
				at.Path, at.lines, patched = path, nil, true
			}
		}
		at.add(line)
	}
	return all
}

// writtenBy returns the file that a call writes whole.
func writtenBy(use *ToolUse) []Change {
	var a struct {
		editArguments
		Content  *string `json:"content"`
		FileText *string `json:"file_text"`
	}
	if use.IsError || json.Unmarshal([]byte(use.Arguments), &a) != nil {
		return nil
	}
	text, path := first(a.Content, a.FileText), a.FilePath+a.FilePath2+a.Path
	if text == nil || path == "" || len(*text) > mostDiff {
		return nil
	}
	c := Change{Path: path}
	for _, line := range strings.Split(strings.TrimRight(*text, "\n"), "\n") {
		c.add(diffLine{"add", Clean("+" + line)})
	}
	return []Change{c}
}

// Change writes a change as an article that leads to its message.
func (p *Pieces) Change(m *session.Message, c *Change, to string) {
	p.write("change", map[string]any{
		"Path": c.Path, "Size": c.Size(), "Lines": c.lines, "Open": len(c.lines) <= openDiff,
		"To":  template.URL(to), //nolint:gosec // of ids
		"Seq": m.Seq, "Clock": p.clock.format(m.CreatedAt), "Stamp": m.CreatedAt.In(p.clock.zone).Format(time.RFC3339),
	})
}

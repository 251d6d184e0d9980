// Package touched says which files the tool calls of a message read and changed. It knows
// the tools of the programs whose histories sessiond reads, by name and shape of arguments,
// and would rather miss a file than invent one.
package touched

import (
	"encoding/json"
	"path"
	"strings"
	"unicode/utf8"

	"sessiond/internal/session"
)

// Bounds. Arguments above the first are not looked at; a message gives no more files than
// the last.
const (
	maxArguments = 8 << 20 // bytes
	maxPath      = 4096    // bytes
	maxFiles     = 1000
)

// Files gives what the message's tool calls did to files, each (path, operation) once, in
// the order of the calls. Relative paths are joined with directory, the session's, when that
// is known. That a call may have failed is not looked at. Arguments that are no JSON, no
// patch or too large give nothing.
func Files(m *session.Message, directory string) []session.TouchedFile {
	c := collector{message: m}
	for i := range m.Parts {
		if part := &m.Parts[i]; part.Kind == session.PartToolCall {
			c.call(part.ToolName, arguments(part), directory)
		}
	}
	return c.files
}

// arguments gives a call's arguments; large ones may stand in a blob.
func arguments(p *session.Part) string {
	if p.Arguments == "" && p.Blob != nil {
		return string(p.Blob.Data)
	}
	return p.Arguments
}

type collector struct {
	message *session.Message
	files   []session.TouchedFile
	seen    map[[2]string]bool
}

// fields are the arguments that name files, in all the spellings of the programs.
type fields struct {
	Path         string          `json:"path"`          // pi, OpenClaw, Goose
	FilePath     string          `json:"file_path"`     // Claude Code
	CamelPath    string          `json:"filePath"`      // opencode
	NotebookPath string          `json:"notebook_path"` // Claude Code
	Command      json.RawMessage `json:"command"`       // a shell's text or list; what Goose's editor shall do
	Cmd          string          `json:"cmd"`           // Codex, exec_command
	Input        string          `json:"input"`         // a patch
	PatchText    string          `json:"patchText"`     // a patch, opencode
	Patch        string          `json:"patch"`
	WorkDir      string          `json:"workdir"`
	WorkingDir   string          `json:"working_directory"`
}

func (f *fields) file() string {
	for _, p := range []string{f.FilePath, f.CamelPath, f.NotebookPath, f.Path} {
		if p != "" {
			return p
		}
	}
	return ""
}

func (c *collector) call(tool, arguments, directory string) {
	if len(arguments) > maxArguments || arguments == "" {
		return
	}
	use := useOf(toolName(tool))
	if use == usesNothing || use == usesShell && !maySay(arguments) {
		return
	}
	f, ok := argumentsOf(arguments)
	if !ok {
		if toolName(tool) == "apply_patch" { // Codex gives the bare patch
			c.patch(arguments, directory)
		}
		return
	}
	switch use {
	case usesFile:
		c.add(f.file(), directory, fileOp(toolName(tool)))
	case usesEditor:
		c.add(f.file(), directory, editorOp(f.Command))
	case usesPatch:
		for _, text := range []string{f.Input, f.PatchText, f.Patch} {
			c.patch(text, directory)
		}
	case usesShell:
		c.shell(&f, directory)
	}
}

// use is what a tool's arguments say of files.
type use uint8

const (
	usesNothing use = iota
	usesFile        // it names one
	usesEditor      // and what is done to it
	usesPatch
	usesShell
)

func useOf(tool string) use {
	switch tool {
	case "text_editor", "str_replace_editor", "str_replace_based_edit_tool":
		return usesEditor
	case "apply_patch", "patch":
		return usesPatch
	case "bash", "shell", "shell_command", "local_shell", "exec", "exec_command":
		return usesShell
	}
	if fileOp(tool) != "" {
		return usesFile
	}
	return usesNothing
}

// fileOp says what a tool does to the file that it names; "" when it is no such tool.
func fileOp(tool string) session.FileOp {
	switch tool {
	case "read", "read_file", "view", "view_image", "notebookread":
		return session.OpRead
	case "write", "write_file", "create_file":
		return session.OpWrite
	case "edit", "multiedit", "edit_file", "notebookedit", "str_replace":
		return session.OpEdit
	case "delete_file":
		return session.OpDelete
	}
	return ""
}

// maySay tells whether a shell's arguments may hold a command that argv knows, before they
// are taken apart: most do not. A name in which quotes stand is not found.
func maySay(arguments string) bool {
	if strings.Contains(arguments, `\u`) { // any letter
		return true
	}
	for _, name := range []string{"cat", "sed", "head", "tail", "rm", "nl", "apply_patch"} {
		if strings.Contains(arguments, name) {
			return true
		}
	}
	return false
}

// toolName brings names of one tool together: lower case, without the extension that Goose
// puts before it. A tool of any other server is not ours to interpret: its files may be
// elsewhere.
func toolName(name string) string {
	name = strings.ToLower(name)
	if rest, ok := strings.CutPrefix(name, "developer__"); ok {
		return rest
	}
	return strings.TrimPrefix(name, "functions.")
}

// editorOp says what an editor tool with a command does; "" when it is not known.
func editorOp(command json.RawMessage) session.FileOp {
	var text string
	if json.Unmarshal(command, &text) != nil {
		return ""
	}
	switch text {
	case "view":
		return session.OpRead
	case "create", "write":
		return session.OpWrite
	case "str_replace", "insert", "edit_file", "undo_edit":
		return session.OpEdit
	}
	return ""
}

// add records a file, if the path can be one.
func (c *collector) add(name, directory string, op session.FileOp) {
	if op == "" || !isPath(name) || len(c.files) >= maxFiles {
		return
	}
	name = absolute(name, directory)
	if c.seen == nil {
		c.seen = map[[2]string]bool{}
	}
	if key := [2]string{name, string(op)}; !c.seen[key] {
		c.seen[key] = true
		c.files = append(c.files, session.TouchedFile{
			Path: name, Op: op, MessageID: c.message.RowID, SessionID: c.message.SessionID,
		})
	}
}

func isPath(s string) bool {
	return s != "" && len(s) <= maxPath && utf8.ValidString(s) && strings.TrimSpace(s) != "" &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7F }) &&
		!strings.Contains(s, "://") && !strings.HasPrefix(s, "data:")
}

// absolute joins a relative path with the directory and cleans it. Paths of Windows and of
// a home folder (~/) stay as they are.
func absolute(name, directory string) string {
	if strings.HasPrefix(name, "~") || isWindows(name) {
		return name
	}
	if path.IsAbs(name) || directory == "" {
		return path.Clean(name)
	}
	if isWindows(directory) {
		return strings.TrimRight(directory, `\/`) + `\` + name
	}
	return path.Join(directory, name)
}

// isWindows tells whether a path begins with a drive (C:\) or a share (\\host).
func isWindows(s string) bool {
	return strings.HasPrefix(s, `\\`) ||
		len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/') && (s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
}

// Package touched finds the files that the tool calls of a message read and changed. It knows
// the tools of the programs whose histories sessiond imports, by name and by arguments. It
// prefers to miss a file rather than to invent one.
package touched

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

const (
	maxArguments = 8 << 20 // bytes; larger arguments are skipped
	maxPath      = 4096    // bytes
	maxFiles     = 1000    // per message
)

// Files returns the files that the message's tool calls touch, each (path, operation) once, in
// the order of the calls. It joins relative paths with directory, the session's, when that is
// known. A call that is marked as failed (IsError) changes nothing; only a shell may have read before it failed.
// Arguments that are neither JSON nor a patch, or that are too large, name no files.
func Files(m *session.Message, directory string) []session.TouchedFile {
	c := collector{message: m, seen: map[touchedKey]bool{}}
	for _, call := range m.Calls() {
		text := call.Arguments
		if text == "" && call.Blob != nil { // the store moves large arguments to a blob
			text = string(call.Blob.Data)
		}
		c.failed = call.IsError != nil && *call.IsError
		c.addCall(toolName(call.ToolName), text, directory)
	}
	return c.files
}

type touchedKey struct {
	path string
	op   session.FileOp
}

type collector struct {
	message *session.Message
	files   []session.TouchedFile
	seen    map[touchedKey]bool
	failed  bool // the call whose files are added
}

// arguments are the arguments of a tool call that name files, in the spellings of all programs.
type arguments struct {
	Path       string `json:"path"`        // pi, OpenClaw, Goose, Cursor's agent, Cline, Kimi Code
	FilePath   string `json:"file_path"`   // Claude Code
	CamelPath  string `json:"filePath"`    // opencode, VS Code
	LowerPath  string `json:"filepath"`    // Continue
	TargetFile string `json:"target_file"` // Cursor
	BigTarget  string `json:"TargetFile"`  // Antigravity, to write
	Absolute   string `json:"AbsolutePath"`
	Files      []struct {
		Path string `json:"path"`
	} `json:"files"` // Cline, read_files
	Commands     []string       `json:"commands"`      // Cline, run_commands
	NotebookPath string         `json:"notebook_path"` // Claude Code
	Command      jsontext.Value `json:"command"`       // a shell's text or list; the verb of Goose's editor
	Cmd          string         `json:"cmd"`           // Codex, exec_command
	Input        string         `json:"input"`         // a patch
	PatchText    string         `json:"patchText"`     // a patch, opencode
	Patch        string         `json:"patch"`
	WorkDir      string         `json:"workdir"`
	WorkingDir   string         `json:"working_directory"`
	CommandLine  string         `json:"CommandLine"` // Antigravity
	BigDir       string         `json:"Cwd"`
}

func (a *arguments) file() string {
	return cmp.Or(a.FilePath, a.CamelPath, a.NotebookPath, a.Path, a.LowerPath, a.TargetFile, a.BigTarget, a.Absolute)
}

// addCall adds the files of one tool call.
func (c *collector) addCall(tool, text, directory string) {
	if text == "" || len(text) > maxArguments {
		return
	}
	var args arguments
	if err := json.Unmarshal([]byte(text), &args, jsontext.AllowInvalidUTF8(true)); err != nil {
		if tool == "apply_patch" { // Codex sends the bare patch
			c.addPatch(text, directory)
		}
		return
	}
	if c.failed && !shells[tool] {
		return
	}
	switch tool {
	case "read", "read_file", "view", "view_image", "notebookread", "readfile", "read_files", "view_file":
		c.addFile(args.file(), directory, session.OpRead)
		for _, file := range args.Files {
			c.addFile(file.Path, directory, session.OpRead)
		}
	case "write", "write_file", "create", "create_file", "write_to_file", "writefile", "create_new_file":
		c.addFile(args.file(), directory, session.OpWrite)
	case "edit", "multiedit", "edit_file", "notebookedit", "str_replace", "strreplace", "search_replace",
		"replace_string_in_file", "insert_edit_into_file", "replacestring", "editor", "replace_in_file", "apply_diff",
		"insert_content", "search_and_replace", "strreplacefile", "edit_existing_file", "single_find_and_replace",
		"code_action", "replace_file_content", "multi_replace_file_content":
		c.addFile(args.file(), directory, session.OpEdit)
	case "delete_file", "delete":
		c.addFile(args.file(), directory, session.OpDelete)
	case "text_editor", "str_replace_editor", "str_replace_based_edit_tool":
		c.addFile(args.file(), directory, editorOp(args.Command))
	case "apply_patch", "applypatch", "patch":
		var command string
		_ = json.Unmarshal(args.Command, &command) // as Codex tells it to a hook
		for _, patch := range []string{args.Input, args.PatchText, args.Patch, command} {
			c.addPatch(patch, directory)
		}
		if tool == "patch" { // Hermes, of one file
			c.addFile(args.file(), directory, session.OpEdit)
		}
	default:
		if shells[tool] {
			c.addShell(&args, directory)
		}
	}
}

// shells are the tools that run a command line.
var shells = map[string]bool{
	"bash": true, "shell": true, "shell_command": true, "local_shell": true, "exec": true,
	"exec_command": true, "run_terminal_cmd": true, "run_terminal_command": true, "run_in_terminal": true,
	"execute_command": true, "execute": true, "run_command": true, "run_commands": true, "run_shell_command": true,
	"run_shell": true, "terminal": true,
}

// toolName returns the name of a tool in lower case, without the prefix of Goose's extension, of OpenAI's functions,
// of VS Code or of Continue, and without the number of Cursor's versions. Tools of other servers keep theirs: their
// files may be elsewhere.
func toolName(name string) string {
	name = strings.ToLower(name)
	for _, prefix := range []string{"developer__", "functions.", "copilot_", "builtin_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return strings.TrimSuffix(name, "_v2") // of Cursor
}

// editorOp returns the operation of an editor's command; "" when it is unknown.
func editorOp(command jsontext.Value) session.FileOp {
	var verb string
	if json.Unmarshal(command, &verb) != nil {
		return ""
	}
	switch verb {
	case "view":
		return session.OpRead
	case "create", "write":
		return session.OpWrite
	case "str_replace", "insert", "edit_file", "undo_edit":
		return session.OpEdit
	}
	return ""
}

// addFile adds a file if its name can be a path.
func (c *collector) addFile(name, directory string, op session.FileOp) {
	if op == "" || c.failed && op != session.OpRead || !isPath(name) || len(c.files) >= maxFiles {
		return
	}
	name = folders.Join(directory, name)
	if key := (touchedKey{name, op}); !c.seen[key] {
		c.seen[key] = true
		c.files = append(c.files, session.TouchedFile{
			Path: name, Op: op, MessageID: c.message.RowID, SessionID: c.message.SessionID,
		})
	}
}

func (c *collector) addAll(names []string, directory string, op session.FileOp) {
	for _, name := range names {
		c.addFile(name, directory, op)
	}
}

func isPath(s string) bool {
	return strings.TrimSpace(s) != "" && len(s) <= maxPath && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7F }) &&
		!strings.Contains(s, "://") && !strings.HasPrefix(s, "data:")
}

package touched

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// describe writes files as "op path", for tables.
func describe(files []session.TouchedFile) string {
	var out []string
	for _, f := range files {
		out = append(out, string(f.Op)+" "+f.Path)
	}
	return strings.Join(out, ", ")
}

func message(calls ...string) *session.Message {
	m := &session.Message{Role: session.Assistant, RowID: 7, SessionID: "20260211_001"}
	for i := 0; i+1 < len(calls); i += 2 {
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, ToolName: calls[i], Arguments: calls[i+1]})
	}
	return m
}

const patch = "*** Begin Patch\n*** Add File: new.txt\n+*** Delete File: not.me\n*** Update File: a.go\n@@\n-x\n+y\n" +
	"*** Update File: old.go\n*** Move to: dir/moved.go\n@@\n-x\n+y\n*** Delete File: gone.go\n*** End Patch\n" +
	"*** Add File: after.txt\n"

const patched = "write /w/new.txt, edit /w/a.go, delete /w/old.go, write /w/dir/moved.go, delete /w/gone.go"

func quoted(s string) string { return string(session.JSONOf(s)) }

func TestFilesKnowsEachProgramsTools(t *testing.T) {
	for _, c := range []struct{ name, tool, arguments, want string }{
		{"pi reads", "read", `{"path":"a.go","offset":20}`, "read /w/a.go"},
		{"pi writes", "write", `{"path":"./b/../a.go","content":"x"}`, "write /w/a.go"},
		{"pi edits", "edit", `{"path":"/x/a.go","oldText":"1","newText":"2"}`, "edit /x/a.go"},
		{"Cursor reads", "read_file_v2", `{"target_file":"a.go"}`, "read /w/a.go"},
		{"Cursor's agent edits", "StrReplace", `{"path":"/x/a.go","old_string":"1"}`, "edit /x/a.go"},
		{"Cursor's shell reads", "run_terminal_command_v2", `{"command":"cat a.go"}`, "read /w/a.go"},
		{"VS Code edits", "copilot_replaceString", `{"filePath":"/x/a.go"}`, "edit /x/a.go"},
		{"VS Code writes", "create_file", `{"filePath":"/x/a.go"}`, "write /x/a.go"},
		{"Cline reads", "read_files", `{"files":[{"path":"a.go","start_line":1},{"path":"/x/b.go"}]}`, "read /w/a.go, read /x/b.go"},
		{"Cline's shell reads", "run_commands", `{"commands":["ls -1","cat a.go"]}`, "read /w/a.go"},
		{"Cline edits", "replace_in_file", `{"path":"a.go","diff":""}`, "edit /w/a.go"},
		{"Kimi writes", "WriteFile", `{"path":"a.go","content":""}`, "write /w/a.go"},
		{"Continue edits", "builtin_edit_existing_file", `{"filepath":"a.go"}`, "edit /w/a.go"},
		{"pi's shell reads", "bash", `{"command":"cat a.go"}`, "read /w/a.go"},
		{"Claude Code reads", "Read", `{"file_path":"/x/a.go"}`, "read /x/a.go"},
		{"Claude Code writes", "Write", `{"file_path":"/x/a.go","content":""}`, "write /x/a.go"},
		{"Claude Code edits", "Edit", `{"replace_all":true,"file_path":"/x/a.go"}`, "edit /x/a.go"},
		{"Claude Code edits often", "MultiEdit", `{"file_path":"/x/a.go","edits":[]}`, "edit /x/a.go"},
		{"Claude Code edits a notebook", "NotebookEdit", `{"notebook_path":"/x/a.ipynb"}`, "edit /x/a.ipynb"},
		{"Codex patches", "apply_patch", patch, patched},
		{"Codex patches in JSON", "apply_patch", `{"input":` + quoted(patch) + `}`, patched},
		{"Codex patches in a list", "shell", `{"command":["apply_patch",` + quoted(patch) + `]}`, patched},
		{"Codex patches in a shell", "shell", `{"command":["bash","-lc",` + quoted("apply_patch <<'EOF'\n"+patch+"EOF\n") +
			`]}`, patched},
		{
			"Codex patches after cd", "exec_command", `{"cmd":` +
				quoted("cd sub && apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** End Patch\nEOF") + `}`,
			"edit /w/sub/a",
		},
		{
			"Codex has a folder of its own", "shell_command", `{"command":"sed -n '1,200p' a.go","workdir":"/v"}`,
			"read /v/a.go",
		},
		{"Codex's local shell", "local_shell", `{"type":"exec","command":["cat","a"],"working_directory":"sub"}`, "read /w/sub/a"},
		{"Codex looks at an image", "view_image", `{"path":"/x/a.png"}`, "read /x/a.png"},
		{"opencode reads", "read", `{"filePath":"/x/a.go"}`, "read /x/a.go"},
		{"opencode patches", "patch", `{"patchText":` + quoted(patch) + `}`, patched},
		{"Copilot CLI creates", "create", `{"path":"/x/a","file_text":""}`, "write /x/a"},
		{"Gemini CLI reads in a shell", "run_shell_command", `{"command":"cat a.go"}`, "read /w/a.go"},
		{"Goose views", "developer__text_editor", `{"command":"view","path":"/x/a"}`, "read /x/a"},
		{"Goose creates", "developer__text_editor", `{"command":"create","path":"/x/a"}`, "write /x/a"},
		{"Goose writes", "developer__text_editor", `{"command":"write","path":"/x/a","file_text":""}`, "write /x/a"},
		{"Goose replaces", "developer__text_editor", `{"command":"str_replace","path":"/x/a"}`, "edit /x/a"},
		{"Goose inserts", "developer__text_editor", `{"command":"insert","path":"/x/a"}`, "edit /x/a"},
		{"Goose does something else", "developer__text_editor", `{"command":"dance","path":"/x/a"}`, ""},
		{"Goose's shell", "developer__shell", `{"command":"rm -f a"}`, "delete /w/a"},
		{"null beside cmd", "exec_command", `{"cmd":"cat a","command":null}`, "read /w/a"},
		{"bad UTF-8 beside the path", "write", "{\"content\":\"\xff\",\"path\":\"a\"}", "write /w/a"},
		{"OpenClaw runs", "exec", `{"command":"tail -n 5 a.log"}`, "read /w/a.log"},
		{"Hermes edits", "patch", `{"mode":"replace","path":"/x/a.go","old_string":"1"}`, "edit /x/a.go"},
		{"Hermes runs", "terminal", `{"command":"cat a.go"}`, "read /w/a.go"},
		{"Antigravity reads", "view_file", `{"AbsolutePath":"/x/a.go"}`, "read /x/a.go"},
		{"Antigravity writes", "write_to_file", `{"TargetFile":"/x/a.go","CodeContent":""}`, "write /x/a.go"},
		{"Antigravity edits", "replace_file_content", `{"TargetFile":"/x/a.go"}`, "edit /x/a.go"},
		{"Antigravity runs", "run_command", `{"CommandLine":"cat a.go","Cwd":"/v"}`, "read /v/a.go"},
		{"another server's read", "mcp__wiki__read", `{"path":"Main Page"}`, ""},
		{"a tool that is no file's", "Grep", `{"path":"/x","pattern":"a"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(Files(message(c.tool, c.arguments), "/w")); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestFilesReadsOnlyUnambiguousShellCommands(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"cat a b", "read /w/a, read /w/b"},
		{"cat -n 'my file.txt'", "read /w/my file.txt"},
		{"cat a | grep x", "read /w/a"},
		{"cd sub && cat a", "read /w/sub/a"},
		{"cd /v && rm a", "delete /v/a"},
		{"nl -ba a.go | sed -n '1,5p'", "read /w/a.go"},
		{"head -n 20 a", "read /w/a"},
		{"head -20 a", "read /w/a"},
		{"sed -n 1,5p a", "read /w/a"},
		{"sed -n 'w out' a", ""},
		{"sed -i s/a/b/ a", ""},
		{"rm -rf build", ""},
		{"rm -- -f", "delete /w/-f"},
		{"rm *.o", ""},
		{"cat $FILE", ""},
		{`cat "$FILE"`, ""},
		{"cat `ls`", ""},
		{"cat a > b", ""},
		{"cat a; rm b", ""},
		{"cat a && rm b", ""},
		{"cat a || rm b", ""},
		{"cat ~/a", ""},
		{"cat 'a", ""},
		{"cat <<EOF\na\nEOF", ""},
		{"cat", ""},
		{"", ""},
		{"| cat a", ""},
		{"echo '*** Begin Patch\n*** Add File: a\n*** End Patch'", ""},
	} {
		t.Run(c.command, func(t *testing.T) {
			arguments := fmt.Sprintf(`{"command":%s}`, quoted(c.command))
			if got := describe(Files(message("bash", arguments), "/w")); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestFilesReturnsEachFileOnce(t *testing.T) {
	m := message("read", `{"path":"a"}`, "read", `{"path":"./a"}`, "edit", `{"path":"a"}`, "read", `{"path":"b"}`)
	m.Parts = append(m.Parts, session.Part{Kind: session.PartToolResult, ToolName: "read", Text: `{"path":"c"}`})
	files := Files(m, "/w")
	if got, want := describe(files), "read /w/a, edit /w/a, read /w/b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if files[0].MessageID != 7 || files[0].SessionID != "20260211_001" {
		t.Errorf("not linked to the message: %+v", files[0])
	}
}

func TestFilesJoinsPathsWithDirectory(t *testing.T) {
	for _, c := range []struct{ name, directory, path, want string }{
		{"no directory", "", "a/../b", "b"},
		{"absolute", "/w", "/x//y/./z", "/x/y/z"},
		{"out of the directory", "/w/sub", "../a", "/w/a"},
		{"home", "/w", "~/a", "~/a"},
		{"a drive", "/w", `C:\x\a`, `C:/x/a`},
		{"a directory on a drive", `C:\x\`, `a`, `C:/x/a`},
		{"a drive of Git Bash", `D:\x`, `/d/x/a`, `D:/x/a`},
		{"a drive of WSL", `C:\x`, `/mnt/c/x/a`, `C:/x/a`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(Files(message("read", `{"path":`+quoted(c.path)+`}`), c.directory)); got != "read "+c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestFilesSkipsInvalidArguments(t *testing.T) {
	for name, arguments := range map[string]string{
		"empty":                       "",
		"no JSON":                     `{"path":`,
		"a list":                      `["a"]`,
		"a number":                    `{"path":7}`,
		"NUL":                         `{"path":"a\u0000b"}`,
		"a line break":                `{"path":"a\nb"}`,
		"a URL":                       `{"path":"https://example.com/a"}`,
		"data":                        `{"path":"data:image/png;base64,AAAA"}`,
		"a huge path":                 `{"path":"` + strings.Repeat("a", maxPath+1) + `"}`,
		"huge arguments":              `{"path":"a","content":"` + strings.Repeat("a", maxArguments) + `"}`,
		"spaces":                      `{"path":"  "}`,
		"very deep":                   strings.Repeat(`{"path":`, 20_000),
		"a patch without a beginning": "*** Add File: a",
		"invalid UTF-8":               "{\"path\":\"\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			for _, tool := range []string{"read", "write", "apply_patch", "bash", "developer__text_editor"} {
				if got := Files(message(tool, arguments), "/w"); len(got) > 0 {
					t.Errorf("%s: %s", tool, describe(got))
				}
			}
		})
	}
}

func FuzzFiles(f *testing.F) {
	f.Add("apply_patch", patch, "/w")
	f.Add("shell", `{"command":["bash","-lc","cd a && cat 'b' | head -n 3"]}`, "")
	f.Add("developer__text_editor", `{"command":"view","path":"/x/a"}`, "/w")
	f.Add("read", `{"filePath":"a"}`, `C:\x`)
	f.Fuzz(func(t *testing.T, tool, arguments, directory string) {
		seen := map[string]bool{}
		for _, file := range Files(message(tool, arguments), directory) {
			key := describe([]session.TouchedFile{file})
			if seen[key] || strings.ContainsRune(file.Path[:min(len(file.Path), maxPath)], 0) &&
				!strings.ContainsRune(directory, 0) {
				t.Errorf("repeated file or invalid path: %q", key)
			}
			seen[key] = true
			if path.IsAbs(directory) && !path.IsAbs(file.Path) && !folders.IsWindows(file.Path) &&
				!strings.HasPrefix(file.Path, "~") {
				t.Errorf("%q is not absolute", file.Path)
			}
		}
	})
}

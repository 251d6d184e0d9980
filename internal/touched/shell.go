package touched

import (
	"encoding/json"
	"strings"

	"sessiond/internal/session"
)

// shell looks at a shell tool's command: patches, and the few plain commands whose files are
// beyond doubt.
func (c *collector) shell(f *fields, directory string) {
	for _, dir := range []string{f.WorkDir, f.WorkingDir} {
		if isPath(dir) {
			directory = absolute(dir, directory)
		}
	}
	script := f.Cmd
	var list []string
	if json.Unmarshal(f.Command, &script) != nil && json.Unmarshal(f.Command, &list) == nil {
		if len(list) == 3 && isShell(list[0]) && (list[1] == "-lc" || list[1] == "-c") {
			script = list[2]
		} else {
			c.argv(list, directory)
			return
		}
	}
	c.script(script, directory)
}

func isShell(name string) bool {
	switch name[strings.LastIndexByte(name, '/')+1:] {
	case "bash", "sh", "zsh":
		return true
	}
	return false
}

// script looks at a command line. A cd before it moves the directory; anything else that
// can change what a path means (variables, patterns, lists of commands) ends the look.
func (c *collector) script(script, directory string) {
	if rest, dir, ok := cutCD(script); ok {
		script, directory = rest, absolute(dir, directory)
	}
	if before, _, ok := strings.Cut(script, "*** Begin Patch"); ok {
		// apply_patch <<'EOF' with the patch as here-document, or the patch as its argument
		if name := strings.Fields(before); len(name) > 0 && name[0] == "apply_patch" {
			c.patch(script, directory)
		}
		return
	}
	stages, ok := split(script)
	if !ok {
		return
	}
	for _, argv := range stages {
		c.argv(argv, directory)
	}
}

// cutCD takes "cd DIR &&" off the beginning of a script.
func cutCD(script string) (rest, dir string, ok bool) {
	head, rest, found := strings.Cut(script, "&&")
	if !found {
		return script, "", false
	}
	stages, ok := split(head)
	if !ok || len(stages) != 1 || len(stages[0]) != 2 || stages[0][0] != "cd" || !isPath(stages[0][1]) {
		return script, "", false
	}
	return strings.TrimLeft(rest, " \t\n"), stages[0][1], true
}

// argv looks at one command with its arguments.
func (c *collector) argv(argv []string, directory string) {
	if len(argv) < 2 {
		return
	}
	args := argv[1:]
	switch argv[0] {
	case "apply_patch":
		c.patch(args[0], directory)
	case "cat", "nl":
		c.addAll(operands(args, ""), directory, session.OpRead)
	case "head", "tail":
		c.addAll(operands(args, "nc"), directory, session.OpRead)
	case "sed":
		if len(args) >= 3 && args[0] == "-n" && !strings.HasPrefix(args[1], "-") && !strings.ContainsAny(args[1], "wr") {
			c.addAll(operands(args[2:], ""), directory, session.OpRead)
		}
	case "rm":
		for _, arg := range args {
			if strings.HasPrefix(arg, "-") && arg != "-f" && arg != "--" {
				return // -r names folders
			}
		}
		c.addAll(operands(args, ""), directory, session.OpDelete)
	}
}

func (c *collector) addAll(names []string, directory string, op session.FileOp) {
	for _, name := range names {
		c.add(name, directory, op)
	}
}

// operands gives the arguments that are no options. An option of one letter in withValue
// takes the argument after it.
func operands(args []string, withValue string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return append(out, args[i+1:]...)
		case strings.HasPrefix(arg, "-"):
			if len(arg) == 2 && strings.Contains(withValue, arg[1:]) {
				i++
			}
		default:
			out = append(out, arg)
		}
	}
	return out
}

// split cuts a command line into words, a list for each stage of a pipeline. It gives false
// for whatever needs a real shell to be understood.
func split(script string) (stages [][]string, ok bool) {
	if len(script) > maxPath {
		return nil, false
	}
	var argv []string
	var word strings.Builder
	inWord := false
	endWord := func() {
		if inWord {
			argv = append(argv, word.String())
			word.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(script); i++ {
		switch b := script[i]; b {
		case ' ', '\t':
			endWord()
		case '\'', '"':
			end := strings.IndexByte(script[i+1:], b)
			if end < 0 {
				return nil, false
			}
			quoted := script[i+1 : i+1+end]
			if b == '"' && strings.ContainsAny(quoted, "$`\\!") {
				return nil, false
			}
			word.WriteString(quoted)
			inWord = true
			i += end + 1
		case '|':
			endWord()
			if len(argv) == 0 || strings.HasPrefix(script[i+1:], "|") || strings.HasPrefix(script[i+1:], "&") {
				return nil, false
			}
			stages, argv = append(stages, argv), nil
		case '\n', '&', ';', '<', '>', '(', ')', '{', '}', '$', '`', '\\', '*', '?', '[', ']', '!', '#', 0:
			return nil, false
		case '~':
			if inWord {
				word.WriteByte(b)
				continue
			}
			return nil, false
		default:
			word.WriteByte(b)
			inWord = true
		}
	}
	endWord()
	if len(argv) == 0 {
		return nil, false
	}
	return append(stages, argv), true
}

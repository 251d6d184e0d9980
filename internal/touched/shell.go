package touched

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// addShell adds the files of a shell tool's command: those of patches, and those of the few plain
// commands that leave no doubt.
func (c *collector) addShell(args *arguments, directory string) {
	for _, dir := range []string{args.WorkDir, args.WorkingDir, args.BigDir} {
		if isPath(dir) {
			directory = folders.Join(directory, dir)
		}
	}
	for _, script := range args.Commands {
		c.addScript(script, directory)
	}
	switch args.Command.Kind() {
	case jsontext.KindBeginArray:
		var argv []string
		if json.Unmarshal(args.Command, &argv) != nil {
			return
		}
		if len(argv) == 3 && isShell(argv[0]) && (argv[1] == "-lc" || argv[1] == "-c") {
			c.addScript(argv[2], directory)
		} else {
			c.addCommand(argv, directory)
		}
	case jsontext.KindString:
		var script string
		if json.Unmarshal(args.Command, &script) == nil {
			c.addScript(script, directory)
		}
	default:
		c.addScript(cmp.Or(args.Cmd, args.CommandLine), directory)
	}
}

func isShell(program string) bool {
	switch program[strings.LastIndexByte(program, '/')+1:] {
	case "bash", "sh", "zsh":
		return true
	}
	return false
}

// addScript adds the files of a command line. A leading cd moves the directory. A script that
// can change the meaning of a path otherwise (variables, patterns, lists of commands) is skipped.
func (c *collector) addScript(script, directory string) {
	if rest, dir, ok := cutLeadingCD(script); ok {
		script, directory = rest, folders.Join(directory, dir)
	}
	if before, _, ok := strings.Cut(script, "*** Begin Patch"); ok {
		// apply_patch <<'EOF' with the patch as here-document, or the patch as its argument
		if words := strings.Fields(before); len(words) > 0 && words[0] == "apply_patch" {
			c.addPatch(script, directory)
		}
		return
	}
	stages, _ := splitPipeline(script)
	for _, argv := range stages {
		c.addCommand(argv, directory)
	}
}

// cutLeadingCD cuts "cd DIR &&" off the beginning of a script.
func cutLeadingCD(script string) (rest, dir string, ok bool) {
	head, rest, _ := strings.Cut(script, "&&")
	stages, ok := splitPipeline(head)
	if !ok || len(stages) != 1 || len(stages[0]) != 2 || stages[0][0] != "cd" || !isPath(stages[0][1]) {
		return script, "", false
	}
	return strings.TrimLeft(rest, " \t\n"), stages[0][1], true
}

// addCommand adds the files of one command with its arguments.
func (c *collector) addCommand(argv []string, directory string) {
	if len(argv) < 2 {
		return
	}
	args := argv[1:]
	switch argv[0] {
	case "apply_patch":
		c.addPatch(args[0], directory)
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

// operands returns the arguments that are no options. The argument after an option of one letter
// in withValue is that option's value.
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

// splitPipeline splits a command line into words, one list for each stage of a pipeline. ok is
// false for a line that only a real shell can parse.
func splitPipeline(script string) (stages [][]string, ok bool) {
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

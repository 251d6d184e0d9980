package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sessiond/internal/testkit"
)

// Every help page fits a terminal of 80 columns and begins with an example. On a narrower one prose and flags are
// broken between words; examples, which are to be copied, stay whole.
func TestHelpFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{50, 80, 200} {
		whole := (&app{env: &env{outTTY: true, width: width}}).root()
		for _, cmd := range append(whole.Commands(), whole) {
			var page bytes.Buffer
			cmd.SetOut(&page)
			testkit.Check(t, cmd.Help())
			if !strings.HasPrefix(page.String(), "Examples:\n") && !cmd.Hidden && cmd.Name() != "help" {
				t.Errorf("the help of %s does not begin with an example", cmd.Name())
			}
			for line := range strings.Lines(page.String()) {
				line = strings.TrimRight(line, "\n")
				narrow := width < 80 // there, what is to be copied and lists stay whole
				example := narrow && (strings.HasPrefix(line, "  sessiond ") || strings.HasPrefix(line, "  eval ") ||
					strings.HasPrefix(line, "  source ") || strings.HasPrefix(line, "  SESSIOND_"))
				list := narrow && (cmd == whole && strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "Use \""))
				if n := utf8.RuneCountInString(line); n > width && !example && !list {
					t.Errorf("%s in %d columns: %d in %q", cmd.Name(), width, n, line)
				}
			}
		}
	}
	if got := filled("One line.\n--two is\na flag of it.\n\n  kept as it is",
		13); got != "One line.\n--two is\na flag of it.\n\n  kept as it is" {
		t.Errorf("what fits was broken: %q", got)
	}
}

// TestReadme runs what the README tells people to copy and paste, in a home of its own. The
// first block starts the daemon and the tests themselves; the import needs a history.
func TestReadme(t *testing.T) {
	t.Parallel()
	text := testkit.Must(os.ReadFile(filepath.Join("..", "..", "README.md")))(t)
	blocks := regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindAllStringSubmatch(string(text), -1)
	var commands, http, analyst string
	for _, b := range blocks {
		switch block := b[1]; {
		case strings.Contains(block, "sessiond append --new"):
			commands = block
		case strings.Contains(block, "curl"):
			http = block
		case strings.Contains(block, "sqlite3"):
			analyst = block
		}
	}
	if commands == "" || http == "" || analyst == "" {
		t.Fatal("the README lost a block that this test runs")
	}
	for _, tool := range []string{"curl", "sqlite3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the README's blocks need %s, which is not installed", tool)
		}
	}
	home := t.TempDir()
	data := filepath.Join(home, ".local", "share")
	d := startDaemonOn(t, data, "127.0.0.1:0")
	http = strings.Replace(http, "http://127.0.0.1:7433", d.url, 1)
	root := testkit.Must(filepath.Abs(filepath.Join("..", "..")))(t)
	analyst = strings.ReplaceAll(analyst, "queries/", root+"/queries/")
	for _, step := range []struct{ block, want string }{
		{commands, "At the beginning: we read the old plan."},
		{http, `"content":"What is in a.txt?"`},
		{analyst, "dearest-sessions"},
	} {
		sh := exec.Command("sh", "-e", "-c", step.block)
		sh.Dir = home
		sh.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+data, "XDG_CONFIG_HOME="+data, "XDG_RUNTIME_DIR=")
		out, err := sh.CombinedOutput()
		if err != nil || !strings.Contains(string(out), step.want) {
			t.Errorf("the block\n%s\nends with %v and prints\n%s", step.block, err, out)
		}
	}
	d.stop()
}

func TestFitColumns(t *testing.T) {
	t.Parallel()
	cols := []column{
		{name: "id"},
		{name: "title", least: 10, grow: true},
		{name: "note", least: 5, grow: true, keep: 2},
		{name: "cost", keep: 1},
	}
	for name, c := range map[string]struct {
		most          int
		shown, widths []int
	}{
		"a pipe shows all whole":                  {0, []int{0, 1, 2, 3}, []int{8, 60, 40, 6}},
		"enough room":                             {120, []int{0, 1, 2, 3}, []int{8, 60, 40, 6}},
		"the widest is cut first":                 {110, []int{0, 1, 2, 3}, []int{8, 50, 40, 6}},
		"then both":                               {60, []int{0, 1, 2, 3}, []int{8, 20, 20, 6}},
		"what matters least goes, others grow":    {34, []int{0, 1, 2}, []int{8, 11, 11}},
		"what is never dropped stays, cut to fit": {20, []int{0, 1}, []int{8, 10}},
		"too narrow for anything":                 {5, []int{0, 1}, []int{8, 60}},
	} {
		t.Run(name, func(t *testing.T) {
			widths := []int{8, 60, 40, 6}
			shown := fitColumns(cols, widths, c.most)
			if !slices.Equal(shown, c.shown) {
				t.Fatalf("shows %v, want %v", shown, c.shown)
			}
			for _, i := range shown {
				if c.most > 8 && widths[i] != c.widths[i] {
					t.Errorf("%s is %d wide, want %d", cols[i].name, widths[i], c.widths[i])
				}
			}
		})
	}
}

// TestNothingStoredActsOnATerminal: control characters of any kind come out as text or not at
// all, in what people read and in JSON.
func TestNothingStoredActsOnATerminal(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a colour":      "a\x1b[31mb",
		"a title":       "a\x1b]0;owned\ab",
		"8-bit":         "a\u009b31mb",
		"a backspace":   "a\bb",
		"delete":        "a\x7fb",
		"another order": "a\u202eb",
	} {
		if got := printable(text); strings.ContainsFunc(got, func(r rune) bool {
			return r < ' ' || isC1(r) || r == '\u202e'
		}) {
			t.Errorf("%s: %q", name, got)
		}
		var out strings.Builder
		a := app{env: &env{out: &out}}
		testkit.Check(t, a.printJSON(map[string]string{"text": text}))
		if strings.ContainsFunc(out.String(), func(r rune) bool { return r < ' ' && r != '\n' || isC1(r) }) {
			t.Errorf("%s in JSON: %q", name, out.String())
		}
	}
}

// However JSON is cut into writes, no control character of it reaches the terminal, and the rest
// is as it was.
func TestJSONForATerminalIsSafeInAnyPieces(t *testing.T) {
	t.Parallel()
	const said = "{\"a\":\"\u009b31m caf\u00e9 \u00c2 价格 \x7f\U0001f600 \u0080\u009f\u00a0 end\"}"
	const want = "{\"a\":\"\\u009b31m caf\u00e9 \u00c2 价格 \\u007f\U0001f600 \\u0080\\u009f\u00a0 end\"}"
	for size := 1; size <= len(said); size++ {
		var out bytes.Buffer
		w := safeWriter{to: &out}
		for rest := []byte(said); len(rest) > 0; {
			n := testkit.Must(w.Write(rest[:min(size, len(rest))]))(t)
			rest = rest[n:]
		}
		if out.String() != want {
			t.Fatalf("in pieces of %d bytes: %q", size, out.String())
		}
	}
}

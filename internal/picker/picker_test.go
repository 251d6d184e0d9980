package picker_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"sessiond/internal/picker"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden screens anew")

func titles() []string {
	return []string{
		"Fix the parser: it fails on nested lists",
		"Fix the parser: a second try, with a title that is far too long for the list and for the preview beside it",
		"嵌套列表的解析器为什么会失败", "Deploy 🚀 to production 👩‍👩‍👧 ❤️", "", "Write docs", "Rename the zebra keys",
	}
}

func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {140, 40}, {20, 5}, {400, 100}} {
		for name, keys := range map[string][]string{
			"list":    {"down"},
			"search":  {"'parser"},
			"help":    {"'?"},
			"nothing": {"tab", "ctrl+f", "ctrl+g", "'quagga"},
			"rename":  {"down", "down", "ctrl+r", "' 再"},
			"said":    {"ctrl+s"},
		} {
			if name != "list" && name != "search" && size[0] != 80 {
				continue
			}
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				p := sit(t, filled(titles()...), size[0], size[1])
				p.keys(keys...)
				fits(t, p.model.View(), size[0], size[1])
				golden(t, p.screen())
			})
		}
	}
}

func golden(t *testing.T, got string) {
	t.Helper()
	file := filepath.Join("testdata", filepath.Base(t.Name())+".txt")
	if *update {
		testkit.Check(t, os.MkdirAll("testdata", 0o755))
		testkit.Check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	testkit.Equal(t, string(testkit.Must(os.ReadFile(file))(t)), got)
}

var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// fits checks that a screen has its size and nothing on it acts on a terminal.
func fits(t testkit.Failer, v tea.View, width, height int) {
	t.Helper()
	lines := strings.Split(v.Content, "\n")
	if len(lines) != height {
		t.Fatal(fmt.Sprintf("%d lines on a screen of %d×%d:\n%s", len(lines), width, height, v.Content))
	}
	for _, line := range lines {
		if n := ansi.StringWidthWc(line); n > width {
			t.Fatal(fmt.Sprintf("a line of %d columns on a screen of %d×%d: %q", n, width, height, line))
		}
		if rest := colours.ReplaceAllString(line, ""); strings.ContainsFunc(rest, acts) {
			t.Fatal(fmt.Sprintf("this line acts on the terminal: %q", line))
		}
	}
	if c := v.Cursor; c != nil && (c.X < 0 || c.X >= width || c.Y < 0 || c.Y >= height) {
		t.Fatal(fmt.Sprintf("the cursor is at %d, %d of %d×%d", c.X, c.Y, width, height))
	}
}

func acts(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e
}

func TestNothingStoredActsOnTheTerminal(t *testing.T) {
	evil := "\x1b]52;c;ZXZpbA==\a\x1b[2J\u202eevil\x9b31m\r\nnew\tline parser"
	data := filled(evil)
	r := &data.rows[0]
	r.Name, r.Project, r.GitBranch, r.Model, r.Source = evil, evil, evil, evil, session.Source(evil)
	data.err = nil
	for _, size := range [][2]int{{80, 24}, {140, 40}, {20, 5}} {
		p := sit(t, data, size[0], size[1])
		for _, keys := range [][]string{nil, {"'parser"}, {"ctrl+s"}, {"ctrl+r"}, {"esc"}, {"ctrl+u", "ctrl+f"}} {
			p.keys(keys...)
			fits(t, p.model.View(), size[0], size[1])
		}
		data.err = fmt.Errorf("bad: %s", evil)
		p.keys("ctrl+f", "ctrl+f", "enter")
		fits(t, p.model.View(), size[0], size[1])
		data.err = nil
	}
}

// The line between the list and the preview is straight, whatever is in the titles.
func TestWideCharactersStayInLine(t *testing.T) {
	for _, method := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
		p := sit(t, filled(titles()...), 120, 30)
		if method == ansi.GraphemeWidth {
			p.tell(tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeReset})
		}
		lines := strings.Split(p.model.View().Content, "\n")
		for i, line := range lines[2 : len(lines)-1] {
			before, _, found := strings.Cut(line, "│")
			if n := method.StringWidth(before); !found || n != 67 {
				t.Errorf("the line of row %d is at column %d: %q", i, n, line)
			}
		}
	}
}

func TestEveryScreenFits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		data := filled(titles()...)
		for i := range 300 {
			data.rows = append(data.rows, picker.Row{Session: session.Session{
				ID:    session.ID(fmt.Sprintf("20250101_%03d", i)),
				Title: "old",
			}})
		}
		p := sit(t, data, 80, 24)
		all := []string{
			"down", "up", "pgdown", "pgup", "home", "end", "tab", "shift+tab", "'p", "'é", "'漢", "'?", "backspace", "ctrl+u",
			"ctrl+w", "esc", "enter", "f1",
			"ctrl+y", "ctrl+t", "ctrl+r", "ctrl+d", "ctrl+x", "ctrl+o", "ctrl+s", "ctrl+f", "ctrl+g", "ctrl+v", "shift+up",
			"shift+down", "left", "right",
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0, 1:
				w, h := rapid.IntRange(1, 420).Draw(rt, "width"), rapid.IntRange(1, 110).Draw(rt, "height")
				p.tell(tea.WindowSizeMsg{Width: w, Height: h})
				fits(rt, p.model.View(), w, h)
			case 2:
				if len(data.rows) > 0 {
					i := rapid.IntRange(0, len(data.rows)-1).Draw(rt, "purged")
					data.rows = slices.Delete(slices.Clone(data.rows), i, i+1)
					data.version++
					p.tell(p.model.(picker.Model).Look())
				}
			default:
				p.keys(rapid.SampledFrom(all).Draw(rt, "key"))
			}
			lines := strings.Count(p.model.View().Content, "\n") + 1
			fits(rt, p.model.View(), 420, lines)
		}
	})
}

// What is wrong with the store stands above all else, and goes when it is right again.
func TestAlarmIsTheFirstLine(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {140, 40}, {30, 5}, {30, 3}} {
		data := filled(titles()...)
		data.alarm = "! backups are late:\x1b[2J the newest is 3 days old"
		p := sit(t, data, size[0], size[1])
		v := p.model.View()
		fits(t, v, size[0], size[1])
		first, _, _ := strings.Cut(colours.ReplaceAllString(v.Content, ""), "\n")
		if !strings.HasPrefix(first, "! backups are late") || v.Cursor.Y != 1 {
			t.Errorf("%v: the first line is %q, the cursor in line %d", size, first, v.Cursor.Y)
		}
		data.alarm = ""
		p.tell(p.model.(picker.Model).Look())
		if v := p.model.View(); strings.Contains(v.Content, "backups") || v.Cursor.Y != 0 {
			t.Errorf("%v: the alarm stays", size)
		}
	}
}

func TestTypingSearchesAndDropsStaleAnswers(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.hold = true
	p.keys("'zebra", "backspace")
	if n := len(p.held); n != 1 {
		t.Fatalf("%d requests run at once", n)
	}
	p.keys("ctrl+u", "'docs")
	p.sees("❯ docs", "searching …", "nested lists") // the old list stays until the answer comes
	p.release()
	p.sees("Write docs", "1 found")
	p.seesNot("zebra")
	var searches []string
	for _, asked := range p.data.asked {
		if strings.HasPrefix(asked, "search") {
			searches = append(searches, asked[strings.LastIndex(asked, " ")+1:])
		}
	}
	testkit.Equal(t, []string{`"z"`, `"docs"`}, searches) // not one for each key
	p.keys("ctrl+u")
	p.sees("Type to search", "nested lists")
}

func TestFoundWordsStandOut(t *testing.T) {
	p := sit(t, filled(titles()...), 140, 40)
	p.keys("'parser")
	p.sees("27 user", "Fix the parser: it fails")
	if want := "\x1b[1;35mparser\x1b[m"; !strings.Contains(p.model.View().Content, want) {
		t.Errorf("no %q in %q", want, p.model.View().Content)
	}
}

func TestLongListIsReadInPieces(t *testing.T) {
	var many []string
	for i := range 350 {
		many = append(many, fmt.Sprintf("session %d", i))
	}
	p := sit(t, filled(many...), 80, 24)
	if n := len(p.data.asked); n != 1 {
		t.Errorf("%d lists were read for the first screen: %v", n, p.data.asked)
	}
	for range 40 {
		p.keys("pgdown")
	}
	p.sees("❯ session 349")
	if n := len(p.data.asked); n != 4 {
		t.Errorf("%d lists were read: %v", n, p.data.asked)
	}
	p.keys("home")
	p.sees("❯ session 0")

	p = sit(t, filled(many...), 80, 24)
	p.hold = true
	p.keys("pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown") // the next piece is asked for
	p.seesNot("reading …")
	p.keys("ctrl+s")
	p.release()
	p.sees("Starred: session ")
}

func TestScopes(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.sees("everywhere  project parser  folder cmd")
	p.keys("tab", "tab", "tab", "ctrl+f", "ctrl+f", "ctrl+f", "ctrl+g", "ctrl+v", "ctrl+v", "ctrl+v")
	var scopes []string
	for _, asked := range p.data.asked[1:] {
		scopes = append(scopes, strings.TrimSuffix(strings.TrimPrefix(asked, "list {"), `} after ""`))
	}
	testkit.Equal(t, []string{
		"Where:1 Source: SubAgents:false Starred:false Archived:false",
		"Where:2 Source: SubAgents:false Starred:false Archived:false",
		"Where:0 Source: SubAgents:false Starred:false Archived:false",
		"Where:0 Source:claude-code SubAgents:false Starred:false Archived:false",
		"Where:0 Source:pi SubAgents:false Starred:false Archived:false",
		"Where:0 Source: SubAgents:false Starred:false Archived:false",
		"Where:0 Source: SubAgents:true Starred:false Archived:false",
		"Where:0 Source: SubAgents:true Starred:true Archived:false",
		"Where:0 Source: SubAgents:true Starred:false Archived:true",
		"Where:0 Source: SubAgents:true Starred:false Archived:false",
	}, scopes)
	p.keys("ctrl+v")
	p.sees("with sub-agents · starred", "No session is starred here")
	p.keys("ctrl+v")
	p.sees("with sub-agents · archived", "No session is archived here.")
}

// A look at the database while a scope is read does not mistake the old list for the new one.
func TestRefreshKeepsAWantedScope(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.hold = true
	p.keys("down", "down", "ctrl+f") // only of Claude Code, where the selected session is not
	p.data.version++
	p.tell(p.model.(picker.Model).Look())
	p.release()
	p.sees("❯ Fix the parser: it fails")
	p.seesNot("any more")
}

func TestEnterResumes(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.data.err = errBroken
	p.keys("enter")
	p.sees("the disk is broken")
	if p.left {
		t.Fatal("left although the session cannot be resumed")
	}
	p.data.err = nil
	p.keys("down", "enter")
	testkit.Equal(t, picker.Choice{Resume: "20261124_006"}, p.model.(picker.Model).Choice())
	if !p.left {
		t.Error("did not leave")
	}
}

func TestSessionContinuesInAnotherProgram(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.keys("down", "ctrl+k", "ctrl+u", "'chess", "enter")
	p.sees(`"chess" is none of claude-code, codex`)
	if p.left {
		t.Fatal("left for a program that is not known")
	}
	p.keys("ctrl+k", "ctrl+u", "'codex", "enter")
	testkit.Equal(t, picker.Choice{Resume: "20261124_006", In: "codex"}, p.model.(picker.Model).Choice())
	if !p.left {
		t.Error("did not leave")
	}
}

// Who types fast means what the search will find, not what is still on the screen.
func TestEnterWaitsForTheSearch(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.hold = true
	p.keys("'docs", "enter")
	p.release()
	testkit.Equal(t, picker.Choice{Resume: "20261124_002"}, p.model.(picker.Model).Choice())

	p = sit(t, filled(titles()...), 80, 24)
	p.hold = true
	p.keys("'docs", "ctrl+d", "'x") // another key takes it back
	p.release()
	p.seesNot("Archived")
	if p.data.rows[0].ArchivedAt != nil {
		t.Error("archived")
	}
}

func TestLeavingChoosesNothing(t *testing.T) {
	for _, key := range []string{"esc", "ctrl+c"} {
		p := sit(t, filled(titles()...), 80, 24)
		p.keys("'parser", key)
		testkit.Equal(t, picker.Choice{}, p.model.(picker.Model).Choice())
		if !p.left {
			t.Errorf("%s did not leave", key)
		}
	}
}

func TestKeysActOnTheSelectedSession(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.keys("down", "ctrl+y")
	p.sees("Copied: 20261124_006")
	testkit.Equal(t, "20261124_006", p.copied)
	p.keys("ctrl+t")
	p.sees("Copied: cd /src && claude --resume 20261124_006")
	testkit.Equal(t, "cd /src && claude --resume 20261124_006", p.copied)
	p.keys("ctrl+r", "ctrl+u", "'Lists, again", "enter")
	p.sees("Renamed.", "❯ Lists, again")
	p.keys("ctrl+s")
	p.sees("Starred: Lists, again", "❯ ★ Lists, again")
	p.keys("ctrl+x")
	p.sees("Export to (.md .html .jsonl): 20261124_006.md")
	p.keys("enter")
	p.sees("20261124_006.md: 1 session")
	p.keys("ctrl+o")
	p.sees("Opened in your browser.")
	p.data.unopened = true
	p.keys("ctrl+o")
	p.sees("Copied the link")
	testkit.Equal(t, "http://127.0.0.1:7433/open/abc", p.copied)
	p.keys("ctrl+d")
	p.sees("Archived: ★ Lists, again")
	p.sees("❯ 嵌套列表的解析器为什么会失败") // the next one is selected
	p.keys("ctrl+v", "ctrl+v", "ctrl+d")
	p.sees("Back in the list", "No session is archived here.")
}

func TestQuestionCanBeLeft(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.keys("ctrl+r", "'x", "esc")
	p.sees("Type to search")
	p.keys("ctrl+r", "ctrl+u", "enter") // an empty title changes nothing
	testkit.Equal(t, titles()[0], p.data.rows[0].Title)
	if p.left {
		t.Error("left")
	}
}

func TestSessionPurgedUnderTheCursor(t *testing.T) {
	for name, notice := range map[string]func(*person){
		"by a look":  func(p *person) { p.tell(p.model.(picker.Model).Look()) },
		"by Enter":   func(p *person) { p.keys("enter") },
		"by a key":   func(p *person) { p.keys("ctrl+s") },
		"by the end": func(p *person) { p.keys("ctrl+x", "enter") },
	} {
		t.Run(name, func(t *testing.T) {
			p := sit(t, filled("one", "two", "three"), 80, 24)
			p.keys("down")
			p.data.rows = slices.Delete(p.data.rows, 1, 2)
			p.data.version++
			notice(p)
			p.sees("20261124_002", "any more", "❯ three")
			p.seesNot("two")
			p.keys("enter")
			testkit.Equal(t, picker.Choice{Resume: "20261124_001"}, p.model.(picker.Model).Choice())
		})
	}
}

func TestPurgedSessionLeavesASearch(t *testing.T) {
	p := sit(t, filled("one parser", "two parser"), 80, 24)
	p.keys("'parser", "down")
	p.data.rows = p.data.rows[:1]
	p.data.version++
	p.tell(p.model.(picker.Model).Look())
	p.sees("20261124_001 does not exist any more", "❯ one parser")
}

func TestListFollowsTheDatabase(t *testing.T) {
	p := sit(t, filled("one", "two", "three"), 80, 24)
	p.keys("down")
	p.data.rows = append([]picker.Row{{Session: session.Session{
		ID: "20261124_009", Title: "brand new", Source: "pi",
		ActiveAt: session.At(now),
	}}}, p.data.rows...)
	p.tell(p.model.(picker.Model).Look())
	p.seesNot("brand new") // nothing says that anything changed
	p.data.version++
	p.tell(p.model.(picker.Model).Look())
	p.sees("  brand new", "❯ two")
}

func TestEmptyDatabaseOffersImport(t *testing.T) {
	p := sit(t, &shelf{}, 80, 24)
	p.sees("Nothing is stored yet", "Enter to import")
	p.keys("ctrl+d", "ctrl+y", "enter")
	testkit.Equal(t, picker.Choice{Import: true}, p.model.(picker.Model).Choice())
	if !p.left {
		t.Error("did not leave")
	}
}

func TestPreviewScrolls(t *testing.T) {
	p := sit(t, filled(titles()...), 80, 24)
	p.sees("The end of Fix the parser")
	for range 30 {
		p.keys("shift+up")
	}
	p.sees("● user")
	p.seesNot("The end of Fix")
	for range 3 { // from the top at once, however often the key was pressed
		p.keys("shift+down")
	}
	p.sees("The end of Fix the parser")
}

package transcript

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	parent = session.ID("20260210_004")
	shown  = session.ID("20260211_001")
)

// story makes messages that follow one another, a minute apart.
type story struct {
	messages []session.Message
	row, seq int64
	at       time.Time
}

func newStory() *story {
	return &story{row: 100, at: time.Date(2026, 2, 11, 23, 57, 0, 0, time.UTC)}
}

func (s *story) say(role session.Role, parts ...session.Part) *session.Message {
	s.row++
	s.seq++
	s.at = s.at.Add(time.Minute)
	m := session.Message{
		RowID: s.row, SessionID: shown, Seq: s.seq, ID: session.MessageRef{Session: shown, Seq: s.seq},
		Kind: session.KindMessage, Role: role, Origin: session.Person, Display: true, InContext: true,
		CreatedAt: session.At(s.at), Parts: parts,
	}
	for i := range m.Parts {
		m.Parts[i].RowID, m.Parts[i].MessageID = m.RowID<<10|int64(i), m.RowID
	}
	if n := len(s.messages); n > 0 {
		m.ParentID, m.Parent = &s.messages[n-1].RowID, &s.messages[n-1].ID
	}
	s.messages = append(s.messages, m)
	return &s.messages[len(s.messages)-1]
}

func call(id, name, arguments string) session.Part {
	return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: arguments}
}

func result(id, text string, failed bool) session.Part {
	return session.Part{Kind: session.PartToolResult, CallID: id, Text: text, IsError: &failed}
}

func reasoning(text string) session.Part {
	return session.Part{Kind: session.PartReasoning, Text: text}
}

func at[T any](v T) *T { return &v }

// everything is a session in which everything happens once.
func everything() ([]session.Message, []session.Compaction) {
	s := newStory()
	s.say(session.System, session.TextPart("You are a careful engineer."))
	s.say(session.User,
		session.TextPart("Please look at internal/store.go and tell me why the second append waits for the first, "+
			"although they come from different processes.\n\n\tfunc main() {\n\t\tstore.Append()\n\t}\n\n"+
			"价格是多少？这是一个很长的中文句子，用来检查换行是否按照显示宽度而不是按照字符数来进行，因为每个汉字占两列。"),
		session.Part{Kind: session.PartImage, Blob: &session.Blob{MediaType: "image/png", Size: 12_345}},
		session.Part{Kind: session.PartFile, Extra: session.JSON(`{"file":{"filename":"plan.pdf","media_type":"application/pdf"}}`)}).Author = "alice"
	reply := s.say(session.Assistant, reasoning("The writer holds the lock.\nI should read the file first."),
		session.TextPart("I will read it."), call("c1", "read", `{"path":"internal/store.go"}`),
		call("c2", "bash", `{"command":"go test ./...","timeout":60}`),
		call("c3", "list", `{}`), call("c4", "edit", `{"path":"a.go","old":"`+strings.Repeat("x", 200)+`","new":null}`))
	reply.Model, reply.Finish = "gpt-5", session.FinishToolCalls
	s.say(session.Tool, result("c1", strings.Repeat("package store\n", 400), false))
	s.say(session.Tool, result("c2", "FAIL\tinternal/store 0.3s\nexit status 1", true), result("c3", "ok", false))
	cut := s.say(session.Assistant, session.TextPart("It waits for the lock."))
	s.say(session.Tool, result("gone", "a result whose call was lost", false))
	marker := s.say("", session.TextPart("gpt-5 → claude-sonnet-4-5"))
	marker.Kind = session.KindMarker
	thinking := s.say("")
	thinking.Kind, thinking.Extra = session.KindMarker, session.JSON(`{"line":{"type":"thinking_level_change","id":"1","thinkingLevel":"high"}}`)
	s.say("", session.TextPart("state")).Kind = session.KindCustom
	s.say(session.Assistant, session.TextPart("NO_REPLY")).Display = false
	bash := s.say(session.User, session.TextPart("ls\na.txt"))
	bash.Kind = session.KindBash
	s.say(session.Assistant, session.TextPart("An answer that was cut o")).Finish = session.FinishLength
	s.say(session.Assistant, session.Part{Kind: session.PartReasoning},
		session.Part{Kind: session.PartRefusal, Text: "I can not do that."})
	other := s.say(session.User, session.TextPart("Another try."))
	other.ParentID, other.Parent = &s.messages[5].RowID, &s.messages[5].ID
	s.say(session.User, session.TextPart("A new beginning.")).ParentID = nil
	s.messages[len(s.messages)-1].Parent = nil
	compactions := []session.Compaction{
		{RowID: 2, ID: "cmp_2", Status: session.StatusFailed, ThroughID: &cut.RowID, Strategy: session.StrategySummarize},
		{
			RowID: 3, ID: "cmp_3", Status: session.StatusDone, ThroughID: at(s.messages[5].RowID),
			Strategy:     session.StrategySummarize,
			MessageCount: 120, TokensBefore: 45_210, TokensAfter: 3_900, CreatedAt: s.messages[5].CreatedAt,
			Summary: "## Goal\nFind out why appends wait.",
		},
		{
			RowID: 4, ID: "cmp_4", Status: session.StatusDone, ThroughID: at(s.messages[7].RowID),
			Strategy:     session.StrategyPrune,
			MessageCount: 1, TokensBefore: 4_000, CreatedAt: s.messages[7].CreatedAt, Undone: true,
		},
		{RowID: 5, ID: "cmp_5", Status: session.StatusDone, ThroughID: at(int64(7)), Strategy: session.StrategyClear},
	}
	return s.messages, compactions
}

func TestTerminalLooksAsAgreed(t *testing.T) {
	messages, compactions := everything()
	items := Build(session.Session{ID: shown, Source: session.SourceSessiond}, messages, compactions)
	for name, opt := range map[string]TerminalOptions{
		"plain-80":  {Width: 80},
		"narrow-40": {Width: 40},
		"wide-200":  {Width: 200},
		"expanded":  {Width: 80, Expand: true},
		"raw":       {Width: 80, Raw: true},
		"colour-80": {Width: 80, Color: true},
	} {
		t.Run(name, func(t *testing.T) {
			opt.Zone = time.UTC
			got := render(t, items, opt)
			golden(t, name+".txt", got)
			if !opt.Color && strings.ContainsRune(got, '\x1b') {
				t.Error("colours that nobody asked for")
			}
			for line := range strings.SplitSeq(got, "\n") {
				if !opt.Color && !opt.Raw && Width(line) > opt.Width {
					t.Errorf("%d columns: %s", Width(line), line)
				}
				if line != strings.TrimRight(line, " ") {
					t.Errorf("spaces at the end of %q", line)
				}
			}
		})
	}
}

func render(t *testing.T, items []Item, opt TerminalOptions) string {
	t.Helper()
	var b bytes.Buffer
	testkit.Check(t, Terminal(&b, items, opt))
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		testkit.Check(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want := testkit.Must(os.ReadFile(path))(t)
	if got != string(want) {
		t.Errorf("%s differs; if that is right, run the test with -update. Now:\n%s", path, got)
	}
}

func TestResultsAreFoldedIntoTheirCalls(t *testing.T) {
	messages, _ := everything()
	items := Build(session.Session{ID: shown, Source: session.SourceSessiond}, messages, nil)
	var uses []string
	tools := 0
	for _, item := range items {
		if item.Kind == ItemMessage && item.Role == session.Tool {
			tools++
		}
		for _, b := range item.Blocks {
			if b.Kind == BlockTool {
				uses = append(uses, fmt.Sprint(b.Tool.Name, " ", b.Tool.ResultRef.Seq, " ", b.Tool.IsError, " ", b.Tool.Orphan))
			}
		}
	}
	want := "read 4 false false; bash 5 true false; list 5 false false; edit 0 false false;  7 false true"
	if got := strings.Join(uses, "; "); got != want {
		t.Errorf("tool uses: %s\nwant:      %s", got, want)
	}
	if tools != 1 {
		t.Errorf("%d tool messages stand alone, want only the orphan", tools)
	}
}

func TestTheSameCallIDTwiceGoesToItsOwnCall(t *testing.T) {
	s := newStory()
	for i := range 2 {
		s.say(session.Assistant, call("c", "read", fmt.Sprintf(`{"n":%d}`, i)))
		s.say(session.Tool, result("c", fmt.Sprintf("result %d", i), false))
	}
	late := s.say(session.Assistant, call("c", "a", ""), call("c", "b", ""))
	answer := s.say(session.Tool, result("c", "for b", false))
	answer.Parts[0].CallPartID = at(late.RowID<<10 | 1)
	var got []string
	for _, item := range Build(session.Session{ID: shown, Source: session.SourceSessiond}, s.messages, nil) {
		for _, b := range item.Blocks {
			got = append(got, b.Tool.Result)
		}
	}
	if strings.Join(got, "|") != "result 0|result 1||for b" {
		t.Errorf("results: %q", got)
	}
}

func TestMarksStandWhereTheyBelong(t *testing.T) {
	messages, compactions := everything()
	var got []string
	for _, item := range Build(session.Session{ID: shown, Source: session.SourceSessiond}, messages, compactions) {
		switch item.Kind {
		case ItemCompaction:
			got = append(got, item.Compaction.ID)
		case ItemBranch:
			got = append(got, "branch from "+item.Branch.From.String())
		case ItemMarker:
			got = append(got, "marker")
		default:
			got = append(got, fmt.Sprint(item.Ref.Seq))
		}
	}
	want := "1, 2, 3, 6, cmp_3, 7, marker, cmp_4, marker, marker, 11, 12, 13, 14, branch from 20260211_001.6, 15, " +
		"branch from , 16"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

func TestForksSayWhereTheyBegin(t *testing.T) {
	s := newStory()
	s.say(session.User, session.TextPart("of the parent"))
	s.say(session.Assistant, session.TextPart("of the parent"))
	s.say(session.User, session.TextPart("of the fork"))
	for i := range 2 {
		s.messages[i].SessionID = parent
		s.messages[i].ID.Session = parent
	}
	s.messages[2].Parent = &s.messages[1].ID
	branches := func(messages []session.Message) string {
		var got []string
		for _, item := range Build(session.Session{ID: shown, Source: session.SourceSessiond}, messages, nil) {
			if item.Branch != nil {
				got = append(got, branchLine(item.Branch))
			}
		}
		return strings.Join(got, "|")
	}
	const want = "20260211_001 begins here, forked from 20260210_004.2"
	if got := branches(s.messages); got != want {
		t.Errorf("whole path: %q, want %q", got, want)
	}
	if got := branches(s.messages[2:]); got != want {
		t.Errorf("own messages only: %q, want %q", got, want)
	}
	if got := branches(s.messages[:2]); got != "" {
		t.Errorf("a page of the parent: %q, want nothing", got)
	}
}

func TestNothingStoredActsOnTheTerminal(t *testing.T) {
	const bad = "a\x1b[31mb\x1b]0;title\ac\x1b]8;;http://x\x1b\\d\x1bPq#\x1b\\e\u009b2Jf\u009dz\u009cg" +
		"\x07\x00\x7fh\u202ei\xffj\x1b(Bk\x1bcl"
	s := newStory()
	m := s.say(session.Assistant, session.TextPart(bad), reasoning(bad), call(bad, bad, bad),
		call("c2", "n", `{"a":"\u001b[2J","b":"`+bad+`"}`),
		session.Part{Kind: session.PartRefusal, Text: bad}, session.Part{Kind: session.PartData, Text: bad},
		session.Part{Kind: session.PartImage, Blob: &session.Blob{MediaType: bad, Size: 1}},
		session.Part{Kind: session.PartFile, Extra: session.JSON(`{"filename":"\u001b[2J\u009b2J"}`)})
	m.Author, m.Model, m.Finish = bad, bad, session.FinishError
	s.say(session.Tool, result(bad, bad, true), result("c2", bad, false), result("orphan", bad, true))
	s.say("", session.TextPart(bad)).Kind = session.KindMarker
	compactions := []session.Compaction{{
		ID: bad, Status: session.StatusDone, Summary: bad,
		ThroughID: &s.messages[0].RowID,
	}}
	items := Build(session.Session{ID: shown, Source: session.SourceSessiond}, s.messages, compactions)
	for _, opt := range []TerminalOptions{{}, {Raw: true}, {Expand: true}, {Width: 20}} {
		got := render(t, items, opt)
		for _, r := range got {
			if isUnsafe(r) {
				t.Fatalf("%+v: %U comes through in %q", opt, r, got)
			}
		}
		if strings.Contains(got, "title") || strings.Contains(got, "http://x") {
			t.Errorf("%+v: a sequence lost only its introducer: %q", opt, got)
		}
	}
	if got := Clean(bad); got != "abcdefghi\ufffdjkl" {
		t.Errorf("cleaned: %q", got)
	}
}

func TestCleanKeepsWhatIsText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":               "plain\ttext\n",
		"a\r\nb\rc":                   "a\nb\nc",
		"never ends \x1b]0;but shown": "never ends 0;but shown",
		"broken \x1b]0;\nby a line":   "broken 0;\nby a line",
		"half \x1b[":                  "half ",
		strings.Repeat("\u009d", 1e5): "", // in a time that grows with the length
		"end \x1b":                    "end ",
		"héllo 中文 👩‍👩‍👧":              "héllo 中文 👩‍👩‍👧",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// A tool's output is easily a megabyte without a line end.
func BenchmarkWrapOneLongLine(b *testing.B) {
	line := strings.Repeat("word ", 200_000)
	for b.Loop() {
		Wrap(line, 80)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31mb\x1b]0;x\a\u009b1m")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		for _, r := range got {
			if isUnsafe(r) {
				t.Fatalf("%U comes through in %q", r, got)
			}
		}
		for _, width := range []int{1, 9, 40} {
			for _, line := range Wrap(got, width) {
				if Width(line) > max(width, 8) {
					t.Fatalf("%q is wider than %d", line, width)
				}
			}
			if line := OneLine(s, width); Width(line) > width {
				t.Fatalf("%q is wider than %d", line, width)
			}
		}
	})
}

func TestCallThatWaitsTooLongIsFar(t *testing.T) {
	call := session.Message{
		SessionID: shown, RowID: 1, Kind: session.KindMessage, Role: session.Assistant, Display: true,
		Parts: []session.Part{
			{RowID: 1, Kind: session.PartToolCall, CallID: "a", ToolName: "wait"},
		},
	}
	result := session.Message{
		ID: session.MessageRef{Session: shown, Seq: 900}, SessionID: shown,
		Kind: session.KindMessage, Role: session.Tool, Display: true, Parts: []session.Part{
			{Kind: session.PartToolResult, CallID: "a", Text: "done"},
		},
	}
	for _, c := range []struct {
		name    string
		between int
		text    string
		far     bool
	}{{"few", 200, "", false}, {"many", 600, "", true}, {"large", 10, strings.Repeat("x", 1<<20), true}} {
		msgs := []session.Message{call}
		for i := range c.between {
			msgs = append(msgs, session.Message{
				SessionID: shown, RowID: int64(i + 2), Kind: session.KindMessage, Role: session.User, Display: true,
				Parts: []session.Part{session.TextPart(c.text)},
			})
		}
		items := Build(session.Session{ID: shown, Source: session.SourceSessiond}, append(msgs, result), nil)
		var uses []ToolUse
		for _, item := range items {
			if len(item.Blocks) > 0 && item.Blocks[0].Tool != nil {
				uses = append(uses, *item.Blocks[0].Tool)
			}
		}
		if uses[0].Far != c.far || uses[0].Answered() == c.far || (len(uses) == 2 && uses[1].Orphan) != c.far {
			t.Errorf("%s messages between: %+v", c.name, uses)
		}
	}
}

// Build returns the items of messages.
func Build(sess session.Session, msgs []session.Message, compactions []session.Compaction) (items []Item) {
	stream := NewStream(sess, compactions, func(item *Item) error {
		items = append(items, *item)
		return nil
	})
	for i := range msgs {
		_ = stream.Message(&msgs[i])
	}
	_ = stream.Close()
	return items
}

func each(w Writer, items []Item) error {
	for i := range items {
		if err := w.Item(&items[i]); err != nil {
			return err
		}
	}
	return w.Close()
}

// Markdown writes items as NewMarkdown's does.
func Markdown(w io.Writer, heading Heading, items []Item, zone *time.Location) error {
	return each(NewMarkdown(w, heading, zone), items)
}

// HTML writes items as a Page does.
func HTML(w io.Writer, heading Heading, items []Item, zone *time.Location) error {
	return each(NewPage(w, heading, zone), items)
}

// Terminal writes items as NewTerminal's does.
func Terminal(w io.Writer, items []Item, opt TerminalOptions) error {
	return each(NewTerminal(w, opt), items)
}

package transcript

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// hostile are texts that try to leave their place in a page or a Markdown file.
var hostile = []string{
	`<script>alert(1)</script>`,
	`</div></article></main></body></html><script src=//evil.example></script>`,
	`<img src=x onerror=alert(1)> <svg/onload=alert(1)> <iframe srcdoc="<script>">`,
	`"><a href="javascript:alert(1)">x</a> [x](javascript:alert(1)) ![x](https://evil.example/p.png)`,
	"</details></summary></blockquote><!-- <![CDATA[ <?php",
	"```\n</details>\n# not a heading\n```\n</pre></details>\n~~~~~\nopen",
	" ~~~\n```\n<script>\n ~~~\n</blockquote><h1>out</h1>",
	"`````\nlonger\n```\n</details>\n",
	"\\<b>escaped\\\\<i>not",
	"- ```\n  </details>\n> ~~~\n1. ```\n<div>",
	"\x1b[31mred\x1b[0m\x1b]8;;javascript:alert(1)\x07link\u202eevil\u2066x\u2028y\x00\x85\r<b>",
	"# heading\n### user · #9 · 10:00\n***\n---\n===",
	"&lt;script&gt; {{.}} ${x} `x`",
}

func hostileItems() []Item {
	s := newStory()
	for _, text := range hostile {
		m := s.say(session.User, session.TextPart(text), reasoning(text), session.Part{Kind: session.PartRefusal, Text: text},
			session.Part{Kind: session.PartData, Text: text},
			call(text, text, text), session.Part{
				Kind:  session.PartFile,
				Extra: session.JSONOf(map[string]string{"filename": text, "media_type": text}),
			},
			session.Part{Kind: session.PartImage, Blob: &session.Blob{MediaType: "image/svg+xml", Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)}})
		m.Author, m.Model = text, text
		s.say(session.Assistant, session.TextPart(text))
		s.say(session.Tool, result(text, text, true))
		marker := s.say("", session.TextPart(text))
		marker.Kind = session.KindMarker
		hidden := s.say(session.User, session.TextPart(text))
		hidden.Display, hidden.Origin = false, session.Program
	}
	s.say(session.User, session.Part{
		Kind: session.PartImage,
		Blob: &session.Blob{MediaType: "text/html", Data: []byte("\x89PNG\r\n\x1a\n0123")},
	})
	return Build(session.Session{ID: shown, Source: session.SourceSessiond}, s.messages, []session.Compaction{{
		RowID: 3, Status: session.StatusDone, Strategy: session.StrategySummarize, ThroughID: &s.messages[2].RowID,
		Summary: strings.Join(hostile, "\n"),
	}})
}

// In a page only the elements of its templates stand, and nothing that loads or runs.
func TestNothingStoredLeavesItsPlaceInAPage(t *testing.T) {
	var out bytes.Buffer
	testkit.Check(t, HTML(&out, Heading{Title: strings.Join(hostile, " "), Facts: hostile}, hostileItems(), time.UTC))
	page := out.String()
	for _, r := range page {
		if isUnsafe(r) {
			t.Fatalf("the page holds %U", r)
		}
	}
	allowed := map[string][]string{
		"html": {"lang"}, "head": nil, "meta": {"charset", "name", "content", "http-equiv"}, "title": nil, "style": nil,
		"body": {"class"}, "header": {"class"}, "nav": {"class", "aria-label"},
		"h1": {"dir"}, "h2": nil, "div": {"class", "dir", "id"}, "span": {"class"}, "main": nil, "section": {"class", "id"},
		"footer": nil, "article": {"class", "id"}, "time": {"datetime"},
		"a": {"href", "title", "rel"}, "details": {"class", "open"}, "summary": {"class"}, "p": {"class"},
		"pre": {"class", "tabindex"}, "code": nil, "h3": nil, "h4": nil, "h5": nil, "ul": nil, "ol": {"start"}, "li": nil,
		"blockquote": nil, "hr": nil, "br": nil, "em": nil, "strong": nil, "img": {"src", "alt", "title", "width", "height"},
	}
	tokens := html.NewTokenizer(&out)
	count := map[string]int{}
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		token := tokens.Token()
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			if kind == html.CommentToken {
				t.Errorf("a comment: %q", token.Data)
			}
			continue
		}
		count[token.Data]++
		attributes, ok := allowed[token.Data]
		if !ok {
			t.Errorf("an element of its own: %s", token)
		}
		for _, a := range token.Attr {
			if !slices.Contains(attributes, a.Key) {
				t.Errorf("an attribute of its own: %s", token)
			}
			switch {
			case a.Key == "href" && !strings.HasPrefix(a.Val, "#m") && !isWebAddress([]byte(a.Val)),
				a.Key == "src" && !strings.HasPrefix(a.Val, "data:image/png;base64,"):
				t.Errorf("it leads away: %s", token)
			}
		}
	}
	if n := len(hostile); count["article"] != 4*n+1 || count["img"] != 1 || count["body"] != 1 || count["main"] != 1 {
		t.Errorf("the page has %v", count)
	}
	if !strings.Contains(page, `default-src &#39;none&#39;`) || strings.Contains(page, "unsafe-inline") {
		t.Error("the page's policy is not what it was")
	}
	if !strings.Contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("what was said is not in the page")
	}
}

// Hidden messages and calls that follow one another are one line, and each keeps its place.
func TestHiddenMessagesAreOneLine(t *testing.T) {
	var msgs []session.Message
	add := func(display bool, role session.Role, parts ...session.Part) {
		at := session.MessageRef{Session: shown, Seq: int64(len(msgs) + 1)}
		msgs = append(msgs, session.Message{
			RowID: at.Seq, SessionID: shown, Seq: at.Seq, ID: at, Kind: session.KindMessage,
			Role: role, Display: display, Parts: parts,
		})
		if n := len(msgs); n > 1 {
			msgs[n-1].ParentID = &msgs[n-2].RowID
		}
	}
	call := func(id string) session.Part {
		return session.Part{Kind: session.PartToolCall, ToolName: "bash", CallID: id, Arguments: `{"command": "ls"}`}
	}
	for range 6 {
		add(false, session.User, session.TextPart("a reminder"))
	}
	add(true, session.Assistant, session.TextPart("I look."), call("a"))
	add(false, session.User, session.TextPart("a reminder"))
	add(true, session.Assistant, call("b"))
	add(true, session.Assistant, session.TextPart("Done."), call("c"))
	add(false, session.User, session.TextPart("a reminder"))
	var out bytes.Buffer
	testkit.Check(t, HTML(&out, Heading{}, Build(session.Session{ID: shown, Source: session.SourceSessiond}, msgs, nil),
		time.UTC))
	var got []string
	for _, after := range strings.Split(out.String(), "<details class=\"calls\"><summary>")[1:] {
		got = append(got, after[:strings.IndexByte(after, '<')])
	}
	if want := []string{"6 hidden messages", "bash 2 · 1 hidden message", "1 hidden message"}; !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
	for i := range msgs {
		if anchor := fmt.Sprintf("id=%q", fmt.Sprint("m", i+1)); strings.Count(out.String(), anchor) != 1 {
			t.Errorf("%s is there %d times", anchor, strings.Count(out.String(), anchor))
		}
	}
}

// Rows of the program are one line with the calls around them, which opens, and each keeps its place.
func TestRowsOfTheProgramAreOneLine(t *testing.T) {
	var msgs []session.Message
	add := func(kind session.Kind, origin session.Origin, display bool, parts ...session.Part) {
		at := session.MessageRef{Session: shown, Seq: int64(len(msgs) + 1)}
		m := session.Message{
			RowID: at.Seq, SessionID: shown, Seq: at.Seq, ID: at, Kind: kind, Role: session.Assistant,
			Origin: origin, Display: display, Parts: parts,
		}
		m.Talk = session.TalkOf(&m)
		if n := len(msgs); n > 0 {
			m.ParentID = &msgs[n-1].RowID
		}
		msgs = append(msgs, m)
	}
	add(session.KindMessage, session.Model, true, session.TextPart("I look."))
	add(session.KindUnknown, session.Program, true)
	add(session.KindCustomMessage, session.Program, false, session.TextPart("a list of skills"))
	add(session.KindMarker, session.Program, true)
	add(session.KindMarker, session.Program, true, session.TextPart("pull request 7"))
	add(session.KindCustom, session.Program, false)
	add(session.KindMessage, session.Model, true, session.TextPart("Done."))
	var out bytes.Buffer
	testkit.Check(t, HTML(&out, Heading{}, Build(session.Session{ID: shown, Source: session.SourceSessiond}, msgs, nil),
		time.UTC))
	page := out.String()
	for _, want := range []string{
		"<summary>&#43;3 rows of the program</summary>",
		"<summary>&#43;1 row of the program</summary>", "· pull request 7", "a list of skills",
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("%q is there %d times", want, strings.Count(page, want))
		}
	}
	for _, seq := range []int{1, 2, 3, 4, 6, 7} {
		if anchor := fmt.Sprintf("id=%q", fmt.Sprint("m", seq)); strings.Count(page, anchor) != 1 {
			t.Errorf("%s is there %d times", anchor, strings.Count(page, anchor))
		}
	}
}

// In Markdown what was stored stands quoted or fenced, its HTML as text.
func TestNothingStoredLeavesItsPlaceInMarkdown(t *testing.T) {
	var out bytes.Buffer
	testkit.Check(t, Markdown(&out, Heading{Title: strings.Join(hostile, " "), Facts: slices.Clone(hostile)},
		hostileItems(), time.UTC))
	fence, quoted, open := "", "", 0
	for i, line := range strings.Split(out.String(), "\n") {
		text, isQuote := strings.CutPrefix(line, ">")
		switch {
		case fence != "":
			if line == fence {
				fence = ""
			}
			continue
		case strings.HasPrefix(line, "```"):
			fence = line[:len(line)-len(strings.TrimLeft(line, "`"))]
			continue
		case isQuote:
			inner := strings.TrimPrefix(text, " ")
			if quoted != "" {
				if inner == quoted {
					quoted = ""
				}
				continue
			}
			if strings.HasPrefix(inner, "```") {
				quoted = inner[:len(inner)-len(strings.TrimLeft(inner, "`"))]
				continue
			}
			if at := actingHTML(inner); at != "" {
				t.Errorf("line %d has HTML that acts, %q: %q", i+1, at, line)
			}
			continue
		}
		if quoted != "" {
			t.Fatalf("line %d: a fence in a quotation was not closed", i+1)
		}
		switch {
		case strings.HasPrefix(line, "<details><summary>") && strings.HasSuffix(line, "</summary>"):
			open++
			if inner := strings.TrimSuffix(strings.TrimPrefix(line, "<details><summary>"),
				"</summary>"); strings.ContainsAny(inner, "<>") {
				t.Errorf("line %d: HTML in a summary: %q", i+1, line)
			}
		case line == "</details>":
			open--
		case actingHTML(line) != "":
			t.Errorf("line %d has HTML that acts: %q", i+1, line)
		case line == "", line == "---", strings.HasPrefix(line, "### "),
			strings.HasPrefix(line, "*") && strings.HasSuffix(line, "*"), i < 3:
		default:
			t.Errorf("line %d stands by itself: %q", i+1, line)
		}
	}
	if fence != "" || open != 0 {
		t.Errorf("at the end a fence %q and %d folds are open", fence, open)
	}
}

// actingHTML finds a tag, a comment or an image that no backslash takes for text.
func actingHTML(line string) string {
	for i := range len(line) {
		rest := line[i:]
		acts := len(rest) > 1 && rest[0] == '<' && strings.ContainsRune("/!?abcdefghijklmnopqrstuvwxyz",
			rune(rest[1])|0x20) || strings.HasPrefix(rest, "![")
		if !acts || len(rest) > 1 && rest[0] == '<' && rest[1] == ' ' {
			continue
		}
		n := 0
		for j := i - 1; j >= 0 && line[j] == '\\'; j-- {
			n++
		}
		if n%2 == 0 {
			return rest
		}
	}
	return ""
}

func TestAPageAndAMarkdownFileOfEverything(t *testing.T) {
	msgs, compactions := everything()
	items := Build(session.Session{ID: shown, Source: session.SourceSessiond}, msgs, compactions)
	heading := HeadingOf(&session.Session{
		ID: shown, Title: "Why the append waits", Source: "pi", Model: "gpt-5",
		SaidCount: int64(len(msgs)) + 12,
	}, onPath(msgs), time.UTC)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"page.html": func(b *bytes.Buffer) error { return HTML(b, heading, items, time.UTC) },
		"page.md":   func(b *bytes.Buffer) error { return Markdown(b, heading, items, time.UTC) },
	} {
		var out bytes.Buffer
		testkit.Check(t, write(&out))
		golden(t, name, out.String())
	}
}

// onPath counts the messages of the session that is shown.
func onPath(msgs []session.Message) (n int64) {
	for i := range msgs {
		if msgs[i].SessionID == shown {
			n++
		}
	}
	return n
}

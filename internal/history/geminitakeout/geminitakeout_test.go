package geminitakeout_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/geminitakeout"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return geminitakeout.New(now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 6, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "gemini-takeout", "My Activity", "Gemini Apps", "MyActivity.json")
		historytest.CopySample(t, folder, "gemini-takeout", "Gemini in Workspace", "Conversation History")
	}}
	claims.Hold(t)
}

const (
	mutex  = "0123456789abcdef"
	branch = "fedcba9876543210"
	image  = "1111222233334444"
)

func TestSamplesAddUp(t *testing.T) {
	h, done := historytest.ImportSample(t, source(historytest.Later), "gemini-takeout", "My Activity")
	h.Gave(done, 5, "")
	testkit.Equal(t, historytest.Counts{Users: 2, Replies: 2}, h.CountsOf(mutex))
	testkit.Equal(t, historytest.Counts{Users: 2, Replies: 2}, h.CountsOf(branch))
	testkit.Equal(t, historytest.Counts{Users: 1}, h.CountsOf(image))
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1}, h.CountsOf("t:2023-07-01T10:00:00Z"))
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1}, h.CountsOf("t:2026-07-25T10:10:00Z"))
	if got := h.Talk(h.Session(mutex)); got != "user: What is a mutex in Go?\nassistant: ### Mutex\n\nA **lock**:\n\n"+
		"```\nvar mu sync.Mutex\n```\n\n- Lock\n- Unlock\nuser: thanks, and in Rust?\nassistant: Use `Mutex<T>`." {
		t.Errorf("%s", got)
	}
	if s := h.Session(mutex); s.Title != "What is a mutex in Go?" || s.Model != "" {
		t.Errorf("%+v", s)
	}
	for reason, n := range map[string]int{
		"activity of another product": 2, "activity that is no prompt": 5,
	} {
		if done.Records.Skipped[reason] != n {
			t.Errorf("%s: %+v", reason, done.Records)
		}
	}
	all := historytest.Texts(h.Entries(h.Session(image).ID))
	if all != "Describe this picture" {
		t.Errorf("%q", all)
	}
	var blobs, names int
	for _, p := range h.Path(h.Session(image))[0].Parts {
		if p.Blob != nil {
			blobs++
		}
		if strings.Contains(p.Text, "not in the export: notes-4f3a.ts") {
			names++
		}
	}
	if blobs != 1 || names != 1 {
		t.Errorf("%d files, %d names of files that are missing", blobs, names)
	}
}

// The page says what the JSON says: it adds nothing after that, and of one folder each comes once.
func TestPageAddsNothing(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	folder := historytest.Sample(t, "gemini-takeout", "My Activity", "Gemini Apps")
	h.Import(filepath.Join(folder, "MyActivity.json"))
	said := h.Told()
	h.Import(filepath.Join(folder, "MyActivity.html"))
	testkit.Equal(t, said, h.Told())
	h.Examine()

	h = historytest.New(t, source(historytest.Later))
	h.Import(h.Copy(filepath.Join(folder, "MyActivity.html"))) // without the JSON beside it
	testkit.Equal(t, historytest.Counts{Users: 2, Replies: 2}, h.CountsOf(mutex))
	at := h.Path(h.Session(mutex))[0].CreatedAt
	if got := at.Format(time.RFC3339); got != "2026-07-26T07:10:57Z" {
		t.Errorf("%s", got)
	}
	h.Import(filepath.Join(folder, "MyActivity.json")) // which is exact
	testkit.Equal(t, historytest.Counts{Users: 2, Replies: 2}, h.CountsOf(mutex))
	h.Examine()
}

func TestZip(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	path := filepath.Join(t.TempDir(), "takeout-1.zip")
	file := testkit.Must(os.Create(path))(t)
	w := zip.NewWriter(file)
	testkit.Check(t, w.AddFS(os.DirFS(filepath.Dir(historytest.Sample(t, "gemini-takeout", "My Activity")))))
	testkit.Check(t, w.Close())
	testkit.Check(t, file.Close())
	done := h.Import(path)
	h.Gave(done, 8, "")
	testkit.Equal(t, historytest.Counts{Users: 2, Replies: 2}, h.CountsOf(branch))
}

func TestOtherShapesOfPages(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	h.Gave(h.Import(historytest.Sample(t, "gemini-takeout", "variants", "MyActivity-pt.html")), 1, "")
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1}, h.CountsOf("t:2026-07-26T12:10:57Z"))
	if got := h.Talk(h.Session("t:2026-07-26T12:10:57Z")); got != "user: O que é um mutex?\nassistant: Uma trava." {
		t.Errorf("%s", got)
	}
	h.Import(historytest.Sample(t, "gemini-takeout", "variants", "MyActivity-header-shape.html"))
	testkit.Equal(t, historytest.Counts{Users: 1}, h.CountsOf("t:2025-01-02T19:04:05Z"))
}

func TestWorkspace(t *testing.T) {
	h, done := historytest.ImportSample(t, source(historytest.Later), "gemini-takeout", "Gemini in Workspace")
	h.Gave(done, 1, "")
	const id = "w:2026-05-02T08:00:00Z"
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1, Aside: 2}, h.CountsOf(id))
	if s := h.Session(id); s.Title != "Mutex" {
		t.Errorf("%+v", s)
	}
	if got := h.Talk(h.Session(id)); got != "user: What is a mutex in Go?\nassistant: sync.Mutex." {
		t.Errorf("%s", got)
	}
}

func record(title, at, more string) string {
	return `{"header":"Gemini Apps","title":"` + title + `","time":"` + at + `"` + more + `}`
}

const link = `,"details":[{"url":"https://gemini.google.com/app/0123456789abcdef"}]`

// A later export lacks what was deleted and has more: what was imported stays in its place, and comes once.
func TestExportsAreAUnion(t *testing.T) {
	h, path := historytest.New(t, source(historytest.Later)), filepath.Join(t.TempDir(), "MyActivity.json")
	one := record("Prompted one", "2026-01-01T10:00:00.5Z", link)
	two := record("Prompted two", "2026-01-01T10:01:00Z", link)
	three := record("Prompted three", "2026-01-01T10:02:00Z", link)
	h.Rewrite(path, "["+two+","+one+"]")
	h.Import(path)
	h.Rewrite(path, "["+three+","+two+"]")
	h.Import(path)
	if got := h.Talk(h.Session(mutex)); got != "user: one\nuser: two\nuser: three" {
		t.Errorf("%s", got)
	}
	if n := len(h.Entries(h.Session(mutex).ID)); n != 3 {
		t.Errorf("%d messages", n)
	}
}

func TestWrongExports(t *testing.T) {
	for what, test := range map[string]struct {
		name, text, says string
		sessions         int
	}{
		"ChatGPT":        {"MyActivity.json", `[{"id":"1","mapping":{}}]`, "no activity of Gemini", 0},
		"text":           {"MyActivity.json", "hello", "no activity of Gemini", 0},
		"another":        {"MyActivity.json", `[{"header":"YouTube","title":"Watched","time":"2026-01-01T10:00:00Z"}]`, "of other products alone", 0},
		"gems":           {"gemini_gems_data.html", `<html></html>`, `choosing "Gemini" in Takeout`, 0},
		"cut off":        {"MyActivity.json", "[" + record("Prompted a", "2026-01-01T10:00:00Z", "") + `,{"hea`, "ends in the middle", 1},
		"no time":        {"MyActivity.json", "[" + record("Prompted a", "now", "") + `]`, "without a time", 0},
		"a cut page":     {"MyActivity.html", `<div class="outer-cell"><div class="header-cell"><p>Gemini Apps</p></div>`, "no activity", 0},
		"an empty card":  {"MyActivity.html", `<div class="outer-cell"><div class="header-cell"><p>Gemini Apps</p></div></div>`, "", 0},
		"odd values":     {"MyActivity.json", `[3,{"header":"Gemini Apps","title":7,"time":7,"details":7,"safeHtmlItem":[7]},` + record("Prompted a", "2026-01-01T10:00:00Z", `,"safeHtmlItem":{"htmlValue":"<b>x"},"attachedFiles":[7,"../x"]`) + `]`, "", 1},
		"odd workspace":  {"conversation_1.txt", `{"conversation_turns":[7,{},{"user_turn":{"prompt":"a"}},{"system_turn":{"text":7,"turn_index":"x"}}]}`, "", 1},
		"an action only": {"MyActivity.json", "[" + record("Used an Assistant feature", "2026-01-01T10:00:00Z", "") + `]`, "", 0},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			path := h.Write(test.name)
			h.Append(path, test.text)
			h.Gave(h.Import(path), test.sessions, test.says)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("[" + record("Prompted a", "2026-01-01T10:00:00Z", link) + "]"))
	f.Add([]byte(`<div class="outer-cell"><div class="header-cell"><p>Gemini Apps</p></div><div class="content-cell">Prompted&nbsp;a<br>` +
		`Jul 26, 2026, 9:30:00 AM CEST<br><ul><li>b<pre>c</pre></ul></div></div>`))
	historytest.FuzzFile(f, "MyActivity.json", source(historytest.Later))
}

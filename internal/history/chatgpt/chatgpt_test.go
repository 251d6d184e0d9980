package chatgpt_test

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/chatgpt"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return chatgpt.New(now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 3, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "chatgpt-export", "v1-single")
	}}
	claims.Hold(t)
}

const (
	rename = "10000000-0000-4000-8000-000000000001"
	primes = "10000000-0000-4000-8000-000000000002"
)

func imports(t *testing.T, names ...string) (*historytest.House, history.Accounting) {
	t.Helper()
	h := historytest.New(t, source(historytest.Later))
	var done history.Accounting
	for _, name := range names {
		done = h.Import(historytest.Sample(t, "chatgpt-export", name))
		if len(done.Errors) > 0 {
			t.Errorf("%s: %+v", name, done)
		}
	}
	return h, done
}

// The zip, the folder and a nested zip with junk hold the same.
func TestSamplesAddUp(t *testing.T) {
	for _, name := range []string{"v1-single", "v1-single.zip"} {
		h, done := imports(t, name)
		if done.Sessions.New != 3 || done.Records.Skipped[history.SkipSilent] != 1 {
			t.Errorf("%s: %+v", name, done)
		}
		testkit.Equal(t, historytest.Counts{Users: 2, Replies: 2, Aside: 3}, h.CountsOf(rename))
		testkit.Equal(t, historytest.Counts{Users: 2, Replies: 6, Calls: 3, Results: 5, Failed: 1}, h.CountsOf(primes))
		if n := len(h.Entries(h.Session(rename).ID)); n != 9 {
			t.Errorf("%d messages", n)
		}
		want := "user: How do I rename a git branch, also on the remote?\nassistant: git branch -m old new\n" +
			"git push origin new\ngit push origin :old\nuser: Thanks.\nassistant: You are welcome."
		if got := h.Talk(h.Session(rename)); got != want {
			t.Errorf("%s", got)
		}
		s := h.Session(primes)
		if s.Title != "Sum of primes" || s.ArchivedAt == nil || !strings.Contains(string(s.Metadata), "g-p-0123") {
			t.Errorf("%+v", s)
		}
		pictures := 0
		for _, m := range h.Entries(s.ID) {
			for _, p := range m.Parts {
				if p.Kind == session.PartImage {
					pictures++
				}
			}
		}
		if pictures != 2 {
			t.Errorf("%s: %d pictures", name, pictures)
		}
	}
}

// A later export has a newer title, and lacks a message: that stays. An older one changes nothing.
func TestExportsAreAUnion(t *testing.T) {
	for _, names := range [][]string{{"v1-single", "v2-sharded"}, {"v2-sharded-nested.zip", "v1-single.zip"}} {
		h, _ := imports(t, names...)
		s := h.Session(rename)
		if n := len(h.Entries(s.ID)); n != 9 || s.Title != "Rename a branch (newer)" {
			t.Errorf("%v: %d messages, %q", names, n, s.Title)
		}
		if got := h.Talk(s); !strings.HasSuffix(got, "assistant: You are welcome.") {
			t.Errorf("%v: %s", names, got)
		}
		h.Examine()
	}
}

const node = `"r":{"id":"r","message":null,"parent":null},"u":{"id":"u","parent":"r","message":{"id":"u","author":{"role":"user"},"create_time":1767225610.25,"content":{"content_type":"text","parts":["one"]}}}`

func TestWrongExports(t *testing.T) {
	for what, test := range map[string]struct {
		text, says string
		sessions   int
	}{
		"Claude.ai":        {`[{"uuid":"1","chat_messages":[]}]`, "import claude-ai", 0},
		"another list":     {`[{"hello":1}]`, "no export of ChatGPT", 0},
		"text":             {"hello", "no export of ChatGPT", 0},
		"a number":         {"3", "no export of ChatGPT", 0},
		"a cut shard":      {`[{"id":"1","mapping":{` + node + `}},{"id":"2","mapp`, "ends in the middle", 1},
		"a mark before it": {"\ufeff" + `[{"id":"1","mapping":{` + node + `}}]`, "", 1},
		"a circle": {`[{"id":"1","mapping":{"a":{"parent":"b","message":{"author":{"role":"user"},"content":{"parts":["x"]}}},` +
			`"b":{"parent":"a","message":{"author":{"role":"user"},"content":{"parts":["y"]}}}}}]`, "", 1},
		"an orphan": {`[{"id":"1","current_node":"zz","mapping":{"u":{"parent":"gone","message":{"author":{"role":"user"},` +
			`"content":{"content_type":"text","parts":["x"]}}}}}]`, "", 1},
		"odd values": {`[7,{"id":"1","title":7,"create_time":"x","mapping":{` + node + `,"a":{"parent":"u","message":{"author":[],` +
			`"content":7}},"b":{"parent":"u","message":{"author":{"role":"assistant"},"recipient":"web","content":{"content_type":` +
			`"dream","of":"sheep"}}}}}]`, "", 1},
		"one conversation": {`{"id":"1","mapping":{` + node + `}}`, "", 1},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			path := h.Write("conversations.json")
			h.Append(path, test.text)
			done := h.Import(path)
			h.Gave(done, test.sessions, test.says)
		})
	}
}

// The head is the program's wherever an import is killed: also where the last message that comes in is on another
// branch, of an export that is older than what is stored, or of one that only adds such a branch.
func TestKilledImportKeepsTheHead(t *testing.T) {
	export := func(updated int, nodes ...string) string {
		return fmt.Sprintf(`[{"id":"1","update_time":%d,"current_node":"shown","mapping":{%s}}]`, updated,
			strings.Join(append([]string{node}, nodes...), ","))
	}
	reply := func(id string) string {
		return fmt.Sprintf(`%q:{"id":%[1]q,"parent":"u","message":{"id":%[1]q,"author":{"role":"assistant"},`+
			`"create_time":1767225620,"content":{"content_type":"text","parts":["%[1]s"]}}}`, id)
	}
	many := []string{reply("shown")}
	for i := range 2*history.MaxBatch + 1 {
		many = append(many, reply(fmt.Sprint("aside", i)))
	}
	for what, exports := range map[string][2]string{
		"an older export": {
			export(9, reply("shown")), strings.ReplaceAll(export(3, reply("deleted")), "shown", "deleted"),
		},
		"an older export, big": {export(9, reply("shown")), export(3, many...)},
		"a branch more":        {export(3, reply("shown")), export(9, reply("shown"), reply("aside"))},
		"many branches more":   {export(3, reply("shown")), export(9, many...)},
		"many at once":         {export(3), export(3, many[:history.MaxBatch]...)},
	} {
		t.Run(what, func(t *testing.T) {
			for killed := 0; ; killed++ {
				h := historytest.New(t, source(historytest.Later))
				first, second := h.Write("a/conversations.json", exports[0]), h.Write("b/conversations.json", exports[1])
				h.Import(first)
				more := h.ImportKilled(killed, second)
				h.Import(second)
				if keys := h.Keys(h.Session("1")); len(keys) == 0 || keys[len(keys)-1] != "shown" {
					t.Errorf("killed after %d batches: the path to the head is %v", killed, keys)
				}
				if h.Examine(); !more {
					return
				}
			}
		})
	}
}

// Entries that lead out of the archive are refused, and other zips in a folder are left alone.
func TestWrongZips(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	folder := t.TempDir()
	write := func(name, entry, text string) string {
		path := filepath.Join(folder, name)
		file := testkit.Must(os.Create(path))(t)
		z := zip.NewWriter(file)
		w := testkit.Must(z.Create(entry))(t)
		testkit.Must(w.Write([]byte(text)))(t)
		testkit.Check(t, z.Close())
		testkit.Check(t, file.Close())
		return path
	}
	write("photos.zip", "a.png", "x")
	out := write("out.zip", "../conversations.json", `[{"id":"1","mapping":{`+node+`}}]`)
	done := h.Import(folder)
	if len(done.Errors) == 0 || !strings.Contains(done.Errors[0].Error, "leads out") || len(h.Sessions()) != 0 {
		t.Errorf("%+v", done)
	}
	bomb := write("bomb.zip", "conversations.json", strings.Repeat(" ", 80<<20)+"[]")
	if done = h.Import(bomb); len(done.Errors) == 0 || !strings.Contains(done.Errors[0].Error, "200 times") {
		t.Errorf("%+v", done)
	}
	torn := filepath.Join(folder, "torn.zip")
	testkit.Check(t, os.WriteFile(torn, []byte(historytest.Read(t, out)[:40]), 0o600))
	if done = h.Import(torn); len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error, "damaged") {
		t.Errorf("%+v", done)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"id":"1","mapping":{` + node + `}}]`))
	historytest.FuzzRead(f, source(historytest.Later))
}

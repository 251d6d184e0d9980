package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/text"
)

// texts are found, and not found, by the queries of TestQueriesFindWordsAsWritten. The
// number of a text is the seq of its message.
var texts = []string{
	1:  "CompanyA: $99, CompanyB: $129, CompanyC: $89",
	2:  "the index has 129 pages",
	3:  "see internal/store.go and created_at in messages_flat",
	4:  "released v1.2.3 yesterday, v1.2.4 today",
	5:  "Die Häuser in Köln sind groß",
	6:  "我们的数据库支持中文搜索",
	7:  "サーバーを再起動してください",
	8:  "서버를 다시 시작했습니다",
	9:  "CompanyB's price went up; the prices of others did not",
	10: "he was running several stores",
	11: "generation of thumbnails",
	12: "\x00nul\x00 \uE000marker \"quoted\" text",
	13: "café naïve résumé",
	14: "worth £1,299.50 or €20",
	15: "hash 3f2a9c" + strings.Repeat("0123456789abcdef", 40),
	16: "say AND or NOT near(",
	17: "文",
}

func TestQueriesFindWordsAsWritten(t *testing.T) {
	store := newFakeStore()
	for _, text := range texts[1:] {
		store.add(first, session.User, text)
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	cases := []struct {
		query string
		want  string // seqs, newest first
	}{
		{"$129", "1"},
		{"129", "2 1"},
		{"$12", ""},
		{"CompanyB", "9 1"},
		{"CompanyB's", "9 1"},
		{"companyb’s price", "9"},
		{`"price went up"`, "9"},
		{`"went price"`, "9"},
		{"prices", "9"},
		{"price", "9"},
		{"pricing", "9"},
		{"run store", "10"},
		{"generat*", "11"},
		{"internal/store.go", "3"},
		{"store.go", "3"},
		{"created_at", "3"},
		{"created", "3"},
		{"v1.2.3", "4"},
		{"v1.2.5", ""},
		{"Häuser", "5"},
		{"hauser", "5"},
		{"KÖLN", "5"},
		{"groß", "5"},
		{"gross", "5"},
		{`"groß"`, "5"},
		{"中文", "6"},
		{"数据库", "6"},
		{"据中", ""},
		{"中", "6"},
		{"文", "17 6"},
		{"索", "6"},
		{"サーバー", "7"},
		{"再起動", "7"},
		{"서버", "8"},
		{"nul", "12"},
		{"marker", "12"},
		{"resume", "13"},
		{"naive", "13"},
		{"£1,299.50", "14"},
		{"€20", "14"},
		{"hash 3f2a9c" + strings.Repeat("0123456789abcdef", 40), "15"},
		{"AND near( NOT", "16"},
		{"price -CompanyB", ""},
		{"129 -pages", "1"},
		{`129 -"has 129"`, "1"},
		{"a\x00b", ""},
		{`"`, "error"},
		{"-price", "9"},
		{`"the pricing"`, "9"},
		{"!!!", "error"},
		{"", "error"},
	}
	for _, c := range cases {
		t.Run(c.query, func(t *testing.T) {
			r, err := ix.Search(t.Context(), Query{Text: c.query, Order: OrderNewest})
			got := strings.Join(names(r), " ")
			if err != nil {
				got = "error"
				if session.CodeOf(err) != session.Invalid {
					t.Errorf("the error %v has code %s, not invalid", err, session.CodeOf(err))
				}
			}
			if got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// A text has the stems of its language, and only it: server is serv in German, as serve is in English.
func TestWordsHaveTheStemsOfTheirLanguage(t *testing.T) {
	store := newFakeStore()
	store.change(third, func(s *session.Session) { s.Title, s.TitleSource = "Über die Lieferantenverträge", "given" })
	for _, text := range []string{
		"Wir haben den Lieferantenvertrag mit der Schnittstelle zum Server nicht geprüft", // 1
		"Il faut déployer le serveur dans la nuit et vérifier les requêtes",               // 2
		"They serve the interface of the deployment",                                      // 3
		"Die Deployments wurden von mir in src/Schnittstelle.go konfiguriert und sind da", // 4
		"Wir nehmen ein Museli", // 5
		"La\u0300 le projet a e\u0301te\u0301 te\u0301le\u0301charge\u0301 par nous", // 6
	} {
		store.add(first, session.User, text)
	}
	store.add(third, session.User, "ok")
	ix := openIndex(t, store)
	catchUp(t, ix)
	for query, want := range map[string]string{
		"Lieferantenverträge": "1", "Schnittstellen": "4 1", "server": "1", "deployment": "4 3", "deploy": "4 3",
		"déployé": "4 3 2", "requête": "2", "path:src/Schnittstelle.go": "4", `"Die Deployments"`: "4",
		`"der Schnittstelle"`: "1", "konfigur*": "4",
		"téléchargée": "6", "te\u0301le\u0301charge\u0301": "6", "projet -telecharge": "",
	} {
		r := search(t, ix, Query{Text: query, Order: OrderNewest})
		if got := strings.Join(names(r), " "); got != want {
			t.Errorf("%s: found %q, want %q", query, got, want)
		}
	}
	r := search(t, ix, Query{Text: "Lieferantenvertrag", Group: GroupSession})
	if len(r.Sessions) != 2 || len(r.Missing) > 0 {
		t.Errorf("by the title: %+v", r)
	}
	if r := search(t, ix, Query{Text: "über", Group: GroupSession}); len(r.Sessions) != 1 ||
		r.Sessions[0].SessionID != third {
		t.Errorf("by a title that begins with an umlaut: %+v", r)
	}
	if h := search(t, ix, Query{Text: "Lieferantenverträge"}).Hits[0]; len(h.Marks) != 1 ||
		h.Snippet[h.Marks[0][0]:h.Marks[0][1]] != "Lieferantenvertrag" {
		t.Errorf("marked: %+v", h)
	}
}

// A sentence without spaces is clues, a word is whole where it stands somewhere; what nothing has is named once.
func TestSentencesWithoutSpacesAreClues(t *testing.T) {
	store := newFakeStore()
	for _, text := range []string{
		"数据库迁移的计划在文档里",     // 1
		"数据都在这里",           // 2
		"サーバーの再起動は夜だけにします", // 3
		"鍵を金庫に移しました",       // 4
		"ฐานข้อมูลย้ายไปเครื่องใหม่แล้ว", // 5
		"데이터베이스를 옮겼습니다",                  // 6
	} {
		store.add(first, session.User, text)
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	for query, want := range map[string]string{
		"数据库": "1", "数据": "1 2", "数据在哪里？": "1 2", "迁移计划是什么": "1", "サーバーはいつ再起動しますか": "3", "鍵はどこですか": "4",
		"ย้ายฐานข้อมูลเมื่อไร": "5", "ฐานข้อมูล": "5", "데이터베이스가 어디 있습니까": "6", "再起动": "3",
	} {
		r := search(t, ix, Query{Text: query, Limit: 2, Role: session.User})
		got := names(r)
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: found %v, want %s", query, got, want)
		}
	}
	store.add(second, session.User, "迁移计划是什么")
	if got := names(search(t, ix, Query{Text: "迁移计划是什么"})); len(got) != 2 {
		t.Errorf("the same question hides what answers it: %v", got)
	}
	if r := search(t, ix, Query{Text: "我的猫叫什么名字？ 数据 \"防火墙规则\""}); len(r.Hits) != 2 ||
		!slices.Equal(r.Missing, []Missing{{Word: `"防火墙规则"`}, {Word: "我的猫叫什么名字"}}) {
		t.Errorf("%+v", r)
	}
}

func TestTailFollowsTheSameRules(t *testing.T) {
	store := newFakeStore()
	ix := openIndex(t, store)
	store.add(first, session.User, "alpha one")
	catchUp(t, ix)
	store.add(first, session.User, "alpha 中文 $129")
	store.add(first, session.Assistant, "beta")
	for query, want := range map[string]string{"alpha": "2 1", "中": "2", "$129": "2", "betas": "3"} {
		r := search(t, ix, Query{Text: query, Order: OrderNewest})
		if got := strings.Join(names(r), " "); got != want || r.Pending != 2 || r.Partial {
			t.Errorf("%s: found %q with %d pending, want %q with 2", query, got, r.Pending, want)
		}
	}
	if n := catchUp(t, ix); n != 2 {
		t.Errorf("caught up %d messages, want 2", n)
	}
	if r := search(t, ix, Query{Text: "alpha"}); r.Pending != 0 || len(r.Hits) != 2 {
		t.Errorf("after catching up: %d hits, %d pending; want 2, 0", len(r.Hits), r.Pending)
	}
	store.add(first, session.User, "alpha again")
	if r := search(t, ix, Query{Text: "alpha", Order: OrderNewest}); strings.Join(names(r), " ") != "4 2 1" ||
		r.Pending != 1 {
		t.Errorf("the tail after a catch-up: %v, %d pending", names(r), r.Pending)
	}
}

func TestFiltersNarrowSearches(t *testing.T) {
	store := newFakeStore()
	store.change(first, func(s *session.Session) {
		s.Source, s.Key, s.Project = session.SourcePi, "agent:main:main", "/home/me/a-b"
	})
	store.change(second, func(s *session.Session) { s.Source = session.SourceClaudeCode })
	store.add(first, session.User, "needle 1")       // 10:00:00
	store.add(first, session.Assistant, "needle 2")  // 10:00:01
	store.add(second, session.User, "needle 1b")     // 10:00:02
	store.add(second, session.Assistant, "other 2b") // 10:00:03
	ix := openIndex(t, store)
	catchUp(t, ix)
	at := func(seconds int) *session.Time {
		moment := session.At(began.Add(time.Duration(seconds) * time.Second))
		return &moment
	}
	cases := []struct {
		name  string
		query Query
		want  int
	}{
		{"none", Query{Text: "needle"}, 3},
		{"session", Query{Text: "needle", Session: first}, 2},
		{"session in the text", Query{Text: "needle session:20260211_002"}, 1},
		{"role", Query{Text: "needle", Role: session.User}, 2},
		{"role in the text", Query{Text: "role:assistant needle"}, 1},
		{"origin in the text", Query{Text: "needle origin:person"}, 0},
		{"tool", Query{Text: "needle tool:Read"}, 0},
		{"path", Query{Text: "needle path:internal/a.go"}, 0},
		{"a URL is words", Query{Text: "source://needle"}, 0},
		{"source", Query{Text: "needle", Source: session.SourceClaudeCode}, 1},
		{"key", Query{Text: "needle", Key: "agent:main:main"}, 2},
		{"not the session", Query{Text: "needle -session:20260211_002"}, 2},
		{"not the role", Query{Text: "needle -role:assistant"}, 2},
		{"neither role", Query{Text: "needle -role:assistant -role:user"}, 0},
		{"not the words of a path", Query{Text: "needle -path:1b"}, 2},
		{"a value in quotes", Query{Text: `needle project:"/home/me/a-b"`}, 2},
		{"a time in quotes", Query{Text: `needle after:"2026-02-11T10:00:01"`}, 2},
		{"a folder with its slash", Query{Text: "needle", Project: "/home/me/a-b/"}, 2},
		{"not more than the exclusions", Query{Text: "needle -session:20260211_002 " + manyWords(100)}, 2},
		{"an exclusion behind many words", Query{Text: "needle " + manyWords(100) + " -1"}, 2},
		{"another key", Query{Text: "needle", Key: "agent:main"}, 0},
		{"project", Query{Text: "needle", Project: "/home/me/a-b"}, 2},
		{"project's last name", Query{Text: "needle project:a-b"}, 2},
		{"after", Query{Text: "needle after:2026-02-11T10:00:01"}, 2},
		{"before", Query{Text: "needle before:2026-02-11"}, 0},
		{"age", Query{Text: "needle after:1h", Now: began.Add(time.Hour + 2*time.Second)}, 1},
		{"since is inclusive", Query{Text: "needle", Since: at(1)}, 2},
		{"until is exclusive", Query{Text: "needle", Until: at(1)}, 1},
		{"all of them", Query{Text: "needle", Session: first, Role: session.Assistant, Since: at(1), Until: at(2)}, 1},
		{"the parameter wins", Query{Text: "needle session:20260211_002", Session: first}, 2},
	}
	for _, c := range cases {
		for _, order := range []Order{OrderRank, OrderNewest} {
			c.query.Order = order
			if r := search(t, ix, c.query); len(r.Hits) != c.want {
				t.Errorf("%s, %s: %d hits, want %d", c.name, order, len(r.Hits), c.want)
			}
		}
	}
}

func TestAllWordsComeFirst(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.User, "backup "+strings.Repeat("backup ", 20))
	store.add(first, session.User, "we should restore from the backup after lunch, said somebody, and then went home")
	store.add(first, session.User, "restore restore")
	for range 20 {
		store.add(first, session.User, "filler about nothing")
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	r := search(t, ix, Query{Text: "restore backup"})
	if got := names(r); len(got) != 3 || got[0] != "2" {
		t.Errorf("found %v; want all three, with 2 first", got)
	}
	if r := search(t, ix, Query{Text: "restore backup", Order: OrderNewest}); strings.Join(names(r), " ") != "2" {
		t.Errorf("newest: found %v, want only 2, which holds both", names(r))
	}
	if r := search(t, ix, Query{Text: "backup nowhere", Order: OrderNewest}); len(r.Hits) != 2 {
		t.Errorf("newest, when none holds all: %d hits, want the 2 that hold some", len(r.Hits))
	}
}

func TestTrashedSessionsAreNotFound(t *testing.T) {
	store := newFakeStore()
	for range 60 {
		store.add(second, session.User, "needle in the trash")
	}
	store.add(first, session.User, "needle")
	store.change(second, func(s *session.Session) { s.DeletedAt = &session.Time{Time: began} })
	store.messages[60].CreatedAt = session.At(began.Add(-time.Hour)) // behind all of the trash
	ix := openIndex(t, store)
	catchUp(t, ix)
	for _, order := range []Order{OrderRank, OrderNewest} {
		if r := search(t, ix, Query{Text: "needle", Order: order, Limit: 1}); len(r.Hits) != 1 ||
			r.Hits[0].SessionID != first {
			t.Errorf("%s: %d hits, want the one of the session that is not in the trash", order, len(r.Hits))
		}
	}
}

func TestNeighboursFollowThePath(t *testing.T) {
	store := newFakeStore()
	for i := 1; i <= 6; i++ {
		store.add(first, session.User, fmt.Sprintf("word%d", i))
	}
	store.heads[first] = 3 // seq 7 branches off after 3
	store.add(first, session.User, "word7")
	store.add(first, session.User, "word8")
	ix := openIndex(t, store)
	catchUp(t, ix)
	seqs := func(messages []session.Message) (s []int64) {
		for _, m := range messages {
			s = append(s, m.Seq)
		}
		return s
	}
	for query, want := range map[string][2][]int64{
		"word1": {nil, {2, 3}}, "word3": {{1, 2}, {4, 5}}, "word6": {{4, 5}, nil}, "word7": {{2, 3}, {8}},
	} {
		hit := search(t, ix, Query{Text: query, Expand: 2}).Hits[0]
		if !slices.Equal(seqs(hit.Before), want[0]) || !slices.Equal(seqs(hit.After), want[1]) {
			t.Errorf("%s: before %v after %v, want %v", query, seqs(hit.Before), seqs(hit.After), want)
		}
	}
}

func TestArgumentsAreFoundByWords(t *testing.T) {
	store := newFakeStore()
	store.addParts(first, session.Assistant, began, session.Part{
		Kind: session.PartToolCall, ToolName: "edit", Arguments: `{"path":"a/b.go","edits":[{"old":"\tprivate\nnext \u0068ello","line":4711}]}`,
	})
	store.addParts(first, session.Assistant, began,
		session.Part{Kind: session.PartToolCall, ToolName: "shell", Arguments: `broken {"`})
	ix := openIndex(t, store)
	catchUp(t, ix)
	for query, want := range map[string]string{
		"private": "1", "next": "1", "hello": "1", "4711": "1", "edits path": "1", "a/b.go": "1", "edit": "1", `"nnext"`: "",
		"shell broken": "2",
	} {
		if got := strings.Join(names(search(t, ix, Query{Text: query, Order: OrderNewest})), " "); got != want {
			t.Errorf("%s: found %q, want %q", query, got, want)
		}
	}
}

func TestResultJSON(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.User, "hello")
	r := search(t, openIndex(t, store), Query{Text: "hello"})
	r.Hits[0].Score = 1
	got := testkit.Must(json.Marshal(r))(t)
	const want = `{"hits":[{"session_id":"20260211_001","message_id":"20260211_001.1","seq":1,"role":"user",` +
		`"snippet":"hello","score":1,"created_at":"2026-02-11T10:00:00.000Z"}],"pending":1}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if empty, _ := json.Marshal(search(t, openIndex(t, store),
		Query{Text: "nothing"})); string(empty) != `{"hits":[],"missing":[{"word":"nothing"}],"pending":1}` {
		t.Errorf("nothing found reads %s", empty)
	}
}

// A secret that a snippet would cut in two has no shape any more: the whole text is masked before.
func TestTextIsMaskedBeforeItsSnippetIsCut(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.User, "needle "+strings.Repeat("x ", 100)+strings.Repeat("secret", 200))
	ix := openIndex(t, store)
	catchUp(t, ix)
	r := search(t, ix, Query{Text: "needle", Mask: func(s string) string {
		return strings.ReplaceAll(s, strings.Repeat("secret", 200), "***")
	}})
	if len(r.Hits) != 1 || strings.Contains(r.Hits[0].Snippet, "secret") ||
		!strings.Contains(r.Hits[0].Snippet, "needle") {
		t.Errorf("%+v", r.Hits)
	}
}

func TestSnippetShowsTheMatch(t *testing.T) {
	long := strings.Repeat("lorem ipsum dolor ", 60) + "the price\x1b[31m of CompanyB\nis $129" +
		strings.Repeat(" sit amet", 60)
	cases := []struct{ name, text, query, marked string }{
		{"in the middle", long, "CompanyB's prices", "price CompanyB"},
		{"an amount", long, "$129", "$129"},
		{"umlauts", "in Häusern und HAUSERN", "häuser*", "Häusern HAUSERN"},
		{"Chinese", "我们的数据库支持中文", "中文 数据库", "数据库 中文"},
		{"no mark in a longer word", "contexts context", `"context"`, "context"},
		{"a part of a name", long + " and shellCompletionTarget", "completions", "Completion"},
		{"a name as words", long + " with read file", "readFile", "read file"},
		{"words as a name", long + " in CheckpointFromTree", `"checkpoint from tree"`, "Checkpoint From Tree"},
		{"a number and its letters", long + " of PR#60", "PR60", "PR 60"},
		{"no single letter within words", "aab xaxa", "a1b", ""},
		{"nothing to mark", "some text", "else", ""},
		{"pairs as one", "我们讨论了数据库迁移的计划", "数据库的迁移计划是什么？", "数据库 迁移 计划"},
		{"an irregular form", "she went home", "go", "went"},
		{"a number in groups", "it has 1,234,567 rows", "1234567", "1,234,567"},
		{"the beginning of a hash", "at 3f9c2d1e now", "3f9c2d", "3f9c2d1e"},
		{"an emoji", "ship it 🚀 now", "🚀", "🚀"},
		{"decomposed", "le re\u0301sume\u0301 est la\u0300", "résumé", "résumé"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, marks := snippet(c.text, parse(c.query).terms)
			var marked []string
			for _, m := range marks {
				marked = append(marked, got[m[0]:m[1]])
			}
			if strings.Join(marked, " ") != c.marked {
				t.Errorf("marked %q in %q, want %q", marked, got, c.marked)
			}
			if strings.ContainsAny(got, "\x1b\n") || len([]rune(got)) > snippetWidth+2 {
				t.Errorf("not one short line of plain text: %q", got)
			}
		})
	}
}

func TestHotStatementsNeitherScanNorSort(t *testing.T) {
	store := newFakeStore()
	store.add(first, session.User, "needle")
	ix := openIndex(t, store)
	catchUp(t, ix)
	for name, c := range map[string]struct {
		statement string
		args      []any
	}{
		"newest first": {newestFirst, []any{"needle", 0, 9, 9}},
		"recall":       {newestDocs, []any{"needle", 0, 9, 9}},
		"mark":         {`SELECT mark FROM state WHERE id = 1`, nil},
		"free docid":   {`SELECT MAX(docid) FROM docs WHERE docid BETWEEN ? AND ?`, []any{1, 2}},
		"remove":       {`DELETE FROM docs WHERE message_id = ? RETURNING docid`, []any{1}},
	} {
		rows := testkit.Must(ix.writer.Query(`EXPLAIN QUERY PLAN `+c.statement, c.args...))(t)
		for rows.Next() {
			var id, parent, unused int
			var detail string
			testkit.Check(t, rows.Scan(&id, &parent, &unused, &detail))
			scans := strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, "VIRTUAL TABLE INDEX") && detail != "SCAN w"
			if scans || strings.Contains(detail, "TEMP B-TREE") {
				t.Errorf("%s: %s", name, detail)
			}
		}
		testkit.Check(t, rows.Err())
	}
}

func TestForkSearchIncludesItsSharedPath(t *testing.T) {
	const origin, fork = session.ID("20260211_001"), session.ID("20260211_002")
	store := newFakeStore()
	for _, text := range []string{"zebra one", "zebra two", "zebra three"} {
		store.add(origin, session.User, text)
	}
	store.add(fork, session.User, "zebra four")
	store.shared = map[session.ID][][2]session.MessageRef{fork: {{{Session: origin, Seq: 1}, {Session: origin, Seq: 2}}}}
	ix := openIndex(t, store)
	catchUp(t, ix)
	store.add(fork, session.User, "zebra five") // not indexed yet
	found := func(q Query) string {
		t.Helper()
		q.Order = OrderNewest
		result := testkit.Must(ix.Search(t.Context(), q))(t)
		var ids []string
		for _, h := range result.Hits {
			ids = append(ids, h.MessageID.String())
		}
		return strings.Join(ids, " ")
	}
	want := "20260211_002.2 20260211_002.1 20260211_001.2 20260211_001.1"
	if got := found(Query{Text: "zebra", Session: fork}); got != want {
		t.Errorf("found %s", got)
	}
	if got := found(Query{Text: "zebra session:" + string(fork)}); got != want {
		t.Errorf("by the words: found %s", got)
	}
	if got := found(Query{Text: "zebra", Session: origin}); got != "20260211_001.3 20260211_001.2 20260211_001.1" {
		t.Errorf("the origin: found %s", got)
	}
	if got := found(Query{Text: "zebra", Session: "20260211_009"}); got != "" {
		t.Errorf("no such session: found %s", got)
	}
}

// Not a whole word and no end of one is left: FTS5 stores words without the beginning that
// they share with the word before.
func TestScrubbedIndexContainsNoPartOfAForgottenWord(t *testing.T) {
	for run := range 20 {
		store := newFakeStore()
		fill(store, 40)
		var rows []int64
		for i := range 200 {
			text := fmt.Sprintf("ordinary%dword number", i)
			if i%3 == run%3 {
				text = fmt.Sprintf("zebra%dxqkv%djwz and geheimnis%dwort", i, run, i)
			}
			m := store.add(first, session.User, text)
			if i%3 == run%3 {
				rows = append(rows, m.RowID)
			}
		}
		path := filepath.Join(t.TempDir(), "search.db")
		ix := testkit.Must(Open(t.Context(), path, store))(t)
		catchUp(t, ix)
		testkit.Check(t, ix.Forget(t.Context(), rows))
		testkit.Check(t, ix.Scrub(t.Context()))
		for _, suffix := range []string{"", "-wal"} {
			b := testkit.Must(os.ReadFile(path + suffix))(t)
			for _, end := range []string{"xqkv", fmt.Sprintf("%djwz", run), "jwz", "zebra", "geheimnis", "heimnis"} {
				if bytes.Contains(b, []byte(end)) {
					t.Fatalf("run %d: search.db%s still holds %q", run, suffix, end)
				}
			}
		}
		if r := search(t, ix, Query{Text: "ordinary*"}); len(r.Hits) == 0 {
			t.Error("the rest is gone, too")
		}
		testkit.Check(t, ix.Close())
	}
}

func TestQueryTerms(t *testing.T) {
	cases := []struct{ query, want string }{
		{`one two`, `stems : "one" AND stems : "two"`},
		{`prices`, `stems : "price"`},
		{`"the prices"`, `stems : "the price"`},
		{`gener*`, `{stems inflected} : "gener" *`},
		{`a.b/c_d`, `stems : "a b c d"`},
		{`$129`, `stems : "$129 129"`},
		{`x AND y`, `stems : "x" AND stems : "and" AND stems : "y"`},
		{`getUserName`, `(stems : "getusernam" OR stems : "get user name")`},
		{`number7`, `stems : "number7"`},
		{`数据库`, `stems : "数据 据库"`},
		{`数`, `{stems inflected} : "数" *`},
		{`数据库test`, `stems : "数据 据库 库 test"`},
		{`he said "unclosed quotes`, `stems : "he" AND stems : "said" AND stems : "unclos" AND stems : "quot"`},
		{`5" screens`, `stems : "5" AND stems : "screen"`},
		{`screen -"of glass`, `stems : "screen"`},
		{`Company’s`, `stems : "compani"`},
		{`a -- b`, `stems : "a" AND stems : "b"`},
	}
	for _, c := range cases {
		p := parse(c.query)
		wanted, _ := p.wanted()
		got := joinTerms(wanted, "AND")
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
	if p := parse(manyWords(100)); len(p.terms) != maxTerms {
		t.Errorf("%d terms of a hundred words, want %d", len(p.terms), maxTerms)
	}
	if p := parse(`word words "word" -word wor* word`); len(p.terms) != 4 {
		t.Errorf("repeated words are other terms: %+v", p.terms)
	}
}

func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "nowhere%d ", i)
	}
	return b.String()
}

// Whatever is asked is answered or Invalid, and what was said is found by its own words.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		`a "b c" -d e* role:user`, `"`, `$1,2.3 中文`, "NEAR(a b)", `a""b`, "col : x^2",
		"\x00\uE000\xff", "ー", "٣x²",
	} {
		f.Add(seed)
	}
	store := newFakeStore()
	store.add(first, session.User, "text")
	ix := openIndex(f, store)
	f.Fuzz(func(t *testing.T, asked string) {
		_, err := ix.Search(t.Context(), Query{Text: asked})
		if err != nil && session.CodeOf(err) != session.Invalid {
			t.Fatalf("%q: %v", asked, err)
		}
		if n := text.Tokenize(asked, text.English, true); strings.ContainsAny(n.Text, "\x00\uE000") {
			t.Fatalf("%q: normalized to %q", asked, n.Text)
		}
		snippet(asked, parse(asked).terms)
	})
}

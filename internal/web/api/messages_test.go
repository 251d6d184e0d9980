package api_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/storetest"

	"github.com/go-json-experiment/json/jsontext"
	_ "modernc.org/sqlite" // breaks what the store keeps whole
)

func TestMessagesComeBackAsTheyWentIn(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	path := "/v1/sessions/" + id + "/messages"
	sent := `[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{ \"path\": \"<a>\" }"}}],"own_field":{"deep":[1,2]}},
		{"role":"tool","tool_call_id":"c1","content":"inside"}]`
	r := k.want(201, k.do("POST", path, `{"messages":`+sent+`}`))
	if r.text("messages.2.id") != id+".3" || r.at("messages.2.seq") != 3.0 || r.text("head") != id+".3" ||
		r.at("revision") == nil ||
		r.at("messages.0.parent") != nil || r.text("messages.1.parent") != id+".1" ||
		r.at("messages.1.tokens") == 0.0 || r.at("context_tokens") == 0.0 {
		t.Errorf("%s", r.raw)
	}
	back := k.want(200, k.do("GET", path+"?dialect=openai.chat", nil))
	var want any
	testkit.Check(t, json.Unmarshal([]byte(sent), &want))
	if !reflect.DeepEqual(back.at("data"), want) {
		t.Errorf("came back as %s", back.raw)
	}
	own := k.want(200, k.do("GET", path, nil))
	if own.text("data.2.content") != "inside" || own.text("data.1.parts.0.arguments") != `{ "path": "<a>" }` ||
		own.text("data.1.origin") != "model" || own.text("data.0.id") != id+".1" {
		t.Errorf("%s", own.raw)
	}
	one := k.want(200, k.do("GET", path+"/3", nil))
	if one.text("content") != "inside" || one.text("parent") != id+".2" {
		t.Errorf("%s", one.raw)
	}
	if r := k.want(200, k.do("GET", path+"/3?dialect=openai.chat", nil)); r.text("tool_call_id") != "c1" {
		t.Errorf("%s", r.raw)
	}
}

func TestNativeMessages(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	path := "/v1/sessions/" + id + "/messages"
	k.want(201, k.do("POST", path, `{"dialect":"native","messages":[{"role":"user","content":"hi","origin":"program","external_id":"e1","author":"cron","display":false,
		"created_at":"2026-01-01T00:00:00Z"},{"role":"assistant","parts":[{"kind":"reasoning","text":"hm"},{"kind":"text","text":"yes"}],"finish":"stop"}]}`))
	r := k.want(200, k.do("GET", path, nil))
	if r.text("data.0.origin") != "program" || r.text("data.0.external_id") != "e1" || r.at("data.0.display") != false ||
		r.text("data.0.created_at") != "2026-01-01T00:00:00.000Z" || r.text("data.1.finish") != "stop" ||
		r.text("data.1.content") != "yes" {
		t.Errorf("%s", r.raw)
	}
	// What was read can be appended again.
	var page struct{ Data []jsontext.Value }
	testkit.Check(t, json.Unmarshal([]byte(r.raw), &page))
	other := "/v1/sessions/" + k.session(nil) + "/messages"
	k.want(201, k.do("POST", other, map[string]any{"messages": page.Data, "dialect": "native"}))
	if again := k.want(200, k.do("GET", other, nil)); again.text("data.0.content") != "hi" ||
		again.text("data.1.content") != "yes" {
		t.Errorf("%s", again.raw)
	}
}

func TestMessagesAreReadInPieces(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	for i := 1; i <= 5; i++ {
		k.say(id, "user", fmt.Sprintf("n%d", i))
	}
	path := "/v1/sessions/" + id + "/messages"
	texts := func(r reply) (all []string) {
		for _, m := range r.at("data").([]any) {
			all = append(all, m.(map[string]any)["content"].(string))
		}
		return all
	}
	for query, want := range map[string]string{
		"":                                "[n1 n2 n3 n4 n5]",
		"?limit=2":                        "[n1 n2]",
		"?limit=2&order=desc":             "[n5 n4]",
		"?after=3":                        "[n4 n5]",
		"?before=3":                       "[n1 n2]",
		"?after=1&before=4&order=desc":    "[n3 n2]",
		"?limit=2&cursor=" + id + ".2":    "[n3 n4]",
		"?order=desc&cursor=" + id + ".4": "[n3 n2 n1]",
		"?path=all&after=4":               "[n5]",
	} {
		if got := fmt.Sprint(texts(k.want(200, k.do("GET", path+query, nil)))); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if next := k.do("GET", path+"?limit=2", nil).at("next_cursor"); next != id+".2" {
		t.Errorf("next_cursor %v", next)
	}
	if next := k.do("GET", path+"?limit=5", nil).at("next_cursor"); next != nil {
		t.Errorf("next_cursor at the end: %v", next)
	}
}

func TestExpectHeadComparesAndSets(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	path := "/v1/sessions/" + id + "/messages"
	with := func(field string) string { return `{"messages":[{"role":"user","content":"x"}]` + field + `}` }
	k.want(201, k.do("POST", path, with(`,"expect_head":null`)))
	for _, stale := range []string{
		`,"expect_head":null`, `,"expect_head":7`, `,"expect_head":"` + id + `.7"`,
		`,"expect_head":"20200101_001.1"`,
	} {
		r := k.want(409, k.do("POST", path, with(stale)))
		if r.text("code") != "conflict" || r.text("head") != id+".1" || !strings.Contains(r.text("detail"), id+".1") {
			t.Errorf("%s: %s", stale, r.raw)
		}
	}
	k.want(201, k.do("POST", path, with(`,"expect_head":"1"`)))
	k.want(201, k.do("POST", path, with(`,"expect_head":"`+id+`.2"`)))
	k.want(201, k.do("POST", path, with(``)))
	if n := k.messages(); n != 4 {
		t.Errorf("%d messages are stored, want 4", n)
	}
	empty := k.session(nil)
	if r := k.want(409, k.do("POST", "/v1/sessions/"+empty+"/messages", with(`,"expect_head":1`))); r.at("head") != nil {
		t.Errorf("%s", r.raw)
	}
}

func TestParentMovesTheHead(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	for _, s := range []string{"one", "two", "three"} {
		k.say(id, "user", s)
	}
	path := "/v1/sessions/" + id + "/messages"
	r := k.want(201, k.do("POST", path, `{"parent":1,"messages":[{"role":"user","content":"two again"}]}`))
	if r.text("messages.0.parent") != id+".1" || r.text("head") != id+".4" {
		t.Errorf("%s", r.raw)
	}
	if r := k.do("GET", path, nil); len(r.at("data").([]any)) != 2 || r.text("data.1.content") != "two again" {
		t.Errorf("the path: %s", r.raw)
	}
	if r := k.do("GET", path+"?path=all", nil); len(r.at("data").([]any)) != 4 {
		t.Errorf("all: %s", r.raw)
	}
	k.want(201, k.do("POST", path, `{"parent":"`+id+`.3","messages":[{"role":"user","content":"four"}]}`))
	for _, bad := range []string{
		`99`, `"` + id + `.99"`, `"20200101_001.1"`, `0`, `-1`, `1.5`, `"x"`, `{}`, `true`,
		`null`,
	} {
		if r := k.want(422, k.do("POST", path,
			`{"parent":`+bad+`,"messages":[{"role":"user","content":"x"}]}`)); r.text("errors.0.path") != "parent" {
			t.Errorf("%s: %s", bad, r.raw)
		}
	}
	if n := k.messages(); n != 5 {
		t.Errorf("%d messages", n)
	}
}

func TestRepeatedAppendWritesOnce(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	path := "/v1/sessions/" + id + "/messages"
	key := header{"Idempotency-Key": "a"}
	body := `{"messages":[{"role":"user","content":"x"},{"role":"user","content":"y"}],"expect_head":null}`
	first := k.want(201, k.do("POST", path, body, key))
	k.say(id, "user", "another came between")
	again := k.want(201, k.do("POST", path, body, key))
	if first.raw != again.raw {
		t.Errorf("answers differ:\n%s%s", first.raw, again.raw)
	}
	k.want(422, k.do("POST", path, `{"messages":[{"role":"user","content":"z"}]}`, key))
	other := k.session(nil)
	k.want(201, k.do("POST", "/v1/sessions/"+other+"/messages", body, key)) // another route, another request
	if n := k.messages(); n != 5 {
		t.Errorf("%d messages, want 5", n)
	}
}

func TestLongTextIsReadWhole(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	long := strings.Repeat("äöü ", 50_000)
	k.say(id, "user", long)
	if got := k.do("GET", "/v1/sessions/"+id+"/messages/1", nil); got.text("content") != long ||
		got.text("parts.0.text") != long {
		t.Error("a long text came back otherwise")
	}
}

func TestThousandsOfMessagesAtOnce(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	var msgs []map[string]string
	for i := range 3000 {
		msgs = append(msgs, map[string]string{"role": "user", "content": fmt.Sprint(i)})
	}
	r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": msgs}))
	if r.text("head") != id+".3000" {
		t.Errorf("head %v", r.at("head"))
	}
	for range 3 {
		msgs = append(msgs, msgs...)
	}
	k.want(413, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": msgs}))
	if n := k.messages(); n != 3000 {
		t.Errorf("%d messages", n)
	}
}

func TestPinAndUnpin(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "the rule")
	path := "/v1/sessions/" + id + "/messages/1/pin"
	k.want(200, k.do("PUT", path, nil))
	k.want(200, k.do("PUT", path, nil))
	if n := k.count(`SELECT COUNT(*) FROM marks WHERE kind = 'pin'`); n != 1 {
		t.Errorf("%d pins", n)
	}
	k.want(200, k.do("DELETE", path, nil))
	if n := k.count(`SELECT COUNT(*) FROM marks`); n != 0 {
		t.Errorf("%d pins left", n)
	}
	k.want(404, k.do("PUT", "/v1/sessions/"+id+"/messages/9/pin", nil))
}

// A pin that no compaction could make room for is refused, and nothing is marked.
func TestAPinThatIsTooLargeIsRefused(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(map[string]any{"window": 4000})
	k.say(id, "user", strings.Repeat("a long rule that nobody reads ", 400))
	k.want(422, k.do("PUT", "/v1/sessions/"+id+"/messages/1/pin", nil))
	if n := k.count(`SELECT COUNT(*) FROM marks`); n != 0 {
		t.Errorf("%d pins", n)
	}
}

func TestLongTextsComeBackWhole(t *testing.T) {
	effort.NotShort(t, "megabytes pass through one goroutine")
	k := newKit(t, nil)
	id := k.session(nil)
	first := strings.Repeat("\"quoted\" \\ <b>&amp; \u2028 价格 \U0001f600 end\n", 40_000)
	second := strings.Repeat("and more\n", 100_000)
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": []any{
		map[string]any{"role": "user", "content": "short"},
		map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "text", "text": first},
			map[string]any{"type": "text", "text": second},
		}},
	}}))
	for path, at := range map[string]string{"": "data.1.", "/2": ""} {
		r := k.want(200, k.do("GET", "/v1/sessions/"+id+"/messages"+path, nil))
		if r.text(at+"content") != first+"\n"+second || r.text(at+"parts.0.text") != first ||
			r.text(at+"parts.1.text") != second {
			t.Errorf("%q: it came as %.200s", path, r.raw)
		}
		if !strings.Contains(r.raw, string(session.JSONOf(first))) {
			t.Errorf("%q: it is not encoded as other texts are", path)
		}
	}
}

// Whoever takes an export that cannot go on sees that it is not whole.
func TestAnExportThatBreaksOffIsSeenToDoSo(t *testing.T) {
	storetest.OnFile(t)
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", strings.Repeat("a line\n", 600_000))
	db := testkit.Must(sql.Open("sqlite", filepath.Join(k.dir, "sessions.db")))(t)
	defer db.Close()
	var guards []string
	rows := testkit.Must(db.Query(`SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'blob_pieces'`))(t)
	for rows.Next() {
		var name string
		testkit.Check(t, rows.Scan(&name))
		guards = append(guards, `DROP TRIGGER `+name)
	}
	testkit.Check(t, rows.Err())
	for _, q := range append(guards, `DELETE FROM blob_pieces WHERE n = 3`) {
		testkit.Must(db.Exec(q))(t)
	}
	server := httptest.NewServer(k.handler)
	defer server.Close()
	for _, format := range []string{"jsonl", "md", "html", "openai", "pi", "goose"} {
		r, err := server.Client().Get(server.URL + "/v1/sessions/" + id + "/export?format=" + format)
		if err != nil {
			continue // before the first byte
		}
		if all, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("%s: %d bytes are taken for all of it", format, len(all))
		}
		_ = r.Body.Close()
	}
}

func TestListCarriesATextOnce(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	long := strings.Repeat("a long text ", 10_000)
	k.say(id, "user", long)
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", `{"messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]}`))
	r := k.want(200, k.do("GET", "/v1/sessions/"+id+"/messages", nil))
	if strings.Count(r.raw, long) != 1 || r.text("data.0.content") != long || r.text("data.0.parts.0.kind") != "text" {
		t.Errorf("the text is there %d times", strings.Count(r.raw, long))
	}
	if r.text("data.1.content") != "one\ntwo" || r.text("data.1.parts.0.text") != "one" ||
		r.text("data.1.parts.1.text") != "two" {
		t.Errorf("two texts: %v", r.at("data.1"))
	}
	one := k.want(200, k.do("GET", "/v1/sessions/"+id+"/messages/1", nil))
	if one.text("content") != long || one.text("parts.0.text") != long {
		t.Errorf("a single message lacks a text: %.200s", one.raw)
	}
}

// In a dialect a page has as many items as its limit, also where it ends within a message, and each has its place.
func TestItemsOfADialectArePaged(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(`{}`) + "/messages"
	call := `{"type":"function_call","call_id":"c%d","name":"tide","arguments":"{}"}`
	output := `{"type":"function_call_output","call_id":"c%d","output":"low"}`
	for n := range 4 { // a message of one item, of three, of two
		k.want(201, k.do("POST", path, fmt.Sprintf(`{"dialect":"openai.responses","messages":[
			{"role":"user","content":"%d"},{"type":"reasoning","id":"r%d","summary":[]},`+call+`,`+call+`,`+output+`,`+output+`]}`,
			n, n, 2*n, 2*n+1, 2*n, 2*n+1)))
	}
	read := func(query string) (items, places []any) { return readItems(k, path+"?dialect=openai.responses"+query) }
	all, of := read("&limit=1000")
	var seqs []float64
	for _, place := range of {
		seqs = append(seqs, place.(map[string]any)["seq"].(float64))
	}
	testkit.Equal(t, []float64{1, 2, 2, 2, 3, 3, 4, 5, 5, 5, 6, 6, 7, 8, 8, 8, 9, 9, 10, 11, 11, 11, 12, 12}, seqs)
	for limit := 1; limit < 8; limit++ {
		for _, order := range []string{"asc", "desc"} {
			items, places := read(fmt.Sprintf("&limit=%d&order=%s", limit, order))
			if order == "desc" {
				slices.Reverse(items)
				slices.Reverse(places)
			}
			testkit.Equal(t, all, items)
			testkit.Equal(t, of, places)
		}
	}
	first := k.want(200, k.do("GET", path+"?dialect=openai.responses&limit=3", nil))
	if got := len(first.at("data").([]any)); got != 3 {
		t.Errorf("a page of 3 has %d items", got)
	}
	for _, cursor := range []string{"x/1", "/0", "/9", "/x", "/-1"} {
		k.want(422, k.do("GET", path+"?dialect=openai.responses&cursor="+url.QueryEscape(cursor), nil))
	}
	k.want(422, k.do("GET", path+"?cursor="+url.QueryEscape("/1"), nil))
}

// readItems reads the pages of a list to its end.
func readItems(k *kit, path string) (items, places []any) {
	for cursor := ""; ; {
		r := k.want(200, k.do("GET", path+cursor, nil))
		items = append(items, r.at("data").([]any)...)
		of, _ := r.at("places").([]any)
		places = append(places, of...)
		if r.text("next_cursor") == "" {
			return items, places
		}
		cursor = "&cursor=" + url.QueryEscape(r.text("next_cursor"))
	}
}

// A list of UIMessages has all steps of a reply in one, on whichever page it begins and however long it is; a message
// of the AI SDK comes back as it was appended.
func TestUIMessagesArePaged(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(`{}`) + "/messages"
	own := `{"id":"m1","role":"assistant","metadata":{"n":1},"parts":[{"type":"step-start"},{"type":"tool-tide","toolCallId":"c","state":"output-available","input":{},"output":{"high":3}},
		{"type":"step-start"},{"type":"text","text":"Three.","state":"done"},{"type":"data-x","data":[1]}]}`
	k.want(201, k.do("POST", path, `{"messages":[{"id":"m0","role":"user","parts":[{"type":"text","text":"How high?"}]},`+own+`]}`))
	for turn := range 3 {
		steps := make([]string, 0, 2*150)
		for n := range 150 {
			id := fmt.Sprintf("c%d_%d", turn, n)
			steps = append(steps, `{"role":"assistant","content":[{"type":"tool_use","id":"`+id+`","name":"Read","input":{}}]}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":"`+id+`"}]}`)
		}
		k.want(201, k.do("POST", path, `{"dialect":"anthropic","messages":[{"role":"user","content":"go on"},`+strings.Join(steps, ",")+`]}`))
	}
	all, of := readItems(k, path+"?dialect=ui&limit=1000")
	if !dialecttest.EqualJSON([]byte(own), testkit.Must(json.Marshal(all[1]))(t)) {
		t.Errorf("the message came back as %v", all[1])
	}
	var seqs []any
	for i := range all {
		seqs = append(seqs, of[i].(map[string]any)["seq"])
	}
	testkit.Equal(t, []any{1.0, 4.0, 5.0, 305.0, 306.0, 606.0, 607.0, 907.0}, seqs)
	parts := all[3].(map[string]any)["parts"].([]any)
	if last := parts[len(parts)-1].(map[string]any); len(parts) != 299 || last["output"] != "c0_149" {
		t.Errorf("a turn has %d parts, the last %v", len(parts), last)
	}
	for _, query := range []string{
		"limit=1", "limit=2&order=desc", "limit=3", "limit=1&order=desc", "order=desc&path=all",
	} {
		items, places := readItems(k, path+"?dialect=ui&"+query)
		if strings.Contains(query, "desc") {
			slices.Reverse(items)
			slices.Reverse(places)
		}
		testkit.Equal(t, all, items)
		testkit.Equal(t, of, places)
	}
	items, _ := readItems(k, path+"?dialect=ui&after=305&before=607")
	testkit.Equal(t, all[4:6], items)
	k.want(422, k.do("GET", path+"?dialect=ui&cursor=x", nil))
	back := k.want(200, k.do("GET", path+"?dialect=openai.chat&before=5", nil))
	if got := len(back.at("data").([]any)); got != 4 {
		t.Errorf("for another provider the two are %d messages: %s", got, back.raw)
	}
}

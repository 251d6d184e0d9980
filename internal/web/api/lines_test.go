package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// sent is a model of what the routes keep: lines in their order by project, session and subpath.
type sent map[[3]string][]string

// Thousands of requests in any order answer as a model does that is a map. Keys hold slashes, dots and no letter.
func TestLinesComeBackAsTheyCame(t *testing.T) {
	k := newKit(t, nil)
	random := rand.New(rand.NewPCG(7, 7))
	projects, sessions := []string{"-home-me", "a/b", "..", "é ?&#"}, []string{"s1", "s1/x", ".", "s2"}
	subpaths := []string{"", "subagents/agent-a", "../s2", "subagents/w/../b", "//"}
	model, numbers := sent{}, 0
	pick := func() [3]string {
		return [3]string{
			projects[random.IntN(len(projects))], sessions[random.IntN(len(sessions))], subpaths[random.IntN(len(subpaths))],
		}
	}
	target := func(noun string, key [3]string) string {
		query := url.Values{"project": {key[0]}}
		if noun != "sessions" {
			query.Set("session", key[1])
		}
		if noun == "lines" && key[2] != "" {
			query.Set("subpath", key[2])
		}
		return "/v1/sources/claude-code/" + noun + "?" + query.Encode()
	}
	for range 3000 {
		key := pick()
		switch random.IntN(10) {
		case 0, 1, 2, 3, 4:
			var batch []string
			for range random.IntN(4) {
				numbers++
				line := fmt.Sprintf(`{"uuid":"u%d","deep":{"text":"<é\\u0000> %d","list":[1.50,null,{}]}}`, random.IntN(30), numbers)
				if random.IntN(3) == 0 {
					line = fmt.Sprintf("{ \"type\" :\n\"mode\", \"n\": %d }", random.IntN(3))
				}
				batch = append(batch, line)
			}
			answer := k.want(201, k.do("POST", target("lines", key), `{"lines":[`+strings.Join(batch, ",")+`]}`))
			model.add(key, batch)
			if got := int(answer.at("lines").(float64)); got != len(model[key]) {
				t.Fatalf("%q has %d lines, want %d", key, got, len(model[key]))
			}
		case 5:
			k.want(200, k.do("DELETE", target("lines", key), nil))
			delete(model, key)
			for other := range model {
				if key[2] == "" && other[0] == key[0] && other[1] == key[1] {
					delete(model, other)
				}
			}
		case 6:
			var want []string
			for other := range model {
				if other[0] == key[0] && other[1] == key[1] && other[2] != "" {
					want = append(want, other[2])
				}
			}
			slices.Sort(want)
			got := k.want(200, k.do("GET", target("subpaths", key), nil)).at("data")
			testkit.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
		case 7:
			var want, got []string
			for other := range model {
				if other[0] == key[0] && other[2] == "" {
					want = append(want, other[1])
				}
			}
			slices.Sort(want)
			for _, one := range k.want(200, k.do("GET", target("sessions", key), nil)).at("data").([]any) {
				got = append(got, one.(map[string]any)["session"].(string))
			}
			testkit.Equal(t, want, got)
		default:
			k.sameLines(target("lines", key), model[key])
		}
	}
}

func (m sent) add(key [3]string, batch []string) {
	for _, line := range batch {
		uuid, _, _ := strings.Cut(strings.TrimPrefix(line, `{"uuid":`), ",")
		again := strings.HasPrefix(line, `{"uuid"`) && slices.ContainsFunc(m[key], func(before string) bool {
			return strings.HasPrefix(before, `{"uuid":`+uuid+",")
		})
		if !again {
			m[key] = append(m[key], line)
		}
	}
}

// sameLines reads lines in small pages.
func (k *kit) sameLines(target string, want []string) {
	k.t.Helper()
	if want == nil {
		k.want(404, k.do("GET", target, nil))
		return
	}
	var got []string
	for cursor := ""; ; {
		page := k.want(200, k.do("GET", target+"&limit=3"+cursor, nil))
		o, _ := jsonx.ReadObject([]byte(page.raw))
		lines, _ := jsonx.ReadArray(o.Get("data"))
		for _, line := range lines {
			got = append(got, string(line))
		}
		next := page.text("next_cursor")
		if next == "" {
			break
		}
		cursor = "&cursor=" + next
	}
	if len(got) != len(want) {
		k.t.Fatalf("%s has %d lines, want %d", target, len(got), len(want))
	}
	for i := range want {
		if !jsonx.Equal([]byte(want[i]), []byte(got[i])) {
			k.t.Fatalf("%s: line %d is %s, want %s", target, i, got[i], want[i])
		}
	}
}

// A client continues the summary that it read: of two clients at once the later one gets 409. A repeated request with
// a key stores nothing twice, also lines without a uuid.
func TestSummariesContinueEachOther(t *testing.T) {
	k := newKit(t, nil)
	target := "/v1/sources/claude-code/lines?project=p&session=s"
	k.want(201, k.do("POST", target, `{"lines":[{"type":"mode"}],"summary":{"n":1},"expect_lines":0}`))
	k.want(409, k.do("POST", target, `{"lines":[{"type":"mode"}],"summary":{"n":9},"expect_lines":0}`))
	again := header{"Idempotency-Key": "k1"}
	for range 2 {
		answer := k.want(201, k.do("POST", target, `{"lines":[{"type":"mode"}],"summary":{"n":2},"expect_lines":1}`, again))
		if answer.at("lines").(float64) != 2 || answer.at("stored").(float64) != 1 {
			t.Errorf("answered %s", answer.raw)
		}
	}
	for _, query := range []string{"?project=p", "?project=p&session=s"} {
		all := k.want(200, k.do("GET", "/v1/sources/claude-code/summaries"+query, nil)).at("data").([]any)
		if len(all) != 1 || fmt.Sprint(all[0].(map[string]any)["summary"]) != "map[n:2]" {
			t.Errorf("summaries%s are %v", query, all)
		}
	}
}

func TestLinesThatCannotBeKept(t *testing.T) {
	k := newKit(t, nil)
	path, query := "/v1/sources/claude-code/lines", "?project=p&session=s"
	for _, wrong := range []struct {
		status       int
		target, body string
		says         string
	}{
		{404, "/v1/sources/codex/lines" + query, `{"lines":[]}`, "only those of claude-code are"},
		{422, path + query, `{}`, "lines is missing"},
		{422, path + query, `{"lines":[1]}`, "lines[0] must be an object"},
		{422, path + query, `{"lines":[{}],"subpath":"x"}`, "subpath"},
		{422, path + query + "&subpath=x", `{"lines":[{}],"summary":{}}`, "only a session's own"},
		{422, path + "?project=p", `{"lines":[{}]}`, "session"},
		{422, path + "?project=p&session=a%00b", `{"lines":[{}]}`, "NUL"},
		{422, path + "?project=p&session=" + strings.Repeat("x", 1025), `{"lines":[{}]}`, "1025 bytes"},
		{413, path + query, `{"lines":[{"x":"` + strings.Repeat("x", 33<<20) + `"}]}`, "larger than the 32 MiB"},
	} {
		r := k.do("POST", wrong.target, wrong.body)
		if r.StatusCode != wrong.status || !strings.Contains(r.raw, wrong.says) {
			t.Errorf("%.80s %.40s: %d %.300s", wrong.target, wrong.body, r.StatusCode, r.raw)
		}
	}
	if n := k.count(`SELECT COUNT(*) FROM source_transcripts`); n > 0 {
		t.Errorf("%d transcripts were stored", n)
	}
	large := `{"x":"` + strings.Repeat("x", 30<<20) + `"}`
	k.want(201, k.do("POST", path+query, `{"lines":[{"n":1},`+large+`,{"n":2}]}`))
	k.sameLines(path+query, []string{`{"n":1}`, large, `{"n":2}`})
}

// Tokens of two owners keep apart what they send under one name, and one for routing keys sends nothing.
func TestLinesOfTwoOwners(t *testing.T) {
	k := newOwnersKit(t)
	target := "/v1/sources/claude-code/lines?project=p&session=s"
	for i, of := range []*kit{k, k.as(ana), k.as(eve)} {
		of.want(404, of.do("GET", target, nil))
		of.want(201, of.do("POST", target, fmt.Sprintf(`{"lines":[{"n":%d}]}`, i)))
		of.sameLines(target, []string{fmt.Sprintf(`{"n":%d}`, i)})
	}
	k.as(ana).want(200, k.as(ana).do("DELETE", target, nil))
	k.as(eve).sameLines(target, []string{`{"n":2}`})
	keys := k.as(withKeys)
	keys.want(403, keys.do("POST", target, `{"lines":[{"n":1}]}`))
	codex := k.as(session.Scope{Owner: "ana", Source: session.SourceCodex})
	codex.want(403, codex.do("POST", target, `{"lines":[{"n":1}]}`))
}

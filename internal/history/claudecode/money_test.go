package claudecode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/usage"
)

// priced is a house whose importer prices calls by the catalogue.
func priced(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	h.Importer.Price = testkit.Must(usage.Load(nil))(t).PriceImported
	return h
}

// bills lists the calls of all sessions: the model with what is special about it, and the cost in nano-dollars.
func (h *house) bills() (all []string, sum int64) {
	h.Helper()
	for _, s := range h.Sessions() {
		for _, c := range h.Calls(s.ID) {
			line := string(c.Purpose) + " " + c.Model
			if c.ServiceTier != "" {
				line += " " + c.ServiceTier
			}
			if c.Requests > 0 {
				line += fmt.Sprintf(" ×%d", c.Requests)
			}
			cost := int64(-1)
			if c.CostNanoUSD != nil {
				cost = *c.CostNanoUSD
				sum += cost
			}
			all = append(all, fmt.Sprintf("%s: %d", line, cost))
		}
	}
	return all, sum
}

func TestFastModeAndEveryNameOfAModelHaveTheirPrice(t *testing.T) {
	h := priced(t)
	h.Import(filepath.Join(samples.Case(t, "12-cc-fast-mode-and-names"), "claude", "projects"))
	got, sum := h.bills()
	testkit.Equal(t, []string{
		"chat claude-opus-5: 7500000000", "chat claude-opus-5 fast: 15000000000", "chat claude-opus-5[1m]: 7500000000",
		"chat claude-opus-5-thinking: 7500000000", "chat claude-fable-5-1: 15000000000",
		"chat claude-mythos-5-1: 15000000000",
		"chat claude-sonnet-5: 3000000000", "chat us.anthropic.claude-opus-5-v1:0: 7500000000",
	}, got)
	if s := h.Sessions()[0]; s.CostNanoUSD == nil || *s.CostNanoUSD != sum {
		t.Errorf("the session costs %v, its calls %d", s.CostNanoUSD, sum)
	}
	h.Examine()
}

func TestAdvisorAndSearchesAreCallsOfTheirOwn(t *testing.T) {
	h := priced(t)
	h.Import(filepath.Join(samples.Case(t, "13-cc-advisor-websearch"), "claude", "projects"))
	got, _ := h.bills()
	testkit.Equal(t, []string{
		"chat claude-sonnet-5: 3000000", "tool claude-opus-5: 150000000",
		"tool web_search ×7: 70000000",
	}, got)
	if s := h.Sessions()[0]; *s.CostNanoUSD != 223_000_000 || s.InputTokens != 21_000 || s.OutputTokens != 2100 {
		t.Errorf("the session counts %d in, %d out, at %d", s.InputTokens, s.OutputTokens, *s.CostNanoUSD)
	}
	h.Examine()
}

// Claude Code's own sum at the end of the original counts its compaction, at the end of the fork all that both used.
func TestCostStatesAddWhatNoRowHas(t *testing.T) {
	from := filepath.Join(samples.Case(t, "49-claude-code-2.1.332-real"), "projects")
	h, folder := priced(t), t.TempDir()
	testkit.Check(t, os.CopyFS(folder, os.DirFS(from)))
	original, fork := "cbc5c75e-a6ae-4676-a740-1c7ba0674bac", "545c8de1-ecc5-479a-9840-5ca0b67ada7c"
	for i, file := range []string{
		original + ".jsonl", original + "/subagents/agent-a6f36239adafe563c.jsonl",
		fork + ".jsonl",
	} {
		at := time.Date(2026, 11, 27, 3, 40+i, 0, 0, time.UTC)
		path := filepath.Join(folder, "-home-dev1-demo", file)
		testkit.Check(t, os.Chmod(path, 0o600))
		testkit.Check(t, os.Chtimes(path, at, at))
	}
	for range 2 {
		h.Import(folder)
	}
	costs := map[string]int64{}
	for _, s := range h.Sessions() {
		costs[strings.SplitN(s.SourceID, "-", 2)[0]+string(s.Kind)] = *s.CostNanoUSD
	}
	testkit.Equal(t, map[string]int64{
		"cbc5c75echat": 138_386_000, "cbc5c75esubagent": 20_068_000,
		"545c8de1chat": 15_194_000,
	}, costs)
	var summaries []session.Call
	for _, c := range h.Calls(h.Session(original).ID) {
		if c.Purpose == session.PurposeSummary {
			summaries = append(summaries, c)
		}
	}
	if len(summaries) != 1 || *summaries[0].CostNanoUSD != 27_328_000 || summaries[0].InputTokens != 219 ||
		summaries[0].CacheWrite1h != 3000 {
		t.Errorf("the compaction: %+v", summaries)
	}
	h.Examine()
}

// costState is a row of costs with the tokens of one model: input, output, searches.
func costState(input, output, searches int) string {
	return fmt.Sprintf(`{"type":"cost-state","sessionId":"%s","totalCostUSD":1,"startTime":1,"modelUsage":{"claude-sonnet-5[1m]":{"inputTokens":%d,"outputTokens":%d,`+
		`"thinkingTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":%d,"costUSD":1}}}`, id, input, output, searches)
}

// spent is a reply with its usage.
func spent(uuid, parent, message string, input, output int) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":"%s","parentUuid":%s,"isSidechain":false,"sessionId":"%s","version":"2.1.332","cwd":"/home/dev/demo","timestamp":"2026-11-27T10:00:0%d.000Z",`+
		`"message":{"id":"%s","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":%d}}}`,
		uuid, quote(parent), id, len(uuid)%10, message, input, output)
}

// A file that is read state by state gives what it gives as a whole: nothing twice, and nothing of what rows have.
func TestGrowingCostStatesCountOnce(t *testing.T) {
	lines := []string{
		user("u1", "", "Start"), spent("a1", "u1", "m1", 100, 10), costState(100, 10, 0), // all of it is in the rows
		user("u2", "a1", "More"), spent("a2", "u2", "m2", 200, 20), costState(350, 37, 2), // a title, two searches
		costState(350, 37, 2), // nothing new
		user("u3", "a2", "Last"), spent("a3", "u3", "m3", 5, 5), costState(355, 42, 2),
	}
	want := []string{
		"chat claude-sonnet-5: 300000", "chat claude-sonnet-5: 600000", "other claude-sonnet-5: 170000",
		"tool web_search ×2: 20000000", "chat claude-sonnet-5: 60000",
	}
	whole := priced(t)
	whole.Import(whole.Write(id+".jsonl", lines...))
	got, sum := whole.bills()
	testkit.Equal(t, want, sorted(got, want))

	grown := priced(t)
	path := grown.Write(id+".jsonl", lines[:2]...)
	grown.Import(path)
	for _, line := range lines[2:] {
		grown.Append(path, line+"\n")
		grown.Import(path)
	}
	if got, again := grown.bills(); again != sum {
		t.Errorf("read in pieces: %d, not %d: %v", again, sum, got)
	}
	grown.Examine()
}

// sorted orders lines as another list has them.
func sorted(lines, like []string) (ordered []string) {
	left := append([]string(nil), lines...)
	for _, want := range like {
		for i, line := range left {
			if line == want {
				ordered, left = append(ordered, line), append(left[:i], left[i+1:]...)
				break
			}
		}
	}
	return append(ordered, left...)
}

// A sub-agent in a file of its own has what the state counts, also if it ends after the turn.
func TestCostStatesCountSubAgentsOnce(t *testing.T) {
	h := priced(t)
	trunk := h.Write(id+".jsonl", user("u1", "", "Start"), spent("a1", "u1", "m1", 100, 10), costState(1100, 110, 0))
	h.Write(id+"/subagents/agent-x.jsonl",
		aside(user("s1", "", "Look"), "x"), aside(spent("s2", "s1", "m2", 1000, 100), "x"))
	h.Import(filepath.Dir(trunk))
	if got, sum := h.bills(); len(got) != 2 || sum != 300_000+3_000_000 {
		t.Errorf("%v", got)
	}
}

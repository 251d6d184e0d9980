package contextmgr_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/history"
	"sessiond/internal/history/opencode"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// recorded reads the lines of a program's history that a provider's form accepts.
func recorded(t *testing.T, path, form string, pick func(line []byte) jsontext.Value) []session.Message {
	t.Helper()
	data := testkit.Must(os.ReadFile(path))(t)
	var raw []jsontext.Value
	for line := range bytes.Lines(data) {
		if r := pick(line); r != nil {
			raw = append(raw, r)
		}
	}
	if all, err := dialect.Decode(form, raw); err == nil {
		return all.Messages
	}
	var log []session.Message
	for _, r := range raw {
		if one, err := dialect.Decode(form, []jsontext.Value{r}); err == nil {
			log = append(log, one.Messages...)
		}
	}
	return log
}

func claudeCode(line []byte) jsontext.Value {
	var l struct {
		Type    string
		Message jsontext.Value
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "user" && l.Type != "assistant" {
		return nil
	}
	return l.Message
}

func codex(line []byte) jsontext.Value {
	var l struct {
		Type    string
		Payload jsontext.Value
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "response_item" {
		return nil
	}
	return l.Payload
}

// Histories of Claude Code and Codex, in their providers' forms, give contexts that every provider
// accepts at each message, and that only grow at their end.
func TestContextsOfOtherProgramsHistories(t *testing.T) {
	for _, program := range []struct {
		name, form string
		pick       func([]byte) jsontext.Value
	}{{"claude-code", dialect.Anthropic, claudeCode}, {"codex", dialect.OpenAIResponses, codex}} {
		found := 0
		err := filepath.WalkDir(filepath.Join(samples.Dir(t), program.name),
			func(path string, _ fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(path, ".jsonl") {
					return err
				}
				log := recorded(t, path, program.form, program.pick)
				if len(log) == 0 {
					return nil
				}
				found++
				t.Run(program.name+"/"+filepath.Base(path), func(t *testing.T) {
					t.Parallel()
					if most := 120; len(log) > most {
						log = log[:most]
					}
					if testing.Short() && len(log) > 20 {
						log = log[:20]
					}
					d := newDesk(t)
					d.liveEverywhere(log, false)
				})
				return nil
			})
		if err != nil || found < 5 {
			t.Errorf("%d histories of %s: %v", found, program.name, err)
		}
	}
}

// programCase is a case that can be written as another program's file.
type programCase struct {
	ID        string
	Algorithm string
	Given     struct {
		Entries  []map[string]any
		Settings jsontext.Value
		Leaf     string
		File     string
		SHA256   string `json:"sha256"`
	}
	Expect struct {
		Messages []string
		Roles    []string
		Model    string
		Level    string `json:"thinking_level"`

		Entries       int
		Tokens        int64 `json:"context_tokens"`
		Usage         int64 `json:"usage_tokens"`
		Trailing      int64 `json:"trailing_tokens"`
		LastUsage     int   `json:"last_usage_message_index"`
		Context       int   `json:"context_messages"`
		ShouldCompact bool  `json:"should_compact"`
		CutIndex      int   `json:"cut_index"`
		TurnStart     int   `json:"turn_start_index"`
		Split         bool  `json:"split_turn"`
		Summarize     int   `json:"summarize_count"`
		TurnPrefix    int   `json:"turn_prefix_count"`
		Previous      any   `json:"previous_summary"`
	}
}

func casesOf(t *testing.T, algorithm string) []programCase {
	t.Helper()
	raw := testkit.Must(os.ReadFile("testdata/compaction.json"))(t)
	var all []jsontext.Value
	testkit.Check(t, json.Unmarshal(raw, &all))
	var found []programCase
	for _, one := range all {
		if !bytes.Contains(one, []byte(`"algorithm": "`+algorithm+`"`)) &&
			!bytes.Contains(one, []byte(`"algorithm":"`+algorithm+`"`)) {
			continue
		}
		var c programCase
		testkit.Check(t, json.Unmarshal(one, &c))
		found = append(found, c)
	}
	if len(found) == 0 {
		t.Fatalf("no case of %s", algorithm)
	}
	return found
}

// seen lists a context's content: the summary, and the messages by their names in the source.
func seen(v contextmgr.View) (ids, roles []string) {
	ids, roles = []string{}, []string{}
	for _, p := range v.Provenance {
		switch {
		// shown again: sessiond's own
		case p.Message < 0 || p.Kind == contextmgr.ItemTurnStart || p.Kind == contextmgr.ItemPerson:
		case p.Kind == contextmgr.ItemSummary:
			ids, roles = append(ids, "<summary>"), append(roles, "summary")
		default:
			m := &v.Messages[p.Message]
			role := string(m.Role)
			switch m.Kind {
			case session.KindCustomMessage:
				role = "custom"
			case session.KindBranchSummary:
				role = "branch_summary"
			}
			ids, roles = append(ids, m.ExternalID), append(roles, role)
		}
	}
	return ids, roles
}

// piFile writes a case as a transcript of pi.
func piFile(t *testing.T, c programCase) string {
	t.Helper()
	var out bytes.Buffer
	line := func(v any) {
		raw := testkit.Must(json.Marshal(v))(t)
		out.Write(append(raw, '\n'))
	}
	at := func(i int) string {
		return time.Date(2026, 2, 3, 9, i, 0, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
	}
	line(map[string]any{
		"type": "session", "version": 3, "id": "0c0c0c0c-" + c.ID, "timestamp": at(0),
		"cwd": "/home/dev/demo",
	})
	var before any
	for i, e := range c.Given.Entries {
		l := map[string]any{"type": "message", "id": e["id"], "parentId": before, "timestamp": at(i + 1)}
		if parent, given := e["parent"]; given {
			l["parentId"] = parent
		}
		before = e["id"]
		text := []any{map[string]any{"type": "text", "text": fmt.Sprintf("%v says a word", e["id"])}}
		kind, _ := e["kind"].(string)
		if kind != "" {
			l["type"] = kind
		}
		switch kind {
		case "":
			m := map[string]any{"role": e["role"], "content": text, "timestamp": 1770109200000 + 60000*i}
			if e["role"] == "assistant" {
				m["provider"], m["model"], m["stopReason"], m["api"] = "p", "m", "stop", "a"
			}
			l["message"] = m
		case "model_change":
			l["provider"], l["modelId"] = "p", e["model"]
		case "thinking_level_change":
			l["thinkingLevel"] = e["level"]
		case "compaction":
			l["summary"], l["firstKeptEntryId"], l["tokensBefore"] = e["summary"], e["first_kept"], e["tokens_before"]
			if e["system_message"] == true {
				l["systemMessage"] = map[string]any{"role": "system", "content": "the prompt of then"}
			}
		case "context_edit":
			l["targetId"], l["replacement"] = e["target"], nil
		case "label":
			l["targetId"], l["label"] = e["target"], e["label"]
		case "session_info":
			l["name"] = e["name"]
		case "custom":
			l["customType"] = "x"
		case "custom_message":
			l["customType"], l["content"], l["display"] = "x", "an extension's word", true
		case "usage":
			l["kind"], l["provider"], l["model"], l["usage"] = "x", "p", "m", e["usage"]
		case "branch_summary":
			l["fromId"], l["summary"] = "u1", "elsewhere"
		default:
			t.Fatalf("unknown kind %q", kind)
		}
		line(l)
	}
	path := filepath.Join(t.TempDir(), "2026-02-03T09-00-00-000Z_0c0c0c0c-"+c.ID+".jsonl")
	testkit.Check(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// TestBuildContextConformance imports each case as a transcript of pi, and reads the context at its
// leaf.
func TestBuildContextConformance(t *testing.T) {
	for _, c := range casesOf(t, "pi.build_context") {
		t.Run(c.ID, func(t *testing.T) {
			d := newDesk(t)
			sess := d.importPi(piFile(t, c))
			budget := contextmgr.Budget{Window: 100000, CloseCalls: true}
			if c.Given.Leaf != "" { // before the record, when no overlay was in force
				all, _, err := d.store.Messages(t.Context(), sess.ID, store.MessagePage{Limit: 100, All: true})
				testkit.Check(t, err)
				i := slices.IndexFunc(all, func(m session.Message) bool { return m.ExternalID == c.Given.Leaf })
				budget.At = &contextmgr.Position{HeadID: &all[i].RowID}
			}
			v := testkit.Must(d.mgr.Assemble(t.Context(), sess.ID, budget))(t)
			ids, roles := seen(v)
			if v.System == "the prompt of then" { // the compaction's copy
				i := slices.IndexFunc(c.Given.Entries, func(e map[string]any) bool { return e["system_message"] == true })
				ids, roles = append([]string{fmt.Sprint(c.Given.Entries[i]["id"], "#system")}, ids...),
					append([]string{"system"}, roles...)
			}
			testkit.Equal(t, [][]string{c.Expect.Messages, c.Expect.Roles}, [][]string{ids, roles})
		})
	}
}

// opencodeFile writes a case as an export of opencode.
func opencodeFile(t *testing.T, c programCase) string {
	t.Helper()
	const id = "ses_e03075146ffewQ3f7WSbz2B0qL"
	var messages []any
	for i, e := range c.Given.Entries {
		at := 1795245518571 + 60000*i
		info := map[string]any{
			"id": e["id"], "sessionID": id, "role": e["role"],
			"time": map[string]any{"created": at, "completed": at + 1},
		}
		parts := []any{map[string]any{
			"type": "text", "text": fmt.Sprintf("%v says a word", e["id"]),
			"id": fmt.Sprintf("prt_%d", i), "sessionID": id, "messageID": e["id"],
		}}
		if e["role"] == "assistant" {
			info["parentID"], info["modelID"], info["providerID"], info["finish"] = e["parent_message"], "m1", "mock", "stop"
			if e["summary"] == true {
				info["summary"], info["mode"], info["agent"] = true, "compaction", "compaction"
			}
			if e["error"] == true {
				info["error"] = map[string]any{"name": "UnknownError", "data": map[string]any{"message": "x"}}
			}
			if e["finish"] == false {
				delete(info, "finish")
				info["time"] = map[string]any{"created": at}
			}
		}
		if e["compaction"] == true {
			request := map[string]any{
				"type": "compaction", "auto": true, "id": fmt.Sprintf("prt_%d", i), "sessionID": id,
				"messageID": e["id"],
			}
			if e["tail_start"] != nil {
				request["tail_start_id"] = e["tail_start"]
			}
			parts = []any{request}
		}
		messages = append(messages, map[string]any{"info": info, "parts": parts})
	}
	raw := testkit.Must(json.Marshal(map[string]any{
		"info": map[string]any{
			"id": id, "version": "1.18.33", "title": "x", "directory": "/home/dev/demo",
			"time": map[string]any{"created": 1795245518000, "updated": 1795245592783},
		},
		"messages": messages,
	}))(t)
	path := filepath.Join(t.TempDir(), "export.json")
	testkit.Check(t, os.WriteFile(path, raw, 0o600))
	return path
}

// TestFilterCompactedConformance imports each case as an export of opencode. opencode's request and
// its answer are one summary here; a request without an answer is no message, and a failed summary
// keeps its text.
func TestFilterCompactedConformance(t *testing.T) {
	for _, c := range casesOf(t, "opencode.filter_compacted") {
		t.Run(c.ID, func(t *testing.T) {
			if why := contextmgr.SkippedCase(c.ID); why != "" {
				t.Skip(why)
			}
			path := ""
			requests := map[string]bool{}
			if c.Given.File != "" {
				path = filepath.Join(samples.Dir(t), strings.TrimPrefix(c.Given.File, "samples/"))
			} else {
				path = opencodeFile(t, c)
				for _, e := range c.Given.Entries {
					if e["compaction"] == true {
						requests[fmt.Sprint(e["id"])] = true
					}
				}
			}
			d := newDesk(t)
			im := history.Importer{Store: d.store}
			later := func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }
			testkit.Must(im.Run(t.Context(), opencode.New(func(string) string { return "" }, later), []string{path}))(t)
			v := testkit.Must(d.mgr.Assemble(t.Context(), d.sessions()[0].ID,
				contextmgr.Budget{Window: 1000000, CloseCalls: true}))(t)
			ids, _ := seen(v)
			got := []string{}
			for _, id := range ids {
				id, _, _ = strings.Cut(id, "#")
				if len(got) == 0 || got[len(got)-1] != id {
					got = append(got, id)
				}
			}
			want := c.Expect.Messages
			if slices.Contains(got, "<summary>") {
				want = append([]string{"<summary>"}, want[2:]...)
			}
			want = slices.DeleteFunc(slices.Clone(want), func(id string) bool { return requests[id] })
			got = slices.DeleteFunc(got, func(id string) bool { return requests[id] })
			testkit.Equal(t, want, got)
		})
	}
}

// piTokens estimates an entry of a transcript as pi does, like the cases.
func piTokens(t *testing.T, line []byte) int64 {
	t.Helper()
	var l struct {
		Message struct {
			Role            string
			Content         jsontext.Value
			Command, Output string
		}
	}
	testkit.Check(t, json.Unmarshal(line, &l))
	size := func(s string) int64 { return int64(len(utf16.Encode([]rune(s)))) }
	chars := size(l.Message.Command) + size(l.Message.Output)
	var text string
	var blocks []struct {
		Type, Text, Thinking, Name string
		Arguments                  jsontext.Value
	}
	if json.Unmarshal(l.Message.Content, &text) != nil && len(l.Message.Content) > 0 {
		testkit.Check(t, json.Unmarshal(l.Message.Content, &blocks))
	}
	chars += size(text)
	for _, b := range blocks {
		chars += size(b.Text) + size(b.Thinking) + size(b.Name)
		if b.Type == "image" {
			chars += 4800
		}
		if len(b.Arguments) > 0 {
			var compact bytes.Buffer
			testkit.Check(t, json.Compact(&compact, b.Arguments))
			chars += size(compact.String())
		}
	}
	return (chars + 3) / 4
}

// TestRealPrepareConformance imports pi's own transcripts and plans their next compaction with pi's
// numbers and weights. Lists of files are longer here: more tools count.
func TestRealPrepareConformance(t *testing.T) {
	for _, c := range casesOf(t, "pi.prepare_compaction") {
		if c.Given.File == "" {
			continue // TestPrepareConformance
		}
		t.Run(c.ID, func(t *testing.T) {
			file := filepath.Join(samples.Dir(t), strings.TrimPrefix(c.Given.File, "samples/"))
			notRaced(t, file)
			data := testkit.Must(os.ReadFile(file))(t)
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != c.Given.SHA256 {
				t.Skip("the file is another one")
			}
			d := newDesk(t)
			sess := d.importPi(file)
			path := testkit.Must(d.store.Path(t.Context(), *sess.HeadID, 0))(t)
			lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))[1:]
			if len(path) != len(lines) || len(path) != c.Expect.Entries {
				t.Fatalf("%d messages of %d lines, want %d", len(path), len(lines), c.Expect.Entries)
			}
			start := 0
			effective := testkit.Must(d.store.Effective(t.Context(), sess))(t)
			if (effective != nil) != (c.Expect.Previous == true) {
				t.Fatalf("overlay %+v", effective)
			}
			if effective != nil {
				start = slices.IndexFunc(path, func(m session.Message) bool { return m.RowID == *effective.FirstKeptID })
			}
			var entries []contextmgr.Entry
			for i := range path[start:] {
				m := &path[start+i]
				e := contextmgr.Entry{Kind: m.Kind, Role: m.Role, InContext: m.InContext, Tokens: piTokens(t, lines[start+i])}
				for _, p := range m.Calls() {
					e.Calls = append(e.Calls, p.CallID)
				}
				for _, p := range m.Results() {
					e.Results = append(e.Results, p.CallID)
				}
				entries = append(entries, e)
			}
			p := contextmgr.MakePlan(entries, contextmgr.CutRule{KeepTokens: 20000, MetadataSplits: true}, contextmgr.PlanRoom{})
			count := func(from, to int) (n int) {
				for _, e := range entries[from:to] {
					if e.InContext {
						n++
					}
				}
				return n
			}
			got := []any{start + p.First, start + p.TurnStart, p.Split(), count(p.History()), count(p.Prefix())}
			if diff := cmp.Diff([]any{
				c.Expect.CutIndex, c.Expect.TurnStart, c.Expect.Split, c.Expect.Summarize,
				c.Expect.TurnPrefix,
			}, got); diff != "" {
				t.Errorf("cut, turn, split, summarised, prefix: want -, got +\n%s", diff)
			}
		})
	}
}

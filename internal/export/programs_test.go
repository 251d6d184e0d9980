package export_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect"
	"sessiond/internal/export"
	"sessiond/internal/history"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"
)

func open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")),
		store.Options{Zone: time.UTC, Measure: tokens.Reference().Measure})
	testkit.Check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func importPi(t *testing.T, s *store.Store, root string) {
	t.Helper()
	im := history.Importer{Store: s}
	testkit.Must(im.Run(context.Background(), pi.New(os.Getenv), []string{root}))(t)
}

func sessions(t *testing.T, s *store.Store) []session.Session {
	t.Helper()
	all, _, err := s.Sessions(context.Background(), store.Filter{}, store.Page{Limit: 1000})
	testkit.Check(t, err)
	return all
}

func write(t *testing.T, s *store.Store, f export.Format, id session.ID) ([]byte, export.Report) {
	t.Helper()
	var out bytes.Buffer
	report, err := export.Write(context.Background(), &out, s, f, []session.ID{id}, export.Options{})
	if err != nil {
		t.Fatalf("%s as %s: %v", id, f, err)
	}
	return out.Bytes(), report
}

// said is what two stores must agree on about a message, wherever it came from.
func said(m *session.Message) string {
	type part struct {
		Kind       session.PartKind
		Text, Tool string
		Call, Args string
		Failed     *bool
		Blob       string
	}
	var parts []part
	for i := range m.Parts {
		p := &m.Parts[i]
		one := part{p.Kind, p.Content(), p.ToolName, p.CallID, p.Arguments, p.IsError, ""}
		if p.Blob != nil && p.Kind.HasBytes() {
			one.Text, one.Blob = "", p.Blob.SHA256
		}
		parts = append(parts, one)
	}
	return string(session.JSONOf([]any{
		m.Kind, m.Role, m.Origin, m.Finish, m.InContext, m.Display, m.Provider, m.Model,
		m.CreatedAt, parts,
	}))
}

func pathOf(t *testing.T, s *store.Store, sess session.Session) []session.Message {
	t.Helper()
	if sess.HeadID == nil {
		return nil
	}
	return testkit.Must(s.Path(context.Background(), *sess.HeadID, 0))(t)
}

// Every session of pi's that was imported is written as pi writes it, and comes back the same.
func TestPiSessionsAreWrittenAsTheyWereRead(t *testing.T) {
	s := open(t)
	importPi(t, s, filepath.Join(samples.Dir(t), "pi"))
	all := sessions(t, s)
	if len(all) < 8 {
		t.Fatalf("only %d sessions", len(all))
	}
	for _, sess := range all {
		t.Run(string(sess.ID)+" "+sess.SourceID, func(t *testing.T) {
			file, _ := write(t, s, export.Pi, sess.ID)
			counts, err := historytest.CheckPi(file)
			if err != nil {
				t.Errorf("%v", err)
			}
			path := pathOf(t, s, sess)
			if d := counts.OnLeaf - len(path); d < 0 || d > 1 {
				t.Errorf("the leaf's path has %d entries, the head's %d messages", counts.OnLeaf, len(path))
			}
			name := filepath.Join(t.TempDir(), "again.jsonl")
			testkit.Check(t, os.WriteFile(name, file, 0o600))
			other := open(t)
			importPi(t, other, name)
			back := sessions(t, other)
			if len(back) != 1 {
				t.Fatalf("%d sessions came back", len(back))
			}
			again := pathOf(t, other, back[0])
			if len(again) < len(path) {
				t.Fatalf("%d messages of %d came back", len(again), len(path))
			}
			differ := 0
			for i := range path {
				if a, b := said(&path[i]), said(&again[i]); a != b && path[i].Kind != session.KindUnknown {
					if differ++; differ < 4 {
						t.Errorf("message %s came back as\n%.600s\nnot\n%.600s\nfrom %s", path[i].ID, b, a, path[i].Extra)
					}
				}
			}
		})
	}
}

// native is a session that was appended over the API, with all that pi has other words for.
func native(t *testing.T, s *store.Store) session.Session {
	t.Helper()
	ctx := context.Background()
	sess := testkit.Must(s.CreateSession(ctx, store.NewSession{Title: "A plan", Directory: "/home/dev/x"}))(t)
	var raw []jsontext.Value
	for _, m := range []string{
		`{"role":"system","content":"You help."}`,
		`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`,
		`{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},{"id":"c2","type":"function","function":{"name":"ls","arguments":"not json"}}]}`,
		`{"role":"tool","tool_call_id":"c1","content":"hello"}`,
		`{"role":"tool","tool_call_id":"c2","content":"a.txt"}`,
		`{"role":"assistant","content":"It says hello."}`,
		`{"role":"user","content":"and b?"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c3","type":"function","function":{"name":"read","arguments":"{}"}}]}`,
	} {
		raw = append(raw, jsontext.Value(m))
	}
	d := testkit.Must(dialect.Decode(dialect.OpenAIChat, raw))(t)
	out := testkit.Must(s.Append(ctx, store.Append{Session: sess.ID, Messages: d.Messages}))(t)
	through := out.Messages[4]
	testkit.Must(s.AddCompaction(ctx, session.Compaction{
		SessionID: sess.ID, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone,
		ThroughID:    &through.RowID,
		HiddenTokens: through.PathTokens, SummaryTokens: 3, Summary: "They looked.", TokensBefore: 100, TokensAfter: 50,
	}))(t)
	sess = testkit.Must(s.Session(ctx, sess.ID))(t)
	return sess
}

func TestASessionOfOurOwnIsAFileOfPi(t *testing.T) {
	s := open(t)
	sess := native(t, s)
	file, _ := write(t, s, export.Pi, sess.ID)
	counts, err := historytest.CheckPi(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	// without sessiond's compaction
	want := historytest.PiCounts{Entries: 9, Messages: 8, Users: 2, Replies: 3, Results: 2, Calls: 3, Roots: 1, OnLeaf: 9}
	if counts != want {
		t.Errorf("it holds %+v, want %+v\n%s", counts, want, file)
	}
	name := filepath.Join(t.TempDir(), "ours.jsonl")
	testkit.Check(t, os.WriteFile(name, file, 0o600))
	other := open(t)
	importPi(t, other, name)
	back := sessions(t, other)[0]
	if back.Title != "A plan" || back.Directory != "/home/dev/x" || back.CompactionID != nil {
		t.Errorf("it came back as %+v", back)
	}
	var texts, again []string
	for _, m := range pathOf(t, s, sess) {
		texts = append(texts, fmt.Sprint(m.Role, m.Text()))
	}
	for _, m := range pathOf(t, other, back) {
		if m.Kind == session.KindMessage {
			again = append(again, fmt.Sprint(m.Role, m.Text()))
		}
	}
	if !slices.Equal(texts, again) {
		t.Errorf("it says\n%q\nnot\n%q", again, texts)
	}
}

// What is written for Goose is what Goose writes, with the same counts.
func TestSessionsAreFilesOfGoose(t *testing.T) {
	s := open(t)
	importPi(t, s, filepath.Join(samples.Dir(t), "pi"))
	ours := native(t, s)
	for _, sess := range sessions(t, s) {
		file, report := write(t, s, export.Goose, sess.ID)
		counts, err := historytest.CheckGoose(file)
		if err != nil {
			t.Errorf("%s: %v", sess.ID, err)
			continue
		}
		var replies, calls, results, summaries int
		for _, m := range pathOf(t, s, sess) {
			if m.Kind != session.KindMessage {
				continue
			}
			if m.Role == session.Assistant {
				replies++
			}
			calls += len(m.Calls())
			results += len(m.Results())
		}
		if sess.CompactionID != nil && sess.ID != ours.ID { // sessiond's own compaction stays behind
			summaries = 1
		}
		if counts.Replies != replies+summaries || counts.Requests != calls || counts.Responses != results ||
			counts.Summaries != summaries || counts.Messages != report.Messages+2*summaries {
			t.Errorf("%s: %+v, want %d replies, %d calls, %d results, %d summaries", sess.ID, counts, replies, calls, results,
				summaries)
		}
	}
	theirs := open(t)
	im := history.Importer{Store: theirs}
	testkit.Must(im.Run(context.Background(), goose.New(os.Getenv), []string{filepath.Join(samples.Dir(t), "goose")}))(t)
	for _, sess := range sessions(t, theirs) {
		file, _ := write(t, theirs, export.Goose, sess.ID)
		if counts, err := historytest.CheckGoose(file); err != nil {
			t.Errorf("%s of Goose: %v: %+v", sess.SourceID, err, counts)
		}
	}
	file, _ := write(t, s, export.Goose, ours.ID)
	name := filepath.Join(t.TempDir(), "ours.json")
	testkit.Check(t, os.WriteFile(name, file, 0o600))
	other := open(t)
	im = history.Importer{Store: other}
	if done, err := im.Run(context.Background(), goose.New(os.Getenv), []string{name}); err != nil ||
		len(done.Errors) > 0 {
		t.Fatalf("%+v %v", done, err)
	}
	back := sessions(t, other)[0]
	if back.Title != "A plan" || back.Directory != "/home/dev/x" || back.CompactionID != nil {
		t.Errorf("it came back as %+v", back)
	}
	var texts, again []string
	for _, m := range pathOf(t, s, ours) {
		if m.Role != session.System {
			texts = append(texts, fmt.Sprint(m.Role, m.Text(), len(m.Calls())))
		}
	}
	for _, m := range pathOf(t, other, back) {
		if m.Kind == session.KindMessage {
			again = append(again, fmt.Sprint(m.Role, m.Text(), len(m.Calls())))
		}
	}
	if !slices.Equal(texts, again) {
		t.Errorf("it says\n%q\nnot\n%q", again, texts)
	}
}

// What is written for OpenAI is what OpenAI takes.
func TestOpenAIMessagesAreTaken(t *testing.T) {
	s := open(t)
	importPi(t, s, filepath.Join(samples.Dir(t), "pi"))
	native(t, s)
	for _, sess := range sessions(t, s) {
		line, report := write(t, s, export.OpenAI, sess.ID)
		if err := dialecttest.ValidateOpenAIChat(line); err != nil {
			t.Errorf("%s: %v", sess.ID, err)
		}
		if bytes.Count(line, []byte("\n")) != 1 || report.Messages == 0 && sess.MessageCount > 5 {
			t.Errorf("%s: %+v", sess.ID, report)
		}
	}
}

// A call that the model wrote wrongly leaves Goose's importer without a tool, and is the same
// in the file that is written for Goose.
func TestACallThatFailedToParseIsOneForGooseToo(t *testing.T) {
	const call = `{"type":"toolRequest","id":"c1","toolCall":{"error":"arguments are not valid JSON","status":"error"}}`
	path := filepath.Join(t.TempDir(), "20250925_143012.jsonl")
	testkit.Check(t, os.WriteFile(path, []byte(`{"working_dir":"/x","description":"d","schedule_id":null,"message_count":2}
{"role":"user","created":1758810612,"content":[{"type":"text","text":"go"}]}
{"role":"assistant","created":1758810613,"content":[`+call+`]}
`), 0o600))
	s := open(t)
	im := history.Importer{Store: s}
	testkit.Must(im.Run(context.Background(), goose.New(os.Getenv), []string{path}))(t)
	file, _ := write(t, s, export.Goose, sessions(t, s)[0].ID)
	if counts, err := historytest.CheckGoose(file); err != nil || counts.Requests != 1 ||
		!strings.Contains(string(file), call) {
		t.Errorf("%+v, %v: %s", counts, err, file)
	}
}

// The API accepts the export wherever the results of calls are, also if more messages lie between than
// the writer waits for.
func TestCallsAreAnsweredHoweverFarTheirResultsAre(t *testing.T) {
	s := open(t)
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 7))
		made := testkit.Must(s.CreateSession(t.Context(), store.NewSession{}))(t)
		id := func() string { return fmt.Sprint("c", r.IntN(12)) } // the same ones come again
		msgs := []session.Message{{Role: session.User, Parts: []session.Part{session.TextPart("go")}}}
		for len(msgs) < 900 {
			m := session.Message{Role: session.User, Parts: []session.Part{session.TextPart("and")}}
			switch n := r.IntN(100); {
			case n < 3:
				m = session.Message{Role: session.Assistant, Finish: session.FinishToolCalls}
				for range 1 + r.IntN(3) {
					m.Parts = append(m.Parts, session.Part{
						Kind: session.PartToolCall, CallID: id(), ToolName: "read",
						Arguments: "{}",
					})
				}
				if r.IntN(5) == 0 {
					m.Finish = session.FinishError
				}
			case n < 6:
				m = session.Message{Role: session.Tool}
				for range 1 + r.IntN(3) {
					m.Parts = append(m.Parts, session.Part{Kind: session.PartToolResult, CallID: id(), Text: "7"})
				}
			case n < 40:
				m.Role = session.Assistant
			}
			msgs = append(msgs, m)
		}
		for i := range msgs {
			msgs[i].InContext, msgs[i].Display = true, true
		}
		testkit.Must(s.Append(t.Context(), store.Append{Session: made.ID, Messages: msgs}))(t)
		var out bytes.Buffer
		testkit.Must(export.Write(t.Context(), &out, s, export.OpenAI, []session.ID{made.ID}, export.Options{}))(t)
		if err := dialecttest.ValidateOpenAIChat(out.Bytes()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

package export_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"sessiond/internal/dialect"
	"sessiond/internal/export"
	"sessiond/internal/handover"
	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/copilotcli"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	"sessiond/internal/history/qwencode"
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

func pathOf(t *testing.T, s *store.Store, sess session.Session) []session.Message {
	t.Helper()
	if sess.HeadID == nil {
		return nil
	}
	return testkit.Must(s.Path(context.Background(), *sess.HeadID, 0))(t)
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

// conversation is what a path says, without how it is divided into messages.
func conversation(t *testing.T, s *store.Store, sess session.Session) (lines []string) {
	t.Helper()
	each := func(_ context.Context, yield func(*session.Message) error) error {
		path := pathOf(t, s, sess)
		for i := range path {
			if err := yield(&path[i]); err != nil {
				return err
			}
		}
		return nil
	}
	testkit.Check(t, export.CarryAll(t.Context(), &handover.Carrier{}, each, func(m *session.Message) error {
		for i := range m.Parts {
			p := &m.Parts[i]
			line := fmt.Sprintf("%s %s %s", m.Role, p.Kind, p.Content())
			if p.Kind == session.PartToolCall {
				line += p.ToolName + string(history.ArgumentsOf(p))
			}
			if p.Blob != nil {
				line += fmt.Sprint(len(p.Blob.Data))
			}
			lines = append(lines, line)
		}
		return nil
	}))
	return lines
}

// The whole conversation is a file of each program: its reader finds in it what was said, and nothing of the first
// program's own.
func TestConversationsAreFilesOfEachProgram(t *testing.T) {
	s := open(t)
	importPi(t, s, filepath.Join(samples.Dir(t), "pi"))
	native(t, s)
	im := history.Importer{Store: s}
	testkit.Must(im.Run(t.Context(), goose.New(os.Getenv), []string{filepath.Join(samples.Dir(t), "goose")}))(t)
	readers := map[session.Source]history.Source{
		session.SourceClaudeCode: claudecode.New(os.Getenv, nil), session.SourceCodex: codex.New(os.Getenv, nil),
		session.SourcePi: pi.New(os.Getenv), session.SourceOpencode: opencode.New(os.Getenv, nil),
		session.SourceGoose: goose.New(os.Getenv), session.SourceQwenCode: qwencode.New(os.Getenv, nil),
		session.SourceCopilotCLI: copilotcli.New(os.Getenv, nil),
		session.SourceGeminiCLI:  geminicli.New(os.Getenv, nil),
	}
	for _, target := range export.Targets(os.Getenv) {
		compared := 0
		for _, sess := range sessions(t, s) {
			want := conversation(t, s, sess)
			if len(want) == 0 {
				continue
			}
			file, _ := write(t, s, export.Format(target.Source), sess.ID)
			if bytes.Contains(file, []byte(`"thinking"`)) || bytes.Contains(file, []byte(`"signature"`)) {
				t.Errorf("%s of %s holds thoughts", sess.ID, target.Source)
			}
			name := filepath.Join(t.TempDir(), "again"+target.Extension)
			testkit.Check(t, os.WriteFile(name, file, 0o600))
			other := open(t)
			im := history.Importer{Store: other, Once: true}
			for range 2 { // the first reading waits for the original
				done := testkit.Must(im.Run(t.Context(), readers[target.Source], []string{name}))(t)
				if len(done.Errors) > 0 {
					t.Errorf("%s of %s: %+v", sess.ID, target.Source, done.Errors)
				}
			}
			back := sessions(t, other)
			if len(back) != 1 {
				t.Errorf("%s of %s came back as %d sessions", sess.ID, target.Source, len(back))
				continue
			}
			if d := cmp.Diff(want, conversation(t, other, back[0])); d != "" {
				t.Errorf("%s of %s (-said +came back):\n%.1500s", sess.ID, target.Source, d)
			}
			compared++
		}
		if compared < 10 {
			t.Errorf("only %d conversations of %s were compared", compared, target.Source)
		}
	}
}

// What is written for pi and Goose is what their documents allow.
func TestFilesOfPiAndGooseAreValid(t *testing.T) {
	s := open(t)
	sess := native(t, s)
	file, _ := write(t, s, export.Pi, sess.ID)
	counts, err := historytest.CheckPi(file)
	if err != nil || counts.Users != 2 || counts.Replies != 3 || counts.Results != 3 || counts.Roots != 1 {
		t.Errorf("%v: %+v\n%s", err, counts, file)
	}
	file, _ = write(t, s, export.Goose, sess.ID)
	of, err := historytest.CheckGoose(file)
	if err != nil || of.Replies != 3 || of.Requests != 3 || of.Responses != 3 {
		t.Errorf("%v: %+v\n%s", err, of, file)
	}
}

// pi calls the first tag of a message its label.
func TestLabelsAreInFilesOfPi(t *testing.T) {
	s := open(t)
	sess := native(t, s)
	said := session.MessageRef{Session: sess.ID, Seq: 6}
	_, err := s.ChangeTags(t.Context(), store.Marking{Session: sess.ID, Message: &said}, []string{"found", "second"}, nil)
	testkit.Check(t, err)
	file, _ := write(t, s, export.Pi, sess.ID)
	name := filepath.Join(t.TempDir(), "again.pi.jsonl")
	testkit.Check(t, os.WriteFile(name, file, 0o600))
	other := open(t)
	for range 2 { // the first reading waits for the original
		importPi(t, other, name)
	}
	back := sessions(t, other)
	if len(back) != 1 {
		t.Fatalf("%d sessions", len(back))
	}
	labels := historytest.Labels(t, other, back[0].ID)
	if len(labels) != 1 {
		t.Fatalf("labels %v\n%s", labels, file)
	}
	for _, m := range pathOf(t, other, back[0]) {
		if labels[m.RowID] == "found" && m.Parts[0].Content() == "It says hello." {
			return
		}
	}
	t.Errorf("labels %v\n%s", labels, file)
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

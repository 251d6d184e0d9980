package sessiond_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect"
	"sessiond/internal/history"
	own "sessiond/internal/history/sessiond"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// everyKind returns exports that hold lines of every kind.
func everyKind(f *testing.F) [][]byte {
	f.Helper()
	ctx := context.Background()
	s := open(f, f.TempDir())
	defer s.Close()
	must := func(err error) {
		f.Helper()
		testkit.Check(f, err)
	}
	parent, err := s.CreateSession(ctx, store.NewSession{
		Title: "seeds", Key: "agent:main:main", Generation: 1,
		Directory: "/home/dev/x",
	})
	must(err)
	decoded, err := dialect.Decode(dialect.OpenAIChat, []jsontext.Value{
		jsontext.Value(`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`),
		jsontext.Value(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\": \"a.txt\"}"}}]}`),
		jsontext.Value(`{"role":"tool","tool_call_id":"c1","content":"what it said"}`),
		jsontext.Value(`{"role":"assistant","content":"done"}`),
	})
	must(err)
	cost := int64(7)
	res, err := s.Append(ctx, store.Append{
		Session: parent.ID, Messages: decoded.Messages,
		Call: &session.Call{Model: "m", InputTokens: 3, CostNanoUSD: &cost},
	})
	must(err)
	first, err := s.Message(ctx, session.MessageRef{Session: parent.ID, Seq: 3})
	must(err)
	made, err := s.AddCompaction(ctx, session.Compaction{
		SessionID: parent.ID, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone,
		ThroughID: &first.RowID, HiddenTokens: first.PathTokens, SummaryTokens: 7, Summary: "short",
		Details: session.JSON(`{"read_files":["a"],"modified_files":[]}`),
	})
	must(err)
	_, err = s.SetMark(ctx, parent.ID, first.ID, store.MarkLabel, "a place", true)
	must(err)
	_, err = s.SaveContext(ctx, session.Context{
		SessionID: parent.ID, HeadID: res.Session.HeadID,
		CompactionID: &made.RowID, Tokens: 5,
	},
		map[string]string{session.BlockSystem: "be kind", session.BlockTools: `[{"name":"read"}]`},
		[]session.Frozen{{
			SessionID: parent.ID, MessageID: first.RowID, Kind: session.FrozenRecall, CompactionID: &made.RowID,
			Content: session.JSON(`{"text":"recalled"}`),
		}})
	must(err)
	fork, err := s.Fork(ctx, store.Fork{Session: parent.ID, At: &session.MessageRef{Session: parent.ID, Seq: 2}})
	must(err)
	_, err = s.Append(ctx, store.Append{Session: fork.ID, Messages: decoded.Messages[:1]})
	must(err)
	_, err = s.UndoCompaction(ctx, parent.ID, made.RowID)
	must(err)
	exports := [][]byte{export(f, s, nil, parent.ID), export(f, s, nil)}
	purge(f, s, parent.ID)
	return append(exports, export(f, s, nil))
}

func seed(f *testing.F) {
	f.Helper()
	for _, data := range everyKind(f) {
		f.Add(data)
		f.Add(data[:len(data)*2/3])
		f.Add(bytes.ReplaceAll(data, []byte(`"revision":`), []byte(`"revision":-`)))
		f.Add(bytes.Replace(data, []byte(`"parent":"`), []byte(`"parent":"20990101_001.9`), 1))
	}
	f.Add([]byte(`{"type":"export","program":"sessiond","version":1}` + "\n" + `{"type":"state","name":"x","value":{}}` +
		"\n\n" + `{"type":"end","sessions":-1}`))
}

// Whatever a file holds, reading it ends, its lines add up, and each session of it begins and
// ends once or is not given away at all.
func FuzzRead(f *testing.F) {
	seed(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "f.jsonl")
		testkit.Check(t, os.WriteFile(path, data, 0o600))
		var now session.ID
		_, err := (&own.Source{}).Read(t.Context(), history.Found{Path: path}, nil, historytest.Nobody{},
			func(b history.Batch) error {
				if !b.Records.Balanced() {
					t.Errorf("records do not add up: %+v", b.Records)
				}
				piece := b.Restore
				if piece == nil {
					return nil
				}
				if piece.Store != nil {
					if now != "" {
						t.Errorf("the store's own data comes in the middle of %q", now)
					}
					return nil
				}
				if piece.Begin != (now == "") || now != "" && piece.Session.ID != now {
					t.Errorf("%s comes in the middle of %q", piece.Session.ID, now)
				}
				if now = piece.Session.ID; piece.End {
					now = ""
				}
				for i := range piece.Messages {
					if n := len(piece.Messages[i].Parts); n > session.MaxParts {
						t.Errorf("%d parts", n)
					}
				}
				return nil
			})
		if err != nil && session.CodeOf(err) != session.Invalid {
			t.Error(err)
		}
		if now != "" {
			t.Errorf("%s has no end", now)
		}
	})
}

// Whatever of a file the store takes is sound, and is written down as what comes back as the
// same bytes.
func FuzzRestore(f *testing.F) {
	seed(f)
	root := f.TempDir()
	n := 0
	f.Fuzz(func(t *testing.T, data []byte) {
		n++
		dir := filepath.Join(root, fmt.Sprint(os.Getpid(), "-", n))
		testkit.Check(t, os.Mkdir(dir, 0o700))
		defer os.RemoveAll(dir)
		comesBack(t, dir, data)
	})
}

func comesBack(t *testing.T, dir string, data []byte) {
	t.Helper()
	var written [2][]byte
	for i := range written {
		there := filepath.Join(dir, fmt.Sprint(i))
		testkit.Check(t, os.Mkdir(there, 0o700))
		// what lies in the future for the first does not for the second
		s := openAt(t, there, time.Date(2026, 2, 11+i, 9, 0, 0, 0, time.UTC))
		defer s.Close()
		if done := importFile(t, s, there, data, own.Source{}); done.Sessions.New == 0 {
			return
		}
		checks := testkit.Must(s.Doctor(context.Background(), true))(t)
		for _, c := range checks {
			if !c.OK {
				t.Errorf("doctor: %s: %s", c.Name, c.Detail)
			}
		}
		written[i] = export(t, s, nil)
		data = written[i]
	}
	if !bytes.Equal(written[0], written[1]) {
		t.Errorf("the export of the import differs in %s", firstDifference(written[0], written[1]))
	}
}

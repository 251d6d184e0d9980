package anthropic_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/samples"
)

// transcripts returns the entries of the wire that real transcripts of Claude Code hold, by file,
// in the order of their rows: one block of a reply each, sub-agents left out.
func transcripts(t testing.TB) map[string][]jsontext.Value {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(samples.Dir(t), "claude-code", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	found := map[string][]jsontext.Value{}
	for _, file := range files {
		data := testkit.Must(os.ReadFile(file))(t)
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var row struct {
				IsSidechain bool
				Message     jsontext.Value
			}
			var head struct{ Role string }
			if json.Unmarshal(lines.Bytes(), &row) != nil || row.IsSidechain || json.Unmarshal(row.Message, &head) != nil ||
				head.Role == "" {
				continue
			}
			found[filepath.Base(file)] = append(found[filepath.Base(file)], row.Message)
		}
	}
	return found
}

func TestTranscriptsComeBack(t *testing.T) {
	for file, raw := range transcripts(t) {
		t.Run(file, func(t *testing.T) { dialecttest.RoundTrip(t, anthropic.Form(), raw) })
	}
}

func TestTranscriptsNeedNoOwnJSON(t *testing.T) {
	var msgs []session.Message
	for _, raw := range transcripts(t) {
		decoded := testkit.Must(anthropic.Decode(raw))(t)
		msgs = append(msgs, decoded.Messages...)
	}
	dialecttest.KeepsOwnJSON(t, msgs, 0)
}

// The prefixes of every transcript, repaired as a context is, are requests that the provider
// accepts, and the whole says nothing less than what it was made of. Of long transcripts each
// eleventh is taken, which meets every phase of a turn; all of them were, once.
func TestPrefixesOfTranscriptsCanBeSent(t *testing.T) {
	for file, raw := range transcripts(t) {
		t.Run(file, func(t *testing.T) {
			decoded := testkit.Must(anthropic.Decode(raw))(t)
			msgs := dialecttest.Stored(t, decoded.Messages)
			for i := range msgs {
				msgs[i].RowID = int64(i + 1)
			}
			for _, n := range dialecttest.Prefixes(len(msgs)) {
				repaired := contextmgr.Repair(msgs[:n], nil, true)
				in := wire.Request{Model: "claude-opus-4-6"}
				for _, item := range repaired.Items {
					in.Messages = append(in.Messages, item.Message)
				}
				sent := testkit.Must(anthropic.Send(in))(t)
				if err := dialecttest.ValidateAnthropic(sent.Request); err != nil {
					t.Fatalf("after %d messages: %v", n, err)
				}
				for _, loss := range sent.Losses {
					if !strings.Contains(loss, "fallback") && !strings.Contains(loss, "reasoning at the end") &&
						!strings.Contains(loss, "field ") && !strings.HasPrefix(file, "agentsessions") {
						t.Errorf("after %d messages: %s", n, loss)
					}
				}
				if n == len(msgs) {
					expectAll(t, in.Messages, sent.Request)
				}
			}
		})
	}
}

// expectAll looks for all texts, calls and results in a request.
func expectAll(t *testing.T, msgs []session.Message, request session.JSON) {
	t.Helper()
	for i := range msgs {
		for j := range msgs[i].Parts {
			p := &msgs[i].Parts[j]
			text := p.Content()
			if p.Kind == session.PartToolCall {
				text = ""
				if !bytes.Contains(request, []byte(p.Arguments)) || !bytes.Contains(request, []byte(`"`+p.CallID+`"`)) {
					t.Errorf("message %d: the call %s %s is not sent", i, p.CallID, p.Arguments)
				}
			}
			if strings.TrimSpace(text) != "" && p.Kind != session.PartReasoning &&
				!bytes.Contains(request, jsonx.AppendText(nil, text)) {
				t.Errorf("message %d: %.80q is not sent", i, text)
			}
		}
	}
}

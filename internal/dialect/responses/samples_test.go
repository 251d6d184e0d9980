package responses_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/samples"
)

// codexItems returns the items of a rollout: the payloads of its response_item lines, or of a file
// from before there were envelopes the lines that are items.
func codexItems(t *testing.T, file string) []jsontext.Value {
	t.Helper()
	raw := testkit.Must(os.ReadFile(file))(t)
	var items []jsontext.Value
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var line struct {
			Type    string
			Payload jsontext.Value
		}
		switch {
		case json.Unmarshal(lines.Bytes(), &line) != nil:
		case line.Type == "response_item":
			items = append(items, line.Payload)
		case line.Payload == nil && line.Type != "":
			items = append(items, bytes.Clone(lines.Bytes()))
		}
	}
	return items
}

func rollouts(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.jsonl", "constructed/*.jsonl"} {
		found := testkit.Must(filepath.Glob(filepath.Join(samples.Dir(t), "codex", pattern)))(t)
		files = append(files, found...)
	}
	return files
}

func TestCodexRolloutsComeBack(t *testing.T) {
	read := 0
	for _, file := range rollouts(t) {
		items := codexItems(t, file)
		read += len(items)
		// values of the wrong type stand in it: each item alone, or refused by its path
		if strings.Contains(file, "key-sweep") {
			for _, item := range items {
				if _, err := responses.Decode([]jsontext.Value{item}); err != nil {
					if !strings.HasPrefix(err.Error(), "messages[0]") {
						t.Errorf("%.200s: %v", item, err)
					}
					continue
				}
				dialecttest.RoundTrip(t, responses.Form(), []jsontext.Value{item})
			}
			continue
		}
		dialecttest.RoundTrip(t, responses.Form(), items)
	}
	if read < 1000 {
		t.Errorf("only %d items were read", read)
	}
}

func TestRolloutsNeedNoOwnJSON(t *testing.T) {
	var msgs []session.Message
	for _, file := range rollouts(t) {
		decoded := testkit.Must(responses.Decode(decodable(codexItems(t, file))))(t)
		msgs = append(msgs, decoded.Messages...)
	}
	dialecttest.KeepsOwnJSON(t, msgs, 0)
}

// A context made of any beginning of a rollout is accepted.
func TestEveryPrefixOfCodexRolloutsIsAccepted(t *testing.T) {
	checked := 0
	for _, file := range rollouts(t) {
		decoded := testkit.Must(responses.Decode(decodable(codexItems(t, file))))(t)
		msgs := dialecttest.Stored(t, decoded.Messages)
		for _, n := range dialecttest.Prefixes(len(msgs)) {
			whole := repaired(msgs[:n])
			if len(whole) == 0 {
				continue
			}
			accepted(t, wire.Request{Messages: whole})
			checked++
		}
	}
	if checked < 40 {
		t.Errorf("only %d prefixes were checked", checked)
	}
}

// decodable leaves out the items of the key sweep that no provider would give.
func decodable(items []jsontext.Value) []jsontext.Value {
	return slices.DeleteFunc(items, func(item jsontext.Value) bool {
		_, err := responses.Decode([]jsontext.Value{item})
		return err != nil
	})
}

package claudecode_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

// Exported in the provider's form, a session gives back every block of its transcript, each as
// it stood there: those of one reply together.
func TestExportGivesTheBlocksBack(t *testing.T) {
	for _, file := range []string{
		"entire-2.1.36-compaction-queue.jsonl", "entire-2.1.5-compaction-summaries.jsonl",
		"entire-2.1.12-two-session-ids.jsonl",
		"entire-2.1.12-microcompact.jsonl", "ccviewer-1.0.98-plain.jsonl",
	} {
		t.Run(file, func(t *testing.T) {
			h := newHouse(t)
			h.Import(sample(t, file))
			var talk []session.Message
			for _, m := range h.Entries(h.Sessions()[0].ID) {
				if m.Dialect == dialect.Anthropic {
					talk = append(talk, m)
				}
			}
			exported, err := dialect.Export(dialect.Anthropic, talk)
			if err != nil {
				t.Fatal(err)
			}
			var got, want []any
			for _, entry := range exported {
				got = append(got, blocksOf(t, entry)...)
			}
			for _, line := range strings.Split(historytest.Read(t, sample(t, file)), "\n") {
				var row struct {
					Type             string
					Message          jsontext.Value
					IsCompactSummary bool
				}
				if json.Unmarshal([]byte(line), &row) == nil && row.Message != nil &&
					(row.Type == "user" || row.Type == "assistant") && !row.IsCompactSummary {
					want = append(want, blocksOf(t, row.Message)...)
				}
			}
			if len(got) != len(want) || len(want) < 20 {
				t.Fatalf("%d blocks of %d", len(got), len(want))
			}
			for i := range want {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Errorf("block %d: %.300v\nis now %.300v", i, want[i], got[i])
				}
			}
		})
	}
}

// blocksOf returns the blocks of an entry with its role; a text is one, too.
func blocksOf(t *testing.T, entry []byte) []any {
	t.Helper()
	var o struct {
		Role    string
		Content any
	}
	if err := json.Unmarshal(entry, &o); err != nil {
		t.Fatal(err)
	}
	blocks, ok := o.Content.([]any)
	if !ok {
		blocks = []any{o.Content}
	}
	for i := range blocks {
		blocks[i] = []any{o.Role, blocks[i]}
	}
	return blocks
}

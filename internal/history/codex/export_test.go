package codex_test

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

// Exported in the provider's form, a session gives back the items of its rollout, each as it
// stood there.
func TestExportGivesTheItemsBack(t *testing.T) {
	for _, test := range []struct{ file, id string }{
		{"localpush-0.104-12-40-23.jsonl", "019c8a4c-ed82-79a1-aa28-7738fc5ab61a"},
		{"localpush-0.104-12-54-34.jsonl", "019c8a59-e9dd-71f0-9ae3-4079fe9726a9"},
		{"localpush-0.104-13-19-38.jsonl", "019c8a70-dda7-7f33-98ea-f30553347322"},
		{"constructed/paginated-*", "019c0000-0000-7000-8000-0000000000aa"},
		{"constructed/bare-*", "0198a000-0000-7000-8000-00000000000a"},
	} {
		t.Run(test.file, func(t *testing.T) {
			h := newHouse(t)
			h.Import(sample(t, test.file))
			var talk []session.Message
			for _, m := range h.Entries(h.Session(test.id).ID) {
				if m.Dialect == dialect.OpenAIResponses {
					talk = append(talk, m)
				}
			}
			got, err := dialect.Export(dialect.OpenAIResponses, talk)
			if err != nil {
				t.Fatal(err)
			}
			want := items(t, historytest.Read(t, sample(t, test.file)))
			if len(got) != len(want) {
				t.Fatalf("%d items of %d", len(got), len(want))
			}
			for i := range want {
				var a, b any
				if err := json.Unmarshal(want[i], &a); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(got[i], &b); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(a, b) {
					t.Errorf("item %d: %.300s\nis now %.300s", i, want[i], got[i])
				}
			}
		})
	}
}

func items(t *testing.T, text string) []jsontext.Value {
	t.Helper()
	var found []jsontext.Value
	for _, line := range strings.Split(text, "\n") {
		var o struct {
			Type    string
			Payload jsontext.Value
		}
		switch {
		case json.Unmarshal([]byte(line), &o) != nil:
		case o.Type == "response_item":
			found = append(found, o.Payload)
		case o.Payload == nil && o.Type != "":
			found = append(found, jsontext.Value(line))
		}
	}
	return found
}

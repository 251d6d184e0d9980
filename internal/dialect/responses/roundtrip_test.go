package responses_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/dialect/dialecttest"
	"sessiond/internal/dialect/responses"
)

func list(t testing.TB, items string) []json.RawMessage {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(items), &raw); err != nil {
		t.Fatalf("the case is no JSON array: %v", err)
	}
	return raw
}

func TestExportGivesBackWhatWasDecoded(t *testing.T) {
	for _, c := range wireCases() {
		t.Run(c.name, func(t *testing.T) { roundTrip(t, list(t, c.items)) })
	}
}

// roundTrip decodes items that must decode, stores them and exports them.
func roundTrip(t testing.TB, raw []json.RawMessage) {
	t.Helper()
	decoded, err := responses.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	exported, err := responses.Export(dialecttest.Stored(t, decoded.Messages))
	if err != nil {
		t.Fatal(err)
	}
	if want, got := dialecttest.Array(raw), dialecttest.Array(exported); !dialecttest.EqualJSON(want, got) {
		t.Errorf("export is not what was decoded\n want %.2000s\n got  %.2000s", want, got)
	}
}

func FuzzDecodeExport(f *testing.F) {
	const small = 4096 // the fuzzer spends its time on shrinking larger ones
	for _, c := range wireCases() {
		if len(c.items) < small {
			f.Add([]byte(c.items))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var raw []json.RawMessage
		if json.Unmarshal(body, &raw) != nil {
			t.Skip("no JSON array")
		}
		decoded, err := responses.Decode(raw)
		if err != nil {
			return
		}
		exported, err := responses.Export(dialecttest.Stored(t, decoded.Messages))
		if err != nil {
			t.Fatal(err)
		}
		if want, got := dialecttest.Array(raw), dialecttest.Array(exported); !dialecttest.EqualJSON(want, got) {
			t.Errorf("export is not what was decoded\n want %s\n got  %s", want, got)
		}
	})
}

func TestAnyItemComesBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		raw := rapid.SliceOfN(rapid.Custom(anyInput), 1, 6).Draw(r, "items")
		decoded, err := responses.Decode(raw)
		if err != nil {
			r.Fatalf("%s: %v", dialecttest.Array(raw), err)
		}
		exported, err := responses.Export(dialecttest.Stored(t, decoded.Messages))
		if err != nil {
			r.Fatal(err)
		}
		if want, got := dialecttest.Array(raw), dialecttest.Array(exported); !dialecttest.EqualJSON(want, got) {
			r.Fatalf("export is not what was decoded\n want %s\n got  %s", want, got)
		}
	})
}

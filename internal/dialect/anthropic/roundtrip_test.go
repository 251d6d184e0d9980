package anthropic_test

import (
	"encoding/json"
	"testing"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/testkit/dialecttest"
)

func list(t testing.TB, array string) []json.RawMessage {
	t.Helper()
	return dialecttest.List(t, array)
}

func cases(yield func(name, array string) bool) {
	for _, c := range wireCases() {
		if !yield(c.name, c.messages) {
			return
		}
	}
}

func roundTrip(t testing.TB, raw []json.RawMessage) {
	t.Helper()
	dialecttest.RoundTrip(t, anthropic.Form(), raw)
}

func TestExportGivesBackWhatWasDecoded(t *testing.T) {
	dialecttest.RoundTrips(t, anthropic.Form(), cases)
}

func TestAnyMessageComesBack(t *testing.T) {
	dialecttest.AnyRoundTrips(t, anthropic.Form(), anyMessage)
}

func FuzzDecodeExport(f *testing.F) {
	dialecttest.FuzzRoundTrip(f, anthropic.Form(), cases)
}

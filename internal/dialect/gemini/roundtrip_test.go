package gemini_test

import (
	"encoding/json"
	"testing"

	"sessiond/internal/dialect/gemini"
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

func TestExportGivesBackWhatWasDecoded(t *testing.T) {
	dialecttest.RoundTrips(t, gemini.Form(), cases)
}

func TestAnyContentComesBack(t *testing.T) {
	dialecttest.AnyRoundTrips(t, gemini.Form(), anyContent)
}

func FuzzDecodeExport(f *testing.F) {
	dialecttest.FuzzRoundTrip(f, gemini.Form(), cases)
}

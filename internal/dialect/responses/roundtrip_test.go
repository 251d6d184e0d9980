package responses_test

import (
	"encoding/json"
	"testing"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/testkit/dialecttest"
)

func list(t testing.TB, array string) []json.RawMessage {
	t.Helper()
	return dialecttest.List(t, array)
}

func cases(yield func(name, array string) bool) {
	for _, c := range wireCases() {
		if !yield(c.name, c.items) {
			return
		}
	}
}

func roundTrip(t testing.TB, raw []json.RawMessage) {
	t.Helper()
	dialecttest.RoundTrip(t, responses.Form(), raw)
}

func TestExportGivesBackWhatWasDecoded(t *testing.T) {
	dialecttest.RoundTrips(t, responses.Form(), cases)
}

func TestAnyItemComesBack(t *testing.T) {
	dialecttest.AnyRoundTrips(t, responses.Form(), anyInput)
}

func FuzzDecodeExport(f *testing.F) {
	dialecttest.FuzzRoundTrip(f, responses.Form(), cases)
}

package openaichat_test

import (
	"encoding/json"
	"testing"

	"sessiond/internal/dialect/openaichat"
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
	dialecttest.RoundTrips(t, openaichat.Form(), cases)
}

func TestAnyMessageComesBack(t *testing.T) {
	dialecttest.AnyRoundTrips(t, openaichat.Form(), anyMessage)
}

func FuzzDecodeExport(f *testing.F) {
	dialecttest.FuzzRoundTrip(f, openaichat.Form(), cases)
}

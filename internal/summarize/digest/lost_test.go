package digest_test

import (
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/summarize/digest"
)

// What a program's summary forgot is given back, and what it tells is not said again.
func TestWhatASummaryLost(t *testing.T) {
	msgs := []session.Message{
		person("Fix the importer. Never write the account number to the log. All money is integer cents."),
		call("bash", `{"command":"go test ./..."}`), result("bash", "41 passed, 3 failed in 18.2 s", true),
		model("The root cause is the new column of 2 March, the booking id. The rest is in order."),
		person("The bank's test server listens on port 8443."),
		model("I decided to read the columns by name, so that the next one does no harm."),
	}
	summary := "The user wants the importer fixed. All money is integer cents. " +
		"The model decided to read the columns by name so that the next one does no harm. Changed: import.go"
	got := digest.Lost(msgs, session.Givers{}, summary, []string{"bank/import.go", "bank/names.csv"}, 500, count)
	for _, want := range []string{
		"## Standing rules\n- Never write the account number to the log.",
		"model: The root cause is the new column of 2 March",
		"41 passed, 3 failed", "port 8443", "names.csv",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for _, told := range []string{"integer cents", "by name", "import.go", "in order"} {
		if strings.Contains(got, told) {
			t.Errorf("%q is said again:\n%s", told, got)
		}
	}
	if all := digest.Lost(msgs, session.Givers{}, "", []string{"bank/import.go"}, 500, count); !strings.Contains(all,
		"integer cents") || !strings.Contains(all, "by name") || !strings.Contains(all, "8443") {
		t.Errorf("without a summary it is\n%s", all)
	}
	for _, limit := range []int64{0, 10, 60, 200} {
		if short := digest.Lost(msgs, session.Givers{}, summary, []string{"bank/names.csv"}, limit,
			count); count(short) > limit {
			t.Errorf("limit %d: %d tokens\n%s", limit, count(short), short)
		}
	}
	if none := digest.Lost(nil, session.Givers{}, "", nil, 500, count); none != "" {
		t.Errorf("of nothing it lost %q", none)
	}
}

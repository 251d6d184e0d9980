package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

// The last record of a program counts, wherever it lies.
func TestLimitsOfAnAccountAreNoted(t *testing.T) {
	now := time.Now().UTC()
	ends := now.Add(3 * time.Hour).Unix()
	window := func(used float64, minutes int, seconds int64) string {
		return fmt.Sprintf(`{"used_percent":%g,"window_minutes":%d,"resets_at":%d}`, used, minutes, seconds)
	}
	said := func(ago time.Duration, fields string) string {
		return fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{%s}}}`,
			now.Add(-ago).Format(time.RFC3339Nano), fields)
	}
	full := `"limit_id":"codex","primary":` + window(100, 299, ends) + `,"secondary":` + window(40, 10080, ends+86400)
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a full window", []string{said(0, full)}, "5h 100 reached 7d 40"},
		{"credits", []string{said(0, full+`,"credits":{"has_credits":true}`)}, "5h 100 7d 40"},
		{
			"of one model", []string{said(0, strings.Replace(full, `"codex"`, `"codex_other"`, 1))}, "",
		},
		{
			"a newer record",
			[]string{said(time.Hour, full), said(0, `"primary":`+window(2, 300, ends+3600))},
			"5h 2 7d 40",
		},
		{"reset since", []string{said(4*time.Hour, `"primary":`+window(100, 300, ends-4*3600))}, ""},
		{
			"in seconds from then",
			[]string{said(0, `"primary":{"used_percent":100.0,"window_minutes":300,"resets_in_seconds":60}`)},
			"5h 100 reached",
		},
		{"no window", []string{said(0, `"primary":null,"secondary":{"used_percent":"x"}`)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			at := now.Add(-5 * time.Hour).Format(time.RFC3339Nano)
			lines := append([]string{
				`{"timestamp":"` + at + `","type":"session_meta","payload":{"id":"s","timestamp":"` + at + `","cwd":"/w"}}`,
				`{"timestamp":"` + at + `","type":"response_item","payload":{"type":"message","role":"user","content":` +
					`[{"type":"input_text","text":"hello"}]}}`,
			}, tt.lines...)
			file := filepath.Join(t.TempDir(), "rollout-s.jsonl")
			testkit.Check(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
			h.Import(file)
			var got []string
			for _, l := range testkit.Must(h.Store.Limits(t.Context()))(t) {
				one := fmt.Sprintf("%s %g", l.Name, l.Used)
				if l.Reached {
					one += " reached"
				}
				got = append(got, one)
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

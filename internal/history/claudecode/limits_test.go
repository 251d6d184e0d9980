package claudecode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// The rows are those of version 2.1.332 when a server rejects a request with 429, and of an early version.
func TestLimitOfAnAccountIsNoted(t *testing.T) {
	now := time.Now().UTC()
	ends := now.Add(3 * time.Hour).Unix()
	quota := func(status string) string {
		return fmt.Sprintf(`"quotaLimits":{"status":%q,"resetsAt":%d,"rateLimitType":"five_hour","isUsingOverage":false},`,
			status, ends)
	}
	for _, tt := range []struct{ name, fields, text, want string }{
		{"today's", quota("rejected"), "You've hit your limit · resets 1:03pm (UTC)", "5h"},
		{"an early version's", "", fmt.Sprintf("Claude AI usage limit reached|%d", ends), "limit"},
		{"with a key", "", "API Error: Request rejected (429)", ""},
		{"a warning", quota("allowed_warning"), "API Error: Overloaded", ""},
		{"a time that no clock gives", `"quotaLimits":{"status":"rejected","resetsAt":9e14},`, "You've hit your limit", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			row := func(id, parent, kind, fields, message string) string {
				return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","cwd":"/w","timestamp":%q,%s"message":%s}`+"\n",
					kind, id, parent, now.Format(time.RFC3339Nano), fields, message)
			}
			file := filepath.Join(t.TempDir(), "s.jsonl")
			testkit.Check(t, os.WriteFile(file, []byte(
				row("a", "null", "user", "", `{"role":"user","content":"hello"}`)+
					row("b", `"a"`, "assistant", `"isApiErrorMessage":true,`+tt.fields,
						`{"id":"m","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":`+
							string(session.JSONOf(tt.text))+`}]}`)), 0o600))
			h.Import(file)
			all := testkit.Must(h.Store.Limits(t.Context()))(t)
			if tt.want == "" {
				if len(all) != 0 {
					t.Errorf("%+v", all)
				}
				return
			}
			if len(all) != 1 || all[0].Name != tt.want || !all[0].Reached || all[0].ResetsAt.Unix() != ends {
				t.Errorf("%+v", all)
			}
		})
	}
}

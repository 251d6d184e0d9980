package digest

import "sessiond/internal/session"

// Index returns the index that the messages have beside a summary.
func Index(msgs []session.Message, summary string, budget int64, count func(string) int64) []string {
	return scan(msgs).index(nil, summary, nil, budget, count)
}

package claudecode

import (
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// textOfLimit begins the reply that early versions made at a limit; the time at which it ends follows, in seconds.
const textOfLimit = "Claude AI usage limit reached|"

// limit returns the limit of the account that a reply of the program itself tells: the API rejected a request. Requests
// with a key have no such limits, and their rejections end by themselves.
func (w *row) limit() (l session.Limit, ok bool) {
	if w.kind != typeAssistant || !w.made() {
		return l, false
	}
	l = session.Limit{Name: "limit", Used: 100, Reached: true, NotedAt: w.at}
	quota := w.Inner("quotaLimits")
	ends := history.Count(quota.Get("resetsAt"))
	if kind := plain(quota.String("rateLimitType")); kind != "" {
		l.Name = session.WindowName(kind)
	}
	if len(quota) == 0 {
		if said, early := strings.CutPrefix(w.text, textOfLimit); early {
			ends = history.Count([]byte(said))
		}
	} else if quota.String("status") != "rejected" || string(quota.Get("isUsingOverage")) == "true" {
		return l, false
	}
	l.ResetsAt = session.At(time.Unix(ends, 0))
	return l, ends > 0 && w.timed
}

package codex

import (
	"cmp"
	"strconv"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// limitOfCodex is the id of the limit of the program itself; others are of single models.
const limitOfCodex = "codex"

// noteLimits notes what an event token_count says of the account's limits.
func (r *reader) noteLimits(rec *record) {
	said := rec.payload.Inner("rate_limits")
	if id := said.String("limit_id"); len(said) == 0 || r.in.Old(rec.offset) || r.state.Copying || r.inherits ||
		id != "" && id != limitOfCodex {
		return
	}
	credits := said.Inner("credits")
	paid := string(credits.Get("has_credits")) == "true" || string(credits.Get("unlimited")) == "true"
	for _, name := range []string{"primary", "secondary"} {
		if l, ok := limitOf(said.Inner(name), name, rec.at); ok {
			l.Reached = l.Used >= 100 && !paid
			r.talk.Limit(l)
		}
	}
}

// limitOf reads a window of an account.
func limitOf(window jsonx.Object, name string, at session.Time) (l session.Limit, ok bool) {
	used, ok := history.Number(window.Get("used_percent"))
	if !ok || used < 0 {
		return l, false
	}
	l = session.Limit{Name: name, Used: used, NotedAt: at}
	if minutes := history.Count(window.Get("window_minutes")); minutes > 0 {
		l.Name = windowName(minutes)
	}
	seconds := history.Count(window.Get("resets_at"))
	in := cmp.Or(history.Count(window.Get("resets_in_seconds")), history.Count(window.Get("reset_after_seconds")))
	switch {
	case seconds > 0:
		l.ResetsAt = session.At(time.Unix(seconds, 0))
	case in > 0:
		l.ResetsAt = session.At(at.Add(time.Duration(in) * time.Second))
	}
	return l, !l.ResetsAt.IsZero()
}

// windowName writes a length in minutes as 5h or 7d. Some servers say a minute less.
func windowName(minutes int64) string {
	const hour, day = 60, 24 * 60
	switch minutes = (minutes + 1) / 2 * 2; {
	case minutes%day == 0:
		return strconv.FormatInt(minutes/day, 10) + "d"
	case minutes%hour == 0:
		return strconv.FormatInt(minutes/hour, 10) + "h"
	}
	return strconv.FormatInt(minutes, 10) + "min"
}

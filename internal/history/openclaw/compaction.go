package openclaw

import (
	"math"
	"strconv"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// compaction turns the record into an overlay. OpenClaw gives a model the summary, then the
// path from the first kept entry on; so the overlay ends with the entry before that one. When
// that entry is not on the record's path nothing before the record is kept; and when nothing
// stands before the record, which is so where a transcript was cut, the record itself is all
// that it hides.
func (r *reader) compaction(i int32, o history.Object, at session.Time) *history.Compaction {
	c := r.overlay(i, r.firstKept(i, o), at)
	if c == nil {
		return nil
	}
	c.Strategy = session.StrategySummarize
	c.Summary = o.String("summary")
	if tokens, ok := whole(o.Get("tokensBefore")); ok && tokens > 0 {
		c.TokensBefore = tokens
	}
	c.Details = pi.Details(o.Get("details"))
	return c
}

// resetOf turns the record into an overlay without a summary: the conversation began anew, with
// what the record says was kept.
func (r *reader) resetOf(i int32, o history.Object, at session.Time) *history.Compaction {
	c := r.overlay(i, r.firstKept(i, o), at)
	if c == nil {
		return nil
	}
	c.Strategy = session.StrategyClear
	if reason := o.String("reason"); reason != "" {
		c.Reason = "reset: " + reason
	}
	return c
}

// overlay is nil when nothing stands before what is kept.
func (r *reader) overlay(i, kept int32, at session.Time) *history.Compaction {
	n := &r.nodes[i]
	c := &history.Compaction{Key: r.keyOf(i)}
	c.Trigger, c.Status, c.CreatedAt = session.TriggerImport, session.StatusDone, at
	through := n.parent
	if kept >= 0 {
		through = r.nodes[kept].parent
		c.FirstKeptKey = r.keyOf(kept)
	}
	switch {
	case through < 0 && kept >= 0:
		return nil
	case through < 0:
		through = i
	}
	c.ThroughKey = r.keyOf(through)
	for at := through; at >= 0 && at != i && !r.nodes[at].kind.boundary(); at = r.nodes[at].parent {
		c.MessageCount++
	}
	c.Record = history.Place{Key: c.Key}
	return c
}

// firstKept finds the first kept entry on the path of the record, -1 if there is none.
func (r *reader) firstKept(i int32, o history.Object) int32 {
	id, place := o.String("firstKeptEntryId"), int32(-1)
	if index, ok := whole(o.Get("firstKeptEntryIndex")); ok && r.version == 1 && index > 0 && index < math.MaxInt32 {
		place = int32(index) - 1 // it counts the header
	}
	if id == "" && place < 0 {
		return -1
	}
	for at := r.nodes[i].parent; at >= 0; at = r.nodes[at].parent {
		if n := &r.nodes[at]; id != "" && n.id == id || place >= 0 && n.place == place {
			return at
		}
	}
	return -1
}

// whole reads a whole number.
func whole(raw []byte) (int64, bool) {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > 1e15 {
		return 0, false
	}
	return int64(n), true
}

package jobs

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Doubt keeps retention from removing everything at once after a clock was set far ahead, also one that was behind
// and is right now: what was stored meanwhile looks old. Two things prove the time: a stored time, and a monotonic
// clock, which cannot be set. When the host's clock is further ahead of both than a pause explains, retention waits
// until the clock did not leap again for the time of patience. People can set the clock right until then; after a
// real pause only a day is lost. It is safe for concurrent use.
type Doubt struct {
	Since func() time.Duration // reading of a monotonic clock

	mu      sync.Mutex
	wall    time.Time     // at the last check
	since   time.Duration // at the last check
	leapAt  time.Duration // reading of Since at the last leap
	doubted bool
}

const (
	leap     = 48 * time.Hour
	patience = 12 * time.Hour
)

// SettledBefore is the time before which a stored time proves the clock: a newer one may be of the clock in question.
func SettledBefore(now time.Time) time.Time { return now.Add(-patience) }

// NewDoubt returns a Doubt that starts with the newest stored time before SettledBefore; zero: nothing is stored.
func NewDoubt(now, known time.Time, since func() time.Duration, log zerolog.Logger) *Doubt {
	d := &Doubt{Since: since, wall: now, since: since()}
	if ahead := now.Sub(known); !known.IsZero() && ahead > leap {
		d.begin(ahead, log)
	}
	return d
}

func (d *Doubt) begin(ahead time.Duration, log zerolog.Logger) {
	d.leapAt, d.doubted = d.since, true
	log.Warn().Time("clock", d.wall).Float64("days_ahead", ahead.Hours()/24).
		Msg("the clock is far ahead of the known time: nothing old is removed for half a day, " +
			"so that a wrong clock removes nothing; set it right, or wait")
}

// distrusts reports whether the clock may be wrong.
func (d *Doubt) distrusts(now time.Time, log zerolog.Logger) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	since := d.Since()
	ahead := now.Sub(d.wall) - (since - d.since)
	d.wall, d.since = now, since
	if ahead > leap {
		d.begin(ahead, log)
		return true
	}
	if d.doubted && since-d.leapAt < patience {
		log.Warn().Time("clock", now).Msg("the clock was far ahead of the known time: nothing old is removed yet")
		return true
	}
	d.doubted = false
	return false
}

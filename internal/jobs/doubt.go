package jobs

import (
	"time"

	"github.com/rs/zerolog"
)

// Doubt keeps a clock that was set far ahead from removing everything at once, as if years had
// gone by. Time went by for sure as far as something was stored, and as far as a clock went on
// that cannot be set. Where the host's clock is further ahead of both than a pause explains,
// nothing is removed by age at that look, nor before patience has gone by without another leap:
// somebody can set the clock right until then, and after a real pause nothing is lost but a day.
type Doubt struct {
	Since func() time.Duration // a clock that cannot be set: how long ago it began

	wall  time.Time     // at the last look
	since time.Duration // at the last look
	from  *time.Duration
}

const (
	leap     = 48 * time.Hour
	patience = 12 * time.Hour
)

// NewDoubt begins with the newest time that anything stored has, before anything is stored by
// the clock that is doubted; zero: nothing is.
func NewDoubt(now, newest time.Time, since func() time.Duration, log zerolog.Logger) *Doubt {
	d := &Doubt{Since: since, wall: now, since: since()}
	if ahead := now.Sub(newest); !newest.IsZero() && ahead > leap {
		d.begin(ahead, log)
	}
	return d
}

func (d *Doubt) begin(ahead time.Duration, log zerolog.Logger) {
	from := d.since
	d.from = &from
	log.Warn().Time("clock", d.wall).Float64("days_ahead", ahead.Hours()/24).
		Msg("the clock is far ahead of what is known of the time: retention waits, so that a wrong clock removes nothing; set it right, or wait a day")
}

// holds tells whether the clock is not to be believed yet.
func (d *Doubt) holds(now time.Time, log zerolog.Logger) bool {
	since := d.Since()
	ahead := now.Sub(d.wall) - (since - d.since)
	d.wall, d.since = now, since
	if ahead > leap {
		d.begin(ahead, log)
		return true
	}
	if d.from != nil && since-*d.from < patience {
		log.Warn().Time("clock", now).Msg("the clock was far ahead of what is known of the time: retention still waits")
		return true
	}
	d.from = nil
	return false
}

package jobs

import (
	"context"
	"time"
)

// Daily is work that the daemon does once a day, at a local hour. Do tells itself what went wrong.
type Daily struct {
	Hour int // 0 to 23
	Do   func(ctx context.Context)
}

// daily runs one of the day's works until the daemon stops.
func (r *Runner) daily(d Daily) {
	for {
		now := r.cfg.Now()
		timer := time.NewTimer(nextHour(now, d.Hour, r.cfg.Zone).Sub(now))
		select {
		case <-r.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		d.Do(r.ctx)
	}
}

// nextHour is the next moment after now at which a clock in the zone shows the hour. On a day
// that skips the hour it is the moment after the gap.
func nextHour(now time.Time, hour int, zone *time.Location) time.Time {
	local := now.In(zone)
	for day := 0; ; day++ {
		at := time.Date(local.Year(), local.Month(), local.Day()+day, hour, 0, 0, 0, zone)
		if at.After(now) {
			return at
		}
	}
}

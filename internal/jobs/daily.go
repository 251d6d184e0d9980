package jobs

import (
	"context"
	"time"

	"sessiond/internal/routing"
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
		timer := time.NewTimer(routing.NextBoundary(now, r.cfg.Zone, d.Hour).Sub(now))
		select {
		case <-r.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		d.Do(r.ctx)
	}
}

package jobs

import (
	"context"
	"time"

	"sessiond/internal/routing"
)

// Daily is a job that the daemon runs once a day, at a local hour. Do reports its own errors.
type Daily struct {
	Hour int // 0 to 23
	Do   func(ctx context.Context)
}

// runDaily runs a daily job until the daemon stops.
func (r *Runner) runDaily(d Daily) {
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

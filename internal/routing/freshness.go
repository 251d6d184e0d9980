package routing

import "time"

// Reason why a generation ended.
type Reason string

// The reasons.
const (
	EndDaily     Reason = "daily"
	EndIdle      Reason = "idle"
	EndCommand   Reason = "command"    // a person asked for it
	EndRPC       Reason = "rpc"        // a program asked for it
	EndRun       Reason = "run"        // the next run of a job or a webhook
	EndOverflow  Reason = "overflow"   // compaction itself ran into the limit
	EndRoleOrder Reason = "role_order" // the provider refused the order of roles
	EndCorrupt   Reason = "corrupt"    // the provider refused the place of a call
)

// Freshness is whether a generation goes on, and what was held against it.
type Freshness struct {
	Fresh         bool
	Reason        Reason     // EndDaily or EndIdle when not fresh: which expired first
	Boundary      *time.Time // the daily boundary in force; nil: no daily rule
	IdleExpiresAt *time.Time // nil: no idle rule
}

// Fresh judges a generation at now. The daily rule goes by the last message from outside, so
// that a turn that runs over the boundary does not carry the generation into the next day;
// the idle rule goes by the last activity. A clock that was set back makes nothing stale.
func (p Policy) Fresh(now, inbound, activity time.Time, zone *time.Location) Freshness {
	f := Freshness{Fresh: true}
	var dailyAt, idleAt time.Time // when each rule expired
	if p.daily() {
		boundary := Boundary(now, zone, p.AtHour)
		f.Boundary = &boundary
		if inbound.Before(boundary) {
			dailyAt = NextBoundary(inbound, zone, p.AtHour)
		}
	}
	if p.idle() {
		ends := activity.Add(time.Duration(*p.IdleMinutes) * time.Minute)
		f.IdleExpiresAt = &ends
		if now.After(ends) {
			idleAt = ends
		}
	}
	switch {
	case dailyAt.IsZero() && idleAt.IsZero():
		return f
	case dailyAt.IsZero(), !idleAt.IsZero() && idleAt.Before(dailyAt):
		f.Reason = EndIdle
	default:
		f.Reason = EndDaily
	}
	f.Fresh = false
	return f
}

package routing

import "time"

// Reason is the reason why a generation ended.
type Reason string

// The reasons.
const (
	EndDaily     Reason = "daily"
	EndIdle      Reason = "idle"
	EndCommand   Reason = "command"    // a person requested it
	EndRPC       Reason = "rpc"        // a program requested it
	EndRun       Reason = "run"        // the next run of a job or a webhook
	EndOverflow  Reason = "overflow"   // compaction itself exceeded the limit
	EndRoleOrder Reason = "role_order" // the provider rejected the order of roles
	EndCorrupt   Reason = "corrupt"    // the provider rejected the place of a call
)

// Freshness says whether a generation continues, and by which limits.
type Freshness struct {
	Fresh         bool
	Reason        Reason     // EndDaily or EndIdle when not fresh: the first to expire
	Boundary      *time.Time // the current daily boundary; nil: no daily rule
	IdleExpiresAt *time.Time // nil: no idle rule
}

// Fresh returns the freshness of a generation at now. The daily rule compares the last message from
// outside, so that a turn that runs past the boundary does not extend the generation into the next
// day. The idle rule compares the last activity. A clock that was set back makes nothing stale.
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

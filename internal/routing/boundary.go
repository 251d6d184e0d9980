package routing

import (
	"time"
	_ "time/tzdata" // a host without zone files must not change when a day ends
)

// Boundary gives the latest daily boundary at an hour of a zone that is not later than now.
//
// The boundary of a local date is the first instant on or after the start of that day at which
// the zone's clock reads the hour or later: an hour that is skipped is replaced by the first
// instant after the gap, of an hour that comes twice the first one counts.
func Boundary(now time.Time, zone *time.Location, hour int) time.Time {
	local := now.In(zone)
	// A boundary can be moved to the next date and a date can be missing: look around.
	for day := 1; day >= -4; day-- {
		if b := boundaryOf(local.Year(), local.Month(), local.Day()+day, hour, zone); !b.After(now) {
			return b
		}
	}
	return boundaryOf(local.Year(), local.Month(), local.Day()-5, hour, zone)
}

// NextBoundary gives the first daily boundary after t.
func NextBoundary(t time.Time, zone *time.Location, hour int) time.Time {
	local := t.In(zone)
	for day := -1; day <= 3; day++ {
		if b := boundaryOf(local.Year(), local.Month(), local.Day()+day, hour, zone); b.After(t) {
			return b
		}
	}
	return boundaryOf(local.Year(), local.Month(), local.Day()+4, hour, zone)
}

// boundaryOf gives the boundary of one local date. What time.Date makes of an hour that is
// skipped or repeated is not defined, so the offsets around it are tried.
func boundaryOf(year int, month time.Month, day, hour int, zone *time.Location) time.Time {
	wall := time.Date(year, month, day, hour, 0, 0, 0, time.UTC)
	const around = 36 * time.Hour
	earlier := shifted(wall, wall.Add(-around), zone)
	later := shifted(wall, wall.Add(around), zone)
	fits := func(t time.Time) bool { return wallClock(t, zone).Equal(wall) }
	switch a, b := fits(earlier), fits(later); {
	case a && b && later.Before(earlier):
		return later
	case a:
		return earlier
	case b:
		return later
	}
	start, _ := earlier.In(zone).ZoneBounds()
	return start.UTC()
}

// shifted gives the instant of a wall clock with the offset that the zone has at another instant.
func shifted(wall, at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return wall.Add(-time.Duration(offset) * time.Second)
}

// wallClock gives what the zone's clock reads, as if it were UTC.
func wallClock(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

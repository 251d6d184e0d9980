package routing

import (
	"time"
	_ "time/tzdata" // a host without zone files must not change when a day ends
)

// Boundary returns the latest daily boundary, at an hour of a zone, that is not after now.
//
// The boundary of a local date is the first instant on or after the start of that day at which
// the zone's clock reads the hour or later. For a skipped hour it is the first instant after the
// gap; for a repeated hour, the first one.
func Boundary(now time.Time, zone *time.Location, hour int) time.Time {
	local := now.In(zone)
	// A boundary can move to the next date, and a date can be missing.
	for day := 1; day >= -4; day-- {
		if b := boundaryOf(local.Year(), local.Month(), local.Day()+day, hour, zone); !b.After(now) {
			return b
		}
	}
	return boundaryOf(local.Year(), local.Month(), local.Day()-5, hour, zone)
}

// NextBoundary returns the first daily boundary after t.
func NextBoundary(t time.Time, zone *time.Location, hour int) time.Time {
	local := t.In(zone)
	for day := -1; day <= 3; day++ {
		if b := boundaryOf(local.Year(), local.Month(), local.Day()+day, hour, zone); b.After(t) {
			return b
		}
	}
	return boundaryOf(local.Year(), local.Month(), local.Day()+4, hour, zone)
}

// boundaryOf returns the boundary of one local date. It tries the offsets around the hour, because
// time.Date does not define its result for a skipped or repeated hour.
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

// shifted returns the instant of a wall clock under the zone's offset at another instant.
func shifted(wall, at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return wall.Add(-time.Duration(offset) * time.Second)
}

// wallClock returns the reading of the zone's clock, as if it were UTC.
func wallClock(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

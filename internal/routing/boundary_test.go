package routing_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sessiond/internal/routing"
	"sessiond/internal/testkit"
)

// slowBoundary walks the zone's clock until it reads an hour of a date, or later.
func slowBoundary(year int, month time.Month, day, hour int, zone *time.Location) time.Time {
	want := time.Date(year, month, day, hour, 0, 0, 0, time.UTC)
	for t := want.Add(-15 * time.Hour); ; t = t.Add(15 * time.Minute) {
		_, offset := t.In(zone).Zone()
		if wall := t.Add(time.Duration(offset) * time.Second); !wall.Before(want) {
			return t
		}
	}
}

func TestBoundariesMatchTheZonesClock(t *testing.T) {
	names := rapid.SampledFrom([]string{
		"UTC", "Europe/Berlin", "America/New_York", "America/Nuuk", "Australia/Lord_Howe", "Asia/Kolkata", "Asia/Kathmandu",
		"America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "America/Havana", "Pacific/Chatham", "Asia/Tehran",
		"Africa/Casablanca",
	})
	rapid.Check(t, func(t *rapid.T) {
		zone := testkit.Must(routing.LoadZone(names.Draw(t, "zone")))(t)
		hour := rapid.IntRange(0, 23).Draw(t, "hour")
		d := time.Date(2008, 1, 1+rapid.IntRange(0, 8000).Draw(t, "day"), 0, 0, 0, 0, time.UTC)
		want := slowBoundary(d.Year(), d.Month(), d.Day(), hour, zone)
		if got := routing.Boundary(want, zone, hour); !got.Equal(want) {
			t.Fatalf("at %s the boundary is %s", want, got)
		}
		before := want.Add(-time.Millisecond)
		if got := routing.NextBoundary(before, zone, hour); !got.Equal(want) {
			t.Fatalf("after %s comes %s, not %s", before, got, want)
		}
		last, now := routing.Boundary(before, zone, hour),
			before.Add(-time.Duration(rapid.IntRange(0, 100_000).Draw(t, "ago"))*time.Second)
		if last.After(before) || !routing.NextBoundary(last, zone, hour).Equal(want) {
			t.Fatalf("before %s the boundary was %s", want, last)
		}
		if b := routing.Boundary(now, zone, hour); b.After(now) || now.Sub(b) > 50*time.Hour {
			t.Fatalf("at %s the boundary is %s", now, b)
		}
	})
}

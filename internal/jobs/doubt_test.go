package jobs

import (
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestClockThatLeapsAheadDelaysRetention(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	type look struct {
		since, clock time.Duration // by the clock that cannot be set, and by the host's, since the beginning
		holds        bool
	}
	for _, test := range []struct {
		name   string
		newest time.Duration // of what is stored, before the beginning; negative: nothing is
		looks  []look
	}{
		{"all is well", hour, []look{{5 * hour, 5 * hour, false}, {29 * hour, 29 * hour, false}}},
		{"nothing is stored", -1, []look{{5 * hour, 5 * hour, false}}},
		{"a quiet weekend", 40 * hour, []look{{hour, hour, false}}},
		{"started with a wrong clock", 3650 * day, []look{{5 * hour, 5 * hour, true}, {29 * hour, 29 * hour, false}}},
		{"set ahead while it runs", hour, []look{{5 * hour, 5 * hour, false}, {6 * hour, 3650 * day, true}, {10 * hour, 3650*day + 4*hour, true}, {30 * hour, 3651 * day, false}}},
		{"set ahead, and right again", hour, []look{{5 * hour, 3650 * day, true}, {29 * hour, 29 * hour, false}}},
		{"ahead and further ahead", hour, []look{{5 * hour, 30 * day, true}, {29 * hour, 90 * day, true}, {53 * hour, 91 * day, false}}},
		{"asleep for a night", hour, []look{{hour, hour, false}, {9 * hour, 25 * hour, false}}},
		{"set back", hour, []look{{5 * hour, -3650 * day, false}, {29 * hour, -3649 * day, false}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			newest := begun.Add(-test.newest)
			if test.newest < 0 {
				newest = time.Time{}
			}
			var since time.Duration
			d := NewDoubt(begun, newest, func() time.Duration { return since }, zerolog.Nop())
			for i, look := range test.looks {
				since = look.since
				if got := d.distrusts(begun.Add(look.clock), zerolog.Nop()); got != look.holds {
					t.Errorf("look %d: %v", i, got)
				}
			}
		})
	}
}

package store

import (
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// A start mends what lies in the future, unless its own clock may be the one that is wrong.
func TestOnlyAClockThatIsSureMendsTheFuture(t *testing.T) {
	const year = 365
	for _, c := range []struct {
		name     string
		active   []float64 // days at which a session is active, one after the other
		restored float64   // the day that a session's row says; 0: none
		now      float64
		mended   []float64 // when each is active after the start
	}{
		{"a file dates a session 2099", []float64{0, 1}, 73 * year, 2, []float64{0, 1, 1}},
		{"the clock was ahead, and is right again", []float64{0, 73 * year, 1}, 0, 2, []float64{0, 0, 1}},
		{"the clock was ahead until this start", []float64{0, 1, 73 * year}, 0, 2, []float64{0, 1, 1}},
		{"the clock is behind", []float64{year, year + 1}, 0, 0, []float64{year, year + 1}},
		{
			"the clock is behind, and was at the start before",
			[]float64{year, year + 1, 1},
			0, 2,
			[]float64{year, year + 1, 1},
		},
		{"the clock is behind, but not as far as the store is old", days(0, 100), 0, 20, days(0, 100)},
		{"it comes true within the month", []float64{0, 1}, 20, 2, []float64{0, 1, 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun := time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
			day := func(n float64) time.Time { return begun.Add(time.Duration(n * float64(24*time.Hour))) }
			now := day(c.active[0])
			s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
			testkit.Check(t, s.write(t.Context(), func(t *tx) error {
				return t.Exec(`UPDATE store SET created_at = ?`, session.At(day(c.active[0])))
			}))
			var ids []session.ID
			for _, at := range c.active {
				now = day(at)
				ids = append(ids, mustCreate(t, s, NewSession{}).ID)
			}
			if c.restored != 0 {
				ids = append(ids, mustCreate(t, s, NewSession{}).ID)
				testkit.Check(t, s.write(t.Context(), func(t *tx) error {
					return t.Exec(`UPDATE sessions SET active_at = ?, updated_at = ? WHERE id = ?`,
						session.At(day(c.restored)), session.At(day(c.restored)), ids[len(ids)-1])
				}))
			}
			testkit.Check(t, s.Close())
			now = day(c.now)
			s = testkit.Must(Open(t.Context(), s.File(), s.opt))(t)
			defer s.Close()
			for i, id := range ids {
				got := testkit.Must(s.Session(t.Context(), id))(t)
				if want := day(c.mended[i]); !got.ActiveAt.Equal(want) ||
					got.UpdatedAt.After(day(c.now)) && !want.After(day(c.now)) {
					t.Errorf("session %d is active at %s and changed at %s, not %s", i, got.ActiveAt, got.UpdatedAt, want)
				}
			}
		})
	}
}

func days(from, to int) (all []float64) {
	for n := from; n < to; n++ {
		all = append(all, float64(n))
	}
	return all
}

func TestThePlanOfWhatLiesInTheFutureIsAnIndex(t *testing.T) {
	onFile(t)
	s := openTest(t)
	for _, detail := range planOf(t, raw(t, s), sessionFromFuture, []any{""}) {
		if detail != "SEARCH sessions USING COVERING INDEX sessions_active (active_at>?)" {
			t.Error(detail)
		}
	}
}

// The file that an event tells of is as old as it says: a session that changed since tells nothing.
func TestTheKnownTimeIsOfWhatArrivedLast(t *testing.T) {
	start := time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
	now := start
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	knows := func(want time.Time) {
		t.Helper()
		if got := testkit.Must(s.KnownTime(t.Context(), now.Add(-12*time.Hour)))(t); !got.Equal(want) {
			t.Errorf("the known time is %s, not %s", got, want)
		}
	}
	knows(time.Time{})
	id := mustCreate(t, s, NewSession{}).ID
	now = start.Add(13 * time.Hour)
	knows(start)
	behind := start.AddDate(0, 0, -60)
	now = behind
	mustAppend(t, s, id, says(session.User, "the clock is behind"))
	now = start.Add(14 * time.Hour)
	mustAppend(t, s, id, says(session.User, "and was set"))
	knows(behind)
}

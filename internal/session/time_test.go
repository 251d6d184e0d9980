package session

import (
	"testing"
	"time"
)

func TestTimesOfTheDatabaseAndTheWire(t *testing.T) {
	for text, want := range map[string]string{
		"2026-02-11 10:00:15.123": `"2026-02-11T10:00:15.123Z"`,
		"2026-02-11 10:00:15":     `"2026-02-11T10:00:15.000Z"`, // by datetime('now')
		"1970-01-01 00:00:00.007": `"1970-01-01T00:00:00.007Z"`,
		"9999-12-31 23:59:59.990": `"9999-12-31T23:59:59.990Z"`,
	} {
		var at Time
		if err := at.Scan(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got, err := at.MarshalJSON(); err != nil || string(got) != want || at.Location() != time.UTC {
			t.Errorf("%s is %s, %v, want %s", text, got, err, want)
		}
		var again Time
		if err := again.UnmarshalJSON([]byte(want)); err != nil || !again.Equal(at.Time) {
			t.Errorf("%s is read as %s, %v", want, again, err)
		}
	}
	east := Time{time.Date(2026, 2, 11, 0, 30, 0, 5e6, time.FixedZone("east", 2*3600))}
	if got, _ := east.MarshalJSON(); string(got) != `"2026-02-10T22:30:00.005Z"` {
		t.Errorf("another zone: %s", got)
	}
	for _, text := range []any{
		"", "2026-02-11", "2026-02-11T10:00:15Z", "2026-02-11 10:00:15Z", "2026-02-31 10:00:15",
		int64(5), nil,
	} {
		var at Time
		if err := at.Scan(text); err == nil {
			t.Errorf("%v is %s", text, at)
		}
	}
}

// Days of zones east and west of UTC reach beyond the years that PostgreSQL and SQLite's texts have.
func TestTimesOfTheDatabaseHaveYearsOfFourDigits(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 2*3600)), "0001-01-01 00:00:00.000"},
		{time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), "0001-01-01 00:00:00.000"},
		{time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -2*3600)), "9999-12-31 23:59:59.999"},
		{time.Date(2026, 2, 11, 1, 0, 0, 0, time.FixedZone("east", 2*3600)), "2026-02-10 23:00:00.000"},
	} {
		if got := (Time{c.at}).SQL(); got != c.want {
			t.Errorf("%s is stored as %s, want %s", c.at, got, c.want)
		}
	}
}

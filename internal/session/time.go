package session

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// Time is a time in UTC with millisecond precision. The database has SQLite's text form, so that
// DATE(created_at) works; the wire has RFC 3339 with milliseconds.
type Time struct{ time.Time }

const (
	sqlTime  = "2006-01-02 15:04:05.000"
	wireTime = "2006-01-02T15:04:05.000Z07:00"
)

// At rounds t down to a millisecond, in UTC.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// SQL returns the database's text form: 2026-02-11 10:00:15.123. Its years are 1 to 9999, as PostgreSQL and the order
// of texts need them: a day that begins before in UTC begins with year 1.
func (t Time) SQL() string {
	switch at := t.UTC(); {
	case at.Year() < 1:
		return "0001-01-01 00:00:00.000"
	case at.Year() > 9999:
		return "9999-12-31 23:59:59.999"
	default:
		return at.Format(sqlTime)
	}
}

// Day returns the day of t in a zone, as YYYY-MM-DD.
func (t Time) Day(zone *time.Location) string { return t.In(zone).Format(time.DateOnly) }

// CheckDate refuses a time before 1970 or more than a day after now: the clock or the program that
// gave it is wrong. field is the time's name in the request. Codes: Invalid.
func (t Time) CheckDate(field string, now time.Time) error {
	if t.Unix() >= 0 && t.Before(now.AddDate(0, 0, 1)) {
		return nil
	}
	return Errorf(Invalid, "%s is %s, which is not between 1970 and tomorrow; leave it out for the time of arrival", field,
		t.Format(time.RFC3339)).
		At(field, "not between 1970 and tomorrow")
}

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) { return t.SQL(), nil }

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("a time column contains %T, not text", src)
	}
	var parsed time.Time
	err := errNoTime
	// package time is fast for RFC 3339 alone, and a list reads hundreds
	if len(text) > len(time.DateOnly) && text[len(time.DateOnly)] == ' ' {
		parsed, err = time.Parse(time.RFC3339Nano, text[:len(time.DateOnly)]+"T"+text[len(time.DateOnly)+1:]+"Z")
	}
	if err != nil {
		return fmt.Errorf("a time column contains %q: %w", clip(text, 40), err)
	}
	t.Time = parsed
	return nil
}

var errNoTime = errors.New("not a time like 2026-02-11 10:00:15.123")

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	utc := t.UTC()
	b := make([]byte, 0, len(wireTime)+2)
	b = utc.AppendFormat(append(b, '"'), time.RFC3339) // which is fast
	ms := utc.Nanosecond() / 1e6
	return append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"'), nil
}

// UnmarshalJSON accepts any RFC 3339 time and keeps its milliseconds.
func (t *Time) UnmarshalJSON(b []byte) error {
	parsed, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(b))
	if err != nil {
		return Errorf(Invalid, "%s is no RFC 3339 time like 2026-02-11T10:00:15.000Z", clip(string(b), 60))
	}
	*t = At(parsed)
	return nil
}

package db

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Time is a point in time as the tables keep it: unix microseconds in a BIGINT
// column. It is a field of bun models and an argument of conditions. The zero
// time is 0, or NULL with the tag nullzero; both read as the zero time. Times
// read are in UTC.
type Time struct{ time.Time }

// At returns t as the database keeps it: in UTC, without nanoseconds.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// AtOrZero is At for an optional time; nil is the zero time.
func AtOrZero(t *time.Time) Time {
	if t == nil {
		return Time{}
	}
	return At(*t)
}

// Now returns the present as the database keeps it.
func Now() Time { return At(time.Now()) }

// FromMicros returns the time of unix microseconds; 0 is the zero time.
func FromMicros(us int64) Time {
	if us == 0 {
		return Time{}
	}
	return Time{time.UnixMicro(us).UTC()}
}

// Micros returns the unix microseconds of t; the zero time is 0.
func (t Time) Micros() int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Ptr returns the time, or nil for the zero time.
func (t Time) Ptr() *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t.Time
}

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) { return t.Micros(), nil }

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	switch us := src.(type) {
	case nil:
		*t = Time{}
	case int64:
		*t = FromMicros(us)
	default:
		return fmt.Errorf("a time column holds %T instead of unix microseconds", src)
	}
	return nil
}

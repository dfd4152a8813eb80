package ledger

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Time is a time in Unix milliseconds, the form in which it is stored. Its text form
// is RFC 3339 in UTC with three decimals. The zero Time means no time.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000Z"

// TimeOf returns t truncated to milliseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Add returns t+d.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Millisecond }

// String returns the text form. It is empty for the zero Time.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.Std().Format(timeLayout)
}

// AppendText implements encoding.TextAppender.
func (t Time) AppendText(b []byte) ([]byte, error) {
	if t == 0 {
		return b, nil
	}
	return t.Std().AppendFormat(b, timeLayout), nil
}

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts any RFC 3339 time but
// the zero Time: documents omit a field to say that there is no time.
func (t *Time) UnmarshalText(b []byte) error {
	parsed, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return fmt.Errorf("%q is not an RFC 3339 time (use e.g. 2026-11-20T09:00:00Z)", text.Clip(string(b)))
	}
	switch year := parsed.UTC().Year(); {
	case year < 1970 || year > 9999:
		return fmt.Errorf("%q is outside the years 1970 to 9999 (UTC)", text.Clip(string(b)))
	case TimeOf(parsed) == 0:
		return fmt.Errorf("%q is the Unix epoch, which stands for no time (omit it instead)", text.Clip(string(b)))
	}
	*t = TimeOf(parsed)
	return nil
}

// ParseSince parses an RFC 3339 time or a date, which means the start of that day in
// UTC.
func ParseSince(s string) (Time, error) {
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		s = day.Format(timeLayout)
	}
	var t Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return 0, fmt.Errorf("%q is not a time or date after 1970-01-01 (use e.g. 2026-11-20T09:00:00Z or 2026-11-20)",
			text.Clip(s))
	}
	return t, nil
}

package flagvalue

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/ledger"
)

// Expiry returns a flag value that accepts a time in the future: a duration from now
// such as 90d, a date or a date-time.
func Expiry(value *ledger.Time) pflag.Value {
	return &Parsed[ledger.Time]{Value: value, Kind: "WHEN", Parse: func(s string) (ledger.Time, error) {
		return parseTime(s, time.Now(), 1)
	}}
}

// Past returns a flag value that accepts a time in the past: a duration before now such
// as 5d or "5d ago", today, yesterday, a date or a date-time.
func Past(value *ledger.Time) pflag.Value {
	return &Parsed[ledger.Time]{Value: value, Kind: "WHEN", Parse: func(s string) (ledger.Time, error) {
		now := time.Now()
		t, err := parseTime(s, now, -1)
		if err == nil && t > ledger.TimeOf(now) {
			return 0, errors.New("it is in the future: use a time in the past, such as 5d, yesterday or 2026-11-20")
		}
		return t, err
	}}
}

// parseTime parses a duration from now, in the direction of sign, a day or a date-time. Days
// begin at midnight UTC.
func parseTime(s string, now time.Time, sign time.Duration) (ledger.Time, error) {
	s = strings.TrimSpace(s)
	length := s
	if sign < 0 {
		length = strings.TrimSuffix(s, " ago")
	}
	if d, err := ledger.ParseDuration(strings.ToLower(length)); err == nil {
		return ledger.TimeOf(now.Add(sign * d.Std())), nil
	}

	const day = 24 * time.Hour
	switch midnight := now.UTC().Truncate(day); {
	case sign < 0 && strings.EqualFold(s, "today"):
		return ledger.TimeOf(midnight), nil
	case sign < 0 && strings.EqualFold(s, "yesterday"):
		return ledger.TimeOf(midnight.Add(-day)), nil
	}
	t, err := ledger.ParseSince(s)
	if err != nil {
		return 0, timeError(s, sign)
	}
	return t, nil
}

// timeError says what is wrong with the text of a time.
func timeError(s string, sign time.Duration) error {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return fmt.Errorf("it has no time zone: use %s for UTC, or an offset such as +02:00 instead of the Z",
				t.Format(time.RFC3339))
		}
	}
	if sign < 0 {
		return errors.New("use a duration such as 5d or 12h, today, yesterday, a date or an RFC 3339 date-time")
	}
	return errors.New("use a duration such as 90d or 12h, a date or an RFC 3339 date-time")
}

// Duration returns a flag value that accepts a duration such as 90s, 10m, 7d or 2w, and 0s.
// The value of the variable is the default.
func Duration(value *time.Duration) pflag.Value {
	parse := func(s string) (time.Duration, error) {
		if strings.HasPrefix(s, "-") {
			return 0, errors.New("use 0s or more")
		}
		var d ledger.Duration
		if err := d.UnmarshalText([]byte(strings.ToLower(strings.TrimSpace(s)))); err != nil {
			return 0, errors.New("use a duration such as 90s, 10m or 7d")
		}
		return d.Std(), nil
	}
	return &Parsed[time.Duration]{Value: value, Text: ledger.Duration(*value).String(), Kind: "DURATION", Parse: parse}
}

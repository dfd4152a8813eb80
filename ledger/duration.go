package ledger

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Duration is a length of time, as used in contracts. Its text form is that of a Go
// duration, such as 90m, optionally preceded by weeks and days: 2w, 1d12h.
type Duration time.Duration

const (
	day         = 24 * time.Hour
	maxDuration = 10 * 365 * day
)

var longUnits = regexp.MustCompile(`^(?:([0-9.]+)w)?(?:([0-9.]+)d)?([0-9.a-zµμ]*)$`)

// ParseDuration parses the text form of a Duration. The duration must be positive, at
// most ten years, and in whole milliseconds, the resolution of a Time.
func ParseDuration(s string) (Duration, error) {
	parts := longUnits.FindStringSubmatch(s)

	if s == "" || parts == nil {
		return 0, notADuration(s)
	}

	var sum time.Duration
	for i, unit := range []time.Duration{7 * day, day, time.Hour} {
		part := parts[i+1]
		if part == "" {
			continue
		}
		if unit > time.Hour {
			part += "h"
		}
		d, err := time.ParseDuration(part)
		if err != nil {
			return 0, notADuration(s)
		}
		hours := unit / time.Hour // d counts each unit as an hour
		if d > maxDuration/hours {
			return 0, tooLong(s)
		}
		sum += d * hours
	}

	if sum <= 0 || sum%time.Millisecond != 0 {
		return 0, fmt.Errorf("%q is not a positive number of whole milliseconds (use e.g. 90s, 12h, 7d)", text.Clip(s))
	}
	if sum > maxDuration {
		return 0, tooLong(s)
	}
	return Duration(sum), nil
}

func notADuration(s string) error {
	return fmt.Errorf("%q is not a duration (use e.g. 90s, 12h, 7d)", text.Clip(s))
}

func tooLong(s string) error {
	return fmt.Errorf("%q is too long: at most 3650d (ten years)", text.Clip(s))
}

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String formats d in hours, minutes and seconds, without trailing zero units: 168h
// instead of 168h0m0s.
func (d Duration) String() string {
	s := d.Std().String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// AppendText implements encoding.TextAppender.
func (d Duration) AppendText(b []byte) ([]byte, error) { return append(b, d.String()...), nil }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. In addition to what ParseDuration
// accepts, it accepts 0s. The caller decides whether zero is valid.
func (d *Duration) UnmarshalText(b []byte) error {
	if string(b) == Duration(0).String() {
		*d = 0
		return nil
	}
	parsed, err := ParseDuration(string(b))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

package ledger

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]string{
		"168h":       "168h",
		"7d":         "168h",
		"2w":         "336h",
		"1w1d1h":     "193h",
		"1.5d":       "36h",
		"90m":        "1h30m",
		"1h30m":      "1h30m",
		"60s":        "1m",
		"10s":        "10s",
		"1h0m10s":    "1h0m10s",
		"1500ms":     "1.5s",
		"1ms":        "1ms",
		"3650d":      "87600h",
		"521w3d":     "87600h",
		"0w0d1h":     "1h",
		"1000000us":  "1s",
		"1h60m3600s": "3h",
	} {
		d, err := ParseDuration(text)
		if err != nil || d.String() != want {
			t.Errorf("ParseDuration(%q) = %s, %v, want %s", text, d, err, want)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "not a duration",
		"7":                          "not a duration",
		"d":                          "not a duration",
		"7 d":                        "not a duration",
		"7days":                      "not a duration",
		"1h1d":                       "not a duration",
		"1d1w":                       "not a duration",
		"1.2.3d":                     "not a duration",
		"-7d":                        "not a duration",
		"1d-3h":                      "not a duration",
		"+1h":                        "not a duration",
		"forever":                    "not a duration",
		"9999999999999999999999h":    "not a duration",
		"0s":                         "whole milliseconds",
		"0d":                         "whole milliseconds",
		"1ns":                        "whole milliseconds",
		"1.0000001s":                 "whole milliseconds",
		"3650d1ms":                   "too long",
		"11000d":                     "too long",
		"87601h":                     "too long",
		"2000000w":                   "too long",
		"100000w":                    "too long",
		strings.Repeat("9", 9) + "w": "not a duration",
	} {
		if d, err := ParseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%q) = %s, %v, want error with %q", text, d, err, want)
		}
	}
}

func TestDurationRoundTrip(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64Range(1, int64(maxDuration)/1e6).Draw(t, "ms") * 1e6)
		if back, err := ParseDuration(d.String()); err != nil || back != d {
			t.Fatalf("%d formats as %s, which parses as %d, %v", d, d, back, err)
		}
	})
}

// UnmarshalText accepts zero, which ParseDuration does not.
func TestDurationAsText(t *testing.T) {
	for text, want := range map[string]Duration{"0s": 0, "1d": Duration(day), "24h": Duration(day)} {
		d := Duration(1)
		if err := d.UnmarshalText([]byte(text)); err != nil || d != want {
			t.Errorf("%q: got %s, %v, want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "0", "0d", "-0s", "-1s"} {
		if d := Duration(1); d.UnmarshalText([]byte(text)) == nil || d != 1 {
			t.Errorf("%q: got %s, want an error and no change", text, d)
		}
	}
}

package flagvalue

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 22, 15, 30, 0, 0, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"2h":                        "2026-11-22T12:30:00.000Z",
		"2h ago":                    "2026-11-22T12:30:00.000Z",
		"2H AGO":                    "",
		"7D":                        "2026-11-15T14:30:00.000Z",
		"1d12h":                     "2026-11-21T02:30:00.000Z",
		"today":                     "2026-11-22T00:00:00.000Z",
		"Yesterday":                 "2026-11-21T00:00:00.000Z",
		"2026-11-20":                "2026-11-20T00:00:00.000Z",
		"2026-11-20T09:00:00Z":      "2026-11-20T09:00:00.000Z",
		"2026-11-20T09:00:00+02:00": "2026-11-20T07:00:00.000Z",
		" 5d ":                      "2026-11-17T14:30:00.000Z",
		"tomorrow":                  "",
		"":                          "",
		"ago":                       "",
		"-2h":                       "",
	} {
		got, err := parseTime(text, now, -1)
		if got.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	if got, err := parseTime("2h", now, 1); got.String() != "2026-11-22T16:30:00.000Z" || err != nil {
		t.Errorf("in 2h: %s, %v", got, err)
	}
	for _, text := range []string{"yesterday", "today", "2h ago"} {
		if got, err := parseTime(text, now, 1); err == nil {
			t.Errorf("an expiry of %q is %s", text, got)
		}
	}
}

func TestPastSaysWhatToFix(t *testing.T) {
	for text, want := range map[string]string{
		"9000-01-01":          "it is in the future: use a time in the past",
		"2026-11-20T09:00:00": "it has no time zone: use 2026-11-20T09:00:00Z for UTC",
		"2026-11-20 09:00":    "it has no time zone: use 2026-11-20T09:00:00Z for UTC",
		"someday":             "use a duration such as 5d or 12h, today, yesterday, a date or an RFC 3339 date-time",
	} {
		var value ledger.Time
		if err := Past(&value).Set(text); err == nil || !strings.Contains(err.Error(), want) || value != 0 {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestDuration(t *testing.T) {
	value := 30 * time.Second
	flag := Duration(&value)
	if flag.String() != "30s" {
		t.Errorf("the default is %q", flag)
	}
	for text, want := range map[string]time.Duration{
		"0s": 0, "90s": 90 * time.Second, "10m": 10 * time.Minute, "7d": 168 * time.Hour, "2W": 336 * time.Hour,
	} {
		if err := flag.Set(text); err != nil || value != want {
			t.Errorf("%q: %v, %v", text, value, err)
		}
	}
	for _, text := range []string{"", "5", "-1s", "soon"} {
		if err := flag.Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Words are accepted in upper and lower case.
func TestAnyCase(t *testing.T) {
	var state ledger.State
	var level radar.Level
	var status ledger.Status
	command := &cobra.Command{}
	StateVar(command, &state, "state", "")
	LevelVar(command, &level, "level", "")
	StatusVar(command, &status, "")
	must.OK(t, command.ParseFlags([]string{"--state", "promotable", "--level", "high", "--status", "FAIL"}))
	if state != ledger.Promotable || level != radar.High || status != ledger.Fail {
		t.Errorf("%s, %s, %s", state, level, status)
	}
	if err := command.ParseFlags([]string{"--state", "ready"}); err == nil {
		t.Error("accepts the state ready")
	}
}

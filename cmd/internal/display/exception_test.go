package display

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// Only exceptions that end within a day are marked.
func TestEndsSoon(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]string{
		0:                               "",
		90 * time.Second:                " (ends in 1 minute)",
		5*time.Hour + 59*time.Minute:    " (ends in 5 hours)",
		24 * time.Hour:                  " (ends in 24 hours)",
		24*time.Hour + time.Millisecond: "",
	} {
		if got := EndsSoon(ledger.TimeOf(now.Add(left)), now); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}

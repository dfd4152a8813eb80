package dispatch_test

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

func TestRetryIn(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	schedule := dispatch.DefaultSchedule()
	for _, c := range []struct {
		what        string
		tries       int
		retryAfter  time.Duration
		least, most time.Duration // both 0: no retry
	}{
		{what: "first", least: 4 * s, most: 6 * s},
		{what: "second", tries: 1, least: 4 * m, most: 6 * m},
		{what: "ninth", tries: 8, least: 19*h + 12*m, most: 28*h + 48*m},
		{what: "tenth", tries: 9},
		{what: "after the tenth", tries: 20},
		{what: "tenth with Retry-After", tries: 9, retryAfter: m},
		{what: "Retry-After above the schedule", retryAfter: m, least: m, most: 72 * s},
		{what: "Retry-After below the schedule", tries: 1, retryAfter: s, least: 4 * m, most: 6 * m},
		{what: "Retry-After of a nanosecond", retryAfter: 1, least: 5 * s, most: 6 * s},
		{what: "Retry-After of a day", retryAfter: 24 * h, least: 24 * h, most: 24 * h},
		{what: "Retry-After of a year", retryAfter: 365 * 24 * h, least: 24 * h, most: 24 * h},
		{what: "Retry-After of nearly a day", retryAfter: 23 * h, least: 23 * h, most: 24 * h},
	} {
		t.Run(c.what, func(t *testing.T) {
			least, most := time.Duration(1<<62), time.Duration(0)
			for range 1000 {
				wait, ok := dispatch.RetryIn(schedule, c.tries, c.retryAfter)
				if ok != (c.most > 0) || wait < c.least || wait > c.most {
					t.Fatalf("RetryIn = %v, %t; want %v to %v", wait, ok, c.least, c.most)
				}
				least, most = min(least, wait), max(most, wait)
			}

			if spread := c.most - c.least; most-least < spread*9/10 {
				t.Errorf("all waits are between %v and %v: no jitter", least, most)
			}
		})
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := ledger.TimeOf(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	for value, want := range map[string]time.Duration{
		"":                               0,
		"soon":                           0,
		"-1":                             0,
		"1.5":                            0,
		"0":                              5 * time.Second,
		"1":                              5 * time.Second,
		"120":                            2 * time.Minute,
		"18446744073709551615":           24 * time.Hour,
		"18446744073709551616":           24 * time.Hour,
		"99999999999999999999999999999":  24 * time.Hour,
		"Fri, 20 Nov 2026 09:30:00 GMT":  30 * time.Minute,
		"Fri, 20 Nov 2026 08:00:00 GMT":  5 * time.Second,
		"Friday, 20-Nov-26 09:30:00 GMT": 30 * time.Minute,
	} {
		if got := dispatch.ParseRetryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

package rate

import (
	"fmt"
	"testing"
	"time"
)

func TestTake(t *testing.T) {
	start := time.Now()
	l := New(10, 3)
	steps := []struct {
		name   string
		at     time.Duration
		client string
		want   Quota
	}{
		{"the first", 0, "a", Quota{true, 3, 2, 0, 100 * time.Millisecond}},
		{"the second", 0, "a", Quota{true, 3, 1, 0, 200 * time.Millisecond}},
		{"the last of the burst", 0, "a", Quota{true, 3, 0, 100 * time.Millisecond, 300 * time.Millisecond}},
		{"one too many", 0, "a", Quota{false, 3, 0, 100 * time.Millisecond, 300 * time.Millisecond}},
		{"another client", 0, "b", Quota{true, 3, 2, 0, 100 * time.Millisecond}},
		{"too early", 50 * time.Millisecond, "a", Quota{false, 3, 0, 50 * time.Millisecond, 250 * time.Millisecond}},
		{"the next", 100 * time.Millisecond, "a", Quota{true, 3, 0, 100 * time.Millisecond, 300 * time.Millisecond}},
		{"after a time without", time.Minute, "a", Quota{true, 3, 2, 0, 100 * time.Millisecond}},
		{"after the clock went back", 0, "a", Quota{true, 3, 1, 0, 200 * time.Millisecond}},
	}
	for _, s := range steps {
		got := l.Take(s.client, start.Add(s.at))
		got.Next, got.Full = got.Next.Round(time.Millisecond), got.Full.Round(time.Millisecond)
		if got != s.want {
			t.Errorf("%s: %+v, want %+v", s.name, got, s.want)
		}
	}
}

// Without a limit, everything is allowed.
func TestNoLimit(t *testing.T) {
	l := New(0, 0)
	for range 1000 {
		if !l.Take("a", time.Now()).Allowed {
			t.Fatal("a request was refused without a limit")
		}
	}
}

// The number of clients that are counted separately has a bound. Those beyond it share one limit,
// until the others have been quiet.
func TestManyClients(t *testing.T) {
	now := time.Now()
	l := New(1, 2)
	for i := range maxKeys {
		l.Take(fmt.Sprint(i), now)
	}
	allowed := 0
	for i := range 10 {
		if l.Take(fmt.Sprint("late", i), now).Allowed {
			allowed++
		}
	}
	if allowed != 2 || len(l.buckets) > maxKeys+1 {
		t.Errorf("%d requests of further clients were allowed, want the 2 that they share; %d clients are counted",
			allowed, len(l.buckets))
	}

	if q := l.Take("later", now.Add(time.Minute)); !q.Allowed || q.Left != 1 || len(l.buckets) > 2 {
		t.Errorf("after a minute a new client gets %+v; %d clients are counted", q, len(l.buckets))
	}
}

// Space is made at most once a second, since that takes time.
func TestSweepsSeldom(t *testing.T) {
	now := time.Now()
	l := New(1000, 1)
	for i := range maxKeys {
		l.Take(fmt.Sprint(i), now)
	}
	l.Take("first", now)
	l.Take("second", now.Add(999*time.Millisecond))
	if _, ok := l.buckets["second"]; ok {
		t.Error("space was made twice in a second")
	}
	l.Take("third", now.Add(time.Second))
	if _, ok := l.buckets["third"]; !ok {
		t.Error("no space was made after a second")
	}
}

func TestClient(t *testing.T) {
	cases := map[string]string{
		"192.0.2.1:1000":              "192.0.2.1/32",
		"[::ffff:192.0.2.1]:1000":     "192.0.2.1/32",
		"[2001:db8:1:2:3:4:5:6]:1000": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1000":         "fe80::/64",
		"@":                           "",
	}
	for remote, want := range cases {
		if got := Client(remote); got != want {
			t.Errorf("the client of %s is %q, want %q", remote, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int{0: 0, 1: 1, time.Second: 1, time.Second + 1: 2} {
		if got := Seconds(d); got != want {
			t.Errorf("Seconds(%v) = %d, want %d", d, got, want)
		}
	}
}

// A request that counts as several is allowed if as many are left, or if it is the only one.
func TestTakeMore(t *testing.T) {
	start := time.Now()
	const s = time.Second
	for _, test := range []struct {
		name          string
		before, n     int // requests before, each counted as one; how many more the next one counts
		want          bool
		left          int
		next, recover time.Duration // Quota.Next, and when the same request is allowed after a refusal
	}{
		{"no more", 0, 0, true, 9, 0, 0},
		{"some of a burst", 0, 5, true, 4, 0, 0},
		{"exactly those that are left", 4, 5, true, 0, 1 * s, 0},
		{"one more than are left", 4, 6, false, 5, 2 * s, 2 * s},
		{"a whole burst", 0, 9, true, 0, 1 * s, 0},
		{"more than a burst", 0, 99, true, 0, 91 * s, 0},
		{"more than a burst, after another request", 1, 99, false, 8, 2 * s, 2 * s},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := New(1, 10)
			for range test.before {
				l.Take("a", start)
			}
			l.Take("a", start)
			got := l.TakeMore("a", test.n, start)
			if got.Allowed != test.want || got.Left != test.left || got.Next != test.next {
				t.Errorf("got %+v, want %+v", got, test)
			}

			if !l.TakeMore("b", 5, start).Allowed {
				t.Error("another client is limited")
			}
			if test.recover == 0 {
				return
			}
			for at, want := range map[time.Duration]bool{test.recover - s/10: false, test.recover: true} {
				again := New(1, 10)
				again.buckets["a"] = l.buckets["a"]
				again.Take("a", start.Add(at))
				if got := again.TakeMore("a", test.n, start.Add(at)); got.Allowed != want {
					t.Errorf("after %v: allowed is %t, want %t", at, got.Allowed, want)
				}
			}
		})
	}

	var unlimited *Limiter
	if !unlimited.TakeMore("a", 99, start).Allowed {
		t.Error("without a limit, a request is refused")
	}
}

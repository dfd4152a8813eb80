package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// TestFaultClockGoesBackAnHour checks that the ledger's time goes on while the wall clock
// is an hour behind, and that nothing waits for the hour to pass.
func TestFaultClockGoesBackAnHour(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restart), func(t *testing.T) {
			l := newTimeline(t)
			hook := l.webhook()
			l.attest(1, "test:go")
			if n := l.fail(hook, 5*time.Second); n != 1 {
				t.Fatalf("claimed %d deliveries, want 1", n)
			}

			before := l.Now()
			l.jump(-time.Hour)
			if restart {
				l.restart()
			}
			l.attest(1, "review:code")
			if l.Now() < before {
				t.Errorf("the ledger's clock went back from %s to %s", before, l.Now())
			}
			if got := l.WallTime(); got != ledger.TimeOf(l.wall) {
				t.Errorf("WallTime is %s, want %s", got, l.wall)
			}
			if lead := l.ClockStatus().Lead; lead < 59*time.Minute || lead > time.Hour {
				t.Errorf("the lead is %v", lead)
			}
			l.pass(10 * time.Second)
			if n := l.fail(hook, 5*time.Second); n != 2 {
				t.Errorf("%d deliveries are due, want the retry and the new one", n)
			}
			l.promote(2)
			l.wantOrder()

			l.pass(3 * time.Hour)
			l.promote(3)
			l.wantNow(l.wall, 0)
			if lead := l.ClockStatus().Lead; lead != 0 {
				t.Errorf("the lead is %v after three hours", lead)
			}
			l.wantOrder()
			begins := 1
			if restart {
				begins = 2 // one per process
			}
			if l.logged("the system clock went back") != begins || l.logged("caught up with") != 1 {
				t.Errorf("want one message per begin and end:\n%s", l.log.String())
			}
		})
	}
}

// TestFaultClockJumpsBriefly checks that a wrong clock that is put right within a minute
// leaves no trace.
func TestFaultClockJumpsBriefly(t *testing.T) {
	for _, jump := range []time.Duration{10 * day, 40 * day, -40 * day} {
		t.Run(jump.String(), func(t *testing.T) {
			l := newTimeline(t)
			ctx := t.Context()
			token, err := l.CreateToken(ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{1})
			check(t, err)
			check(t, l.CreateSession(ctx, token.ID, [32]byte{2}, l.Now().Add(12*time.Hour)))
			_, _, err = l.Register(ctx, "acme", "api", sha(1), ledger.Registration{Branch: "one", Changes: changeOf("p.go", 10)})
			check(t, err)
			hook := l.webhook()
			l.promote(1)
			if n := l.fail(hook, 5*time.Hour); n != 2 {
				t.Fatalf("claimed %d deliveries, want 2", n)
			}
			started := l.wall.Add(-l.monotonic)

			l.jump(jump)
			l.promote(2)
			l.pass(50 * time.Second)
			l.promote(3)
			l.wantNow(started.Add(l.monotonic), 0)
			if s := l.ClockStatus(); !s.Unproven || s.Lead != -jump {
				t.Errorf("status is %+v", s)
			}
			if got := l.WallTime(); got != l.Now() {
				t.Errorf("WallTime is %s, want %s", got, l.Now())
			}
			l.jump(-jump)
			l.pass(2 * time.Minute)

			l.wantState(1, ledger.Promotable)
			if l.commit(1).InFlight != true {
				t.Error("the tip is no longer in flight")
			}
			l.wantNow(started.Add(l.monotonic), 0)
			for _, e := range l.events() {
				if e.Timestamp > l.Now() || e.Timestamp < ledger.TimeOf(started.Add(time.Hour)) {
					t.Errorf("event %s has the time %s", e.ID, e.Timestamp)
				}
			}
			if n := l.fail(hook, 5*time.Hour); n != 4 {
				t.Errorf("%d deliveries are due, want those of commits 2 and 3", n)
			}
			if _, expires, err := l.SessionToken(ctx, [32]byte{2}); err != nil || expires <= l.Now() {
				t.Errorf("the session ended at %s: %v", expires, err)
			}
			l.wantOrder()
			if s := l.ClockStatus(); s != (store.ClockStatus{}) {
				t.Errorf("status is %+v", s)
			}
		})
	}
}

// TestFaultClockJumpsForGood checks that a jump that holds is followed after a minute.
func TestFaultClockJumpsForGood(t *testing.T) {
	l := newTimeline(t)
	l.promote(1)
	l.jump(40 * day)
	l.pass(59 * time.Second)
	l.wantState(1, ledger.Promotable)
	l.pass(5 * time.Second)
	l.wantState(1, ledger.Validating)
	l.wantNow(l.wall, 0)
	l.promote(2)
	l.wantOrder()
}

// wrongFor40Days is the story of a clock that is 40 days ahead for an hour. Then restart
// and the clock going right happen in the given order.
func wrongFor40Days(t *testing.T, putRight func(*timeline)) {
	l := newTimeline(t)
	ctx := t.Context()
	token, err := l.CreateToken(ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read,
		ExpiresAt: l.Now().Add(90 * day)}, [32]byte{1})
	check(t, err)
	hook := l.webhook()
	l.promote(1)
	if n := l.fail(hook, 24*time.Hour); n != 2 {
		t.Fatalf("claimed %d deliveries, want 2", n)
	}
	right := l.wall.Add(-l.monotonic)
	passed := l.monotonic

	l.jump(40 * day)
	l.pass(time.Hour)
	l.wantState(1, ledger.Validating) // its evidence is expired
	l.promote(2)
	check(t, l.CreateSession(ctx, token.ID, [32]byte{2}, l.Now().Add(12*time.Hour)))
	l.TouchToken(token.ID, "v1.0.0")
	_, _, err = l.Register(ctx, "acme", "api", sha(4), ledger.Registration{Branch: "four", Changes: changeOf("p.go", 10)})
	check(t, err)
	if n := l.fail(hook, 5*time.Second); n != 4 {
		t.Fatalf("claimed %d deliveries, want 4", n)
	}
	l.attest(5, "test:go")
	_, leased, err := l.Claim(ctx, hook, 10, 30*time.Second)
	check(t, err)
	if len(leased) != 1 {
		t.Fatalf("claimed %d deliveries, want 1", len(leased))
	}

	putRight(l)
	right = right.Add(passed + time.Hour)
	l.pass(2 * time.Minute)
	l.wantNow(l.wall, 0)
	l.wantNow(right, 10*time.Minute)

	// What fell rises, with the same cause.
	l.wantState(1, ledger.Promotable)
	want := "DRAFT>VALIDATING by attestation, VALIDATING>ATTESTED by attestation, ATTESTED>PROMOTABLE by attestation, " +
		"PROMOTABLE>VALIDATING by expiry, VALIDATING>ATTESTED by expiry, ATTESTED>PROMOTABLE by expiry"
	if got := l.transitions(1); got != want {
		t.Errorf("transitions are\n%s\nwant\n%s", got, want)
	}
	steps := l.commit(1).Transitions
	if steps[3].Cause != steps[5].Cause || steps[5].Cause.ID == "" {
		t.Errorf("it fell by %+v and rose by %+v", steps[3].Cause, steps[5].Cause)
	}

	if n := l.rows("SELECT count(*) FROM expirations"); n != 0 {
		t.Errorf("%d expirations were not undone", n)
	}

	// New records have right times, and their ids go on.
	l.promote(3)
	l.wantOrder()
	events := l.events()
	if last := events[len(events)-1]; last.Timestamp.Std().Sub(l.wall).Abs() > time.Minute {
		t.Errorf("a new event has the time %s", last.Timestamp)
	}
	for _, a := range l.attestations(store.AttestationFilter{}) {
		if a.RecordedAt > l.Now() {
			t.Errorf("attestation %s was recorded at %s, which is still to come", a.ID, a.RecordedAt)
		}
	}
	if s := l.ClockStatus(); s.Lead != 0 || s.Unproven || s.StampLead < 39*day || s.StampLead > 40*day {
		t.Errorf("status is %+v", s)
	}

	// Sessions, tokens, tips and deliveries do not wait for the wrong time.
	if _, expires, err := l.SessionToken(ctx, [32]byte{2}); err != nil || expires > l.Now().Add(12*time.Hour) {
		t.Errorf("the session ends at %s: %v", expires, err)
	}
	got, err := l.TokenByHash(ctx, [32]byte{1})
	check(t, err)
	if got.LastUsedAt == 0 || got.LastUsedAt > l.Now() {
		t.Errorf("the token was last used at %s", got.LastUsedAt)
	}
	if n := l.fail(hook, 5*time.Second); n != 7 {
		t.Errorf("%d deliveries are due, want 7", n)
	}
	if n := l.fail(hook, 5*time.Second); n != 0 {
		t.Errorf("%d deliveries are due too early", n)
	}
	l.pass(5 * time.Second)
	if n := l.fail(hook, 5*time.Second); n != 7 {
		t.Errorf("%d deliveries are due 5 s later, want 7", n)
	}

	// A restart changes nothing of this.
	before := l.Now()
	l.restart()
	if l.Now() != before {
		t.Errorf("the restart moved the clock from %s to %s", before, l.Now())
	}
	l.promote(6)
	l.wantOrder()

	// All evidence lives for 30 days of the right time, the one of the wrong time too.
	l.pass(29 * day)
	for commit := 1; commit <= 3; commit++ {
		l.wantState(commit, ledger.Promotable)
	}
	if !l.commit(4).InFlight {
		t.Error("the tip is no longer in flight after 29 days")
	}
	l.pass(2 * day)
	for commit := 1; commit <= 3; commit++ {
		l.wantState(commit, ledger.Validating)
	}
	if l.commit(4).InFlight {
		t.Error("the tip is still in flight after 31 days")
	}

	// The ids and the clock meet again.
	l.pass(10 * day)
	l.promote(7)
	l.wantOrder()
	if s := l.ClockStatus(); s != (store.ClockStatus{}) {
		t.Errorf("status is %+v", s)
	}
	l.restart()
	l.wantNow(l.wall, time.Second)
}

func TestFaultClockIsPutRight(t *testing.T) {
	for name, putRight := range map[string]func(*timeline){
		"while it runs": func(l *timeline) { l.jump(-40 * day) },
		"while it is stopped": func(l *timeline) {
			l.wall = l.wall.Add(-40 * day)
			l.restart()
		},
		"after a restart with the wrong clock": func(l *timeline) {
			l.restart()
			l.pass(time.Minute)
			l.jump(-40 * day)
		},
		"and a restart within the minute": func(l *timeline) {
			l.jump(-40 * day)
			l.pass(30 * time.Second)
			l.restart()
		},
		"with only short processes": func(l *timeline) {
			l.wall = l.wall.Add(-40 * day)
			for range 13 {
				l.restart()
				l.pass(5 * time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { wrongFor40Days(t, putRight) })
	}
}

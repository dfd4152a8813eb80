package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
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

// TestFaultClockJumpsBriefly checks that a wrong clock that is put right leaves no trace: nothing is
// recorded until then, and everything else goes on by the right time.
func TestFaultClockJumpsBriefly(t *testing.T) {
	for _, jump := range []time.Duration{10 * day, 40 * day, -40 * day} {
		t.Run(jump.String(), func(t *testing.T) {
			l := newTimeline(t)
			ctx := t.Context()
			token, err := l.CreateToken(ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{1})
			must.OK(t, err)
			must.OK(t, l.CreateSession(ctx, token.ID, [32]byte{2}, l.Now().Add(12*time.Hour)))
			_, _, err = l.Register(ctx, "acme", "api", sha(1), ledger.Registration{Branch: "one", Changes: changeOf("p.go", 10)})
			must.OK(t, err)
			hook := l.webhook()
			l.promote(1)
			started := l.wall.Add(-l.monotonic)

			l.jump(jump)
			l.wantRefused(true)
			if n := l.fail(hook, 5*time.Hour); n != 2 {
				t.Fatalf("claimed %d deliveries, want 2", n)
			}
			l.pass(9 * time.Minute)
			l.wantRefused(true)
			l.wantNow(started.Add(l.monotonic), 0)
			if s := l.ClockStatus(); s.Lead != -jump {
				t.Errorf("status is %+v", s)
			}
			if got, want := l.WallTime(), min(l.Now(), ledger.TimeOf(l.wall)); got != want {
				t.Errorf("WallTime is %s, want %s", got, want)
			}
			l.wantState(1, ledger.Promotable)
			l.jump(-jump)
			l.wantRefused(false)

			l.promote(2)
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
			if n := l.fail(hook, 5*time.Hour); n != 2 {
				t.Errorf("%d deliveries are due, want those of commit 2", n)
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

// TestFaultClockJumpsForGood checks that a jump ahead is followed once the clock was steady.
func TestFaultClockJumpsForGood(t *testing.T) {
	l := newTimeline(t)
	l.promote(1)
	l.jump(40 * day)
	l.pass(10*time.Minute - time.Second)
	l.wantRefused(true)
	l.wantState(1, ledger.Promotable)
	l.pass(time.Second)
	l.wantRefused(false)
	l.wantState(1, ledger.Validating)
	l.wantNow(l.wall, 0)
	l.promote(2)
	l.wantOrder()
}

// While nothing is recorded, a commit whose evidence expires is read with the state that it has.
func TestFaultReadsWhileTheClockIsWrong(t *testing.T) {
	l := newTimeline(t)
	l.promote(1)
	l.wall, l.monotonic = l.wall.Add(40*day), l.monotonic+31*day
	if c, err := l.Commit(t.Context(), "acme", "api", sha(1)); err != nil || c.State != ledger.Validating {
		t.Errorf("commit 1 is %s: %v", c.State, err)
	}
	l.settle()
	l.wantRefused(true)
	if n := l.rows("SELECT count(*) FROM transitions WHERE cause_type = 'expiry'"); n != 0 {
		t.Errorf("%d transitions were recorded", n)
	}
	l.jump(-9 * day)
	l.wantRefused(false)
	if n := l.rows("SELECT count(*) FROM transitions WHERE cause_type = 'expiry'"); n != 1 {
		t.Errorf("%d transitions were recorded once the clock is right, want 1", n)
	}
}

// A clock that is 40 days ahead for an hour is put right, in several ways. Nothing is recorded then
// until an operator accepts the clock.
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
		"and a restart later": func(l *timeline) {
			l.jump(-40 * day)
			l.pass(time.Hour)
			l.restart()
		},
	} {
		t.Run(name, func(t *testing.T) { wrongFor40Days(t, putRight) })
	}
}

func wrongFor40Days(t *testing.T, putRight func(*timeline)) {
	l := newTimeline(t)
	l.promote(1)
	l.jump(40 * day)
	l.pass(time.Hour)
	l.wantState(1, ledger.Validating) // its evidence is expired
	l.promote(2)

	putRight(l)
	l.wantRefused(true)
	l.pass(2 * day)
	l.wantRefused(true)
	l.wantState(1, ledger.Validating)
	l.accept()
	l.wantNow(l.wall, 0)

	l.wantState(1, ledger.Promotable)
	want := "DRAFT>VALIDATING by attestation, VALIDATING>ATTESTED by attestation, ATTESTED>PROMOTABLE by attestation, " +
		"PROMOTABLE>VALIDATING by expiry, VALIDATING>ATTESTED by expiry, ATTESTED>PROMOTABLE by expiry"
	if got := l.transitions(1); got != want {
		t.Errorf("transitions are\n%s\nwant\n%s", got, want)
	}

	// New records have right times, and their ids go on.
	l.promote(3)
	l.wantOrder()
	events := l.events()
	if last := events[len(events)-1]; last.Timestamp.Std().Sub(l.wall).Abs() > time.Minute {
		t.Errorf("a new event has the time %s", last.Timestamp)
	}
	if s := l.ClockStatus(); s.Lead != 0 || s.StampLead < 37*day || s.StampLead > 40*day {
		t.Errorf("status is %+v", s)
	}

	// A restart changes nothing of this.
	before := l.Now()
	l.restart()
	if l.Now() != before {
		t.Errorf("the restart moved the clock from %s to %s", before, l.Now())
	}
	l.promote(4)
	l.wantOrder()

	// The ids and the clock meet again. Evidence of the wrong time has lived for longer.
	l.pass(39 * day)
	l.wantState(2, ledger.Promotable)
	l.wantState(3, ledger.Validating)
	l.promote(5)
	l.wantOrder()
	if s := l.ClockStatus(); s != (store.ClockStatus{}) {
		t.Errorf("status is %+v", s)
	}
	l.restart()
	l.wantNow(l.wall, time.Second)
	l.pass(31 * day)
	l.wantState(2, ledger.Validating)
}

// A contract that becomes active while the clock is 40 days ahead finds all earlier
// evidence expired. When the clock is put right, the evidence counts under it.
func TestFaultPolicyOfAWrongTimeIsEvaluatedAgain(t *testing.T) {
	l := newTimeline(t)
	setPolicy := func(text string) {
		t.Helper()
		contract, err := policy.Parse([]byte(text))
		must.OK(t, err)
		_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
		must.OK(t, err)
	}
	setPolicy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`)
	l.attest(1, "test:go")
	l.settle()
	l.wantState(1, ledger.Promotable)

	l.ahead(40*day, func() {
		setPolicy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"720h"}]}`)
		l.settle()
		l.wantState(1, ledger.Validating) // the evidence is expired
	})
	l.wantState(1, ledger.Promotable)
}

// Deliveries that wait for a time of a clock that was ahead are sent when somebody asks for it: one
// that failed, and one whose server ended during the attempt.
func TestFaultDeliveryOfAWrongTimeIsSentAgain(t *testing.T) {
	l := newTimeline(t)
	failed, leased, replayed := l.webhook(), l.webhook(), l.webhook()
	l.ahead(40*day, func() {
		l.attest(1, "test:go")
		l.fail(failed, time.Second)
		l.fail(replayed, time.Second)
		_, _, err := l.Claim(t.Context(), leased, 10, 30*time.Second)
		must.OK(t, err)
	})

	for _, hook := range []string{failed, leased} {
		if n := l.fail(hook, time.Second); n != 0 {
			t.Errorf("%d deliveries are due", n)
		}
		page, err := l.Deliveries(t.Context(), "acme", "api", hook, store.DeliveryFilter{Query: store.Query{Limit: 10}})
		must.OK(t, err)
		_, err = l.Redeliver(t.Context(), "acme", "api", hook, page.Data[0].ID)
		must.OK(t, err)
		if n := l.fail(hook, time.Second); n != 1 {
			t.Errorf("%d deliveries are due after it is redelivered, want 1", n)
		}
	}
	for _, want := range []int64{1, 0} {
		n, err := l.ReplayWebhook(t.Context(), "acme", "api", replayed, 0)
		must.OK(t, err)
		if n != want {
			t.Errorf("%d deliveries are replayed, want %d", n, want)
		}
	}
}

// TestFaultStampsOfTwoProcesses checks that ids ascend while they are ahead of the clock and
// two processes write.
func TestFaultStampsOfTwoProcesses(t *testing.T) {
	l := newTimeline(t)
	l.ahead(40*day, func() { l.attest(1, "test:go") })

	first := l.Store
	l.open()
	defer func() { must.OK(t, l.Close()); l.Store = first }()
	second := l.Store
	for n := range 6 {
		l.Store = []*store.Store{first, second}[n%2]
		for range 5 {
			l.attest(1, "test:go")
		}
		l.pass(time.Second)
		l.Store = []*store.Store{first, second}[1-n%2]
		l.pass(time.Second)
	}
	l.wantOrder()
}

// TestFaultRestartAfterIDsWithoutEvents checks that the clock continues after a restart from
// the time of a token, which has no event.
func TestFaultRestartAfterIDsWithoutEvents(t *testing.T) {
	l := newTimeline(t)
	l.pass(time.Hour)
	token, err := l.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{1})
	must.OK(t, err)
	l.wall = l.wall.Add(-time.Hour)
	l.restart()
	next, err := l.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{2})
	must.OK(t, err)
	if next.ID <= token.ID || next.CreatedAt < token.CreatedAt {
		t.Errorf("%s of %s comes after %s of %s", next.ID, next.CreatedAt, token.ID, token.CreatedAt)
	}
}

// TestFaultSecondAccident checks that a clock which is ahead twice is noticed twice, even if the
// second accident is about as large as the first one, or smaller, and the server is restarted at the
// end of it or during it.
func TestFaultSecondAccident(t *testing.T) {
	for _, ahead := range []time.Duration{40*day + time.Minute, 40 * day, 40*day - 30*time.Minute, 20 * day} {
		for _, restart := range []string{"never", "ahead", "put right"} {
			t.Run(fmt.Sprintf("%v, restart %s", ahead, restart), func(t *testing.T) {
				l := newTimeline(t)
				l.promote(1)
				l.ahead(40*day, func() { l.attest(2, "test:go") })
				l.pass(10 * time.Minute)
				l.wantState(1, ledger.Promotable)

				l.jump(ahead)
				l.pass(11 * time.Minute)
				l.promote(3)
				if restart == "ahead" {
					l.restart()
					l.pass(5 * time.Minute)
				}
				l.wall = l.wall.Add(-ahead)
				if restart == "put right" {
					l.restart()
				}
				l.wantRefused(true)
				l.accept()
				l.wantState(1, ledger.Promotable)
				l.wantState(3, ledger.Promotable)
				l.promote(4)
				l.restart()
				l.wantNow(l.wall, 0)
				l.wantOrder()
			})
		}
	}
}

// While the times in ids are ahead of an accepted clock, a restart notices if the clock goes back
// once more.
func TestFaultAcceptedClockGoesBackAgain(t *testing.T) {
	l := newTimeline(t)
	l.ahead(40*day, func() { l.attest(1, "test:go") })
	l.pass(3 * day)
	l.attest(2, "test:go")
	l.wall = l.wall.Add(-day)
	l.restart()
	l.wantRefused(true)
	l.wall = l.wall.Add(day)
	l.wantRefused(false)
	l.wantNow(l.wall, 0)
	l.wantOrder()
}

// ahead has the clock be ahead for an hour, in which during runs. Then it is put right and accepted.
func (l *timeline) ahead(d time.Duration, during func()) {
	l.t.Helper()
	l.jump(d)
	l.pass(time.Hour)
	during()
	l.jump(-d)
	l.wantRefused(true)
	l.accept()
	l.wantNow(l.wall, 0)
}

// accept accepts the clock, as 'ledgerd doctor --accept-clock' does next to the server.
func (l *timeline) accept() {
	l.t.Helper()
	server := l.Store
	l.open()
	_, _, err := l.AcceptClock(l.t.Context())
	must.OK(l.t, err)
	must.OK(l.t, l.Close())
	l.Store = server
	l.settle()
	l.wantRefused(false)
}

// wantRefused checks whether the ledger refuses to record because of the clock.
func (l *timeline) wantRefused(want bool) {
	l.t.Helper()
	l.n++
	_, _, err := l.Register(l.t.Context(), "acme", "api", sha(1000+l.n), ledger.Registration{})
	e, _ := err.(*ledger.Error)
	if refused := e != nil && e.Code == ledger.CodeClockJumped; refused != want || err != nil && !refused {
		l.t.Fatalf("a registration returns %v; want it refused: %v", err, want)
	}
	err = l.CheckClock()
	if got := err != nil; got != want || want && !strings.Contains(err.Error(), "the system clock") {
		l.t.Fatalf("the clock is said to be %v, want it refused: %v", err, want)
	}
}

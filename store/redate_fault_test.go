package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// TestFaultForgottenTipsReturn checks that tips which were forgotten while the clock was
// ahead are compared and block again.
func TestFaultForgottenTipsReturn(t *testing.T) {
	l := newTimeline(t)
	ctx := t.Context()
	contract, err := policy.Parse([]byte(strings.Replace(timelinePolicy, `"radar":{`, `"radar":{"block":"LOW",`, 1)))
	check(t, err)
	_, err = l.SetPolicy(ctx, "acme", "api", contract, 0, "host")
	check(t, err)
	push := func(commit int, branch, file string, line int) {
		t.Helper()
		_, _, err := l.Register(ctx, "acme", "api", sha(commit),
			ledger.Registration{Branch: branch, Changes: changeOf(file, line)})
		check(t, err)
		l.attest(commit, "test:go")
		l.attest(commit, "review:code")
	}
	push(1, "one", "p.go", 10)
	push(2, "two", "p.go", 11) // gives way to one
	push(3, "three", "q.go", 10)
	push(4, "three", "q.go", 10) // supersedes 3
	check(t, l.Withdraw(ctx, "acme", "api", sha(4)))
	l.wantState(1, ledger.Promotable)
	l.wantState(2, ledger.Attested)

	l.jump(40 * day)
	l.pass(time.Hour)
	if l.commit(1).InFlight || l.commit(2).InFlight {
		t.Fatal("the tips are still in flight")
	}
	push(5, "two", "p.go", 11) // replaces 2, which is forgotten
	l.wantState(5, ledger.Promotable)
	l.jump(-40 * day)
	l.pass(2 * time.Minute)

	for commit, want := range map[int]bool{1: true, 2: false, 3: false, 4: false, 5: true} {
		if got := l.commit(commit).InFlight; got != want {
			t.Errorf("commit %d in flight: %v, want %v", commit, got, want)
		}
	}
	l.wantState(1, ledger.Promotable)
	l.wantState(5, ledger.Attested)
}

// TestFaultJumpDisablesNoWebhook checks that the time by which the clock jumps is not time
// in which a webhook fails.
func TestFaultJumpDisablesNoWebhook(t *testing.T) {
	l := newTimeline(t)
	hook := l.webhook()
	l.attest(1, "test:go")
	fail := func() bool {
		t.Helper()
		_, due, err := l.Claim(t.Context(), hook, 1, 30*time.Second)
		check(t, err)

		check(t, l.RecordOutcomes(t.Context(), []ledger.Outcome{{
			Webhook: hook, Delivery: due[0].ID, Status: ledger.DeliveryPending, RetryAt: l.Now().Add(time.Second),
			Tries: due[0].Tries, Lease: due[0].Lease,
			Attempt: ledger.Attempt{At: l.Now(), Error: "500", Request: ledger.AttemptRequest{URL: timelineHook}},
		}}, 5*day))
		w, err := l.Webhook(t.Context(), "acme", "api", hook)
		check(t, err)
		l.pass(time.Second)
		return w.Active
	}

	for range 10 {
		fail()
	}
	l.jump(10 * day)
	l.pass(time.Minute)
	if !fail() {
		t.Error("the webhook is disabled after failing for a minute")
	}
	l.pass(5 * day)
	if fail() {
		t.Error("the webhook is active after failing for five days")
	}
}

// TestFaultStampsOfTwoProcesses checks that ids ascend while they are ahead of the clock and
// two processes write.
func TestFaultStampsOfTwoProcesses(t *testing.T) {
	l := newTimeline(t)
	l.jump(40 * day)
	l.pass(2 * time.Minute)
	l.attest(1, "test:go")
	l.jump(-40 * day)
	l.pass(2 * time.Minute)

	first := l.Store
	l.open()
	defer func() { check(t, l.Close()); l.Store = first }()
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

// TestFaultExpirationsAreForgotten checks that the log of expired evidence does not grow
// forever.
func TestFaultExpirationsAreForgotten(t *testing.T) {
	l := newTimeline(t)
	rows := func() int { return l.rows("SELECT count(*) FROM expirations") }

	for commit := 1; commit <= 3; commit++ {
		l.promote(commit)
	}
	l.pass(31 * day)
	if n := rows(); n != 3 {
		t.Errorf("the log has %d rows, want one per commit", n)
	}
	l.pass(88 * day)
	if n := rows(); n != 3 {
		t.Errorf("the log has %d rows after 88 days, want 3", n)
	}
	l.pass(4 * day)
	if n := rows(); n != 0 {
		t.Errorf("the log has %d rows after 92 days, want none", n)
	}
}

// ahead has the clock be 40 days ahead for an hour, in which during runs, and puts it right.
func (l *timeline) ahead(during func()) {
	l.t.Helper()
	l.jump(40 * day)
	l.pass(time.Hour)
	during()
	l.jump(-40 * day)
	l.pass(time.Minute)
	l.wantNow(l.wall, 0)
}

// TestFaultShortProcessesPutTheClockRight checks that commands which run for seconds go back
// with the clock once it has been behind for a minute, and not before.
func TestFaultShortProcessesPutTheClockRight(t *testing.T) {
	l := newTimeline(t)
	l.jump(40 * day)
	l.pass(2 * time.Minute)
	l.attest(1, "test:go")

	for range 2 {
		l.wall = l.wall.Add(-40 * day)
		l.restart()
		if s := l.ClockStatus(); !s.Unproven || s.Lead < 39*day {
			t.Errorf("a process believed a clock that is far behind: %+v", s)
		}
		l.wall = l.wall.Add(40 * day) // as in the first minute after a boot
		l.restart()
		l.wantNow(l.wall, time.Second)
		l.pass(2 * time.Minute)
	}

	l.wall = l.wall.Add(-40 * day)
	l.restart()
	l.wall = l.wall.Add(59 * time.Second)
	l.restart()
	if !l.ClockStatus().Unproven {
		t.Error("a process believed the clock after 59 seconds")
	}
	l.wall = l.wall.Add(time.Second)
	l.restart()
	l.wantNow(l.wall, 0)
	l.settle()
	if n := l.logged("corrected the times"); n != 1 {
		t.Errorf("the times were corrected %d times, want once", n)
	}

	l.attest(1, "test:go")
	for range 3 {
		l.restart()
		l.wantNow(l.wall, 0)
		l.settle()
	}
	l.wantOrder()
	if n := l.logged("corrected the times"); n != 1 {
		t.Errorf("the times were corrected %d times, want once", n)
	}
}

// TestFaultRestartAfterIDsWithoutEvents checks that the clock continues after a restart from
// the time of a token, which has no event.
func TestFaultRestartAfterIDsWithoutEvents(t *testing.T) {
	l := newTimeline(t)
	l.pass(time.Hour)
	token, err := l.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{1})
	check(t, err)
	l.wall = l.wall.Add(-time.Hour)
	l.restart()
	next, err := l.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{2})
	check(t, err)
	if next.ID <= token.ID || next.CreatedAt < token.CreatedAt {
		t.Errorf("%s of %s comes after %s of %s", next.ID, next.CreatedAt, token.ID, token.CreatedAt)
	}
}

// TestFaultEvidenceAgesOnceOnly checks that a second accident does not make evidence younger
// that was recorded after the first one.
func TestFaultEvidenceAgesOnceOnly(t *testing.T) {
	l := newTimeline(t)
	l.ahead(func() { l.attest(1, "test:go") })
	l.promote(2)
	l.pass(20 * day)
	l.wantState(2, ledger.Promotable)
	l.jump(60 * day)
	l.pass(time.Hour)
	l.attest(3, "test:go")
	l.jump(-60 * day)
	l.pass(time.Minute)
	l.wantState(2, ledger.Promotable)
	l.pass(11 * day)
	l.wantState(2, ledger.Validating)
	l.wantOrder()
}

// TestFaultRightRetriesKeepTheirTime checks that putting the clock right makes only those
// deliveries due that were scheduled by the wrong time.
func TestFaultRightRetriesKeepTheirTime(t *testing.T) {
	l := newTimeline(t)
	early, late := l.webhook(), l.webhook()
	l.attest(1, "test:go")
	if n := l.fail(early, 24*time.Hour); n != 1 {
		t.Fatalf("claimed %d deliveries, want 1", n)
	}
	l.ahead(func() {
		_, due, err := l.Claim(t.Context(), late, 10, 30*time.Second)
		check(t, err)
		if len(due) != 1 {
			t.Fatalf("claimed %d deliveries, want 1", len(due))
		}
	})

	if n := l.fail(early, 24*time.Hour); n != 0 {
		t.Error("a retry is due 23 hours early")
	}
	if n := l.fail(late, time.Hour); n != 0 {
		t.Error("a lease ended while the attempt may be running")
	}
	l.pass(time.Minute)
	if n := l.fail(late, time.Hour); n != 1 {
		t.Error("the lease has not ended a minute later")
	}
	l.pass(day)
	if n := l.fail(early, 24*time.Hour); n != 1 {
		t.Error("the retry is not due after 24 hours")
	}
}

// TestFaultWebhookFailsAfterTheClockIsRight checks that failures count again once the clock is
// right, if the webhook was changed or failed while the clock was ahead.
func TestFaultWebhookFailsAfterTheClockIsRight(t *testing.T) {
	for _, failsBefore := range []bool{false, true} {
		l := newTimeline(t)
		hook := l.webhook()
		l.ahead(func() {
			_, err := l.ChangeWebhook(t.Context(), "acme", "api", hook, ledger.WebhookChange{Active: new(false)})
			check(t, err)
			_, err = l.ChangeWebhook(t.Context(), "acme", "api", hook, ledger.WebhookChange{Active: new(true)})
			check(t, err)
			if failsBefore {
				l.attest(1, "test:go")
				l.fail(hook, time.Second)
			}
		})

		l.attest(1, "test:go")
		for range 7 {
			_, due, err := l.Claim(t.Context(), hook, 1, 30*time.Second)
			check(t, err)
			check(t, l.RecordOutcomes(t.Context(), []ledger.Outcome{{
				Webhook: hook, Delivery: due[0].ID, Status: ledger.DeliveryPending, RetryAt: l.Now(),
				Tries: due[0].Tries, Lease: due[0].Lease,
				Attempt: ledger.Attempt{At: l.Now(), Error: "500", Request: ledger.AttemptRequest{URL: timelineHook}},
			}}, 5*day))
			l.pass(day)
			if w, err := l.Webhook(t.Context(), "acme", "api", hook); err == nil && !w.Active {
				break
			}
		}
		w, err := l.Webhook(t.Context(), "acme", "api", hook)
		check(t, err)
		if w.Active {
			t.Errorf("fails before %v: the webhook is active after failing for a week", failsBefore)
		}
	}
}

// TestFaultSecondAccident checks that a clock which is ahead twice is put right twice, even
// if the second accident is about as large as the first one, or smaller, and the server is
// restarted at the end of it or during it.
func TestFaultSecondAccident(t *testing.T) {
	for _, ahead := range []time.Duration{40*day + time.Minute, 40 * day, 40*day - 30*time.Minute, 20 * day} {
		for _, restart := range []string{"never", "ahead", "put right"} {
			t.Run(fmt.Sprintf("%v, restart %s", ahead, restart), func(t *testing.T) {
				l := newTimeline(t)
				l.promote(1)
				l.ahead(func() { l.attest(2, "test:go") })
				l.pass(10 * time.Minute)
				l.wantState(1, ledger.Promotable)

				l.jump(ahead)
				l.pass(5 * time.Minute)
				l.promote(3)
				if restart == "ahead" {
					l.restart()
					l.pass(5 * time.Minute)
				}
				l.wall = l.wall.Add(-ahead)
				if restart == "put right" {
					l.restart()
				}
				l.pass(2 * time.Minute)
				l.wantNow(l.wall, 0)
				if n := l.logged("corrected the times"); n != 2 {
					t.Errorf("the times were corrected %d times, want twice", n)
				}
				l.wantState(1, ledger.Promotable)
				l.wantState(3, ledger.Promotable)

				l.promote(4)
				l.restart()
				l.wantNow(l.wall, 0)
				l.pass(31 * day) // all evidence expires
				for commit := 1; commit <= 4; commit++ {
					l.wantState(commit, ledger.Validating)
				}
				l.wantOrder()
			})
		}
	}
}

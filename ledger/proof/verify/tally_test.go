package verify

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
)

func TestTally(t *testing.T) {
	var tally Tally
	for i := range 30 {
		tally.Add(fmt.Sprint("evt_", i), Passed("a", "x"), Failure("b", "y"))
	}
	tally.Add("evt_30", Skipped("a", "why"))
	checks := tally.Checks("event")
	got := summary(checks)
	if want := "a ok, a not_checked, " + strings.Repeat("b failed, ", 20) + "b failed"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if checks[0].Detail != "30 events" || checks[1].Detail != "1 event: why" || checks[2].Detail != "evt_0: y" ||
		checks[22].Detail != "10 more events" {
		t.Errorf("%+v", checks)
	}
	if n := len(new(Tally).Checks("event")); n != 0 {
		t.Errorf("%d checks of nothing", n)
	}
}

func TestReportSaysWhetherEverythingThatWasAskedForWasChecked(t *testing.T) {
	var tally Tally
	tally.Add("evt_1", Passed("a", "x"), Skipped("b", "pruned"))
	for name, test := range map[string]struct {
		checks             []Check
		verified, complete bool
	}{
		"all passed":                  {[]Check{Passed("a", "x")}, true, true},
		"one failed":                  {[]Check{Passed("a", "x"), Failure("b", "y")}, false, true},
		"one was not asked for":       {[]Check{Passed("a", "x"), Unasked("b", "no --policy")}, true, true},
		"one could not be made":       {[]Check{Passed("a", "x"), Skipped("b", "pruned")}, true, false},
		"one of many":                 {tally.Checks("event"), true, false},
		"one failed, and one is left": {[]Check{Failure("a", "x"), Skipped("b", "a has failed")}, false, false},
	} {
		if r := NewReport("event", "evt_1", test.checks); r.Verified != test.verified || r.Complete != test.complete {
			t.Errorf("%s: verified %v, complete %v", name, r.Verified, r.Complete)
		}
	}
}

func moved(from, to ledger.State, at ledger.Time) ledger.StateEvent {
	return ledger.StateEvent{ID: "evt_1", Commit: "c", From: from, To: to, Timestamp: at}
}

func TestStates(t *testing.T) {
	var s States
	if err := s.Check("c", ledger.Draft, 5); err != nil {
		t.Errorf("without events: %v", err)
	}
	if s.Check("c", ledger.Validating, 5) == nil {
		t.Error("without events, a state passes")
	}
	must.OK(t, s.Add(moved(ledger.Draft, ledger.Validating, 10), true))
	must.OK(t, s.Add(moved(ledger.Validating, ledger.Attested, 20), true))
	must.OK(t, s.Add(moved(ledger.Attested, ledger.Promotable, 30), false))
	if s.Add(moved(ledger.Attested, ledger.Promotable, 40), false) == nil {
		t.Error("a gap in the chain passes")
	}

	for _, test := range []struct {
		state ledger.State
		since ledger.Time
		want  bool
	}{
		{ledger.Draft, 0, false}, {ledger.Validating, 10, false}, {ledger.Attested, 20, true}, {ledger.Attested, 21, false},
		{ledger.Promotable, 30, true}, {ledger.Promotable, 31, false}, {ledger.Deployed, 30, false},
	} {
		if err := s.Check("c", test.state, test.since); (err == nil) != test.want {
			t.Errorf("%s since %d: %v", test.state, test.since, err)
		}
	}
	if got := fmt.Sprint(s.Settled()); got != "[c]" {
		t.Error(got)
	}
	var later States
	must.OK(t, later.Add(moved(ledger.Draft, ledger.Validating, 10), false))
	if len(later.Settled()) != 0 || later.Check("c", ledger.Draft, 5) != nil ||
		later.Check("c", ledger.Validating, 10) != nil {
		t.Error("an event after the question does not leave both answers open")
	}
}

// If earlier events were pruned, the first one of a commit says what the commit was before, and
// nothing shows the state of a commit without events.
func TestStatesAfterPrunedEvents(t *testing.T) {
	var s States
	if err := s.Add(moved(ledger.Validating, ledger.Attested, 10), true); err == nil {
		t.Error("a gap passes although nothing was pruned")
	}
	s = States{Pruned: true}
	for _, state := range ledger.States() {
		if err := s.Check("other", state, 5); !errors.Is(err, ErrPruned) {
			t.Errorf("%s: %v", state, err)
		}
	}

	must.OK(t, s.Add(moved(ledger.Validating, ledger.Attested, 10), false))
	for state, want := range map[ledger.State]bool{
		ledger.Draft: false, ledger.Validating: true, ledger.Attested: true, ledger.Promotable: false,
	} {
		if err := s.Check("c", state, 10); (err == nil) != want {
			t.Errorf("%s: %v", state, err)
		}
	}
	must.OK(t, s.Add(moved(ledger.Attested, ledger.Promotable, 20), true))
	if s.Add(moved(ledger.Attested, ledger.Promotable, 30), true) == nil {
		t.Error("a gap between events passes")
	}
}

func TestPolicies(t *testing.T) {
	shown := policy.Policy{Version: 1, Contract: policy.Default()}
	shown.Digest = shown.Contract.Digest()
	var p Policies
	must.OK(t, p.Check(shown))
	wrong := shown
	wrong.Digest = "sha256:0"
	if p.Check(wrong) == nil {
		t.Error("a wrong digest passes")
	}

	second := shown
	second.Version = 2
	if p.Check(second) == nil {
		t.Error("a version without an event passes")
	}
	must.OK(t, p.Add(ledger.PolicyEvent{ID: "evt_1", Version: 2, PreviousVersion: 1, Digest: shown.Digest,
		Rules: policy.Rules}, false))
	must.OK(t, p.Check(shown))
	must.OK(t, p.Check(second))
	must.OK(t, p.Add(ledger.PolicyEvent{ID: "evt_2", Version: 3, PreviousVersion: 2, Digest: shown.Digest,
		Rules: policy.Rules}, true))
	if p.Check(shown) == nil || p.Check(second) == nil {
		t.Error("an old version passes")
	}
	second.Version = 3
	must.OK(t, p.Check(second))
	old := p
	must.OK(t, old.Add(ledger.PolicyEvent{ID: "evt_3", Version: 4, PreviousVersion: 3, Digest: shown.Digest}, true))
	if second.Version = 4; old.Check(second) == nil {
		t.Error("a contract with other rules than those in the log passes")
	}
	for _, e := range []ledger.PolicyEvent{{Version: 5, PreviousVersion: 3}, {Version: 6, PreviousVersion: 4}} {
		if q := p; q.Add(e, true) == nil {
			t.Errorf("%+v follows version 3", e)
		}
	}
}

func TestCosignedAt(t *testing.T) {
	p := &trustpolicy.Policy{Witnesses: []trustpolicy.Witness{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Groups: []trustpolicy.Group{{Name: "g", Threshold: 2, Members: []string{"a", "b", "c"}}}, Quorum: "g"}
	at := func(witness string, seconds int64) trustpolicy.Cosignature {
		return trustpolicy.Cosignature{Witness: witness, Time: time.Unix(seconds, 0)}
	}
	for _, test := range []struct {
		cosigned []trustpolicy.Cosignature
		want     int64
	}{
		{[]trustpolicy.Cosignature{at("a", 30), at("b", 10), at("c", 20)}, 20},
		{[]trustpolicy.Cosignature{at("a", 30), at("b", 30)}, 30},
		{[]trustpolicy.Cosignature{at("a", 30)}, time.Time{}.Unix()},
		{nil, time.Time{}.Unix()},
	} {
		if got := CosignedAt(p, test.cosigned).Unix(); got != test.want {
			t.Errorf("%v: %d, want %d", test.cosigned, got, test.want)
		}
	}
}

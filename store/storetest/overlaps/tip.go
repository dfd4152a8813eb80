package overlaps

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// blockHigh makes HIGH overlaps block.
func blockHigh(r *conflicts.Settings) { r.Block = radar.High }

// root returns a change of one file. The changes of neighbouring lines overlap at
// HIGH.
func root(line int) radar.Change { return edit("cmd/root.go", line) }

// newBlocked returns a fixture where the commit of branch two has the evidence for
// PROMOTABLE, but is blocked by the commit of branch one.
func (s suite) newBlocked(t *testing.T) (*fixture, *storetest.Signer) {
	t.Helper()
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.setRadar(blockHigh)
	fx.push(sha(0), "one", root(10))
	fx.push(sha(1), "two", root(11))
	ci.MakePromotable(sha(1))
	return fx, ci
}

// wantCounts checks the repo's counts against the states of its commits.
func (fx *fixture) wantCounts() {
	fx.T.Helper()
	list, err := fx.Commits(fx.T.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 500}})
	must.OK(fx.T, err)
	want := make(map[ledger.State]int64)
	for _, c := range list.Data {
		want[c.State]++
	}
	repo, err := fx.Repo(fx.T.Context(), "acme", "api")
	must.OK(fx.T, err)
	for _, state := range ledger.States() {
		if repo.Commits[state] != want[state] {
			fx.T.Errorf("the repo counts %d commits in %s, want %d", repo.Commits[state], state, want[state])
		}
	}
}

// inFlight lists the tips in flight with their branches, latest registration first.
func (fx *fixture) inFlight() []string {
	fx.T.Helper()
	list, err := fx.Commits(
		fx.T.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 500}, InFlight: true})
	must.OK(fx.T, err)
	branches := []string{}
	for _, c := range list.Data {
		branches = append(branches, fmt.Sprintf("%s %s", c.Branch, c.SHA[38:]))
	}
	return branches
}

func (s suite) TestAContractChangeSettlesEachCommitOnce(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.setRadar(blockHigh)
	fx.push(sha(0), "one", root(10))
	fx.push(sha(1), "two", root(11))
	ci.MakePromotable(sha(0), sha(1))
	fx.WantState(sha(1), ledger.Attested)

	fx.setRadar(func(r *conflicts.Settings) { r.Ignore = []string{"cmd/**"} })
	fx.WantState(sha(1), ledger.Promotable)
	fx.wantCounts()
	fx.setRadar(func(r *conflicts.Settings) { r.Ignore = []string{} })
	fx.WantState(sha(1), ledger.Attested)
	fx.wantCounts()

	const want = "DRAFT>VALIDATING VALIDATING>ATTESTED ATTESTED>PROMOTABLE PROMOTABLE>ATTESTED"
	c := fx.ReadCommit(sha(1))
	if got := storetest.Path(c); got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}
	for i, version := range []string{"3", "4"} {
		if got, want := c.Transitions[i+2].Cause, (ledger.Cause{Type: ledger.CausePolicy, ID: version}); got != want {
			t.Errorf("the cause is %v, want %v", got, want)
		}
	}
}

// A commit with two overlaps must not become PROMOTABLE between the re-scans of the
// two.
func (s suite) TestAContractChangeDoesNotMoveABlockedCommit(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.setRadar(func(r *conflicts.Settings) { r.Block, r.Ignore = radar.High, []string{"b.go"} })
	const crowd = 60 // more than one write re-scans
	for i := range crowd {
		fx.push(sha(i), fmt.Sprint("branch", i), edit([]string{"a.go", "b.go"}[i*2/crowd], 10))
	}
	fx.push(sha(crowd), "last", edit("a.go", 11), edit("b.go", 11))
	ci.MakePromotable(sha(crowd))
	fx.WantState(sha(crowd), ledger.Attested)
	before := storetest.Path(fx.ReadCommit(sha(crowd)))
	fx.setRadar(func(r *conflicts.Settings) { r.Ignore = []string{"a.go"} })
	if got := storetest.Path(fx.ReadCommit(sha(crowd))); got != before {
		t.Errorf("transitions %s, want %s", got, before)
	}
	fx.wantCounts()
}

func (s suite) TestARolledBackCommitIsComparedAgain(t *testing.T) {
	for _, pushAgain := range []bool{false, true} {
		t.Run(fmt.Sprint("pushed again while deployed: ", pushAgain), func(t *testing.T) {
			fx := s.newFixture(t)
			ci := fx.NewSigner("cn=ci,ou=build,o=acme")
			fx.setRadar(blockHigh)
			fx.push(sha(0), "one", root(10))
			ci.Deploy(sha(0))
			fx.push(sha(1), "two", root(11))
			ci.MakePromotable(sha(1))
			fx.wantOverlaps()
			fx.WantState(sha(1), ledger.Promotable)
			if pushAgain { // as a CI job does
				fx.push(sha(0), "one", root(10))
				fx.wantOverlaps()
			}

			ci.Attest(sha(0), "deploy:prod", ledger.Fail)
			fx.wantOverlaps("two+one HIGH")
			fx.WantState(sha(0), ledger.Promotable)
			fx.WantState(sha(1), ledger.Attested)
			if got, want := fx.radarEvents(), []string{"0000002 HIGH"}; !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
			fx.wantCounts()
		})
	}
}

// The rolled back commit may be the later one, if the earlier one has changed since.
func (s suite) TestARolledBackCommitCanBeBlocked(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.setRadar(blockHigh)
	fx.push(sha(0), "one", edit("main.go", 10))
	fx.push(sha(1), "two", root(11))
	ci.Deploy(sha(1))
	fx.push(sha(0), "one", root(10))

	ci.Attest(sha(1), "deploy:prod", ledger.Fail)
	fx.wantOverlaps("two+one HIGH")
	fx.WantState(sha(1), ledger.Attested)
	c := fx.ReadCommit(sha(1))
	if last := c.Transitions[len(c.Transitions)-1]; last.From != ledger.Deployed || last.To != ledger.Attested {
		t.Errorf("it went from %s to %s", last.From, last.To)
	}
	fx.wantCounts()
}

func (s suite) TestACommitOutOfFlightIsNotBlocked(t *testing.T) {
	tests := []struct {
		name string
		do   func(*fixture)
	}{
		{"superseded", func(fx *fixture) { fx.push(sha(2), "two", root(300)) }},
		{"landed", func(fx *fixture) {
			fx.pushAs(sha(2), ledger.Registration{Branch: "three", Contained: []string{sha(1)},
				Changes: []radar.Change{root(300)}})
		}},
		{"withdrawn", func(fx *fixture) { must.OK(fx.T, fx.Withdraw(fx.T.Context(), "acme", "api", sha(1))) }},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fx, _ := s.newBlocked(t)
			fx.WantState(sha(1), ledger.Attested)
			test.do(fx)
			fx.WantState(sha(1), ledger.Promotable)
			fx.wantCounts()
		})
	}
}

func (s suite) TestALatePushDoesNotReplaceTheTip(t *testing.T) {
	older := ledger.Registration{Branch: "one", Changes: []radar.Change{root(10)}}
	tests := []struct {
		name string
		do   func(*fixture)
		want []string
	}{
		{"completed without a branch", func(fx *fixture) {
			fx.pushAs(sha(0), older)
			fx.push(sha(1), "one", root(20))
			fx.Complete(sha(0), ledger.Registration{Message: "more"})
		}, []string{"one 02"}},
		{"withdrawn and completed without a branch", func(fx *fixture) {
			fx.pushAs(sha(0), older)
			must.OK(fx.T, fx.Withdraw(fx.T.Context(), "acme", "api", sha(0)))
			fx.Complete(sha(0), ledger.Registration{Message: "more"})
		}, nil},
		{"the parent of the tip, pushed again", func(fx *fixture) {
			fx.pushAs(sha(0), older)
			fx.pushAs(sha(1), ledger.Registration{Branch: "one", Parents: []string{sha(0)}, Changes: []radar.Change{root(20)}})
			fx.pushAs(sha(0), older)
		}, []string{"one 02"}},
		{"an ancestor of the tip, pushed for the first time", func(fx *fixture) {
			fx.pushAs(sha(1), ledger.Registration{Branch: "one", Parents: []string{sha(2)}, Ancestors: []string{sha(0), sha(2)},
				Changes: []radar.Change{root(20)}})
			fx.pushAs(sha(0), older)
		}, []string{"one 02"}},
		{"the parent of another branch's tip", func(fx *fixture) {
			fx.pushAs(sha(0), older)
			fx.pushAs(sha(1), ledger.Registration{Branch: "two", Parents: []string{sha(0)}, Changes: []radar.Change{root(20)}})
			fx.pushAs(sha(0), older)
		}, []string{"two 02", "one 01"}},
		{"not an ancestor of the tip: the branch was reset", func(fx *fixture) {
			fx.pushAs(sha(0), older)
			fx.push(sha(1), "one", root(20))
			fx.pushAs(sha(0), older)
		}, []string{"one 01"}},
		{"the tip, completed", func(fx *fixture) {
			fx.pushAs(sha(0), older)
			fx.Complete(sha(0), ledger.Registration{Message: "more"})
		}, []string{"one 01"}},
		{"landed, then reverted and pushed again", func(fx *fixture) {
			fx.pushAs(sha(0), older)
			fx.pushAs(sha(1), ledger.Registration{Branch: "two", Contained: []string{sha(0), sha(1)},
				Changes: []radar.Change{root(20)}})
			fx.pushAs(sha(0), older)
			fx.Complete(sha(1), ledger.Registration{Message: "more"})
		}, []string{"two 02", "one 01"}},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			test.do(fx)
			if got := fx.inFlight(); !slices.Equal(got, test.want) {
				t.Errorf("in flight %q, want %q", got, test.want)
			}
		})
	}
}

func (s suite) TestChangesAddedWithoutABranchAreCompared(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", root(10))
	fx.push(sha(1), "two", edit("main.go", 1))
	fx.Complete(sha(1), ledger.Registration{Changes: []radar.Change{root(11)}})
	fx.wantOverlaps("two+one HIGH")
}

func (s suite) TestTheRadarBlocksNoCommitOnItsTarget(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.setRadar(blockHigh)
	fx.push(sha(0), "old", root(10))
	fx.push(sha(1), "new", root(11))
	fx.pushAs(sha(2), ledger.Registration{Branch: "main", Contained: []string{sha(1)}, Changes: []radar.Change{root(11)}})
	fx.pushAs(sha(3), ledger.Registration{Branch: "release/1", Target: "release/1", Changes: []radar.Change{root(9)}})
	fx.pushAs(sha(4), ledger.Registration{Branch: "main2", Changes: []radar.Change{root(12)}})
	ci.MakePromotable(sha(0), sha(2), sha(3), sha(4))
	fx.WantState(sha(0), ledger.Promotable)
	fx.WantState(sha(2), ledger.Promotable)
	fx.WantState(sha(3), ledger.Promotable)
	fx.WantState(sha(4), ledger.Attested)

	requirements := fx.ReadCommit(sha(2)).Requirements
	if last := requirements[len(requirements)-1]; last.Predicate != "radar:HIGH" || last.Applies {
		t.Errorf("the record has %+v", last)
	}
	counts := fx.ReadCommit(sha(2)).Overlaps
	if counts["HIGH"] != 2 {
		t.Errorf("overlaps %v, want 2 HIGH", counts)
	}
}

func (s suite) TestAnOldTipIsInFlightAgainWhenPushed(t *testing.T) {
	fx := s.newFixture(t)
	fx.push(sha(0), "one", root(10))
	fx.Clock.Advance(31 * 24 * time.Hour)
	fx.push(sha(1), "two", root(11))
	fx.wantOverlaps()
	fx.Complete(sha(0), ledger.Registration{Message: "more"}) // does not push it
	fx.wantOverlaps()
	fx.push(sha(0), "one", root(10))
	fx.wantOverlaps("one+two HIGH")
	if got, want := fx.radarEvents(), []string{"0000001 HIGH"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func (s suite) TestALargerMaxAgeRescansOverlaps(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	age := func(d time.Duration) func(*conflicts.Settings) {
		return func(r *conflicts.Settings) { r.Block, r.MaxAge = radar.High, ledger.Duration(d) }
	}
	fx.setRadar(age(2 * time.Second))
	fx.push(sha(0), "one", root(10))
	fx.Clock.Advance(3 * time.Second)
	fx.push(sha(1), "two", root(11))
	ci.MakePromotable(sha(0), sha(1))
	fx.wantOverlaps()
	fx.setRadar(age(time.Hour))
	fx.wantOverlaps("two+one HIGH")
	fx.WantState(sha(1), ledger.Attested)
	fx.setRadar(age(2 * time.Second))
	fx.wantOverlaps()
	fx.WantState(sha(1), ledger.Promotable)
	fx.wantCounts()
}

// Changes registered for a tip that is too old count once it is in flight again.
func (s suite) TestChangesOfAnOldTipCountOnceItIsInFlightAgain(t *testing.T) {
	maxAge := func(age time.Duration) func(*conflicts.Settings) {
		return func(r *conflicts.Settings) { r.MaxAge = ledger.Duration(age) }
	}
	for name, pushOther := range map[string]func(fx *fixture, push func()){
		"before": func(fx *fixture, push func()) {
			push()
			fx.setRadar(maxAge(time.Hour))
			fx.Clock.Advance(2 * time.Hour)
		},
		"while the first is too old": func(fx *fixture, push func()) {
			fx.setRadar(maxAge(time.Hour))
			fx.Clock.Advance(2 * time.Hour)
			push()
		},
	} {
		t.Run("the other is pushed "+name, func(t *testing.T) {
			fx := s.newFixture(t)
			fx.setRadar(maxAge(24 * time.Hour))
			fx.push(sha(0), "one", edit("a.go", 10))
			pushOther(fx, func() { fx.push(sha(1), "two", edit("b.go", 10)) })
			fx.Complete(sha(0), ledger.Registration{Changes: []radar.Change{edit("b.go", 11)}})
			fx.wantOverlaps()

			fx.setRadar(maxAge(24 * time.Hour))
			fx.wantOverlaps("two+one HIGH")
		})
	}
}

// Changes registered for a commit after its deployment count for open overlaps with
// it.
func (s suite) TestChangesOfADeployedCommitCount(t *testing.T) {
	fx, ci := s.newBlocked(t)
	fx.Clock.Advance(time.Minute)
	ci.Deploy(sha(0))
	fx.wantOverlaps("two+one HIGH")
	fx.WantState(sha(1), ledger.Attested)

	fx.Complete(sha(0), ledger.Registration{Changes: []radar.Change{root(500)}})
	must.OK(t, fx.Settle(t.Context()))
	fx.wantOverlaps("two+one MEDIUM")
	fx.WantState(sha(1), ledger.Promotable)

	fx.push(sha(0), "one", root(12)) // by a CI job, with its branch
	must.OK(t, fx.Settle(t.Context()))
	fx.wantOverlaps("two+one HIGH")
	fx.WantState(sha(1), ledger.Attested)
	list := fx.ReadCommit(sha(1)).Transitions
	for _, transition := range list[len(list)-2:] {
		if want := (ledger.Cause{Type: ledger.CauseRadar, ID: sha(0)}); transition.Cause != want {
			t.Errorf("from %s to %s: cause %v, want %v", transition.From, transition.To, transition.Cause, want)
		}
	}

	fx.Complete(sha(0), ledger.Registration{Changes: []radar.Change{edit("main.go", 1)}})
	must.OK(t, fx.Settle(t.Context()))
	fx.wantOverlaps()
	fx.wantCounts()
}

// A landed commit still blocks later ones, which must rebase onto it. Pushed again,
// it becomes the later one and no longer blocks them.
func (s suite) TestALandedCommitThatIsPushedAgainDoesNotBlock(t *testing.T) {
	fx, _ := s.newBlocked(t)
	fx.Clock.Advance(time.Minute)
	fx.pushAs(sha(2), ledger.Registration{Branch: "three", Contained: []string{sha(0)},
		Changes: []radar.Change{edit("main.go", 1)}})
	fx.wantOverlaps("two+one HIGH")
	fx.WantState(sha(1), ledger.Attested)

	fx.push(sha(0), "one", root(10))
	fx.wantOverlaps("one+two HIGH")
	fx.WantState(sha(1), ledger.Promotable)
	fx.wantCounts()
}

// A deployed commit is out of flight for commits pushed later.
func (s suite) TestCommitsAfterADeploymentAreNotComparedWithIt(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.push(sha(0), "one", root(10))
	fx.push(sha(1), "two", root(11)) // is compared with the first
	ci.Deploy(sha(0))
	fx.Clock.Advance(time.Minute)
	fx.push(sha(2), "three", root(11))
	fx.wantOverlaps("two+one HIGH")
}

func (s suite) TestARollbackWhileTheRadarIsOff(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.push(sha(0), "one", root(10))
	ci.Deploy(sha(0))
	fx.push(sha(1), "two", root(11))
	fx.wantOverlaps()
	fx.setRadar(func(r *conflicts.Settings) { r.Enabled = false })
	ci.Attest(sha(0), "deploy:prod", ledger.Fail)
	fx.setRadar(func(r *conflicts.Settings) { r.Enabled = true })
	fx.wantOverlaps("two+one HIGH")
}

// A commit is not compared with ancestors that are registered later, whether it is in
// flight at that time or only afterwards.
func (s suite) TestAncestorsRegisteredLaterCount(t *testing.T) {
	for name, age := range map[string]time.Duration{"in flight": 24 * time.Hour, "too old": time.Hour} {
		t.Run(name, func(t *testing.T) {
			fx := s.newFixture(t)
			maxAge := func(age time.Duration) {
				fx.setRadar(func(r *conflicts.Settings) { r.MaxAge = ledger.Duration(age) })
			}
			fx.push(sha(0), "one", root(10))
			fx.push(sha(1), "two", root(11))
			fx.wantOverlaps("two+one HIGH")
			maxAge(age)
			fx.Clock.Advance(2 * time.Hour)
			fx.Complete(sha(1), ledger.Registration{Ancestors: []string{sha(0)}})
			maxAge(24 * time.Hour)
			fx.wantOverlaps()
		})
	}
}

// Changes registered while the radar is off, or ignores the path, count when the old
// settings return, even if the commit is no longer in flight.
func (s suite) TestChangesUnderOtherRadarSettingsCount(t *testing.T) {
	off := func(r *conflicts.Settings) { r.Enabled = false }
	ignored := func(r *conflicts.Settings) { r.Ignore = []string{"cmd/**"} }
	for name, other := range map[string]struct {
		change func(*conflicts.Settings)
		set    func(*fixture, func(*conflicts.Settings))
	}{
		"off":                                {off, (*fixture).setRadar},
		"off, before it is settled":          {off, (*fixture).changeRadar},
		"path ignored":                       {ignored, (*fixture).setRadar},
		"path ignored, before it is settled": {ignored, (*fixture).changeRadar},
	} {
		for _, test := range []struct {
			name          string
			before, after radar.Change
			want          []string
			state         ledger.State
		}{
			{"an overlap ends", root(10), edit("go.mod", 1), []string{}, ledger.Promotable},
			{"an overlap begins", edit("go.mod", 1), root(10), []string{"two+one HIGH"}, ledger.Attested},
		} {
			t.Run(name+", "+test.name, func(t *testing.T) {
				fx := s.newFixture(t)
				ci := fx.NewSigner("cn=ci,ou=build,o=acme")
				fx.setRadar(blockHigh)
				fx.push(sha(0), "one", test.before)
				fx.push(sha(1), "two", root(11))
				ci.MakePromotable(sha(0), sha(1))

				other.set(fx, other.change)
				fx.push(sha(0), "one", test.after)
				ci.Attest(sha(0), "deploy:prod", ledger.Pass)
				fx.setRadar(func(r *conflicts.Settings) { r.Enabled, r.Ignore = true, nil })

				fx.wantOverlaps(test.want...)
				fx.WantState(sha(1), test.state)
			})
		}
	}
}

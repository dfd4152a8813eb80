package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
)

// blocks makes overlaps of level HIGH block.
func blocks(r *policy.RadarSettings) { r.Block = radar.High }

// root is a change of one file that overlaps HIGH with root of the line beside.
func root(line int) radar.Change { return edit("cmd/root.go", line) }

// readies gives a commit all that it needs to be PROMOTABLE, but for the radar.
func (s *signer) readies(commits ...string) {
	s.b.t.Helper()
	for _, commit := range commits {
		s.attests(commit, "test:go", ledger.Pass)
		s.attests(commit, "review:code", ledger.Pass)
	}
}

// completes registers more of a commit, without its branch.
func (b *bench) completes(sha string, n ledger.Registration) {
	b.t.Helper()
	_, _, err := b.Register(b.t.Context(), "acme", "api", sha, n)
	check(b.t, err)
}

// newWaiting returns a bench where the commit of branch two has all that it
// needs, and waits for that of branch one.
func (s suite) newWaiting(t *testing.T) (*bench, *signer) {
	t.Helper()
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.setRadar(blocks)
	b.push(sha(0), "one", root(10))
	b.push(sha(1), "two", root(11))
	ci.readies(sha(1))
	return b, ci
}

// wantCounts checks what the repo counts against the states of its commits.
func (b *bench) wantCounts() {
	b.t.Helper()
	list, err := b.Commits(b.t.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 500}})
	check(b.t, err)
	want := make(map[ledger.State]int64)
	for _, c := range list.Data {
		want[c.State]++
	}
	repo, err := b.Repo(b.t.Context(), "acme", "api")
	check(b.t, err)
	for _, state := range ledger.States() {
		if repo.Commits[state] != want[state] {
			b.t.Errorf("the repo counts %d commits in %s, there are %d", repo.Commits[state], state, want[state])
		}
	}
}

// inFlight lists the branches whose tips are, those registered last first.
func (b *bench) inFlight() []string {
	b.t.Helper()
	list, err := b.Commits(
		b.t.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 500}, InFlight: true})
	check(b.t, err)
	branches := []string{}
	for _, c := range list.Data {
		branches = append(branches, fmt.Sprintf("%s %s", c.Branch, c.SHA[38:]))
	}
	return branches
}

func (s suite) TestAChangedContractSettlesEachCommitOnce(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.setRadar(blocks)
	b.push(sha(0), "one", root(10))
	b.push(sha(1), "two", root(11))
	ci.readies(sha(0), sha(1))
	b.wantState(sha(1), ledger.Attested)

	b.setRadar(func(r *policy.RadarSettings) { r.Ignore = []string{"cmd/**"} })
	b.wantState(sha(1), ledger.Promotable)
	b.wantCounts()
	b.setRadar(func(r *policy.RadarSettings) { r.Ignore = []string{} })
	b.wantState(sha(1), ledger.Attested)
	b.wantCounts()

	const want = "DRAFT>VALIDATING VALIDATING>ATTESTED ATTESTED>PROMOTABLE PROMOTABLE>ATTESTED"
	c := b.commit(sha(1))
	if got := path(c); got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}
	for i, version := range []string{"3", "4"} {
		if got, want := c.Transitions[i+2].Cause, (ledger.Cause{Type: ledger.CausePolicy, ID: version}); got != want {
			t.Errorf("the cause is %v, want %v", got, want)
		}
	}
}

// A commit that overlaps with two may not become PROMOTABLE between the two
// being looked at anew.
func (s suite) TestAChangedContractMovesNobodyWhomItLeavesBlocked(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.setRadar(func(r *policy.RadarSettings) { r.Block, r.Ignore = radar.High, []string{"b.go"} })
	const crowd = 60 // more than one write looks at
	for i := range crowd {
		b.push(sha(i), fmt.Sprint("branch", i), edit([]string{"a.go", "b.go"}[i*2/crowd], 10))
	}
	b.push(sha(crowd), "last", edit("a.go", 11), edit("b.go", 11))
	ci.readies(sha(crowd))
	b.wantState(sha(crowd), ledger.Attested)
	before := path(b.commit(sha(crowd)))
	b.setRadar(func(r *policy.RadarSettings) { r.Ignore = []string{"a.go"} })
	if got := path(b.commit(sha(crowd))); got != before {
		t.Errorf("transitions %s, want %s", got, before)
	}
	b.wantCounts()
}

func (s suite) TestWhatWasRolledBackIsComparedAgain(t *testing.T) {
	for _, deployedFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("by its first signer: ", deployedFirst), func(t *testing.T) {
			b := s.newBench(t)
			ci := b.signer("cn=ci,ou=build,o=acme")
			b.setRadar(blocks)
			b.push(sha(0), "one", root(10))
			ci.deploys(sha(0))
			b.push(sha(1), "two", root(11))
			ci.readies(sha(1))
			b.wantOverlaps()
			b.wantState(sha(1), ledger.Promotable)
			if !deployedFirst { // pushed again by a CI job, it stays where it is
				b.push(sha(0), "one", root(10))
				b.wantOverlaps()
			}

			ci.attests(sha(0), "deploy:prod", ledger.Fail)
			b.wantOverlaps("two+one HIGH")
			b.wantState(sha(0), ledger.Promotable)
			b.wantState(sha(1), ledger.Attested)
			if got, want := b.radarEvents(), []string{"0000002 HIGH"}; !slices.Equal(got, want) {
				t.Errorf("told %q, want %q", got, want)
			}
			b.wantCounts()
		})
	}
}

// What was rolled back may be the later one: the other was there before, but
// has changed meanwhile.
func (s suite) TestWhatWasRolledBackMayBeBlocked(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.setRadar(blocks)
	b.push(sha(0), "one", edit("main.go", 10))
	b.push(sha(1), "two", root(11))
	ci.deploys(sha(1))
	b.push(sha(0), "one", root(10))

	ci.attests(sha(1), "deploy:prod", ledger.Fail)
	b.wantOverlaps("two+one HIGH")
	b.wantState(sha(1), ledger.Attested)
	c := b.commit(sha(1))
	if last := c.Transitions[len(c.Transitions)-1]; last.From != ledger.Deployed || last.To != ledger.Attested {
		t.Errorf("it went from %s to %s", last.From, last.To)
	}
	b.wantCounts()
}

func (s suite) TestNothingBlocksWhatIsOutOfFlight(t *testing.T) {
	tests := []struct {
		name string
		do   func(*bench)
	}{
		{"superseded", func(b *bench) { b.push(sha(2), "two", root(300)) }},
		{"landed", func(b *bench) {
			b.pushAs(sha(2), ledger.Registration{Branch: "three", Contained: []string{sha(1)},
				Changes: []radar.Change{root(300)}})
		}},
		{"withdrawn", func(b *bench) { check(b.t, b.Withdraw(b.t.Context(), "acme", "api", sha(1))) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, _ := s.newWaiting(t)
			b.wantState(sha(1), ledger.Attested)
			test.do(b)
			b.wantState(sha(1), ledger.Promotable)
			b.wantCounts()
		})
	}
}

func (s suite) TestALatePushDoesNotTakeItsBranchBack(t *testing.T) {
	older := ledger.Registration{Branch: "one", Changes: []radar.Change{root(10)}}
	tests := []struct {
		name string
		play func(*bench)
		want []string
	}{
		{"completed without a branch", func(b *bench) {
			b.pushAs(sha(0), older)
			b.push(sha(1), "one", root(20))
			b.completes(sha(0), ledger.Registration{Message: "more"})
		}, []string{"one 02"}},
		{"withdrawn and completed without a branch", func(b *bench) {
			b.pushAs(sha(0), older)
			check(b.t, b.Withdraw(b.t.Context(), "acme", "api", sha(0)))
			b.completes(sha(0), ledger.Registration{Message: "more"})
		}, nil},
		{"the parent of the tip, again", func(b *bench) {
			b.pushAs(sha(0), older)
			b.pushAs(sha(1), ledger.Registration{Branch: "one", Parents: []string{sha(0)}, Changes: []radar.Change{root(20)}})
			b.pushAs(sha(0), older)
		}, []string{"one 02"}},
		{"an ancestor of the tip, for the first time", func(b *bench) {
			b.pushAs(sha(1), ledger.Registration{Branch: "one", Parents: []string{sha(2)}, Ancestors: []string{sha(0), sha(2)},
				Changes: []radar.Change{root(20)}})
			b.pushAs(sha(0), older)
		}, []string{"one 02"}},
		{"the parent of another branch's tip", func(b *bench) {
			b.pushAs(sha(0), older)
			b.pushAs(sha(1), ledger.Registration{Branch: "two", Parents: []string{sha(0)}, Changes: []radar.Change{root(20)}})
			b.pushAs(sha(0), older)
		}, []string{"two 02", "one 01"}},
		{"not built upon: the branch was set back", func(b *bench) {
			b.pushAs(sha(0), older)
			b.push(sha(1), "one", root(20))
			b.pushAs(sha(0), older)
		}, []string{"one 01"}},
		{"the tip, completed", func(b *bench) {
			b.pushAs(sha(0), older)
			b.completes(sha(0), ledger.Registration{Message: "more"})
		}, []string{"one 01"}},
		{"what has landed stays so, though what held it is completed", func(b *bench) {
			b.pushAs(sha(0), older)
			b.pushAs(sha(1), ledger.Registration{Branch: "two", Contained: []string{sha(0), sha(1)},
				Changes: []radar.Change{root(20)}})
			b.pushAs(sha(0), older) // it was reverted, and is pushed anew
			b.completes(sha(1), ledger.Registration{Message: "more"})
		}, []string{"two 02", "one 01"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := s.newBench(t)
			test.play(b)
			if got := b.inFlight(); !slices.Equal(got, test.want) {
				t.Errorf("in flight are %q, want %q", got, test.want)
			}
		})
	}
}

func (s suite) TestAChangePushedLateIsSeenWithoutItsBranch(t *testing.T) {
	b := s.newBench(t)
	b.push(sha(0), "one", root(10))
	b.push(sha(1), "two", edit("main.go", 1))
	b.completes(sha(1), ledger.Registration{Changes: []radar.Change{root(11)}})
	b.wantOverlaps("two+one HIGH")
}

func (s suite) TestTheRadarBlocksNoCommitOfItsTarget(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.setRadar(blocks)
	b.push(sha(0), "old", root(10))
	b.push(sha(1), "new", root(11))
	b.pushAs(sha(2), ledger.Registration{Branch: "main", Contained: []string{sha(1)}, Changes: []radar.Change{root(11)}})
	b.pushAs(sha(3), ledger.Registration{Branch: "release/1", Target: "release/1", Changes: []radar.Change{root(9)}})
	b.pushAs(sha(4), ledger.Registration{Branch: "main2", Changes: []radar.Change{root(12)}})
	ci.readies(sha(0), sha(2), sha(3), sha(4))
	b.wantState(sha(0), ledger.Promotable)
	b.wantState(sha(2), ledger.Promotable)
	b.wantState(sha(3), ledger.Promotable)
	b.wantState(sha(4), ledger.Attested)
	requirements := b.commit(sha(2)).Requirements
	if last := requirements[len(requirements)-1]; last.Predicate != "radar:HIGH" || last.Applies {
		t.Errorf("the record tells of %+v", last)
	}
	counts := b.commit(sha(2)).Overlaps
	if counts["HIGH"] != 2 {
		t.Errorf("the overlaps are counted as %v", counts)
	}
}

func (s suite) TestAnAgedTipComesBackWhenItIsPushedAgain(t *testing.T) {
	b := s.newBench(t)
	b.push(sha(0), "one", root(10))
	b.clock.advance(31 * 24 * time.Hour)
	b.push(sha(1), "two", root(11))
	b.wantOverlaps()
	b.completes(sha(0), ledger.Registration{Message: "more"}) // completes it, no more
	b.wantOverlaps()
	b.push(sha(0), "one", root(10))
	b.wantOverlaps("one+two HIGH")
	if got, want := b.radarEvents(), []string{"0000001 HIGH"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

func (s suite) TestAGreaterAgeMakesTheRadarLookAnew(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	age := func(d time.Duration) func(*policy.RadarSettings) {
		return func(r *policy.RadarSettings) { r.Block, r.MaxAge = radar.High, ledger.Duration(d) }
	}
	b.setRadar(age(2 * time.Second))
	b.push(sha(0), "one", root(10))
	b.clock.advance(3 * time.Second)
	b.push(sha(1), "two", root(11))
	ci.readies(sha(0), sha(1))
	b.wantOverlaps()
	b.setRadar(age(time.Hour))
	b.wantOverlaps("two+one HIGH")
	b.wantState(sha(1), ledger.Attested)
	b.setRadar(age(2 * time.Second))
	b.wantOverlaps()
	b.wantState(sha(1), ledger.Promotable)
	b.wantCounts()
}

// What is told of a commit that is too old to be compared counts as soon as it
// is not any more.
func (s suite) TestWhatIsToldOfAnAgedTipCountsOnceItIsComparedAgain(t *testing.T) {
	maxAge := func(age time.Duration) func(*policy.RadarSettings) {
		return func(r *policy.RadarSettings) { r.MaxAge = ledger.Duration(age) }
	}
	for name, otherIs := range map[string]func(b *bench, push func()){
		"in flight already": func(b *bench, push func()) {
			push()
			b.setRadar(maxAge(time.Hour))
			b.clock.advance(2 * time.Hour)
		},
		"pushed meanwhile": func(b *bench, push func()) {
			b.setRadar(maxAge(time.Hour))
			b.clock.advance(2 * time.Hour)
			push()
		},
	} {
		t.Run("the other is "+name, func(t *testing.T) {
			b := s.newBench(t)
			b.setRadar(maxAge(24 * time.Hour))
			b.push(sha(0), "one", edit("a.go", 10))
			otherIs(b, func() { b.push(sha(1), "two", edit("b.go", 10)) })
			b.completes(sha(0), ledger.Registration{Changes: []radar.Change{edit("b.go", 11)}})
			b.wantOverlaps()
			b.setRadar(maxAge(24 * time.Hour))
			b.wantOverlaps("two+one HIGH")
		})
	}
}

// More may be known of a commit after it was deployed: what is rebased onto it
// is held against that.
func (s suite) TestWhatIsToldOfADeployedCommitCounts(t *testing.T) {
	b, ci := s.newWaiting(t)
	b.clock.advance(time.Minute)
	ci.deploys(sha(0))
	b.wantOverlaps("two+one HIGH")
	b.wantState(sha(1), ledger.Attested)

	b.completes(sha(0), ledger.Registration{Changes: []radar.Change{root(500)}})
	check(t, b.Settle(t.Context()))
	b.wantOverlaps("two+one MEDIUM")
	b.wantState(sha(1), ledger.Promotable)
	b.push(sha(0), "one", root(12)) // by a CI job, with its branch
	check(t, b.Settle(t.Context()))
	b.wantOverlaps("two+one HIGH")
	b.wantState(sha(1), ledger.Attested)
	list := b.commit(sha(1)).Transitions
	for _, transition := range list[len(list)-2:] {
		if want := (ledger.Cause{Type: ledger.CauseRadar, ID: sha(0)}); transition.Cause != want {
			t.Errorf("from %s to %s for %v, want %v", transition.From, transition.To, transition.Cause, want)
		}
	}
	b.completes(sha(0), ledger.Registration{Changes: []radar.Change{edit("main.go", 1)}})
	check(t, b.Settle(t.Context()))
	b.wantOverlaps()
	b.wantCounts()
}

// What has landed still has to be rebased onto. Pushed again, it is the later
// one, and those that waited for it do not any more.
func (s suite) TestNobodyWaitsForWhatLandedAndIsPushedAgain(t *testing.T) {
	b, _ := s.newWaiting(t)
	b.clock.advance(time.Minute)
	b.pushAs(sha(2), ledger.Registration{Branch: "three", Contained: []string{sha(0)},
		Changes: []radar.Change{edit("main.go", 1)}})
	b.wantOverlaps("two+one HIGH")
	b.wantState(sha(1), ledger.Attested)

	b.push(sha(0), "one", root(10))
	b.wantOverlaps("one+two HIGH")
	b.wantState(sha(1), ledger.Promotable)
	b.wantCounts()
}

// What is deployed is out of flight for all who look from then on.
func (s suite) TestWhatComesAfterADeploymentIsNotComparedWithIt(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.push(sha(0), "one", root(10))
	b.push(sha(1), "two", root(11)) // has looked at the first
	ci.deploys(sha(0))
	b.clock.advance(time.Minute)
	b.push(sha(2), "three", root(11))
	b.wantOverlaps("two+one HIGH")
}

func (s suite) TestWhatWasRolledBackWithoutARadarIsComparedOnceThereIsOne(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.push(sha(0), "one", root(10))
	ci.deploys(sha(0))
	b.push(sha(1), "two", root(11))
	b.wantOverlaps()
	b.setRadar(func(r *policy.RadarSettings) { r.Enabled = false })
	ci.attests(sha(0), "deploy:prod", ledger.Fail)
	b.setRadar(func(r *policy.RadarSettings) { r.Enabled = true })
	b.wantOverlaps("two+one HIGH")
}

// A commit is not compared with the ancestors that it is told to have later,
// whether it is in flight then or only afterwards again.
func (s suite) TestAncestorsToldLaterCount(t *testing.T) {
	for name, age := range map[string]time.Duration{"in flight": 24 * time.Hour, "too old then": time.Hour} {
		t.Run(name, func(t *testing.T) {
			b := s.newBench(t)
			maxAge := func(age time.Duration) {
				b.setRadar(func(r *policy.RadarSettings) { r.MaxAge = ledger.Duration(age) })
			}
			b.push(sha(0), "one", root(10))
			b.push(sha(1), "two", root(11))
			b.wantOverlaps("two+one HIGH")
			maxAge(age)
			b.clock.advance(2 * time.Hour)
			b.completes(sha(1), ledger.Registration{Ancestors: []string{sha(0)}})
			maxAge(24 * time.Hour)
			b.wantOverlaps()
		})
	}
}

// What a commit changes while the radar is off, or ignores the path, counts when the
// old settings come back, although the commit is no longer in flight then.
func (s suite) TestTheRadarSeesWhatHappenedUnderOtherSettings(t *testing.T) {
	off := func(r *policy.RadarSettings) { r.Enabled = false }
	ignored := func(r *policy.RadarSettings) { r.Ignore = []string{"cmd/**"} }
	for name, other := range map[string]struct {
		change func(*policy.RadarSettings)
		reach  func(*bench, func(*policy.RadarSettings))
	}{
		"off":                              {off, (*bench).setRadar},
		"off, before Evaluate":             {off, (*bench).changeRadar},
		"the path ignored":                 {ignored, (*bench).setRadar},
		"the path ignored before Evaluate": {ignored, (*bench).changeRadar},
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
				b := s.newBench(t)
				ci := b.signer("cn=ci,ou=build,o=acme")
				b.setRadar(blocks)
				b.push(sha(0), "one", test.before)
				b.push(sha(1), "two", root(11))
				ci.readies(sha(0), sha(1))

				other.reach(b, other.change)
				b.push(sha(0), "one", test.after)
				ci.attests(sha(0), "deploy:prod", ledger.Pass)
				b.setRadar(func(r *policy.RadarSettings) { r.Enabled, r.Ignore = true, nil })

				b.wantOverlaps(test.want...)
				b.wantState(sha(1), test.state)
			})
		}
	}
}

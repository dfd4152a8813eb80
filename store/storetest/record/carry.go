package record

import (
	//nolint:gosec // git's object ids

	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// carryContract returns a contract whose tests and reviews carry by tree.
func carryContract(t testing.TB) policy.Contract {
	t.Helper()
	c, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","carry":["tree"]},
		{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"carry":["tree"]},
		{"state":"DEPLOYED","predicate":"deploy:prod"}]}`))
	must.OK(t, err)
	return c
}

// prove registers the nth commit with a tree, with its object, and returns its id.
func (fx *fixture) prove(tree int, author string, n int) string {
	fx.T.Helper()
	id, raw := storetest.Object(tree, author, n)
	fx.Clock.Tick()
	_, _, err := fx.Register(fx.T.Context(), "acme", "api", id, ledger.Registration{Object: raw})
	must.OK(fx.T, err)
	return id
}

func (s suite) TestEvidenceCarriesBetweenCommitsWithOneTree(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci, rita := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=rita,ou=review,o=acme")

	branch := fx.prove(1, "Dora", 1)
	ci.Attest(branch, "test:go", ledger.Pass)
	review := rita.Attest(branch, "review:code", ledger.Pass)
	fx.WantState(branch, ledger.Promotable)

	squash := fx.prove(1, "Dora", 2)
	fx.WantState(squash, ledger.Promotable)
	carried := fx.ReadCommit(squash).Requirements[1].Carried
	if len(carried) != 1 || carried[0].Commit != branch || carried[0].Attestation != review.ID ||
		carried[0].By != "tree" || carried[0].Until != 0 {
		t.Errorf("the review carries as %+v", carried)
	}
	if got, want := storetest.Path(fx.ReadCommit(squash)), toPromotable; got != want {
		t.Errorf("the squashed commit went %s, want %s", got, want)
	}
	fx.WantState(fx.prove(2, "Dora", 3), ledger.Draft)

	// What has carried does not age. To a commit that comes later, it carries no more.
	fx.Clock.Advance(31 * 24 * time.Hour)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(squash, ledger.Promotable)
	fx.WantState(fx.prove(1, "Dora", 4), ledger.Validating)
}

// A commit that is rebased onto a moved mainline, or amended, has another tree, so its review is lost. The record and
// the gate say where it is.
func (s suite) TestReasonNamesTheReviewOfAnEarlierCommit(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci, rita := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=rita,ou=review,o=acme")
	fx.NewSigner("cn=Dora,ou=dev,o=acme") // else the reasons also say that nobody knows her
	register := func(tree, n int, branch string) string {
		id := fx.prove(tree, "Dora", n)
		fx.Complete(id, ledger.Registration{Branch: branch})
		return id
	}
	const carries = "review:*: 0 of 1 signatures"
	says := func(commit string) string {
		return fmt.Sprintf("%s; %.12s, an earlier commit of the branch, was reviewed by cn=rita,ou=review,o=acme, "+
			"but has another tree", carries, commit)
	}
	want := func(commit, reason string) {
		t.Helper()
		promotable := ledger.Promotable
		gate, err := fx.Gate(t.Context(), store.DecisionQuery{Org: "acme", Repo: "api", Commit: commit, State: &promotable})
		must.OK(t, err)
		if got := fx.ReadCommit(commit).Requirements[1].Reason; got != reason || gate.Reasons[len(gate.Reasons)-1] !=
			"PROMOTABLE: "+reason {
			t.Errorf("reason %q, and the gate says %q, want %q", got, gate.Reasons, reason)
		}
	}

	unread := register(1, 1, "topic")
	reviewed := register(2, 2, "topic")
	rita.Attest(reviewed, "review:code", ledger.Pass)
	other := register(3, 3, "other")
	rita.Attest(other, "review:code", ledger.Pass)
	rebased := register(4, 4, "topic")
	ci.Attest(rebased, "test:go", ledger.Pass)
	want(rebased, says(reviewed))
	want(unread, carries) // it came before
	want(register(5, 5, "fresh"), carries)

	// The last five are asked that are attested.
	for n := 7; n < 10; n++ {
		ci.Attest(register(n, n, "topic"), "test:go", ledger.Pass)
		register(n+10, n+10, "topic")
	}
	sixth := register(10, 10, "topic")
	want(sixth, says(reviewed))
	ci.Attest(sixth, "test:go", ledger.Pass)
	want(register(11, 11, "topic"), carries)

	// On the mainline, each commit has another before it.
	fx.Complete(reviewed, ledger.Registration{Branch: "main"})
	want(register(6, 6, "main"), carries)
}

func (s suite) TestEvidenceCarriesToCommitsThatWereThereBefore(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci, rita := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=rita,ou=review,o=acme")
	one, two := fx.prove(1, "Dora", 1), fx.prove(1, "Dora", 2)
	must.OK(t, fx.Settle(t.Context())) // else the change of the policy has all commits derived again

	ci.Attest(one, "test:go", ledger.Pass)
	fx.WantState(two, ledger.Attested) // by the read
	rita.Attest(one, "review:code", ledger.Pass)
	must.OK(t, fx.Settle(t.Context())) // in the background
	events := storetest.EventsOf[ledger.StateEvent](fx.Fixture)
	if last := events[len(events)-1]; last.Commit != two || last.To != ledger.Promotable {
		t.Errorf("before a read, the last event is %+v, want PROMOTABLE of %s", last, two)
	}
	fx.WantState(two, ledger.Promotable)
	transitions := fx.ReadCommit(two).Transitions
	if last := transitions[len(transitions)-1]; last.Cause.Type != ledger.CauseCarry || last.Cause.ID == "" {
		t.Errorf("the cause is %+v, want carry", last.Cause)
	}
}

func (s suite) TestAFailureOnTheBranchTakesTheMainlineDownAtTheNextRead(t *testing.T) {
	for name, change := range map[string]func(fx *fixture, ci *storetest.Signer, branch string){
		"fail":   func(_ *fixture, ci *storetest.Signer, branch string) { ci.Attest(branch, "test:go", ledger.Fail) },
		"expiry": func(fx *fixture, _ *storetest.Signer, _ string) { fx.Clock.Advance(30*24*time.Hour + time.Second) },
		"another": func(fx *fixture, ci *storetest.Signer, _ string) {
			ci.Attest(fx.prove(1, "Dora", 7), "test:go", ledger.Errored)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fx := s.newFixture(t)
			c := carryContract(t)
			for i := range c.Requirements {
				c.Requirements[i].MaxAge = ledger.Duration(30 * 24 * time.Hour)
			}
			fx.setPolicy(c)
			ci, rita := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=rita,ou=review,o=acme")
			branch := fx.prove(1, "Dora", 1)
			ci.Attest(branch, "test:go", ledger.Pass)
			rita.Attest(branch, "review:code", ledger.Pass)
			main := fx.prove(1, "Dora", 2)
			fx.WantState(main, ledger.Promotable)

			change(fx, ci, branch)
			fx.WantState(main, ledger.Validating)
			transitions := fx.ReadCommit(main).Transitions
			if last := transitions[len(transitions)-1]; last.To != ledger.Validating {
				t.Errorf("the last transition is %+v, want one to VALIDATING", last)
			}
		})
	}
}

func (s suite) TestWhoWroteTheSourceDoesNotCountByCarrying(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci, rita := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=rita,ou=review,o=acme")
	ci.Attest(fx.prove(1, "Dora", 1), "test:go", ledger.Pass)

	own := fx.prove(1, "Rita", 2) // Rita wrote it, and reviews it
	rita.Attest(own, "review:code", ledger.Pass)
	fx.WantState(own, ledger.Attested)
	fx.WantState(fx.prove(1, "Dora", 3), ledger.Attested) // a squash by somebody else does not help
}

func (s suite) TestNothingCarriesFromCommitsWithoutAnObject(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	id, raw := storetest.Object(1, "Dora", 1)
	ci.Attest(id, "test:go", ledger.Pass)
	other := fx.prove(1, "Dora", 2)
	fx.WantState(other, ledger.Draft)

	_, _, err := fx.Register(t.Context(), "acme", "api", id, ledger.Registration{Object: raw})
	must.OK(t, err)
	fx.WantState(other, ledger.Attested)
}

func (s suite) TestCarriedEvidenceIsSettledInPortionsAfterARestart(t *testing.T) {
	const commits = 250
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	branch := fx.prove(1, "Dora", 0)
	ids := make([]string, commits)
	for i := range ids {
		ids[i] = fx.prove(1, "Dora", i+1)
	}
	must.OK(t, fx.Settle(t.Context())) // else the change of the policy has all commits derived again

	ci.Attest(branch, "test:go", ledger.Pass)
	must.OK(t, fx.Close())
	fx.Open(store.Options{})
	must.OK(t, fx.Settle(t.Context()))
	list, err := fx.Commits(t.Context(), "acme", "api", store.CommitFilter{
		Query: store.Query{Limit: 500}, State: new(ledger.Attested),
	})
	must.OK(t, err)
	if len(list.Data) != commits+1 {
		t.Errorf("%d commits are ATTESTED, want %d", len(list.Data), commits+1)
	}
}

func (s suite) TestTooMuchEvidenceOfATreeDoesNotCarry(t *testing.T) {
	testenv.From(t, testenv.Full, "fills a limit")
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	one, two, three := fx.prove(1, "Dora", 1), fx.prove(1, "Dora", 2), fx.prove(1, "Dora", 3)
	n := 0
	_, version, err := fx.Keyring(t.Context(), "acme")
	must.OK(t, err)
	for range policy.MaxTopics/2 + 1 {
		for _, id := range []string{one, two} {
			n++
			_, _, err := fx.Record(t.Context(), "acme", "api",
				statement(n, "cn=ci,ou=build,o=acme", id, fmt.Sprintf("test:%d", n), ledger.Pass), version)
			must.OK(t, err)
		}
	}

	fx.WantState(one, ledger.Attested)
	fx.WantState(three, ledger.Draft)
	fx.wantReason(three, "only failures carry from the commits with the same tree")

	fx.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","covers":"change","carry":["tree"]}]}`)
	for i, id := range []string{one, two} { // the pass of another commit does not carry
		status := []ledger.Status{ledger.Fail, ledger.Pass}[i]
		_, _, err := fx.Record(t.Context(), "acme", "api",
			statement(n+1+i, "cn=ci,ou=build,o=acme", id, "test:last", status), version)
		must.OK(t, err)
	}
	must.OK(t, fx.Settle(t.Context()))
	if r := fx.ReadCommit(three).Requirements[0]; len(r.FailedBy) != 1 {
		t.Errorf("a failure does not block, since another commit has passed: %+v", r)
	}
}

// BenchmarkRecordOneOfManyWithATree records attestations about a commit whose tree many
// others have.
func BenchmarkRecordOneOfManyWithATree(b *testing.B, newDatabase storetest.New) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			fx := suite{NewDatabase: newDatabase}.newFixture(b)
			fx.setPolicy(carryContract(b))
			ci := fx.NewSigner("cn=ci,ou=build,o=acme")
			branch := fx.prove(1, "Dora", 0)
			for i := range others {
				fx.prove(1, "Dora", i+1)
			}

			var list []*attestation.Attestation
			version := int64(0)
			for i := range b.N {
				var a *attestation.Attestation
				a, version = ci.Sign(branch, fmt.Sprintf("test:%d", i%20), ledger.Pass, fmt.Sprint(i))
				list = append(list, a)
			}
			b.ResetTimer()
			for _, a := range list {
				_, _, err := fx.Record(b.Context(), "acme", "api", a, version)
				must.OK(b, err)
			}
		})
	}
}

// A pass that finished before a failure does not replace it, whichever of the commits with
// one tree it is about.
func (s suite) TestAnOldPassOnAnotherCommitDoesNotReplaceAFailure(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	one, two := fx.prove(1, "Dora", 1), fx.prove(1, "Dora", 2)
	_, version, err := fx.Keyring(t.Context(), "acme")
	must.OK(t, err)
	record := func(n int, sha string, status ledger.Status, finished ledger.Time) error {
		a := statement(n, "cn=ci,ou=build,o=acme", sha, "test:go", status)
		a.FinishedAt = finished
		_, _, err := fx.Record(t.Context(), "acme", "api", a, version)
		return err
	}

	must.OK(t, record(1, two, ledger.Fail, 2000))
	storetest.WantCode(t, record(2, one, ledger.Pass, 1000), ledger.CodeStaleStatement)
	fx.WantState(one, ledger.Validating)
	must.OK(t, record(3, one, ledger.Pass, 3000))
	fx.WantState(two, ledger.Attested)
}

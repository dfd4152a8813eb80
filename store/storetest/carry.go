package storetest

import (
	"crypto/sha1" //nolint:gosec // git's object ids
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
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

// Object returns a commit object with a tree, the nth of its author, and its id.
func Object(tree int, author string, n int) (id string, raw []byte) {
	return ObjectOn(fmt.Sprintf("%040x", n), tree, author, n)
}

// ObjectOn is like Object, with a parent.
func ObjectOn(parent string, tree int, author string, n int) (id string, raw []byte) {
	who := fmt.Sprintf("%s <%s@example.org> %d +0000", author, strings.ToLower(author), 1_780_000_000+n)
	raw = fmt.Appendf(nil, "tree %040x\nparent %s\nauthor %s\ncommitter %s\n\ncommit %d\n", tree, parent, who, who, n)
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(raw), raw)) //nolint:gosec // git's object ids
	return hex.EncodeToString(sum[:]), raw
}

// prove registers the nth commit with a tree, with its object, and returns its id.
func (fx *fixture) prove(tree int, author string, n int) string {
	fx.t.Helper()
	id, raw := Object(tree, author, n)
	fx.clock.ms.Add(1)
	_, _, err := fx.Register(fx.t.Context(), "acme", "api", id, ledger.Registration{Object: raw})
	must.OK(fx.t, err)
	return id
}

func (s suite) TestEvidenceCarriesBetweenCommitsWithOneTree(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci, rita := fx.signer("cn=ci,ou=build,o=acme"), fx.signer("cn=rita,ou=review,o=acme")

	branch := fx.prove(1, "Dora", 1)
	ci.attest(branch, "test:go", ledger.Pass)
	review := rita.attest(branch, "review:code", ledger.Pass)
	fx.wantState(branch, ledger.Promotable)

	squash := fx.prove(1, "Dora", 2)
	fx.wantState(squash, ledger.Promotable)
	carried := fx.commit(squash).Requirements[1].Carried
	if len(carried) != 1 || carried[0].Commit != branch || carried[0].Attestation != review.ID ||
		carried[0].By != "tree" || carried[0].Until != 0 {
		t.Errorf("the review carries as %+v", carried)
	}
	if got, want := path(fx.commit(squash)), "DRAFT>VALIDATING VALIDATING>ATTESTED ATTESTED>PROMOTABLE"; got != want {
		t.Errorf("the squashed commit went %s, want %s", got, want)
	}
	fx.wantState(fx.prove(2, "Dora", 3), ledger.Draft)

	// What has carried does not age. To a commit that comes later, it carries no more.
	fx.clock.advance(31 * 24 * time.Hour)
	must.OK(t, fx.Settle(t.Context()))
	fx.wantState(squash, ledger.Promotable)
	fx.wantState(fx.prove(1, "Dora", 4), ledger.Validating)
}

func (s suite) TestEvidenceCarriesToCommitsThatWereThereBefore(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci, rita := fx.signer("cn=ci,ou=build,o=acme"), fx.signer("cn=rita,ou=review,o=acme")
	one, two := fx.prove(1, "Dora", 1), fx.prove(1, "Dora", 2)
	must.OK(t, fx.Settle(t.Context())) // else the change of the policy has all commits derived again

	ci.attest(one, "test:go", ledger.Pass)
	fx.wantState(two, ledger.Attested) // by the read
	rita.attest(one, "review:code", ledger.Pass)
	must.OK(t, fx.Settle(t.Context())) // in the background
	events := eventsOf[ledger.StateEvent](fx)
	if last := events[len(events)-1]; last.Commit != two || last.To != ledger.Promotable {
		t.Errorf("before a read, the last event is %+v, want PROMOTABLE of %s", last, two)
	}
	fx.wantState(two, ledger.Promotable)
	transitions := fx.commit(two).Transitions
	if last := transitions[len(transitions)-1]; last.Cause.Type != ledger.CauseCarry || last.Cause.ID == "" {
		t.Errorf("the cause is %+v, want carry", last.Cause)
	}
}

func (s suite) TestAFailureOnTheBranchTakesTheMainlineDownAtTheNextRead(t *testing.T) {
	for name, change := range map[string]func(fx *fixture, ci *signer, branch string){
		"fail":    func(_ *fixture, ci *signer, branch string) { ci.attest(branch, "test:go", ledger.Fail) },
		"expiry":  func(fx *fixture, _ *signer, _ string) { fx.clock.advance(30*24*time.Hour + time.Second) },
		"another": func(fx *fixture, ci *signer, _ string) { ci.attest(fx.prove(1, "Dora", 7), "test:go", ledger.Errored) },
	} {
		t.Run(name, func(t *testing.T) {
			fx := s.newFixture(t)
			c := carryContract(t)
			for i := range c.Requirements {
				c.Requirements[i].MaxAge = ledger.Duration(30 * 24 * time.Hour)
			}
			fx.setPolicy(c)
			ci, rita := fx.signer("cn=ci,ou=build,o=acme"), fx.signer("cn=rita,ou=review,o=acme")
			branch := fx.prove(1, "Dora", 1)
			ci.attest(branch, "test:go", ledger.Pass)
			rita.attest(branch, "review:code", ledger.Pass)
			main := fx.prove(1, "Dora", 2)
			fx.wantState(main, ledger.Promotable)

			change(fx, ci, branch)
			fx.wantState(main, ledger.Validating)
			transitions := fx.commit(main).Transitions
			if last := transitions[len(transitions)-1]; last.To != ledger.Validating {
				t.Errorf("the last transition is %+v, want one to VALIDATING", last)
			}
		})
	}
}

func (s suite) TestWhoWroteTheSourceDoesNotCountByCarrying(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci, rita := fx.signer("cn=ci,ou=build,o=acme"), fx.signer("cn=rita,ou=review,o=acme")
	ci.attest(fx.prove(1, "Dora", 1), "test:go", ledger.Pass)

	own := fx.prove(1, "Rita", 2) // Rita wrote it, and reviews it
	rita.attest(own, "review:code", ledger.Pass)
	fx.wantState(own, ledger.Attested)
	fx.wantState(fx.prove(1, "Dora", 3), ledger.Attested) // a squash by somebody else does not help
}

func (s suite) TestNothingCarriesFromCommitsWithoutAnObject(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci := fx.signer("cn=ci,ou=build,o=acme")
	id, raw := Object(1, "Dora", 1)
	ci.attest(id, "test:go", ledger.Pass)
	other := fx.prove(1, "Dora", 2)
	fx.wantState(other, ledger.Draft)

	_, _, err := fx.Register(t.Context(), "acme", "api", id, ledger.Registration{Object: raw})
	must.OK(t, err)
	fx.wantState(other, ledger.Attested)
}

func (s suite) TestCarriedEvidenceIsSettledInPortionsAfterARestart(t *testing.T) {
	const commits = 250
	fx := s.newFixture(t)
	fx.setPolicy(carryContract(t))
	ci := fx.signer("cn=ci,ou=build,o=acme")
	branch := fx.prove(1, "Dora", 0)
	ids := make([]string, commits)
	for i := range ids {
		ids[i] = fx.prove(1, "Dora", i+1)
	}
	must.OK(t, fx.Settle(t.Context())) // else the change of the policy has all commits derived again

	ci.attest(branch, "test:go", ledger.Pass)
	must.OK(t, fx.Close())
	fx.open(store.Options{})
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

	fx.wantState(one, ledger.Attested)
	fx.wantState(three, ledger.Draft)
	fx.wantReason(three, "only failures carry from the commits with the same tree")
}

// BenchmarkRecordOneOfManyWithATree records attestations about a commit whose tree many
// others have.
func BenchmarkRecordOneOfManyWithATree(b *testing.B, newDatabase New) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			fx := suite{newDatabase: newDatabase}.newFixture(b)
			fx.setPolicy(carryContract(b))
			ci := fx.signer("cn=ci,ou=build,o=acme")
			branch := fx.prove(1, "Dora", 0)
			for i := range others {
				fx.prove(1, "Dora", i+1)
			}

			var list []*attestation.Attestation
			version := int64(0)
			for i := range b.N {
				var a *attestation.Attestation
				a, version = ci.sign(branch, fmt.Sprintf("test:%d", i%20), ledger.Pass, fmt.Sprint(i))
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
	wantCode(t, record(2, one, ledger.Pass, 1000), ledger.CodeStaleStatement)
	fx.wantState(one, ledger.Validating)
	must.OK(t, record(3, one, ledger.Pass, 3000))
	fx.wantState(two, ledger.Attested)
}

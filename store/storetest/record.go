package storetest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
)

func (s suite) TestACommitPassesThroughAllStates(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.signer("cn=ci,ou=build,o=acme")
	ann := fx.signer("cn=ann,ou=dev,o=acme")

	_, _, err := fx.Register(t.Context(), "acme", "api", sha(1), ledger.Registration{Branch: "main", Message: "first"})
	check(t, err)
	fx.wantState(sha(1), ledger.Draft)
	ci.attest(sha(1), "build:docker", ledger.Pass)
	fx.wantState(sha(1), ledger.Validating)
	ci.attest(sha(1), "test:go", ledger.Pass)
	fx.wantState(sha(1), ledger.Attested)
	ann.attest(sha(1), "review:code", ledger.Pass)
	fx.wantState(sha(1), ledger.Promotable)
	ci.attest(sha(1), "deploy:prod", ledger.Pass)
	fx.wantState(sha(1), ledger.Deployed)

	want := "DRAFT>VALIDATING VALIDATING>ATTESTED ATTESTED>PROMOTABLE PROMOTABLE>DEPLOYED"
	if got := path(fx.commit(sha(1))); got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}
}

func (s suite) TestOneAttestationCanCauseSeveralTransitions(t *testing.T) {
	fx := s.newFixture(t)
	rec := fx.signer("cn=ci,ou=build,o=acme").attest(sha(1), "test:go", ledger.Pass)

	c := fx.commit(sha(1))
	if got, want := path(c), "DRAFT>VALIDATING VALIDATING>ATTESTED"; got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}
	for _, step := range c.Transitions {
		if want := (ledger.Cause{Type: ledger.CauseAttestation, ID: rec.ID}); step.Cause != want {
			t.Errorf("cause %v, want %v", step.Cause, want)
		}
	}
}

func (s suite) TestOnlyARollbackEndsDeployed(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.signer("cn=ci,ou=build,o=acme")
	for _, predicate := range []string{"test:go", "review:code", "deploy:prod"} {
		ci.attest(sha(1), predicate, ledger.Pass)
	}
	fx.wantState(sha(1), ledger.Deployed)
	ci.attest(sha(1), "test:go", ledger.Fail)
	fx.wantState(sha(1), ledger.Deployed) // no other attestation changes it
	ci.attest(sha(1), "deploy:prod", ledger.Fail)
	fx.wantState(sha(1), ledger.Validating) // rolled back, then re-evaluated
	ci.attest(sha(1), "test:go", ledger.Pass)
	fx.wantState(sha(1), ledger.Promotable)
}

func (s suite) TestADeployBeforePromotableDoesNotCount(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.signer("cn=ci,ou=build,o=acme")
	ci.attest(sha(1), "deploy:prod", ledger.Pass)
	ci.attest(sha(1), "test:go", ledger.Pass)
	ci.attest(sha(1), "review:code", ledger.Pass)
	fx.wantState(sha(1), ledger.Promotable)
	ci.attest(sha(1), "deploy:prod", ledger.Pass)
	fx.wantState(sha(1), ledger.Deployed)
}

// A commit that is due for re-evaluation is settled before a new attestation is
// recorded, even if the evaluation has not reached it.
func (s suite) TestADeployCountsOnlyIfTheCommitIsPromotableThen(t *testing.T) {
	contract := func(text string) policy.Contract {
		c, err := policy.Parse([]byte(text))
		check(t, err)
		return c
	}
	const deploy = `{"state":"DEPLOYED","predicate":"deploy:*"}`
	tests := []struct {
		name           string
		before         string        // policy, evaluated
		after          string        // policy set before the deploy, not evaluated
		wait           time.Duration // before the deploy, not evaluated
		then           string        // predicate attested after the deploy
		atDeploy, want ledger.State
	}{
		{
			"a stricter policy",
			`{"requirements":[` + deploy + `]}`,
			`{"requirements":[{"state":"ATTESTED","predicate":"sec:*"},` + deploy + `]}`,
			0, "sec:scan", ledger.Validating, ledger.Promotable,
		},
		{
			"a looser policy",
			`{"requirements":[{"state":"ATTESTED","predicate":"sec:*"},` + deploy + `]}`,
			`{"requirements":[` + deploy + `]}`,
			0, "test:go", ledger.Deployed, ledger.Deployed,
		},
		{
			"expired evidence",
			`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"1h"},` + deploy + `]}`,
			"",
			2 * time.Hour, "test:go", ledger.Validating, ledger.Promotable,
		},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fx := s.newFixture(t)
			ci := fx.signer("cn=ci,ou=build,o=acme")
			_, err := fx.SetPolicy(t.Context(), "acme", "api", contract(test.before), 0, "host")
			check(t, err)
			check(t, fx.Settle(t.Context()))
			ci.attest(sha(1), "test:go", ledger.Pass)
			if test.after != "" {
				_, err = fx.SetPolicy(t.Context(), "acme", "api", contract(test.after), 0, "host")
				check(t, err)
			}
			fx.clock.advance(test.wait)
			ci.attest(sha(1), "deploy:prod", ledger.Pass)
			fx.wantState(sha(1), test.atDeploy)
			ci.attest(sha(1), test.then, ledger.Pass)
			fx.wantState(sha(1), test.want)
		})
	}
}

func (s suite) TestARolledBackCommitNeedsANewDeploy(t *testing.T) {
	fx := s.newFixture(t)
	ci, ann := fx.signer("cn=ci,ou=build,o=acme"), fx.signer("cn=ann,ou=dev,o=acme")
	for _, predicate := range []string{"test:go", "review:code", "deploy:prod"} {
		ci.attest(sha(1), predicate, ledger.Pass)
	}
	ci.attest(sha(1), "test:go", ledger.Fail)
	ann.attest(sha(1), "deploy:prod", ledger.Pass) // DEPLOYED, but no longer PROMOTABLE
	ci.attest(sha(1), "deploy:prod", ledger.Skip)
	fx.wantState(sha(1), ledger.Validating)
	ci.attest(sha(1), "test:go", ledger.Pass)
	fx.wantState(sha(1), ledger.Promotable)
}

func (s suite) TestTheAuthorOfACommitCannotChange(t *testing.T) {
	fx := s.newFixture(t)
	register := func(name, email string) error {
		_, _, err := fx.Register(t.Context(), "acme", "api", sha(1), ledger.Registration{
			Author: ledger.Author{Name: name, Email: email},
		})
		return err
	}
	check(t, register("Ann", ""))
	check(t, register("Ann", "ann@acme.example"))
	check(t, register("", ""))
	wantCode(t, register("Bob", "ann@acme.example"), ledger.CodeInvalidField)
	wantCode(t, register("Ann", "bob@acme.example"), ledger.CodeInvalidField)
}

func (s suite) TestTheSameStatementIsRecordedOnce(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.signer("cn=ci,ou=build,o=acme")
	first, version := ci.sign(sha(1), "test:go", ledger.Pass, "run 1")
	rec, created, err := fx.Record(t.Context(), "acme", "api", first, version)
	check(t, err)
	if !created {
		t.Fatal("the first record is not new")
	}
	events := eventTypes(fx)

	again, created, err := fx.Record(t.Context(), "acme", "api", first, version)
	check(t, err)
	if created || again != rec {
		t.Errorf("the second write returned %+v (new: %t), want the first record %+v", again, created, rec)
	}
	if got := eventTypes(fx); got != events {
		t.Errorf("events %s after the second write, want %s", got, events)
	}

	ci.attest(sha(1), "test:go", ledger.Fail)
	_, _, err = fx.Record(t.Context(), "acme", "api", first, version)
	wantCode(t, err, ledger.CodeStaleStatement)
	if !strings.Contains(err.Error(), rec.ID) {
		t.Errorf("%q does not name %s", err, rec.ID)
	}
	fx.wantState(sha(1), ledger.Validating) // the old pass does not override the newer fail
}

func (s suite) TestConcurrentDuplicatesAreRecordedOnce(t *testing.T) {
	fx := s.newFixture(t)
	a, version := fx.signer("cn=ci,ou=build,o=acme").sign(sha(1), "test:go", ledger.Pass, "")
	var mu sync.Mutex
	var wg sync.WaitGroup
	recordedNew := 0
	for range 64 {
		wg.Go(func() {
			_, created, err := fx.Record(t.Context(), "acme", "api", a, version)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if created {
				recordedNew++
			}
		})
	}
	wg.Wait()

	if recordedNew != 1 {
		t.Errorf("%d of 64 writes were new, want 1", recordedNew)
	}
	if got, want := eventTypes(fx), "attestation state state"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

func (s suite) TestRevokingBetweenVerifyAndRecordIsDetected(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.signer("cn=ci,ou=build,o=acme")
	a, version := ci.sign(sha(1), "test:go", ledger.Pass, "")
	identities, err := fx.Identities(t.Context(), "acme", store.Query{Limit: 10})
	check(t, err)
	check(t, fx.RevokeIdentity(t.Context(), "acme", identities.Data[0].ID))

	_, _, err = fx.Record(t.Context(), "acme", "api", a, version)
	if !errors.Is(err, store.ErrKeyringChanged) {
		t.Fatalf("got %v, want ErrKeyringChanged", err)
	}
	keyring, _, err := fx.Keyring(t.Context(), "acme")
	check(t, err)
	_, err = attestation.Verify(a.Envelope, keyring, fx.Now())
	wantCode(t, err, ledger.CodeRevokedIdentity)
}

func (s suite) TestTheEnvelopeIsStoredUnchanged(t *testing.T) {
	fx := s.newFixture(t)
	a, version := fx.signer("cn=ci,ou=build,o=acme").sign(sha(1), "test:go", ledger.Pass, "")
	rec, _, err := fx.Record(t.Context(), "acme", "api", a, version)
	check(t, err)
	got, err := fx.Envelope(t.Context(), "acme", "api", rec.ID)
	check(t, err)
	if string(got) != string(a.Envelope) {
		t.Errorf("got %s, want %s", got, a.Envelope)
	}
}

func (s suite) TestEvidenceExpires(t *testing.T) {
	fx := s.newFixture(t)
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","max_age":"1h"}]}`))
	check(t, err)
	_, err = fx.SetPolicy(t.Context(), "acme", "api", contract, 1, "host")
	check(t, err)
	rec := fx.signer("cn=ci,ou=build,o=acme").attest(sha(1), "test:go", ledger.Pass)
	fx.wantState(sha(1), ledger.Promotable)

	fx.clock.advance(time.Hour - time.Millisecond)
	check(t, fx.Settle(t.Context()))
	fx.wantState(sha(1), ledger.Promotable)
	fx.clock.advance(time.Millisecond)
	check(t, fx.Settle(t.Context()))
	fx.wantState(sha(1), ledger.Validating)

	steps := fx.commit(sha(1)).Transitions
	if got, want := steps[len(steps)-1].Cause, (ledger.Cause{Type: ledger.CauseExpiry, ID: rec.ID}); got != want {
		t.Errorf("cause %v, want %v", got, want)
	}
}

func (s suite) TestARegistrationCanChangeWhichRequirementsApply(t *testing.T) {
	fx := s.newFixture(t)
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:go"},
		{"state":"ATTESTED","predicate":"test:payments","paths":["services/payments/**"]},
		{"state":"PROMOTABLE","predicate":"review:*","branches":["main"],"exclude_author":true}]}`))
	check(t, err)
	_, err = fx.SetPolicy(t.Context(), "acme", "api", contract, 1, "host")
	check(t, err)
	fx.signer("cn=ann,ou=dev,o=acme").attest(sha(1), "review:code", ledger.Pass)
	fx.signer("cn=ci,ou=build,o=acme").attest(sha(1), "test:go", ledger.Pass)
	fx.wantState(sha(1), ledger.Validating) // no change record: test:payments applies

	register := func(n ledger.Registration) {
		t.Helper()
		_, _, err := fx.Register(t.Context(), "acme", "api", sha(1), n)
		check(t, err)
	}
	register(ledger.Registration{Changes: []radar.Change{{Path: "README.md", Status: "M"}}})
	fx.wantState(sha(1), ledger.Attested) // the author is unknown
	register(ledger.Registration{Author: ledger.Author{Name: "Ann", Email: "ann@acme.example"}})
	fx.wantState(sha(1), ledger.Attested) // the author's own review does not count
	register(ledger.Registration{Target: "feature"})
	fx.wantState(sha(1), ledger.Promotable) // the review does not apply to this target
	if got := fx.commit(sha(1)); got.Author.Email != "ann@acme.example" || len(got.Changes) != 1 {
		t.Errorf("a later registration cleared omitted fields: %+v", got)
	}
}

// eventTypes lists the types of the org's events, in order.
func eventTypes(fx *fixture) string {
	fx.t.Helper()
	var types []string
	f := store.EventFilter{Query: store.Query{Limit: 500}}
	for {
		list, err := fx.Events(fx.t.Context(), "acme", f)
		check(fx.t, err)
		for _, body := range list.Data {
			var e struct {
				Type string `json:"type"`
			}
			check(fx.t, json.Unmarshal(body, &e))
			types = append(types, e.Type)
		}
		if f.Cursor = list.NextCursor; f.Cursor == "" {
			return strings.Join(types, " ")
		}
	}
}

// Signers with different keys are different identities, even with the same name.
func (s suite) TestTheSameStatementWithAnotherKeyIsAnotherAttestation(t *testing.T) {
	fx := s.newFixture(t)
	one, other := fx.signer("cn=ci,ou=build,o=acme"), fx.signer("cn=ci,ou=build,o=acme")
	first, _ := one.sign(sha(1), "test:go", ledger.Pass, "run 1")
	second, version := other.sign(sha(1), "test:go", ledger.Pass, "run 1")
	if first.PayloadDigest != second.PayloadDigest {
		t.Fatal("the statements differ")
	}
	for i, a := range []*attestation.Attestation{first, second} {
		if _, created, err := fx.Record(t.Context(), "acme", "api", a, version); err != nil || !created {
			t.Errorf("statement %d: created %t, %v", i, created, err)
		}
	}
	if _, created, err := fx.Record(t.Context(), "acme", "api", second, version); err != nil || created {
		t.Errorf("the second again: created %t, %v", created, err)
	}
	_, _, err := fx.Record(t.Context(), "acme", "api", first, version)
	wantCode(t, err, ledger.CodeStaleStatement) // the same name has attested something newer
}

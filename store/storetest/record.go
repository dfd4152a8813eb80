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

func (s suite) TestACommitGoesThroughEveryStateToDeployed(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	ann := b.signer("cn=ann,ou=dev,o=acme")

	_, _, err := b.Register(t.Context(), "acme", "api", sha(1), ledger.Registration{Branch: "main", Message: "first"})
	check(t, err)
	b.wantState(sha(1), ledger.Draft)
	ci.attests(sha(1), "build:docker", ledger.Pass)
	b.wantState(sha(1), ledger.Validating)
	ci.attests(sha(1), "test:go", ledger.Pass)
	b.wantState(sha(1), ledger.Attested)
	ann.attests(sha(1), "review:code", ledger.Pass)
	b.wantState(sha(1), ledger.Promotable)
	ci.attests(sha(1), "deploy:prod", ledger.Pass)
	b.wantState(sha(1), ledger.Deployed)

	want := "DRAFT>VALIDATING VALIDATING>ATTESTED ATTESTED>PROMOTABLE PROMOTABLE>DEPLOYED"
	if got := path(b.commit(sha(1))); got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}
}

func (s suite) TestOneAttestationMayPassSeveralStates(t *testing.T) {
	b := s.newBench(t)
	rec := b.signer("cn=ci,ou=build,o=acme").attests(sha(1), "test:go", ledger.Pass)

	c := b.commit(sha(1))
	if got, want := path(c), "DRAFT>VALIDATING VALIDATING>ATTESTED"; got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}
	for _, step := range c.Transitions {
		if want := (ledger.Cause{Type: ledger.CauseAttestation, ID: rec.ID}); step.Cause != want {
			t.Errorf("cause %v, want %v", step.Cause, want)
		}
	}
}

func (s suite) TestAFailTakesTheCommitBackAndARollbackEndsDeployed(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	for _, predicate := range []string{"test:go", "review:code", "deploy:prod"} {
		ci.attests(sha(1), predicate, ledger.Pass)
	}
	b.wantState(sha(1), ledger.Deployed)
	ci.attests(sha(1), "test:go", ledger.Fail)
	b.wantState(sha(1), ledger.Deployed) // stays, whatever else is attested
	ci.attests(sha(1), "deploy:prod", ledger.Fail)
	b.wantState(sha(1), ledger.Validating) // rolled back, then re-evaluated
	ci.attests(sha(1), "test:go", ledger.Pass)
	b.wantState(sha(1), ledger.Promotable)
}

func (s suite) TestADeployBeforePromotableDoesNotCount(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	ci.attests(sha(1), "deploy:prod", ledger.Pass)
	ci.attests(sha(1), "test:go", ledger.Pass)
	ci.attests(sha(1), "review:code", ledger.Pass)
	b.wantState(sha(1), ledger.Promotable)
	ci.attests(sha(1), "deploy:prod", ledger.Pass)
	b.wantState(sha(1), ledger.Deployed)
}

// A commit that is due is settled before a new attestation is recorded, whether or
// not Evaluate comes first.
func (s suite) TestADeployCountsOnlyIfTheCommitIsPromotableByThen(t *testing.T) {
	contract := func(text string) policy.Contract {
		c, err := policy.Parse([]byte(text))
		check(t, err)
		return c
	}
	const deploy = `{"state":"DEPLOYED","predicate":"deploy:*"}`
	tests := []struct {
		name           string
		before         string        // policy
		after          string        // policy set, but not evaluated, before the deploy
		wait           time.Duration // not evaluated either
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
			"evidence that has run out",
			`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"1h"},` + deploy + `]}`,
			"",
			2 * time.Hour, "test:go", ledger.Validating, ledger.Promotable,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := s.newBench(t)
			ci := b.signer("cn=ci,ou=build,o=acme")
			_, err := b.SetPolicy(t.Context(), "acme", "api", contract(test.before), 0, "host")
			check(t, err)
			check(t, b.Settle(t.Context()))
			ci.attests(sha(1), "test:go", ledger.Pass)
			if test.after != "" {
				_, err = b.SetPolicy(t.Context(), "acme", "api", contract(test.after), 0, "host")
				check(t, err)
			}
			b.clock.advance(test.wait)
			ci.attests(sha(1), "deploy:prod", ledger.Pass)
			b.wantState(sha(1), test.atDeploy)
			ci.attests(sha(1), test.then, ledger.Pass)
			b.wantState(sha(1), test.want)
		})
	}
}

func (s suite) TestARolledBackCommitNeedsANewDeploy(t *testing.T) {
	b := s.newBench(t)
	ci, ann := b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=ann,ou=dev,o=acme")
	for _, predicate := range []string{"test:go", "review:code", "deploy:prod"} {
		ci.attests(sha(1), predicate, ledger.Pass)
	}
	ci.attests(sha(1), "test:go", ledger.Fail)
	ann.attests(sha(1), "deploy:prod", ledger.Pass) // DEPLOYED, but no longer fit for it
	ci.attests(sha(1), "deploy:prod", ledger.Skip)
	b.wantState(sha(1), ledger.Validating)
	ci.attests(sha(1), "test:go", ledger.Pass)
	b.wantState(sha(1), ledger.Promotable)
}

func (s suite) TestTheAuthorOfACommitCannotChange(t *testing.T) {
	b := s.newBench(t)
	register := func(name, email string) error {
		_, _, err := b.Register(t.Context(), "acme", "api", sha(1), ledger.Registration{
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
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	first, version := ci.says(sha(1), "test:go", ledger.Pass, "run 1")
	rec, created, err := b.Record(t.Context(), "acme", "api", first, version)
	check(t, err)
	if !created {
		t.Fatal("the first record is not new")
	}
	events := eventTypes(b)

	again, created, err := b.Record(t.Context(), "acme", "api", first, version)
	check(t, err)
	if created || again != rec {
		t.Errorf("the second answer is %+v (new: %t), want the first record %+v", again, created, rec)
	}
	if got := eventTypes(b); got != events {
		t.Errorf("events %s after the repetition, want %s", got, events)
	}

	ci.attests(sha(1), "test:go", ledger.Fail)
	_, _, err = b.Record(t.Context(), "acme", "api", first, version)
	wantCode(t, err, ledger.CodeStaleStatement)
	if !strings.Contains(err.Error(), rec.ID) {
		t.Errorf("%q does not name %s", err, rec.ID)
	}
	b.wantState(sha(1), ledger.Validating) // the old pass did not undo the newer fail
}

func (s suite) TestTheSameStatementAtOnceIsRecordedOnce(t *testing.T) {
	b := s.newBench(t)
	a, version := b.signer("cn=ci,ou=build,o=acme").says(sha(1), "test:go", ledger.Pass, "")
	var mu sync.Mutex
	var wg sync.WaitGroup
	news := 0
	for range 64 {
		wg.Go(func() {
			_, created, err := b.Record(t.Context(), "acme", "api", a, version)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if created {
				news++
			}
		})
	}
	wg.Wait()
	if news != 1 {
		t.Errorf("%d of 64 answers were new, want 1", news)
	}
	if got, want := eventTypes(b), "attestation state state"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

func (s suite) TestRevokingBetweenVerificationAndRecordIsNoticed(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	a, version := ci.says(sha(1), "test:go", ledger.Pass, "")
	identities, err := b.Identities(t.Context(), "acme", store.Query{Limit: 10})
	check(t, err)
	check(t, b.RevokeIdentity(t.Context(), "acme", identities.Data[0].ID))

	_, _, err = b.Record(t.Context(), "acme", "api", a, version)
	if !errors.Is(err, store.ErrKeyringChanged) {
		t.Fatalf("got %v, want ErrKeyringChanged", err)
	}
	keyring, _, err := b.Keyring(t.Context(), "acme")
	check(t, err)
	_, err = attestation.Verify(a.Envelope, keyring, b.Now())
	wantCode(t, err, ledger.CodeRevokedIdentity)
}

func (s suite) TestTheEnvelopeComesBackAsItWasPosted(t *testing.T) {
	b := s.newBench(t)
	a, version := b.signer("cn=ci,ou=build,o=acme").says(sha(1), "test:go", ledger.Pass, "")
	rec, _, err := b.Record(t.Context(), "acme", "api", a, version)
	check(t, err)
	got, err := b.Envelope(t.Context(), "acme", "api", rec.ID)
	check(t, err)
	if string(got) != string(a.Envelope) {
		t.Errorf("got %s, want %s", got, a.Envelope)
	}
}

func (s suite) TestEvidenceExpires(t *testing.T) {
	b := s.newBench(t)
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","max_age":"1h"}]}`))
	check(t, err)
	_, err = b.SetPolicy(t.Context(), "acme", "api", contract, 1, "host")
	check(t, err)
	rec := b.signer("cn=ci,ou=build,o=acme").attests(sha(1), "test:go", ledger.Pass)
	b.wantState(sha(1), ledger.Promotable)

	b.clock.advance(time.Hour - time.Millisecond)
	check(t, b.Settle(t.Context()))
	b.wantState(sha(1), ledger.Promotable)
	b.clock.advance(time.Millisecond)
	check(t, b.Settle(t.Context()))
	b.wantState(sha(1), ledger.Validating)

	steps := b.commit(sha(1)).Transitions
	if got, want := steps[len(steps)-1].Cause, (ledger.Cause{Type: ledger.CauseExpiry, ID: rec.ID}); got != want {
		t.Errorf("cause %v, want %v", got, want)
	}
}

func (s suite) TestARegistrationCanChangeWhatApplies(t *testing.T) {
	b := s.newBench(t)
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:go"},
		{"state":"ATTESTED","predicate":"test:payments","paths":["services/payments/**"]},
		{"state":"PROMOTABLE","predicate":"review:*","branches":["main"],"exclude_author":true}]}`))
	check(t, err)
	_, err = b.SetPolicy(t.Context(), "acme", "api", contract, 1, "host")
	check(t, err)
	b.signer("cn=ann,ou=dev,o=acme").attests(sha(1), "review:code", ledger.Pass)
	b.signer("cn=ci,ou=build,o=acme").attests(sha(1), "test:go", ledger.Pass)
	b.wantState(sha(1), ledger.Validating) // no change record: the payments' tests are required

	register := func(n ledger.Registration) {
		t.Helper()
		_, _, err := b.Register(t.Context(), "acme", "api", sha(1), n)
		check(t, err)
	}
	register(ledger.Registration{Changes: []radar.Change{{Path: "README.md", Status: "M"}}})
	b.wantState(sha(1), ledger.Attested) // nobody knows who the author is
	register(ledger.Registration{Author: ledger.Author{Name: "Ann", Email: "ann@acme.example"}})
	b.wantState(sha(1), ledger.Attested) // her own review does not count
	register(ledger.Registration{Target: "feature"})
	b.wantState(sha(1), ledger.Promotable) // no review is required there
	if got := b.commit(sha(1)); got.Author.Email != "ann@acme.example" || len(got.Changes) != 1 {
		t.Errorf("a later registration cleared members that it omitted: %+v", got)
	}
}

// eventTypes lists the types of the org's events, and checks that they are in order
// and without gaps.
func eventTypes(b *bench) string {
	b.t.Helper()
	var kinds []string
	f := store.EventFilter{Query: store.Query{Limit: 500}}
	for {
		list, err := b.Events(b.t.Context(), "acme", f)
		check(b.t, err)
		for _, body := range list.Data {
			var e struct {
				Type string `json:"type"`
			}
			check(b.t, json.Unmarshal(body, &e))
			kinds = append(kinds, e.Type)
		}
		if f.Cursor = list.NextCursor; f.Cursor == "" {
			return strings.Join(kinds, " ")
		}
	}
}

// Two people may have the same name: each key attests for itself.
func (s suite) TestTheSameStatementWithAnotherKeyIsAnotherAttestation(t *testing.T) {
	b := s.newBench(t)
	one, other := b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=ci,ou=build,o=acme")
	first, _ := one.says(sha(1), "test:go", ledger.Pass, "run 1")
	second, version := other.says(sha(1), "test:go", ledger.Pass, "run 1")
	if first.PayloadDigest != second.PayloadDigest {
		t.Fatal("the statements differ")
	}
	for i, a := range []*attestation.Attestation{first, second} {
		if _, created, err := b.Record(t.Context(), "acme", "api", a, version); err != nil || !created {
			t.Errorf("statement %d: created %t, %v", i, created, err)
		}
	}
	if _, created, err := b.Record(t.Context(), "acme", "api", second, version); err != nil || created {
		t.Errorf("the second again: created %t, %v", created, err)
	}
	_, _, err := b.Record(t.Context(), "acme", "api", first, version)
	wantCode(t, err, ledger.CodeStaleStatement) // the same person has attested something newer
}

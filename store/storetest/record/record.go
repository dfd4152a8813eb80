package record

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// toPromotable has the transitions of a commit that becomes PROMOTABLE.
const toPromotable = "DRAFT>VALIDATING VALIDATING>ATTESTED ATTESTED>PROMOTABLE"

func (s suite) TestACommitPassesThroughAllStates(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	ann := fx.NewSigner("cn=ann,ou=dev,o=acme")

	_, _, err := fx.Register(t.Context(), "acme", "api", sha(1), ledger.Registration{Branch: "main", Message: "first",
		Author: ledger.Author{Name: "Dora"}})
	must.OK(t, err)
	fx.WantState(sha(1), ledger.Draft)
	ci.Attest(sha(1), "build:docker", ledger.Pass)
	fx.WantState(sha(1), ledger.Validating)
	ci.Attest(sha(1), "test:go", ledger.Pass)
	fx.WantState(sha(1), ledger.Attested)
	ann.Attest(sha(1), "review:code", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)
	ci.Attest(sha(1), "deploy:prod", ledger.Pass)
	fx.WantState(sha(1), ledger.Deployed)

	want := toPromotable + " PROMOTABLE>DEPLOYED"
	if got := storetest.Path(fx.ReadCommit(sha(1))); got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}
}

func (s suite) TestOneAttestationCanCauseSeveralTransitions(t *testing.T) {
	fx := s.newFixture(t)
	rec := fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(1), "test:go", ledger.Pass)

	c := fx.ReadCommit(sha(1))
	if got, want := storetest.Path(c), "DRAFT>VALIDATING VALIDATING>ATTESTED"; got != want {
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
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	ci.Deploy(sha(1))
	ci.Attest(sha(1), "test:go", ledger.Fail)
	fx.WantState(sha(1), ledger.Deployed) // no other attestation changes it
	ci.Attest(sha(1), "deploy:prod", ledger.Fail)
	fx.WantState(sha(1), ledger.Validating) // rolled back, then settled
	ci.Attest(sha(1), "test:go", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)
}

func (s suite) TestADeployBeforePromotableDoesNotCount(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	ci.Attest(sha(1), "deploy:prod", ledger.Pass)
	ci.MakePromotable(sha(1))
	fx.WantState(sha(1), ledger.Promotable)
	ci.Attest(sha(1), "deploy:prod", ledger.Pass)
	fx.WantState(sha(1), ledger.Deployed)
}

// A commit that is due is settled before a new attestation is
// recorded, even if the evaluation has not reached it.
func (s suite) TestADeployCountsOnlyIfTheCommitIsPromotableThen(t *testing.T) {
	contract := func(text string) policy.Contract {
		c := must.Get(policy.Parse([]byte(text)))(t)
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
			ci := fx.NewSigner("cn=ci,ou=build,o=acme")
			_, err := fx.SetPolicy(t.Context(), "acme", "api", contract(test.before), 0, "host")
			must.OK(t, err)
			must.OK(t, fx.Settle(t.Context()))
			ci.Attest(sha(1), "test:go", ledger.Pass)
			if test.after != "" {
				_, err = fx.SetPolicy(t.Context(), "acme", "api", contract(test.after), 0, "host")
				must.OK(t, err)
			}
			fx.Clock.Advance(test.wait)
			ci.Attest(sha(1), "deploy:prod", ledger.Pass)
			fx.WantState(sha(1), test.atDeploy)
			ci.Attest(sha(1), test.then, ledger.Pass)
			fx.WantState(sha(1), test.want)
		})
	}
}

func (s suite) TestARolledBackCommitNeedsANewDeploy(t *testing.T) {
	fx := s.newFixture(t)
	ci, ann := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=ann,ou=dev,o=acme")
	ci.Deploy(sha(1))
	ci.Attest(sha(1), "test:go", ledger.Fail)
	ann.Attest(sha(1), "deploy:prod", ledger.Pass) // DEPLOYED, but no longer PROMOTABLE
	ci.Attest(sha(1), "deploy:prod", ledger.Skip)
	fx.WantState(sha(1), ledger.Validating)
	ci.Attest(sha(1), "test:go", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)
}

func (s suite) TestTheAuthorOfACommitCannotChange(t *testing.T) {
	fx := s.newFixture(t)
	register := func(name, email string) error {
		_, _, err := fx.Register(t.Context(), "acme", "api", sha(1), ledger.Registration{
			Author: ledger.Author{Name: name, Email: email},
		})
		return err
	}
	must.OK(t, register("Ann", ""))
	must.OK(t, register("Ann", "ann@acme.example"))
	must.OK(t, register("", ""))
	storetest.WantCode(t, register("Bob", "ann@acme.example"), ledger.CodeInvalidField)
	storetest.WantCode(t, register("Ann", "bob@acme.example"), ledger.CodeInvalidField)
}

func (s suite) TestTheSameStatementIsRecordedOnce(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	first, version := ci.Sign(sha(1), "test:go", ledger.Pass, "run 1")
	rec, created, err := fx.Record(t.Context(), "acme", "api", first, version)
	must.OK(t, err)
	if !created {
		t.Fatal("the first record is not new")
	}
	events := eventTypes(fx)

	again, created, err := fx.Record(t.Context(), "acme", "api", first, version)
	must.OK(t, err)
	if created || again != rec {
		t.Errorf("the second write returned %+v (new: %t), want the first record %+v", again, created, rec)
	}
	if got := eventTypes(fx); got != events {
		t.Errorf("events %s after the second write, want %s", got, events)
	}

	ci.Attest(sha(1), "test:go", ledger.Fail)
	_, _, err = fx.Record(t.Context(), "acme", "api", first, version)
	storetest.WantCode(t, err, ledger.CodeStaleStatement)
	if !strings.Contains(err.Error(), rec.ID) {
		t.Errorf("%q does not name %s", err, rec.ID)
	}
	fx.WantState(sha(1), ledger.Validating) // the old pass does not override the newer fail
}

func (s suite) TestConcurrentDuplicatesAreRecordedOnce(t *testing.T) {
	fx := s.newFixture(t)
	a, version := fx.NewSigner("cn=ci,ou=build,o=acme").Sign(sha(1), "test:go", ledger.Pass, "")
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

// An identity that is revoked between the verification and the write attests nothing. If its key
// is added again, what counts is the name that it then has.
func (s suite) TestRevokingBetweenVerifyAndRecordIsDetected(t *testing.T) {
	fx := s.newFixture(t)
	for _, again := range []string{"", "cn=robot,ou=build,o=acme"} {
		signed, _ := fx.NewSigner("cn=ci,ou=build,o=acme").Sign(sha(1), "test:go", ledger.Pass, "")
		identities, err := fx.Identities(t.Context(), "acme", store.Query{Limit: 10})
		must.OK(t, err)
		i := identities.Data[slices.IndexFunc(identities.Data, func(i identity.Identity) bool { return i.RevokedAt == 0 })]

		verified := 0
		verify := func(at attestation.Place, keys *identity.Keyring) (*attestation.Attestation, error) {
			a, err := at.Verify(signed.Envelope, keys, fx.Now())
			if verified++; verified > 1 {
				return a, err
			}
			must.OK(t, fx.RevokeIdentity(t.Context(), "acme", i.ID))
			if again != "" {
				added, err := identity.NewIdentity{Kind: i.Kind, PEM: i.PEM, DN: again}.Identity()
				must.OK(t, err)
				_, err = fx.AddIdentity(t.Context(), "acme", added)
				must.OK(t, err)
			}
			return a, err
		}
		rec, _, err := fx.Attest(t.Context(), "acme", "api", verify)
		if again == "" {
			storetest.WantCode(t, err, ledger.CodeRevokedIdentity)
		} else if err != nil || rec.Identity != again {
			t.Errorf("signed by %s, %v; want %s", rec.Identity, err, again)
		}
		if verified != 2 {
			t.Errorf("it was verified %d times, want 2", verified)
		}
	}
}

func (s suite) TestTheEnvelopeIsStoredUnchanged(t *testing.T) {
	fx := s.newFixture(t)
	a, version := fx.NewSigner("cn=ci,ou=build,o=acme").Sign(sha(1), "test:go", ledger.Pass, "")
	rec, _, err := fx.Record(t.Context(), "acme", "api", a, version)
	must.OK(t, err)
	got, err := fx.Envelope(t.Context(), "acme", "api", rec.ID)
	must.OK(t, err)
	if string(got) != string(a.Envelope) {
		t.Errorf("got %s, want %s", got, a.Envelope)
	}
}

func (s suite) TestEvidenceExpires(t *testing.T) {
	fx := s.newFixture(t)
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","max_age":"1h"}]}`))
	must.OK(t, err)
	_, err = fx.SetPolicy(t.Context(), "acme", "api", contract, 1, "host")
	must.OK(t, err)
	rec := fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(1), "test:go", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)

	fx.Clock.Advance(time.Hour - time.Millisecond)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(sha(1), ledger.Promotable)
	fx.Clock.Advance(time.Millisecond)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(sha(1), ledger.Validating)

	steps := fx.ReadCommit(sha(1)).Transitions
	if got, want := steps[len(steps)-1].Cause, (ledger.Cause{Type: ledger.CauseExpiry, ID: rec.ID}); got != want {
		t.Errorf("cause %v, want %v", got, want)
	}
}

// A contract of before version 4 of the rules believes what registrations claim about paths.
func (s suite) TestARegistrationCanChangeWhichRequirementsApply(t *testing.T) {
	fx := s.newFixture(t)
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:go"},
		{"state":"ATTESTED","predicate":"test:payments","paths":["services/payments/**"]},
		{"state":"PROMOTABLE","predicate":"review:*","branches":["main"],"exclude_author":true}]}`))
	must.OK(t, err)
	contract.Rules = 3
	_, err = fx.SetPolicy(t.Context(), "acme", "api", contract, 1, "host")
	must.OK(t, err)
	fx.NewSigner("cn=ann,ou=dev,o=acme").Attest(sha(1), "review:code", ledger.Pass)
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(1), "test:go", ledger.Pass)
	fx.WantState(sha(1), ledger.Validating) // no change record: test:payments applies

	register := func(n ledger.Registration) {
		t.Helper()
		_, _, err := fx.Register(t.Context(), "acme", "api", sha(1), n)
		must.OK(t, err)
	}
	register(ledger.Registration{Changes: []radar.Change{{Path: "README.md", Status: "M"}}})
	fx.WantState(sha(1), ledger.Attested) // the author is unknown
	register(ledger.Registration{Author: ledger.Author{Name: "Ann", Email: "ann@acme.example"}})
	fx.WantState(sha(1), ledger.Attested) // the author's own review does not count
	register(ledger.Registration{Target: "feature"})
	fx.WantState(sha(1), ledger.Attested) // claims only add targets: main is still one
	if got := fx.ReadCommit(sha(1)); got.Author.Email != "ann@acme.example" || len(got.Changes) != 1 {
		t.Errorf("a later registration cleared omitted fields: %+v", got)
	}
}

// What registrations claim is not believed: a signed record says which requirements apply, and of several, each may be
// right. It counts as long as its signer is trusted, also by a contract that is set later.
func (s suite) TestAChangeRecordSaysWhichRequirementsApply(t *testing.T) {
	fx := s.newFixture(t)
	const contract = `{"requirements":[{"state":"ATTESTED","predicate":"test:go"},
{"state":"ATTESTED","predicate":"test:payments","paths":["services/payments/**"]}],"radar":{"enabled":false}}`
	fx.SetContract(contract)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	ci.Attest(sha(1), "test:go", ledger.Pass)
	_, _, err := fx.Register(t.Context(), "acme", "api", sha(1), ledger.Registration{
		Changes: []radar.Change{{Path: "README.md", Status: "M"}}})
	must.OK(t, err)
	fx.WantState(sha(1), ledger.Validating)

	compare := func(by *storetest.Signer, base string, paths ...string) {
		t.Helper()
		payload, err := attestation.NewChangesStatement(sha(1), attestation.Changes{Repo: "acme/api", Base: base,
			Paths: paths})
		must.OK(t, err)
		_, _, err = by.Send(payload)
		must.OK(t, err)
	}
	compare(ci, sha(0), "README.md")
	fx.WantState(sha(1), ledger.Promotable)
	fx.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"*"}],"radar":{"enabled":false}}`)
	fx.SetContract(contract)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(sha(1), ledger.Promotable)

	other := fx.NewSigner("cn=other,ou=build,o=acme")
	compare(other, sha(0), "services/payments/pay.go")
	fx.WantState(sha(1), ledger.Validating)
	compare(other, sha(0)) // in its place
	fx.WantState(sha(1), ledger.Promotable)
	compare(ci, sha(2), "services/payments/pay.go")
	fx.WantState(sha(1), ledger.Validating)
}

func (s suite) TestWhoSignedTheCommitCannotReviewIt(t *testing.T) {
	fx := s.newFixture(t)
	ci, tom := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=Tom,ou=dev,o=acme")
	key, err := identity.Fingerprint(tom.Key.Public())
	must.OK(t, err)
	fx.Complete(sha(1), ledger.Registration{Author: ledger.Author{Name: "Sam"}, SigningKey: key})

	ci.Attest(sha(1), "test:go", ledger.Pass)
	tom.Attest(sha(1), "review:code", ledger.Pass)
	fx.WantState(sha(1), ledger.Attested)
	fx.NewSigner("cn=rita,ou=review,o=acme").Attest(sha(1), "review:code", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)
}

// eventTypes lists the types of the org's events, in order.
func eventTypes(fx *fixture) string {
	fx.T.Helper()
	var types []string
	f := store.EventFilter{Query: store.Query{Limit: 500}, Types: ledger.DefaultEventTypes()}
	for {
		list, err := fx.Events(fx.T.Context(), "acme", f)
		must.OK(fx.T, err)
		for _, body := range list.Data {
			var e struct {
				Type string `json:"type"`
			}
			must.OK(fx.T, json.Unmarshal(body, &e))
			types = append(types, e.Type)
		}
		if f.Cursor = list.NextCursor; f.Cursor == "" {
			return strings.Join(types, " ")
		}
	}
}

// Signers with the same name are one person, whatever their keys.
func (s suite) TestTheSameStatementWithAnotherKeyIsTheSameAttestation(t *testing.T) {
	fx := s.newFixture(t)
	one, other := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=ci,ou=build,o=acme")
	first, _ := one.Sign(sha(1), "test:go", ledger.Pass, "run 1")
	second, version := other.Sign(sha(1), "test:go", ledger.Pass, "run 1")
	if first.PayloadDigest != second.PayloadDigest {
		t.Fatal("the statements differ")
	}
	rec, created, err := fx.Record(t.Context(), "acme", "api", first, version)
	if err != nil || !created {
		t.Errorf("the first: created %t, %v", created, err)
	}
	again, created, err := fx.Record(t.Context(), "acme", "api", second, version)
	if err != nil || created || again.ID != rec.ID {
		t.Errorf("with another key: got %s, created %t, %v; want %s", again.ID, created, err, rec.ID)
	}
}

// Two identities become one person when a key or a name connects them. They then count
// once, and the commits that they signed are derived again.
func (s suite) TestPeopleAreJoined(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","threshold":2},
		{"state":"PROMOTABLE","predicate":"review:*"}]}`)
	ann, bob := fx.NewSigner("cn=ann,ou=dev,o=acme"), fx.NewSigner("cn=bob,ou=dev,o=acme")
	ann.Attest(sha(1), "test:go", ledger.Pass)
	bob.Attest(sha(1), "test:go", ledger.Pass)
	fx.WantState(sha(1), ledger.Attested)

	// The key of bob is registered with the name of ann, in another case.
	list, err := fx.Identities(t.Context(), "acme", store.Query{Limit: 10})
	must.OK(t, err)
	old := list.Data[1]
	must.OK(t, fx.RevokeIdentity(t.Context(), "acme", old.ID))
	old.DN = "cn=Ann,ou=DEV,o=acme"
	renamed, err := fx.AddIdentity(t.Context(), "acme", old)
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))

	fx.WantState(sha(1), ledger.Validating)
	c := fx.ReadCommit(sha(1))
	want := ledger.Cause{Type: ledger.CauseIdentity, ID: renamed.ID}
	if got := c.Transitions[len(c.Transitions)-1].Cause; got != want {
		t.Errorf("the cause is %+v, want %+v", got, want)
	}
	if got := c.Requirements[0]; got.Have != 1 || got.SignersCounted[0] != bob.DN {
		t.Errorf("the requirement is %+v, want one signer, %s", got, bob.DN)
	}

	// What the one says replaces what the other has said.
	renamedBob := fx.SignerOf(bob.Key, old.DN)
	renamedBob.Attest(sha(1), "test:go", ledger.Fail)
	ann.Attest(sha(1), "test:go", ledger.Pass)
	if got := fx.ReadCommit(sha(1)).Requirements[0]; len(got.FailedBy) != 0 {
		t.Errorf("the requirement is %+v, want the fail replaced", got)
	}
}

// A statement that finished before a worse one of the same person is stale.
func (s suite) TestAStatementThatIsOvertakenIsStale(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	record := func(status ledger.Status, finished ledger.Time) error {
		a, version := ci.Sign(sha(1), "test:go", status, fmt.Sprint(status, finished))
		a.FinishedAt = finished
		_, _, err := fx.Record(t.Context(), "acme", "api", a, version)
		return err
	}

	now := fx.Now()
	must.OK(t, record(ledger.Fail, now))
	storetest.WantCode(t, record(ledger.Pass, now-1), ledger.CodeStaleStatement)
	must.OK(t, record(ledger.Errored, now-2)) // a worse or equal result is always recorded
	storetest.WantCode(t, record(ledger.Pass, now-1), ledger.CodeStaleStatement)
	fx.WantState(sha(1), ledger.Validating)
	must.OK(t, record(ledger.Pass, now+1))
	fx.WantState(sha(1), ledger.Attested)
}

// Evidence about one artifact does not replace that about another, and a statement
// without an outcome replaces none with one.
func (s suite) TestSlotsAndRecordedEvidence(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"vsa:*"},
		{"state":"PROMOTABLE","predicate":"review:*"}]}`)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	record := func(slot string, status ledger.Status) ledger.AttestationRecord {
		a, version := ci.Sign(sha(1), "vsa:x", ledger.Pass, fmt.Sprint(slot, fx.Clock.Tick()))
		a.Slot, a.Result.Status = slot, status
		rec, _, err := fx.Record(t.Context(), "acme", "api", a, version)
		must.OK(t, err)
		return rec
	}

	if rec := record("sha256:a", ledger.Fail); rec.Slot != "sha256:a" {
		t.Errorf("the record has the slot %q", rec.Slot)
	}
	record("sha256:b", ledger.Pass)
	fx.WantState(sha(1), ledger.Validating)
	record("sha256:a", ledger.Recorded)
	fx.WantState(sha(1), ledger.Validating)
	record("sha256:a", ledger.Pass)
	fx.WantState(sha(1), ledger.Attested)
	record("sha256:b", ledger.Recorded)
	fx.WantState(sha(1), ledger.Attested)
}

// A statement for another repo is refused.
func (s suite) TestAStatementForAnotherRepoIsRefused(t *testing.T) {
	fx := s.newFixture(t)
	a, version := fx.NewSigner("cn=ci,ou=build,o=acme").Sign(sha(1), "test:go", ledger.Pass, "")
	a.Repo = "acme/web"
	_, _, err := fx.Record(t.Context(), "acme", "api", a, version)
	storetest.WantCode(t, err, ledger.CodeWrongRepo)
	a.Repo = "acme/API"
	_, _, err = fx.Record(t.Context(), "acme", "api", a, version)
	must.OK(t, err)
}

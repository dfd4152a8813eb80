package states

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// Commits on which people agree.
var shaA, shaB, shaC = strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)

const twoReviews = `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","threshold":2}]}`

// setDistinct says whether an identity is another person than others with its names.
func (fx *fixture) setDistinct(i identity.Identity, distinct bool) {
	fx.T.Helper()
	fx.Turn()
	changed, err := fx.ChangeIdentity(fx.T.Context(), "acme", i.ID, identity.Change{Distinct: &distinct})
	must.OK(fx.T, err)
	if changed.Distinct != distinct || fx.IdentityOf(i.DN).Distinct != distinct {
		fx.T.Errorf("%s is distinct: %t, want %t", i.DN, changed.Distinct, distinct)
	}
	must.OK(fx.T, fx.Settle(fx.T.Context()))
}

func (s suite) TestCommonNamesCountOnce(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(twoReviews)
	key, _ := fx.named("cn=rita,ou=review,o=acme", nil)
	other, signIn := fx.named("cn=Rita,ou=people-dev,o=acme", nil)
	eve, _ := fx.named("cn=eve,ou=review,o=acme", []string{"rita@acme.example"})
	bob, _ := fx.named("cn=bob,ou=review,o=acme", nil)

	key.Attest(shaA, "review:code", ledger.Pass)
	other.Attest(shaA, "review:code", ledger.Pass)
	fx.WantState(shaA, ledger.Attested)
	bob.Attest(shaA, "review:code", ledger.Pass)
	fx.WantState(shaA, ledger.Promotable)

	// An address connects people, too, as soon as it is known.
	eve.Attest(shaB, "review:code", ledger.Pass)
	key.Attest(shaB, "review:code", ledger.Pass)
	fx.WantState(shaB, ledger.Promotable)
	fx.Turn()
	_, err := fx.ChangeIdentity(t.Context(), "acme", signIn.ID, identity.Change{Email: new("Rita@ACME.example")})
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(shaB, ledger.Attested)
	fx.Turn()
	_, err = fx.ChangeIdentity(t.Context(), "acme", signIn.ID, identity.Change{Email: new("")})
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(shaB, ledger.Promotable)

	// Each keeps its own results: a pass under another name clears no failure.
	key.Attest(shaC, "review:code", ledger.Fail)
	other.Attest(shaC, "review:code", ledger.Pass)
	bob.Attest(shaC, "review:code", ledger.Pass)
	fx.WantState(shaC, ledger.Attested)
	key.Attest(shaC, "review:code", ledger.Pass)
	fx.WantState(shaC, ledger.Promotable)
}

func (s suite) TestDistinctPeopleCountTwice(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(twoReviews)
	rita, _ := fx.named("cn=rita,ou=review,o=acme", nil)
	namesake, i := fx.named("cn=rita,ou=people-dev,o=acme", nil)
	rita.Attest(shaA, "review:code", ledger.Pass)
	namesake.Attest(shaA, "review:code", ledger.Pass)
	fx.WantState(shaA, ledger.Attested)

	fx.setDistinct(i, true)
	fx.WantState(shaA, ledger.Promotable)
	rita.Attest(shaB, "review:code", ledger.Pass)
	namesake.Attest(shaB, "review:code", ledger.Pass)
	fx.WantState(shaB, ledger.Promotable)
	fx.setDistinct(i, false)
	fx.WantState(shaA, ledger.Attested)
	fx.setDistinct(i, false) // again
	fx.setDistinct(i, true)

	var said []string
	for _, e := range storetest.EventsOf[ledger.IdentityEvent](fx.Fixture) {
		if e.Kind == ledger.KindSigner {
			said = append(said, fmt.Sprint(e.IdentityID, " ", e.Action, " ", e.Distinct))
		}
	}
	const dn = "cn=rita,ou=people-dev,o=acme changed "
	if want := []string{dn + "true", dn + "false", dn + "true"}; !slices.Equal(said, want) {
		t.Errorf("events %q, want %q", said, want)
	}
	var audited int
	for _, e := range storetest.EventsOf[ledger.AuditEvent](fx.Fixture) {
		if e.Action == ledger.AuditIdentityChanged && e.Target == i.ID {
			audited++
		}
	}
	if audited != 3 {
		t.Errorf("%d audit events, want 3", audited)
	}
}

// TestAuthorsCountOnce checks that nobody reviews a commit of an author with whom a third person
// connects them.
func (s suite) TestAuthorsCountOnce(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	rev, i := fx.named("cn=rev,ou=review,o=acme", []string{"rev@acme.example"})
	fx.named("cn=ann,ou=dev,o=acme", []string{"rev@acme.example"})
	second, _ := fx.named("cn=second,ou=review,o=acme", []string{"rev@acme.example"})
	sha := fx.proveBy("ann <ann@home.example>", "ann <ann@home.example>", "")
	ci.Attest(sha, "test:go", ledger.Pass)
	rev.Attest(sha, "review:code", ledger.Pass)
	second.Attest(sha, "review:code", ledger.Pass)
	fx.WantState(sha, ledger.Attested)
	fx.setDistinct(i, true)
	fx.WantState(sha, ledger.Promotable)
}

// TestOwnersOfKeysCountOnce checks the same of a commit that a key of the third person has signed.
func (s suite) TestOwnersOfKeysCountOnce(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true}]}`)
	rev, i := fx.named("cn=rev,ou=review,o=acme", []string{"rev@acme.example"})
	_, laptop := fx.named("cn=laptop,ou=dev,o=acme", []string{"rev@acme.example"})
	_, _, err := fx.Register(t.Context(), "acme", "api", shaA, ledger.Registration{
		Author: ledger.Author{Name: "ann"}, SigningKey: laptop.Fingerprint})
	must.OK(t, err)
	rev.Attest(shaA, "review:code", ledger.Pass)
	fx.WantState(shaA, ledger.Attested)
	fx.setDistinct(i, true)
	fx.WantState(shaA, ledger.Promotable)
}

// TestRootsAreNotDistinct checks that only signers are.
func (s suite) TestRootsAreNotDistinct(t *testing.T) {
	fx := s.newFixture(t)
	root, err := fx.AddIdentity(t.Context(), "acme", storetest.NewRoot(t, ca.Jobs, fx.Now()))
	must.OK(t, err)
	_, err = fx.ChangeIdentity(t.Context(), "acme", root.ID, identity.Change{Distinct: new(true)})
	if err == nil || !strings.Contains(err.Error(), "distinct: not allowed for a root") {
		t.Errorf("error %v", err)
	}
}

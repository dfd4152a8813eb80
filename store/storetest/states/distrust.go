package states

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// distrust makes the evidence of a signer not count since a time.
func (fx *fixture) distrust(s *storetest.Signer, since ledger.Time) identity.Identity {
	fx.T.Helper()
	id := fx.IdentityOf(s.DN).ID
	must.OK(fx.T, fx.DistrustIdentity(fx.T.Context(), "acme", id, since))
	return fx.IdentityOf(s.DN)
}

// wantMissing checks the requirements that a commit does not meet, as reads say.
func (fx *fixture) wantMissing(sha string, want ...string) {
	fx.T.Helper()
	var got []string
	for _, r := range fx.ReadCommit(sha).Requirements {
		if !r.Met {
			got = append(got, fmt.Sprintf("%s have %d, failed by %d", r.Predicate, r.Have, len(r.FailedBy)))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		fx.T.Errorf("missing: %q, want %q", got, want)
	}
}

// A thief with the key of ci hides a failure behind a success. When the key is distrusted
// since then, the failure counts again: in the next read, and when the background is done.
func (s suite) TestAThiefCannotHideAFailure(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"PROMOTABLE","predicate":"review:*"}]}`)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.Review(sha(1))
	fx.Review(sha(2))
	failed := ci.Attest(sha(1), "test:go", ledger.Fail)
	fx.Clock.Advance(time.Hour)
	since := ledger.TimeOf(fx.Clock.Now())
	passed := ci.Attest(sha(1), "test:go", ledger.Pass)
	ci.Attest(sha(2), "test:go", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)
	fx.WantState(sha(2), ledger.Promotable)

	i := fx.distrust(ci, since)
	if i.RevokedAt == 0 || i.DistrustedSince != since {
		t.Errorf("the identity was revoked at %s and is distrusted since %s", i.RevokedAt, i.DistrustedSince)
	}
	for range 2 { // before and after the background work
		fx.wantMissing(sha(1), "test:* have 0, failed by 1")
		fx.wantMissing(sha(2), "test:* have 0, failed by 0")
		must.OK(t, fx.Settle(t.Context()))
	}
	fx.WantState(sha(1), ledger.Validating)
	fx.WantState(sha(2), ledger.Validating)
	c := fx.ReadCommit(sha(1))
	want := ledger.Cause{Type: ledger.CauseIdentity, ID: i.ID}
	if got := c.Transitions[len(c.Transitions)-1].Cause; got != want {
		t.Errorf("the cause is %+v, want %+v", got, want)
	}

	// Both stay in the lists, and the record says which one counts.
	list, err := fx.Attestations(t.Context(), "acme", "api", store.AttestationFilter{Query: store.Query{Limit: 100}})
	must.OK(t, err)
	for _, a := range list.Data {
		rec, err := fx.Attestation(t.Context(), "acme", "api", a.ID)
		must.OK(t, err)
		if want := a.Identity == ci.DN && a.ID != failed.ID; a.Distrusted != want || rec.Distrusted != want {
			t.Errorf("%s of %s: distrusted %t in the list, %t in the record, want %t", a.Predicate, a.Commit, a.Distrusted,
				rec.Distrusted, want)
		}
	}
	if passed.Distrusted {
		t.Error("the attestation was distrusted when it was recorded")
	}
}

// A time that is still to come is refused, and distrust only grows.
func (s suite) TestDistrustOnlyGrows(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	id := fx.IdentityOf(ci.DN).ID
	now := ledger.TimeOf(fx.Clock.Now())

	storetest.WantCode(t, fx.DistrustIdentity(ctx, "acme", id, now.Add(time.Minute)), ledger.CodeInvalidParameter)
	storetest.WantCode(t, fx.DistrustIdentity(ctx, "acme", "idn_none", now), ledger.CodeNotFound)
	if i := fx.IdentityOf(ci.DN); i.RevokedAt != 0 || i.DistrustedSince != 0 {
		t.Fatalf("after refusals: %+v", i)
	}

	must.OK(t, fx.RevokeIdentity(ctx, "acme", id))
	revoked := fx.IdentityOf(ci.DN).RevokedAt
	fx.Clock.Advance(time.Minute)
	for _, since := range []ledger.Time{now, now, now.Add(-time.Hour)} {
		must.OK(t, fx.DistrustIdentity(ctx, "acme", id, since))
		if i := fx.IdentityOf(ci.DN); i.RevokedAt != revoked || i.DistrustedSince != since {
			t.Errorf("revoked at %s, distrusted since %s; want %s and %s", i.RevokedAt, i.DistrustedSince, revoked, since)
		}
	}
	storetest.WantCode(t, fx.DistrustIdentity(ctx, "acme", id, now), ledger.CodeInvalidField)
	must.OK(t, fx.RevokeIdentity(ctx, "acme", id))
	if i := fx.IdentityOf(ci.DN); i.DistrustedSince != now.Add(-time.Hour) {
		t.Errorf("distrusted since %s after it was revoked again", i.DistrustedSince)
	}
}

// What a thief has signed does not keep the owner of the key from recording the same
// statement with a new key, or a newer one.
func (s suite) TestADistrustedStatementIsRecordedAgain(t *testing.T) {
	fx := s.newFixture(t)
	bob, ci := fx.NewSigner("cn=bob,ou=build,o=acme"), fx.NewSigner("cn=ci,ou=build,o=acme")
	since := ledger.TimeOf(fx.Clock.Now())
	sign := func(
		commit string, by *storetest.Signer, status ledger.Status, finished ledger.Time,
	) (*attestation.Attestation, int64) {
		a, version := by.Sign(commit, "test:go", status, fmt.Sprint(status, finished))
		a.FinishedAt = finished
		return a, version
	}
	record := func(a *attestation.Attestation, version int64) (ledger.AttestationRecord, bool, error) {
		return fx.Record(t.Context(), "acme", "api", a, version)
	}
	for _, by := range []*storetest.Signer{bob, ci} {
		_, _, err := record(sign(sha(2), by, ledger.Pass, since))
		must.OK(t, err)
	}
	_, _, err := record(sign(sha(1), ci, ledger.Pass, since))
	must.OK(t, err)
	_, _, err = record(sign(sha(1), ci, ledger.Fail, since.Add(time.Hour))) // it makes earlier ones stale
	must.OK(t, err)

	old := fx.distrust(ci, since)
	renewed := fx.NewSigner(ci.DN)
	rec, isNew, err := record(sign(sha(1), renewed, ledger.Pass, since))
	if err != nil || !isNew || rec.Distrusted {
		t.Fatalf("the same statement with a new key: %+v, %t, %v", rec, isNew, err)
	}
	if _, again, err := record(sign(sha(1), renewed, ledger.Pass, since)); err != nil || again {
		t.Errorf("sent twice: new %t, %v", again, err)
	}
	for range 2 {
		if c := fx.ReadCommit(sha(1)); c.Requirements[0].Have != 1 || len(c.Requirements[0].FailedBy) != 0 {
			t.Errorf("the requirement is %+v", c.Requirements[0])
		}
		must.OK(t, fx.Settle(t.Context()))
	}

	// The old key is trusted again, as another identity: only new statements by it count.
	old.ID, old.RevokedAt, old.DistrustedSince = "", 0, 0
	_, err = fx.AddIdentity(t.Context(), "acme", old)
	must.OK(t, err)
	_, _, err = record(sign(sha(1), ci, ledger.Fail, since.Add(time.Hour)))
	storetest.WantCode(t, err, ledger.CodeStaleStatement)
	_, _, err = record(sign(sha(2), ci, ledger.Pass, since)) // bob's is trusted
	storetest.WantCode(t, err, ledger.CodeStaleStatement)
	_, isNew, err = record(sign(sha(1), ci, ledger.Fail, since.Add(2*time.Hour)))
	if err != nil || !isNew {
		t.Errorf("a new statement with the old key: new %t, %v", isNew, err)
	}
}

// An exception by a distrusted identity does not count, and the one that it had ended counts
// again.
func (s suite) TestADistrustedExceptionDoesNotCount(t *testing.T) {
	fx := s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","name":"tests"}],
		"exceptions":{"signers":["ou=lead"],"max_duration":"24h"}}`)
	eve, boss := fx.NewSigner("cn=eve,ou=lead,o=acme"), fx.NewSigner("cn=boss,ou=lead,o=acme")
	grant := func(by *storetest.Signer, commit string, until ledger.Time) {
		t.Helper()
		a, version := by.Sign(commit, "test:x", ledger.Pass, fmt.Sprint(fx.Clock.Tick()))
		a.Predicate, a.PredicateType = "exception:tests", attestation.ExceptionPredicateType
		a.Exception = &attestation.Exception{Requirement: "tests", Reason: "an outage", Until: until}
		_, _, err := fx.Record(t.Context(), "acme", "api", a, version)
		must.OK(t, err)
	}
	since := ledger.TimeOf(fx.Clock.Now()).Add(time.Second)
	grant(boss, sha(2), since.Add(time.Hour))
	fx.Clock.Advance(time.Minute)
	grant(eve, sha(1), since.Add(time.Hour))
	grant(eve, sha(2), since) // ends the one of boss
	fx.WantState(sha(1), ledger.Promotable)
	fx.WantState(sha(2), ledger.Validating)

	fx.distrust(eve, since)
	for range 2 {
		fx.WantState(sha(1), ledger.Validating)
		fx.WantState(sha(2), ledger.Promotable)
		list, err := fx.Exceptions(t.Context(), "acme", "api", store.ExceptionFilter{Query: store.Query{Limit: 10}})
		must.OK(t, err)
		for _, x := range list.Data {
			if wantActive := x.Identity == boss.DN; x.Active != wantActive ||
				!wantActive && !strings.Contains(x.Inactive, "distrusted") {
				t.Errorf("exception %+v, want active %t", x, wantActive)
			}
		}
		must.OK(t, fx.Settle(t.Context()))
	}
}

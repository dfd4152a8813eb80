package store_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// The commits of the tests: a merge of parent and source.
const (
	parentCommit = iota + 1
	sourceCommit
	mergeCommit
)

// prove registers a commit as if its object was known. All trees are the sha of a number.
func (l *timeline) prove(commit, tree int, parents ...int) {
	l.t.Helper()
	list := make([]string, len(parents))
	for i, p := range parents {
		list[i] = sha(p)
	}
	_, _, err := l.Register(l.t.Context(), "acme", "api", sha(commit), ledger.Registration{Parents: list})
	must.OK(l.t, err)
	l.change("UPDATE commits SET tree = ? WHERE sha = ?", sha(tree), sha(commit))
}

// change changes the database.
func (l *timeline) change(statement string, args ...any) {
	l.t.Helper()
	db, err := sql.Open("sqlite", "file:"+l.path)
	must.OK(l.t, err)
	defer db.Close()
	_, err = db.ExecContext(l.t.Context(), statement, args...)
	must.OK(l.t, err)
}

// mergeOf returns a claim that mergeCommit, whose tree is 100, merges sourceCommit.
func mergeOf(kind attestation.MergeKind) attestation.Merge {
	return attestation.Merge{Repo: "acme/api", Kind: kind, Source: attestation.MergedCommit{SHA: sha(sourceCommit)},
		Parent: attestation.MergedCommit{SHA: sha(parentCommit)}, Tree: sha(100)}
}

// claim records a claim about a commit.
func (l *timeline) claim(signer string, commit int, m attestation.Merge) (ledger.AttestationRecord, error) {
	l.t.Helper()
	l.n++
	dn := must.Get(identity.ParseDN("cn=" + signer + ",ou=queue,o=acme"))(l.t)
	payload := fmt.Appendf(nil, "statement %d", l.n)
	_, version, err := l.Keyring(l.t.Context(), "acme")
	must.OK(l.t, err)
	rec, _, err := l.Record(l.t.Context(), "acme", "api", &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: attestation.MergePredicate(m.Kind), Slot: m.Source.SHA,
			Result: ledger.Result{Status: ledger.Pass}},
		Commit: sha(commit), PredicateType: attestation.MergePredicateType, Merge: &m,
		Signer:  identity.Signer{DN: dn, May: mayClaim(), Identity: "idn_" + signer, Key: sha256.Sum256([]byte(signer))},
		Payload: payload, PayloadDigest: sha256.Sum256(payload),
		Envelope: []byte(`{"payload":"` + base64.StdEncoding.EncodeToString(payload) + `"}`),
	}, version)
	return rec, err
}

// squash records a claim that mergeCommit is a squash, which is valid.
func (l *timeline) squash(signer string) ledger.AttestationRecord {
	l.t.Helper()
	rec, err := l.claim(signer, mergeCommit, mergeOf(attestation.Squashed))
	must.OK(l.t, err)
	return rec
}

// wantClaims checks the claims in the record of mergeCommit: source, parent's state and
// reason of each.
func (l *timeline) wantClaims(want ...string) {
	l.t.Helper()
	var got []string
	for _, c := range l.commit(mergeCommit).Merges {
		got = append(got, strings.TrimSpace(fmt.Sprint(strings.TrimLeft(c.Source, "0"), " ", c.ParentState, " ", c.Reason)))
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("claims: %q, want %q", got, want)
	}
}

// A claim has the state that the commit of the mainline has, if all is proven and agrees with
// it. Otherwise nothing carries, and the record says why.
func TestClaimHasStateOfParent(t *testing.T) {
	const squash, merge = attestation.Squashed, attestation.Merged
	twoParents := []int{parentCommit, sourceCommit}
	for name, test := range map[string]struct {
		kind    attestation.MergeKind
		tree    int // of the commit; 0: not proven
		parents []int
		parent  int // tree of the parent; 0: not proven
		want    string
	}{
		"a squash":       {squash, 100, []int{parentCommit}, 90, "2 PROMOTABLE"},
		"a merge":        {merge, 100, twoParents, 90, "2 PROMOTABLE"},
		"another tree":   {squash, 101, []int{parentCommit}, 90, "2 DRAFT the claim is about the tree 000000000000"},
		"another parent": {squash, 100, []int{sourceCommit}, 90, "2 DRAFT 000000000000 is not a parent"},
		"no parent":      {squash, 100, nil, 90, "2 DRAFT 000000000000 is not a parent"},
		"second parent":  {merge, 100, []int{sourceCommit, parentCommit}, 90, "2 PROMOTABLE"},
		"squash of two":  {squash, 100, twoParents, 90, "2 DRAFT a squash has one parent, but the commit has 2"},
		"an update":      {attestation.Updated, 100, []int{sourceCommit, parentCommit}, 90, "2 PROMOTABLE"},
		"update of one": {attestation.Updated, 100, []int{parentCommit}, 90,
			"2 DRAFT an update has two parents, but the commit has 1"},
		"update of another": {attestation.Updated, 100, []int{parentCommit, 9}, 90,
			"2 DRAFT 000000000000 is not known to be 000000000000, the other parent of the commit, or an ancestor of it"},
		"merge of one":   {merge, 100, []int{parentCommit}, 90, "2 DRAFT 000000000000 is not the other of two parents"},
		"merge of three": {merge, 100, []int{1, 2, 9}, 90, "2 DRAFT 000000000000 is not the other of two parents"},
		"merge of another": {merge, 100, []int{parentCommit, 9}, 90,
			"2 DRAFT 000000000000 is not the other of two parents"},
		"commit not proven": {squash, 0, []int{parentCommit}, 90, "2 DRAFT the commit's object was unknown"},
		"parent not proven": {squash, 100, []int{parentCommit}, 0, "2 DRAFT the object of the parent, 000000000000,"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTimeline(t)
			l.promote(parentCommit)
			if l.prove(parentCommit, test.parent); test.parent == 0 {
				l.change("UPDATE commits SET tree = '' WHERE sha = ?", sha(parentCommit))
			}
			if l.prove(mergeCommit, test.tree, test.parents...); test.tree == 0 {
				l.change("UPDATE commits SET tree = '' WHERE sha = ?", sha(mergeCommit))
			}

			_, err := l.claim("bot", mergeCommit, mergeOf(test.kind))
			must.OK(t, err)
			claims := l.commit(mergeCommit).Merges
			if len(claims) != 1 {
				t.Fatalf("claims: %+v", claims)
			}
			c := claims[0]
			got := strings.TrimSpace(fmt.Sprint(strings.TrimLeft(c.Source, "0"), " ", c.ParentState, " ", c.Reason))
			if !strings.HasPrefix(got, test.want) || (c.Reason == "") != (c.ParentState != ledger.Draft) {
				t.Errorf("claim %q, want %q", got, test.want)
			}
			l.wantState(mergeCommit, ledger.Validating)
			l.wantState(sourceCommit, ledger.Draft) // it is registered
		})
	}
}

// A parent of another repo is none, whatever its state there.
func TestClaimNeedsParentInRepo(t *testing.T) {
	l := newTimeline(t)
	l.prove(mergeCommit, 100, parentCommit)
	l.squash("bot")
	if c := l.commit(mergeCommit).Merges[0]; c.ParentState != ledger.Draft ||
		!strings.Contains(c.Reason, "the object of the parent") {
		t.Errorf("claim: %+v", c)
	}
}

// The record of a claim has the state of the parent as it is now: evidence that has expired, or that a new policy does
// not accept, does not count.
func TestClaimHasPresentStateOfParent(t *testing.T) {
	t.Run("expiry", func(t *testing.T) {
		l := newTimeline(t)
		l.promote(parentCommit)
		l.prove(parentCommit, 90)
		l.prove(mergeCommit, 100, parentCommit)
		l.wall, l.monotonic = l.wall.Add(31*day), l.monotonic+31*day
		l.squash("bot")
		l.wantClaims("2 VALIDATING")
		l.wantState(parentCommit, ledger.Validating)

		l.promote(parentCommit)
		l.wantClaims("2 PROMOTABLE")
		l.pass(31 * day)
		l.wantState(parentCommit, ledger.Validating)
		l.wantClaims("2 VALIDATING")
	})

	t.Run("policy", func(t *testing.T) {
		l := newTimeline(t)
		l.promote(parentCommit)
		l.prove(parentCommit, 90)
		l.prove(mergeCommit, 100, parentCommit)
		contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"},
			{"state":"PROMOTABLE","predicate":"other:*"}]}`))
		must.OK(t, err)

		_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 2, "host")
		must.OK(t, err)
		l.squash("bot")
		l.wantClaims("2 ATTESTED")
	})
}

// An exception stands for one commit. A requirement that a parent meets only by it does not count.
func TestClaimIgnoresExceptionsOfParent(t *testing.T) {
	l := newTimeline(t)
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"name":"tests","state":"ATTESTED","predicate":"test:*","carry":["merge"],
		"carry_signers":["cn=bot"]}],"exceptions":{"signers":["cn=boss"],"max_duration":"1d"}}`))
	must.OK(t, err)
	_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 2, "host")
	must.OK(t, err)
	l.prove(parentCommit, 90)
	l.prove(mergeCommit, 100, parentCommit)

	dn := must.Get(identity.ParseDN("cn=boss,ou=x,o=acme"))(t)
	_, version, err := l.Keyring(t.Context(), "acme")
	must.OK(t, err)
	until := ledger.TimeOf(l.wall.Add(time.Hour))
	_, _, err = l.Record(t.Context(), "acme", "api", &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: "exception:tests", Result: ledger.Result{Status: ledger.Recorded}},
		Commit:  sha(parentCommit), PredicateType: attestation.ExceptionPredicateType,
		Exception: &attestation.Exception{Requirement: "tests", Reason: "INC-1", Until: until},
		Signer:    identity.Signer{DN: dn, Identity: "idn_boss", Key: sha256.Sum256([]byte("boss"))},
		Payload:   []byte("{}"), Envelope: []byte(`{"payload":"e30="}`),
	}, version)
	must.OK(t, err)

	l.wantState(parentCommit, ledger.Promotable)
	l.promote(sourceCommit)
	l.squash("bot")
	l.wantState(mergeCommit, ledger.Validating)
	l.promote(parentCommit)
	l.settle()
	l.wantState(mergeCommit, ledger.Promotable)
}

// Of each person the latest claim about a source counts, of either kind.
func TestLatestClaimCounts(t *testing.T) {
	l := newTimeline(t)
	l.prove(mergeCommit, 100, parentCommit)
	l.squash("bot")
	other := mergeOf(attestation.Squashed)
	other.Source.SHA = sha(9)
	_, err := l.claim("bot", mergeCommit, other)
	must.OK(t, err)
	l.promote(parentCommit)
	l.prove(parentCommit, 90)
	l.squash("eve")
	const unknown = "DRAFT the object of the parent, 000000000000, was unknown (register it, and claim again)"
	l.wantClaims("2 "+unknown, "9 "+unknown, "2 PROMOTABLE")

	l.squash("bot")
	l.wantClaims("9 "+unknown, "2 PROMOTABLE", "2 PROMOTABLE")
	_, err = l.claim("eve", mergeCommit, mergeOf(attestation.Merged)) // a false claim
	must.OK(t, err)
	l.wantClaims("9 "+unknown, "2 PROMOTABLE", "2 DRAFT 000000000000 is not the other of two parents of the commit")
}

// A commit has room for 16 claims, of which each can be replaced.
func TestClaimsAreBounded(t *testing.T) {
	l := newTimeline(t)
	l.prove(mergeCommit, 100, parentCommit)
	claim := func(signer string, source int) error {
		m := mergeOf(attestation.Squashed)
		m.Source.SHA = sha(source)
		_, err := l.claim(signer, mergeCommit, m)
		return err
	}
	for i := range ledger.MaxMergeClaims - 1 {
		must.OK(t, claim("bot", 10+i))
	}
	must.OK(t, claim("eve", 10))
	for name, err := range map[string]error{"another source": claim("bot", 50), "another person": claim("ann", 10)} {
		if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.CodeTooManyMerges {
			t.Errorf("%s: %v, want %s", name, err, ledger.CodeTooManyMerges)
		}
	}
	if _, err := l.Commit(t.Context(), "acme", "api", sha(50)); err == nil {
		t.Error("a refused claim has registered its source")
	}

	for range 20 {
		must.OK(t, claim("bot", 10))
		must.OK(t, claim("eve", 10))
	}
	c := l.commit(mergeCommit)
	if len(c.Merges) != ledger.MaxMergeClaims {
		t.Errorf("%d claims, want %d", len(c.Merges), ledger.MaxMergeClaims)
	}
	if last := c.Merges[ledger.MaxMergeClaims-1]; last.Source != sha(10) || last.Identity != "cn=eve,ou=queue,o=acme" {
		t.Errorf("the newest claim is %+v", last)
	}
}

// Nobody can use up the claims of a commit for those whose claims carry.
func TestClaimsHaveRoomForCarriers(t *testing.T) {
	l := newTimeline(t)
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"24h",
		"carry":["merge"],"carry_signers":["cn=bot,ou=queue,o=acme"]}]}`))
	must.OK(t, err)
	before, err := l.Policy(t.Context(), "acme", "api", 0)
	must.OK(t, err)
	_, err = l.SetPolicy(t.Context(), "acme", "api", contract, before.Version, "host")
	must.OK(t, err)
	l.prove(mergeCommit, 100, parentCommit)
	claim := func(signer string, source int) error {
		m := mergeOf(attestation.Squashed)
		m.Source.SHA = sha(source)
		_, err := l.claim(signer, mergeCommit, m)
		return err
	}
	wantFull := func(who string, err error) {
		t.Helper()
		if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.CodeTooManyMerges {
			t.Errorf("%s: %v, want %s", who, err, ledger.CodeTooManyMerges)
		}
	}

	must.OK(t, claim("eve", 10))
	must.OK(t, claim("bot", 11))
	for i := range ledger.MaxMergeClaims - 2 {
		must.OK(t, claim("eve", 20+i))
	}
	wantFull("somebody whose claims do not carry", claim("ann", 10))
	must.OK(t, claim("bot", 12))
	c := l.commit(mergeCommit)
	if first := c.Merges[0]; len(c.Merges) != ledger.MaxMergeClaims || first.Source != sha(11) {
		t.Errorf("%d claims, the first of %s; want %d without the oldest that does not carry", len(c.Merges), first.Source,
			ledger.MaxMergeClaims)
	}

	for i := range ledger.MaxMergeClaims - 2 {
		must.OK(t, claim("bot", 40+i))
	}
	wantFull("somebody whose claims carry, as do all others", claim("bot", 90))
}

// What somebody signed with a compromised key does not count from then on.
func TestDistrustedClaimDoesNotCount(t *testing.T) {
	l := newTimeline(t)
	l.prove(mergeCommit, 100, parentCommit)
	l.squash("bot")
	l.change("INSERT INTO identities (identity_id, org_id, kind, dn, email, pem, fingerprint, not_after, created_at, "+
		"revoked_at, distrusted_since) VALUES ('idn_bot', 1, 'key', 'cn=bot', '', '', 'x', 0, 1, 2, ?)",
		l.wall.Add(time.Second).UnixMilli())
	if n := len(l.commit(mergeCommit).Merges); n != 1 {
		t.Errorf("%d claims from before, want 1", n)
	}
	l.pass(time.Second)
	l.squash("bot")
	if n := len(l.commit(mergeCommit).Merges); n != 0 {
		t.Errorf("%d claims from then on, want 0", n)
	}
}

// Commits know that they are merges, sources, or of the mainline, by claims.
func TestClaimsMarkCommits(t *testing.T) {
	l := newTimeline(t)
	l.prove(mergeCommit, 100, parentCommit)
	l.squash("bot")
	l.squash("eve")
	m := mergeOf(attestation.Squashed)
	m.Source.SHA, m.Parent.SHA = sha(mergeCommit), sha(9)
	_, err := l.claim("bot", 8, m) // the merge is merged, too
	must.OK(t, err)

	db := must.Get(sql.Open("sqlite", "file:"+l.path))(t)
	defer db.Close()
	for commit, want := range map[int]string{parentCommit: "4 1", sourceCommit: "2 1", mergeCommit: "3 1", 8: "1 0",
		9: "4 1"} {
		var got string
		err := db.QueryRow(`SELECT merged || ' ' || (SELECT count(*) FROM merge_sides WHERE commit_id = c.id)
			FROM commits c WHERE sha = ?`, sha(commit)).Scan(&got)
		if err != nil || got != want {
			t.Errorf("commit %d: %s (%v), want %s", commit, got, err, want)
		}
	}
}

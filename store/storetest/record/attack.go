package record

import (
	"crypto/ed25519"
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// An attack has a mainline m0, m1, which Rita has reviewed, and Tom's branch t1, t2 from m0, which she has reviewed,
// too. All its commits are known.
type attack struct {
	*graph
	ci, rita, sue, mainline *storetest.Signer
}

func (s suite) newAttack(t *testing.T) *attack {
	t.Helper()
	g, ci, rita, mainline := s.newUpdate(t)
	g.send("t1")
	g.review(rita, "m1", "m0")
	return &attack{g, ci, rita, g.NewSigner("cn=sue,ou=dev,o=acme"), mainline}
}

// add makes a commit on others that is registered and tested.
func (a *attack) add(name, author string, parents ...string) {
	a.T.Helper()
	a.commit(name, author, parents...)
	a.register(name)
	a.ci.Attest(a.ids[name], "test:go", ledger.Pass)
}

// reject has a signer reject a commit.
func (a *attack) reject(by *storetest.Signer, name string) {
	a.T.Helper()
	by.Attest(a.ids[name], "review:code", ledger.Fail)
}

// Each of these tries to get a commit through that nobody has reviewed. Where that is possible, the same works in the
// right way, so that nothing else keeps it back.
func (s suite) TestAttacksOnCleanMerges(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, a *attack){
		"a branch is squashed onto a commit that nobody has reviewed": func(_ *testing.T, a *attack) {
			a.add("p", "Tom", "m1")
			a.add("squash", "Max", "p")
			a.claim(a.mainline, attestation.Squashed, "squash", "t2", "p")
			a.want("on Tom's commit", "squash", ledger.Attested)
			a.review(a.rita, "p", "m1")
			a.want("once that is reviewed", "squash", ledger.Promotable)
		},

		"a branch that is built on a later commit is squashed onto an earlier one": func(_ *testing.T, a *attack) {
			a.add("p", "Tom", "m1")
			a.add("t", "Tom", "p")
			a.add("early", "Max", "m1")
			a.add("late", "Max", "p")
			a.review(a.rita, "p", "m1") // which does not help: only its own claim brings it along
			a.review(a.rita, "t", "p")
			a.claim(a.mainline, attestation.Squashed, "early", "t", "m1")
			a.claim(a.mainline, attestation.Squashed, "late", "t", "p")
			a.want("onto its base", "late", ledger.Promotable)
			a.want("onto a commit before", "early", ledger.Attested)
		},

		"a pull request is retargeted after its review": func(_ *testing.T, a *attack) {
			a.add("release", "Tom", "m0")
			a.review(a.rita, "release", "m0")
			a.add("fix", "Tom", "release")
			a.review(a.rita, "fix", "release")
			a.add("squash", "Max", "m1")
			a.claim(a.mainline, attestation.Squashed, "squash", "fix", "m1")
			a.want("reviewed for a release", "squash", ledger.Attested)
			a.review(a.rita, "fix", "m0")
			a.want("reviewed again", "squash", ledger.Promotable)
		},

		"somebody claims and reviews what they have smuggled into a merge": func(_ *testing.T, a *attack) {
			a.add("evil", "Sue", "t2", "m1")
			a.claim(a.sue, attestation.Updated, "evil", "t2", "m1")
			a.review(a.sue, "t2", "m0")
			a.review(a.sue, "evil", "m1")
			a.want("by the word of who has pressed the button", "evil", ledger.Attested)
			a.claim(a.mainline, attestation.Updated, "evil", "t2", "m1")
			a.want("by the word of the mainline", "evil", ledger.Promotable)
		},

		"a key of tests claims an evil merge": func(t *testing.T, a *attack) {
			for n, may := range []identity.Predicates{{"*"}, nil} {
				by := a.newSigner(fmt.Sprintf("cn=tests%d,ou=build,o=acme", n), may)
				payload, err := attestation.NewMergeStatement(a.ids["u"], attestation.Merge{
					Repo: "acme/api", Kind: attestation.Updated, Source: attestation.MergedCommit{SHA: a.ids["t2"]},
					Parent: attestation.MergedCommit{SHA: a.ids["m1"]}, Tree: a.tree("u"),
				})
				must.OK(t, err)
				_, _, err = by.Send(payload)
				storetest.WantCode(t, err, ledger.CodePredicateNotAllowed)
			}
			a.claim(a.ci, attestation.Updated, "u", "t2", "m1")
			a.want("by a key that may claim, but not for the mainline", "u", ledger.Attested)
		},

		"an ancestor does harm that its child removes": func(_ *testing.T, a *attack) {
			a.add("harm", "Tom", "m1")
			a.add("undone", "Tom", "harm")
			a.review(a.rita, "undone", "harm")
			a.want("the child", "undone", ledger.Promotable)
			a.add("merge", "Max", "t2", "harm")
			a.claim(a.mainline, attestation.Updated, "merge", "t2", "harm")
			a.want("merged with the harm", "merge", ledger.Attested)
			a.add("squash", "Max", "harm")
			a.claim(a.mainline, attestation.Squashed, "squash", "t2", "harm")
			a.want("squashed onto the harm", "squash", ledger.Attested)
			a.add("rebase", "Tom", "undone")
			a.claim(a.mainline, attestation.Rebased, "rebase", "t2", "harm")
			a.want("rebased onto the harm", "rebase", ledger.Attested)
			a.claim(a.mainline, attestation.Rebased, "rebase", "t2", "undone")
			a.want("rebased onto the child", "rebase", ledger.Promotable)
		},

		"an entry of a queue fails after the next ones were built on it": func(_ *testing.T, a *attack) {
			for _, name := range []string{"a", "b", "c"} {
				a.add(name, "Tom", "m0")
				a.review(a.rita, name, "m0")
			}
			for _, entry := range [][3]string{{"qa", "a", "m1"}, {"qb", "b", "qa"}, {"qc", "c", "qb"}, {"alone", "c", "m1"}} {
				a.add(entry[0], "Max", entry[2])
				a.claim(a.mainline, attestation.Squashed, entry[0], entry[1], entry[2])
			}
			a.want("at first", "qc", ledger.Promotable)
			a.reject(a.sue, "a")
			for _, name := range []string{"qa", "qb", "qc"} {
				a.want("after the rejection of the first entry", name, ledger.Attested)
			}
			a.want("the same entry without the first one", "alone", ledger.Promotable)
		},

		"a reviewer has written the squash": func(_ *testing.T, a *attack) {
			a.add("squash", "Rita", "m1")
			a.claim(a.mainline, attestation.Squashed, "squash", "t2", "m1")
			a.want("by Rita, who has reviewed its source", "squash", ledger.Attested)
			a.review(a.sue, "t2", "m0")
			a.want("once Sue has", "squash", ledger.Promotable)
		},

		"a branch is updated twice": func(_ *testing.T, a *attack) {
			a.claim(a.mainline, attestation.Updated, "u", "t2", "m1")
			a.want("after the first update", "u", ledger.Promotable)
			a.add("m2", "Max", "m1")
			a.review(a.rita, "m2", "m1")
			a.add("u2", "Max", "u", "m2")
			a.claim(a.mainline, attestation.Updated, "u2", "u", "m2")
			a.want("by a review two updates before", "u2", ledger.Attested)
			tom := a.NewSigner("cn=tom,ou=dev,o=acme")
			a.review(tom, "u", "m1")
			a.want("by the review of who wrote a commit before the first update", "u2", ledger.Attested)
			a.review(a.rita, "u", "m1")
			a.want("by a review of the update before", "u2", ledger.Promotable)
		},

		"a review is replaced by one without a base, under another name": func(t *testing.T, a *attack) {
			a.claim(a.mainline, attestation.Updated, "u", "t2", "m1")
			a.want("at first", "u", ledger.Promotable)
			const name = "cn=rita,ou=admin,o=acme"
			must.OK(t, a.RevokeIdentity(t.Context(), "acme", a.IdentityOf(a.rita.DN).ID))
			a.want("after her old key was revoked", "u", ledger.Promotable)
			a.trust(a.rita.Key, name, nil)
			a.review(a.SignerOf(a.rita.Key, name), "t2", "")
			a.want("after Rita has reviewed it again", "u", ledger.Attested)
		},

		"claims crowd out the right one": func(_ *testing.T, a *attack) {
			for n := range ledger.MaxMergeClaims {
				name := fmt.Sprint("other", n)
				a.commit(name, "Tom", "m0")
				a.claim(a.sue, attestation.Updated, "u", name, "m1")
			}
			a.claim(a.mainline, attestation.Updated, "u", "t2", "m1")
			a.want("by the claim of the mainline", "u", ledger.Promotable)
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, s.newAttack(t)) })
	}
}

// newSigner makes acme trust a new key, which may sign for some predicates.
func (a *attack) newSigner(dn string, may identity.Predicates) *storetest.Signer {
	a.T.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must.OK(a.T, err)
	a.trust(key, dn, may)
	return a.SignerOf(key, dn)
}

// trust makes acme trust a key, which may have another name already.
func (a *attack) trust(key ed25519.PrivateKey, dn string, may identity.Predicates) {
	a.T.Helper()
	n := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: must.PublicPEM(a.T, key.Public()), DN: dn, May: may}
	_, err := a.AddIdentity(a.T.Context(), "acme", must.Get(n.Identity())(a.T))
	must.OK(a.T, err)
}

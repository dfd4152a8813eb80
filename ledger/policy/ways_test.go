package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

const mergedReviews = `{"requirements":[
	{"name":"tests","state":"ATTESTED","predicate":"test:*","carry":["merge"],"carry_signers":["cn=queue"]},
	{"name":"review","state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"covers":"change",
		"carry":["merge"],"carry_signers":["cn=queue"]}]}`

// named returns who has one name.
func named(name string) *authors.Authorship {
	return &authors.Authorship{Authors: []ledger.Author{{Name: name}}, Proven: true}
}

// updated returns the facts of a commit with which Rita has brought the mainline to a branch. Bob wrote the branch, its
// tests passed, and Sue has reviewed it from a base that is on the mainline. The mainline meets everything.
func updated(t *testing.T, c *Contract) *Facts {
	t.Helper()
	tests, review := signed("cn=ci", "test:go", ledger.Pass), signed("cn=sue", "review:code", ledger.Pass)
	review.Base, tests.Source, review.Source = "base", 1, 1
	tests.Attestation, review.Attestation = "att_1", "att_2"
	met := Met{c.Requirements[0].key(): forever, c.Requirements[1].key(): forever}
	claim := MergeClaim{Attestation: "att_3", Kind: "update", Signer: must.Get(identity.ParseDN("cn=queue"))(t),
		Side: &Side{
			Commit: strings.Repeat("b", 40), Met: met, Bases: map[string]bool{"base": true},
		}}
	return &Facts{
		Attested: true, Proven: true, Authors: named("rita").Authors, RegisteredAt: 1, Carried: []Evidence{tests, review},
		Sources: []Source{{
			Commit: strings.Repeat("a", 40), Authorship: *named("bob"), Claims: []MergeClaim{claim},
			Spans: map[string]*authors.Authorship{"base": named("bob")},
		}},
	}
}

// A clean merge takes over the evidence of its source, and nothing else does.
func TestEvidenceCarriesToACleanMerge(t *testing.T) {
	var c Contract
	claim := func(f *Facts) *MergeClaim { return &f.Sources[0].Claims[0] }
	signer := func(dn string) identity.DN { return must.Get(identity.ParseDN(dn))(t) }
	for name, test := range map[string]struct {
		change func(*Facts)
		want   ledger.State
	}{
		"everything holds": {func(*Facts) {}, ledger.Promotable},
		"the review has no base": {func(f *Facts) {
			f.Carried[1].Base = ""
		}, ledger.Attested},
		"the base is not on the mainline": {func(f *Facts) {
			claim(f).Side.Bases["base"] = false
		}, ledger.Attested},
		"a commit between is not known": {func(f *Facts) {
			f.Sources[0].Spans = nil
		}, ledger.Attested},
		"the mainline is not reviewed": {func(f *Facts) {
			delete(claim(f).Side.Met, c.Requirements[1].key())
		}, ledger.Attested},
		"the mainline was not tested": {func(f *Facts) {
			delete(claim(f).Side.Met, c.Requirements[0].key())
		}, ledger.Validating},
		"the evidence of the mainline had expired": {func(f *Facts) {
			claim(f).Side.Met[c.Requirements[1].key()] = f.RegisteredAt
		}, ledger.Attested},
		"the evidence of the mainline expires later": {func(f *Facts) {
			claim(f).Side.Met[c.Requirements[1].key()] = f.RegisteredAt + 1
		}, ledger.Promotable},
		"the claim does not agree with the objects": {func(f *Facts) {
			claim(f).Side.Refused = "another tree"
		}, ledger.Validating},
		"the claim is by somebody": {func(f *Facts) {
			claim(f).Signer = signer("cn=mallory")
		}, ledger.Validating},
		"the reviewer wrote a commit between": {func(f *Facts) {
			f.Sources[0].Spans["base"].Authors = []ledger.Author{{Name: "bob"}, {Name: "sue"}}
		}, ledger.Attested},
		"the reviewer has pressed the button": {func(f *Facts) {
			f.Authors = named("sue").Authors
		}, ledger.Promotable},
		"the reviewer is a co-author of the squash": {func(f *Facts) {
			claim(f).Side.Wrote = named("sue")
		}, ledger.Attested},
		"nobody knows who wrote the squash": {func(f *Facts) {
			claim(f).Side.Wrote = &authors.Authorship{Proven: true}
		}, ledger.Attested},
		"a rejection without a base, where rejections count": {func(f *Facts) {
			c.Requirements[1].Accept = []ledger.Status{ledger.Fail}
			met := claim(f).Side.Met
			met[c.Requirements[1].key()] = forever
			f.Carried[1].Base, f.Carried[1].Status = "", ledger.Fail
		}, ledger.Attested},
		"a distrusted review without a base may hide a rejection": {func(f *Facts) {
			e := signed("cn=ann", "review:code", ledger.Pass)
			e.Source, e.Distrusted = 1, true
			f.Carried = append(f.Carried, e)
		}, ledger.Attested},
		"the presser's own claim comes first": {func(f *Facts) {
			own := *claim(f)
			own.Signer, f.Authors = signer("cn=sue"), named("sue").Authors
			f.Sources[0].Claims = []MergeClaim{own, *claim(f)}
		}, ledger.Promotable},
		"a claim of an early release comes first, and the reviewer has pressed the button": {func(f *Facts) {
			early := *claim(f)
			early.Side, early.ParentState, f.Authors = nil, ledger.Promotable, named("sue").Authors
			f.Sources[0].Claims = []MergeClaim{early, *claim(f)}
		}, ledger.Promotable},
		"the tree is the same, and the reviewer has pressed the button": {func(f *Facts) {
			c.Requirements[1].Carry |= CarryTree
			claim(f).Side.Met[c.Requirements[1].key()] = forever
			f.Sources[0].SameTree, f.Authors = true, named("sue").Authors
		}, ledger.Promotable},
		"a review of another source, which its reviewer has replaced there, replaces no rejection": {func(f *Facts) {
			reject, pass := signed("cn=ann", "review:code", ledger.Fail), signed("cn=ann", "review:code", ledger.Pass)
			again := pass
			reject.Source, pass.Source, again.Source = 1, 2, 2
			reject.Attestation, pass.Attestation, again.Attestation, pass.Base = "att_4", "att_5", "att_6", "base"
			f.Carried = append(f.Carried, reject, pass, again)
			f.Sources = append(f.Sources, f.Sources[0])
		}, ledger.Attested},
		"another person's review without a base failed": {func(f *Facts) {
			e := signed("cn=ann", "review:code", ledger.Fail)
			e.Source = 1
			f.Carried = append(f.Carried, e)
		}, ledger.Attested},
		"the reviewer has reviewed it again without a base": {func(f *Facts) {
			e := signed("cn=sue", "review:code", ledger.Pass)
			e.Source, e.Attestation = 1, "att_4"
			f.Carried = append(f.Carried, e)
		}, ledger.Attested},
		"the claim is of an early release": {func(f *Facts) {
			claim(f).Side, claim(f).ParentState, f.Carried[1].Base = nil, ledger.Promotable, ""
		}, ledger.Promotable},
		"the claim is of an early release, and the parent was not reviewed": {func(f *Facts) {
			claim(f).Side, claim(f).ParentState, f.Carried[1].Base = nil, ledger.Attested, ""
		}, ledger.Attested},
		"the presser reviews it": {func(f *Facts) {
			e := signed("cn=rita", "review:code", ledger.Pass)
			f.Carried, f.Evidence = f.Carried[:1], []Evidence{e}
		}, ledger.Attested},
		"the reviewer claims it": {func(f *Facts) {
			own := *claim(f)
			own.Signer = signer("cn=sue")
			f.Sources[0].Claims = append(f.Sources[0].Claims, own)
			claim(f).Side.Bases = nil
			own.Side = &Side{Commit: own.Side.Commit, Met: own.Side.Met, Bases: map[string]bool{"base": true}}
			f.Sources[0].Claims[1] = own
		}, ledger.Promotable},
		"the reviewer claims a squash of which they are a co-author": {func(f *Facts) {
			own := *claim(f)
			own.Signer = signer("cn=sue")
			own.Side = &Side{Commit: own.Side.Commit, Met: own.Side.Met, Bases: map[string]bool{"base": true},
				Wrote: named("sue")}
			f.Sources[0].Claims = []MergeClaim{own}
		}, ledger.Validating},
		"the reviewer claims what they have merged": {func(f *Facts) {
			own := *claim(f)
			own.Signer = signer("cn=sue")
			own.Side = &Side{Commit: own.Side.Commit, Met: own.Side.Met, Bases: map[string]bool{"base": true}}
			claim(f).Side.Bases = nil
			f.Sources[0].Claims = append(f.Sources[0].Claims, own)
			f.Authors = named("sue").Authors
		}, ledger.Attested},
		"the presser reviews it, and the claim does not count": {func(f *Facts) {
			e := signed("cn=rita", "review:code", ledger.Pass)
			f.Carried, f.Evidence, claim(f).Side.Refused = f.Carried[:1], []Evidence{e}, "another tree"
			f.Evidence = append(f.Evidence, signed("cn=ci", "test:go", ledger.Pass))
		}, ledger.Attested},
		"who wrote an inner commit reviews it": {func(f *Facts) {
			e := signed("cn=sue", "review:code", ledger.Pass)
			e.Base, f.Spans = "base", map[string]*authors.Authorship{"base": named("sue")}
			f.Carried, f.Evidence = f.Carried[:1], []Evidence{e}
		}, ledger.Attested},
	} {
		t.Run(name, func(t *testing.T) {
			c = must.Get(Parse([]byte(mergedReviews)))(t)
			f := updated(t, &c)
			test.change(f)
			if d := c.Derive(*f, 2); d.State != test.want {
				t.Errorf("%s, want %s: %s; %s", d.State, test.want, d.Requirements[0].Reason, d.Requirements[1].Reason)
			}
		})
	}
}

// A claim has the commit of the mainline as its base, and is still no review of the commits since then.
func TestAClaimOfAMergeIsNoReview(t *testing.T) {
	c := must.Get(Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"merge:*","exclude_author":true}]}`)))(t)
	claim := signed("cn=sue", "merge:update", ledger.Pass)
	claim.Base = "base"
	f := Facts{Attested: true, Proven: true, Authors: named("rita").Authors, Evidence: []Evidence{claim},
		Spans: map[string]*authors.Authorship{"base": named("sue")}}
	if d := c.Derive(f, policyNow); !d.Requirements[0].Met {
		t.Errorf("the claim does not count: %s", d.Requirements[0].Reason)
	}
}

// Somebody who is not in carry_signers, and claims a merge, may vouch for it with their own review, which says as much.
func TestAPersonsClaimCarriesTheirOwnReviews(t *testing.T) {
	c := must.Get(Parse([]byte(mergedReviews)))(t)
	f := updated(t, &c)
	f.Evidence = []Evidence{signed("cn=ci", "test:go", ledger.Pass)}
	f.Sources[0].Claims[0].Signer = must.Get(identity.ParseDN("cn=sue"))(t)
	if d := c.Derive(*f, 2); d.State != ledger.Promotable || len(d.Requirements[1].Carried) != 1 {
		t.Errorf("by Sue: %s, %s", d.State, d.Requirements[1].Reason)
	}
	f.Sources[0].Claims[0].Signer = must.Get(identity.ParseDN("cn=rita"))(t)
	if d := c.Derive(*f, 2); d.State != ledger.Attested {
		t.Errorf("by Rita: %s, %s", d.State, d.Requirements[1].Reason)
	}
}

// What a commit meets says until when, whatever the time is.
func TestMet(t *testing.T) {
	c := must.Get(Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","max_age":"10s","threshold":2},
		{"state":"ATTESTED","predicate":"lint:*"},
		{"state":"ATTESTED","predicate":"sbom:*"},
		{"state":"PROMOTABLE","predicate":"review:*","branches":["release/*"]}]}`)))(t)

	at := func(dn, predicate string, at ledger.Time) Evidence {
		e := signed(dn, predicate, ledger.Pass)
		e.RecordedAt = at
		return e
	}
	met := c.Met(Facts{Attested: true, Targets: []string{"main"}, Evidence: []Evidence{
		at("cn=a", "test:go", 1000), at("cn=b", "test:go", 2000), at("cn=c", "test:go", 3000), at("cn=a", "lint:go", 5),
	}})
	want := Met{c.Requirements[0].key(): 12_000, c.Requirements[1].key(): forever, c.Requirements[3].key(): forever}
	if len(met) != len(want) {
		t.Errorf("%v, want %v", met, want)
	}
	for key, until := range want {
		if met[key] != until {
			t.Errorf("%s is met until %d, want %d", key, met[key], until)
		}
	}

	// The reviewer must differ from the tester, so a commit without tests has no reviewer.
	c = must.Get(Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"10s"},
		{"state":"PROMOTABLE","predicate":"review:*","distinct_from":["ATTESTED"]}]}`)))(t)
	met = c.Met(Facts{Attested: true, Evidence: []Evidence{at("cn=a", "test:go", 1000), at("cn=b", "review:code", 1000)}})
	if until := met[c.Requirements[1].key()]; until != 11_000 {
		t.Errorf("the review counts until %d, want 11000", until)
	}

	decoded, err := DecodeMet(met.Encode())
	must.OK(t, err)
	if decoded.Encode() != met.Encode() {
		t.Errorf("decoded %v, want %v", decoded, met)
	}
}

// TestMetOfMuchEvidence checks that the end is exact for many times, of several requirements, and never too late.
func TestMetOfMuchEvidence(t *testing.T) {
	const signers, requirements = 300, 50
	var f Facts
	for n := range signers {
		e := signed(fmt.Sprintf("cn=s%03d", n), "test:go", ledger.Pass)
		e.RecordedAt = ledger.Time(1000 * n)
		f.Evidence = append(f.Evidence, e)
	}
	f.Attested = true
	var list []string
	for n := range requirements {
		list = append(list, fmt.Sprintf(`{"state":"ATTESTED","predicate":"test:*","max_age":"10s","threshold":%d}`, 1+2*n))
	}

	c := mustParse(t, list...)
	met, exact := c.Met(f), 0
	for n, r := range c.Requirements {
		// It is met until the evidence is too old by those who signed last.
		until, end := met[r.key()], ledger.Time(1000*(signers-1-2*n)+10_000)
		if until > end || until <= 0 {
			t.Errorf("%d signers are met until %d, want at most %d", r.Threshold, until, end)
		}
		if until == end {
			exact++
		}
	}
	if exact < 4 {
		t.Errorf("%d ends are exact", exact)
	}
}

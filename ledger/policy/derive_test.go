package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// policyNow is the current time in the tests of this package.
const policyNow = ledger.Time(1795424400000)

const hour = ledger.Time(3600 * 1000)

// attested returns the facts of a commit with the given evidence and target main.
func attested(evidence ...Evidence) Facts {
	return Facts{
		Authors: []ledger.Author{{Name: "Alice", Email: "alice@acme.org"}}, KnownAuthors: []string{"alice"},
		Targets: []string{"main"}, Target: "main", Evidence: evidence, Attested: true,
	}
}

// signed returns evidence recorded an hour ago, while the commit was PROMOTABLE.
func signed(dn, predicate string, s ledger.Status) Evidence {
	d, err := identity.ParseDN(dn)
	if err != nil {
		panic(err)
	}
	return Evidence{Predicate: predicate, Signer: d, Status: s, RecordedAt: policyNow - hour, WhilePromotable: true}
}

func (e Evidence) ago(t ledger.Time) Evidence { e.RecordedAt = policyNow - t; return e }
func (e Evidence) early() Evidence            { e.WhilePromotable = false; return e }
func (e Evidence) confirmed() Evidence        { e.Passkey = true; return e }
func (e Evidence) as(id string) Evidence      { e.Attestation = id; return e }
func (e Evidence) mail(addresses ...string) Evidence {
	e.Emails = addresses
	return e
}

const (
	ci    = "cn=ci,ou=build,o=acme"
	ci2   = "cn=ci2,ou=build,o=acme"
	alice = "cn=alice,ou=dev,o=acme"
	bob   = "cn=bob,ou=dev,o=acme"
	carol = "cn=carol,ou=dev,o=acme"

	ops = "cn=ops,ou=platform,o=acme"
)

func mustParse(t testing.TB, requirements ...string) Contract {
	t.Helper()
	c, err := Parse([]byte(`{"requirements":[` + strings.Join(requirements, ",") + `]}`))
	must.OK(t, err)
	return c
}

// signChanges adds a change record to the facts.
func signChanges(f *Facts, paths ...string) {
	f.Evidence = append(slices.Clip(f.Evidence), Evidence{Attestation: "att_changes", Predicate: ledger.ChangesPredicate,
		PredicateType: ledger.ChangesType, Slot: "m0", Base: "m0", Paths: paths, Status: ledger.Recorded,
		Signer: identity.DN{CN: "mainline"}})
}

func TestRequirement(t *testing.T) {
	type verdict struct {
		applies, met bool
		have         int
		reason       string
	}
	met := func(have int, reason string) verdict { return verdict{true, true, have, reason} }
	unmet := func(have int, reason string) verdict { return verdict{true, false, have, reason} }
	excluded := func(reason string) verdict { return verdict{reason: "does not apply: " + reason} }

	changed := func(f Facts, paths ...string) Facts { signChanges(&f, paths...); return f }
	targeting := func(f Facts, branches ...string) Facts { f.Targets = branches; return f }
	by := func(f Facts, name, email string) Facts {
		f.Authors = []ledger.Author{{Name: name, Email: email}}
		return f
	}

	const (
		unknown = "the commit's author is unknown (to register it, run ledgerd commit register, " +
			"or ledgerd attest in a work tree)"
		tests     = `{"state":"ATTESTED","predicate":"test:*"`
		reviews   = `{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true`
		deploys   = `{"state":"DEPLOYED","predicate":"deploy:prod"`
		confirmed = `{"state":"PROMOTABLE","predicate":"review:*","passkey":true`
		noPasskey = "review:*: 0 of 1 signatures confirmed by a passkey; "
		payments  = `{"state":"ATTESTED","predicate":"test:payments","paths":["services/payments/**","*.sql"]}`
		releases  = `{"state":"ATTESTED","predicate":"test:*","branches":["main","release/*"]}`
	)
	for name, test := range map[string]struct {
		requirement string
		facts       Facts
		want        verdict
	}{
		// Predicates.
		"a prefix":        {tests + `}`, attested(signed(ci, "test:go", ledger.Pass)), met(1, "met by "+ci)},
		"only the prefix": {tests + `}`, attested(signed(ci, "test:", ledger.Pass)), met(1, "met by "+ci)},
		"an exact predicate": {deploys + `}`, attested(signed(ops, "deploy:prod", ledger.Pass)),
			met(1, "met by "+ops)},
		"longer than the exact predicate": {deploys + `}`, attested(signed(ops, "deploy:production", ledger.Pass)),
			unmet(0, "deploy:prod: 0 of 1 signatures")},
		"another case": {tests + `}`, attested(signed(ci, "Test:go", ledger.Pass)), unmet(0, "test:*: 0 of 1 signatures")},
		"any predicate": {`{"state":"ATTESTED","predicate":"*"}`,
			attested(signed(ci, "https://slsa.dev/provenance/v1", ledger.Pass)), met(1, "met by "+ci)},
		"no evidence": {tests + `}`, attested(), unmet(0, "test:*: 0 of 1 signatures")},

		// Signers.
		"a matching signer": {tests + `,"signers":["cn=*,ou=build,o=acme"]}`,
			attested(signed(ci, "test:go", ledger.Pass)), met(1, "met by "+ci)},
		"another signer": {tests + `,"signers":["cn=*,ou=build,o=acme"]}`,
			attested(signed(bob, "test:go", ledger.Pass)), unmet(0, "test:*: 0 of 1 signatures matching cn=*,ou=build,o=acme")},
		"a signer who matches the second pattern": {tests + `,"signers":["ou=build","ou=platform"]}`,
			attested(signed(ops, "test:go", ledger.Pass)), met(1, "met by "+ops)},
		"a signer who matches neither pattern": {tests + `,"signers":["ou=build","ou=platform"]}`,
			attested(signed(bob, "test:go", ledger.Pass)),
			unmet(0, "test:*: 0 of 1 signatures matching ou=build or ou=platform")},
		"the fail of one whose pass would not count": {tests + `,"signers":["ou=build"]}`,
			attested(signed(ci, "test:go", ledger.Pass), signed(bob, "test:go", ledger.Fail)),
			unmet(1, "test:go failed ("+bob+")")},

		// Thresholds.
		"two of two": {tests + `,"threshold":2}`,
			attested(signed(ci2, "test:go", ledger.Pass), signed(ci, "test:go", ledger.Pass)), met(2, "met by "+ci+" and "+ci2)},
		"one of two": {tests + `,"threshold":2}`, attested(signed(ci, "test:go", ledger.Pass)),
			unmet(1, "test:*: 1 of 2 signatures ("+ci+")")},
		"the same signer twice": {tests + `,"threshold":2}`, attested(signed(ci, "test:go", ledger.Pass),
			signed(ci, "test:js", ledger.Pass)), unmet(1, "test:*: 1 of 2 signatures ("+ci+")")},
		"five of one, some listed": {
			tests + `}`, attested(signed(ci, "test:go", ledger.Pass), signed(ops, "test:go", ledger.Pass),
				signed(alice, "test:go", ledger.Pass), signed(bob, "test:go", ledger.Pass), signed(ci2, "test:go", ledger.Pass)),
			met(5, "met by "+alice+" and "+bob+" and "+ci+" and 2 more")},
		"two signers who differ in o": {tests + `,"threshold":2}`, attested(signed("cn=ci", "test:go", ledger.Pass),
			signed("cn=ci,o=acme", "test:go", ledger.Pass)), met(2, "met by cn=ci and cn=ci,o=acme")},
		"two signers who differ in case": {tests + `,"threshold":2}`, attested(signed("cn=ci", "test:go", ledger.Pass),
			signed("cn=CI", "test:go", ledger.Pass)), met(2, "met by cn=CI and cn=ci")},

		// Statuses.
		"a fail": {tests + `}`, attested(signed(ci, "test:go", ledger.Fail)),
			unmet(0, "test:go failed ("+ci+")")},
		"an error": {tests + `}`, attested(signed(ci, "test:go", ledger.Errored)),
			unmet(0, "test:go errored ("+ci+")")},
		"a fail and another signer's pass": {
			tests + `}`, attested(signed(ci, "test:go", ledger.Pass), signed(ci2, "test:go", ledger.Fail)),
			unmet(1, "test:go failed ("+ci2+")")},
		"a fail and the same signer's pass": {
			tests + `}`, attested(signed(ci, "test:go", ledger.Pass), signed(ci, "test:js", ledger.Fail)),
			unmet(1, "test:js failed ("+ci+")")},
		"two fails": {
			tests + `}`, attested(signed(ci2, "test:go", ledger.Fail), signed(ci, "test:go", ledger.Errored)),
			unmet(0, "test:go errored ("+ci+") and test:go failed ("+ci2+")")},
		"an accepted fail": {tests + `,"accept":["fail"]}`, attested(signed(ci, "test:go", ledger.Fail)),
			met(1, "met by "+ci)},
		"an error, fail accepted": {tests + `,"accept":["pass","fail"]}`, attested(signed(ci, "test:go", ledger.Errored)),
			unmet(0, "test:go errored ("+ci+")")},
		"a skip": {tests + `}`, attested(signed(ci, "test:go", ledger.Skip)),
			unmet(0, "test:*: 0 of 1 signatures; status not accepted: test:go skipped ("+ci+")")},
		"a skip and another signer's pass": {
			tests + `}`, attested(signed(ci, "test:go", ledger.Skip), signed(ci2, "test:go", ledger.Pass)),
			met(1, "met by "+ci2)},
		"an accepted warning": {tests + `,"accept":["pass","warn"]}`, attested(signed(ci, "test:go", ledger.Warn)),
			met(1, "met by "+ci)},
		"a pass, if only warn is accepted": {tests + `,"accept":["warn"]}`, attested(signed(ci, "test:go", ledger.Pass)),
			unmet(0, "test:*: 0 of 1 signatures; status not accepted: test:go passed ("+ci+")")},

		// Ages.
		"young enough": {tests + `,"max_age":"2h"}`, attested(signed(ci, "test:go", ledger.Pass).ago(2*hour - 1)),
			met(1, "met by "+ci)},
		"exactly too old": {tests + `,"max_age":"2h"}`, attested(signed(ci, "test:go", ledger.Pass).ago(2 * hour)),
			unmet(0, "test:*: 0 of 1 signatures; expired: test:go passed ("+ci+")")},
		"an old fail": {tests + `,"max_age":"2h"}`, attested(signed(ci, "test:go", ledger.Fail).ago(5*hour),
			signed(ci2, "test:go", ledger.Pass)), unmet(1, "test:go failed ("+ci+")")},
		"old, without max_age": {tests + `}`, attested(signed(ci, "test:go", ledger.Pass).ago(400000 * hour)),
			met(1, "met by "+ci)},

		// The author.
		"the author by name": {reviews + `}`, attested(signed(alice, "review:code", ledger.Pass)),
			unmet(0, "review:*: 0 of 1 signatures; by the commit's author: review:code passed ("+alice+")")},
		"the author by e-mail": {
			reviews + `}`, attested(signed(bob, "review:code", ledger.Pass).mail("bob@acme.org", "Alice@ACME.org")),
			unmet(0, "review:*: 0 of 1 signatures; by the commit's author: review:code passed ("+bob+")")},
		"the author by e-mail as a name": {reviews + `}`, attested(signed("cn=ALICE@acme.org", "review:code", ledger.Pass)),
			unmet(0, "review:*: 0 of 1 signatures; by the commit's author: review:code passed (cn=ALICE@acme.org)")},
		"not the author": {
			reviews + `}`, attested(signed(bob, "review:code", ledger.Pass).mail("bob@acme.org")), met(1, "met by "+bob)},
		"the author's fail": {reviews + `}`,
			attested(signed(alice, "review:code", ledger.Fail), signed(bob, "review:code", ledger.Pass)),
			unmet(1, "review:code failed ("+alice+")")},
		"an unknown author": {reviews + `}`, by(attested(signed(bob, "review:code", ledger.Pass).mail("")), "",
			" "), unmet(0, "review:*: 0 of 1 signatures; "+unknown)},
		"an unknown author, and expired": {reviews + `,"max_age":"1m"}`,
			by(attested(signed(bob, "review:code", ledger.Pass)), "", ""), unmet(0, "review:*: 0 of 1 signatures; "+unknown)},
		"an unknown author, a skip": {reviews + `}`, by(attested(signed(bob, "review:code", ledger.Skip)), "", ""),
			unmet(0, "review:*: 0 of 1 signatures; status not accepted: review:code skipped ("+bob+"); "+unknown)},
		"an unknown author, a fail": {reviews + `}`, by(attested(signed(bob, "review:code", ledger.Fail)), "", ""),
			unmet(0, "review:code failed ("+bob+")")},
		"an author with only a name": {reviews + `}`, by(attested(signed(bob, "review:code", ledger.Pass)), "Alice", ""),
			met(1, "met by "+bob)},
		"an unknown author, not excluded": {tests + `}`, by(attested(signed(ci, "test:go", ledger.Pass)), "", ""),
			met(1, "met by "+ci)},
		"the author, not excluded": {`{"state":"PROMOTABLE","predicate":"review:*"}`,
			attested(signed(alice, "review:code", ledger.Pass)), met(1, "met by "+alice)},

		// Passkeys.
		"confirmed by a passkey": {confirmed + `}`, attested(signed(bob, "review:code", ledger.Pass).confirmed()),
			met(1, "met by "+bob)},
		"not confirmed": {confirmed + `}`, attested(signed(bob, "review:code", ledger.Pass)),
			unmet(0, noPasskey+"without a passkey: review:code passed ("+bob+")")},
		"one of two confirmed": {confirmed + `,"threshold":2}`, attested(signed(bob, "review:code", ledger.Pass).confirmed(),
			signed(carol, "review:code", ledger.Pass)),
			unmet(1, "review:*: 1 of 2 signatures confirmed by a passkey ("+bob+"); without a passkey: review:code passed ("+
				carol+")")},
		"confirmed, without need": {reviews + `}`, attested(signed(bob, "review:code", ledger.Pass).confirmed()),
			met(1, "met by "+bob)},
		"a fail that is not confirmed": {confirmed + `}`, attested(signed(carol, "review:code", ledger.Fail),
			signed(bob, "review:code", ledger.Pass).confirmed()), unmet(1, "review:code failed ("+carol+")")},
		"an accepted fail that is not confirmed": {confirmed + `,"accept":["fail"]}`,
			attested(signed(bob, "review:code", ledger.Fail)),
			unmet(0, noPasskey+"without a passkey: review:code failed ("+bob+")")},
		"later approved without a passkey": {confirmed + `}`,
			attested(signed(bob, "review:code", ledger.Pass).confirmed().as("att_1"),
				signed(bob, "review:code", ledger.Pass).as("att_2")),
			unmet(0, noPasskey+"without a passkey: review:code passed ("+bob+")")},
		"later approved with a passkey": {confirmed + `}`, attested(signed(bob, "review:code", ledger.Pass).as("att_1"),
			signed(bob, "review:code", ledger.Pass).confirmed().as("att_2")), met(1, "met by "+bob)},
		"the author, with a passkey": {confirmed + `,"exclude_author":true}`,
			attested(signed(alice, "review:code", ledger.Pass).confirmed()),
			unmet(0, noPasskey+"by the commit's author: review:code passed ("+alice+")")},
		"not confirmed, and an unknown author": {confirmed + `,"exclude_author":true}`,
			by(attested(signed(bob, "review:code", ledger.Pass)), "", ""),
			unmet(0, noPasskey+"without a passkey: review:code passed ("+bob+"); "+unknown)},
		"not confirmed, and too old": {confirmed + `,"max_age":"2h"}`,
			attested(signed(bob, "review:code", ledger.Pass).ago(2 * hour)),
			unmet(0, noPasskey+"without a passkey: review:code passed ("+bob+")")},

		// For DEPLOYED, only evidence recorded while the commit was PROMOTABLE counts.
		"deployed too early": {deploys + `}`, attested(signed(ops, "deploy:prod", ledger.Pass).early()),
			unmet(0, "deploy:prod: 0 of 1 signatures; recorded before the commit was PROMOTABLE: "+
				"deploy:prod passed ("+ops+")")},
		"deployed too early, or over a gap": {deploys + `,"delivery":true}`,
			attested(signed(ops, "deploy:prod", ledger.Pass).early()),
			unmet(0, "deploy:prod: 0 of 1 signatures; recorded when the commit was not PROMOTABLE, or over a commit that is "+
				"not covered: deploy:prod passed ("+ops+")")},
		"failed early": {deploys + `}`, attested(signed(ops, "deploy:prod", ledger.Fail).early()),
			unmet(0, "deploy:prod failed ("+ops+")")},
		"tested early": {tests + `}`, attested(signed(ci, "test:go", ledger.Pass).early()), met(1, "met by "+ci)},

		// Paths.
		"a matching path": {payments, changed(attested(signed(ci, "test:payments", ledger.Pass)), "README.md",
			"services/payments/api/pay.go"), met(1, "met by "+ci)},
		"a path that matches the second glob": {payments, changed(attested(), "schema.sql"),
			unmet(0, "test:payments: 0 of 1 signatures")},
		"no matching path": {payments, changed(attested(signed(ci, "test:payments", ledger.Fail)), "README.md",
			"db/schema.sql"), excluded("no changed path matches services/payments/** or *.sql")},
		"an empty commit": {
			payments, changed(attested()), excluded("no changed path matches services/payments/** or *.sql")},
		"without change record": {payments, attested(), unmet(0, "test:payments: 0 of 1 signatures; applies because nobody "+
			"has signed which paths the commit changes")},
		"what a registration claims is not believed": {payments, func() Facts {
			f := attested()
			f.HasChanges, f.Changes = true, []string{"docs/a.md"}
			return f
		}(), unmet(0, "test:payments: 0 of 1 signatures; applies because nobody has signed which paths the commit changes")},
		"many globs, some listed": {`{"state":"ATTESTED","predicate":"x","paths":["a","b","c","d","e"]}`,
			changed(attested(), "f"), excluded("no changed path matches a or b or c or 2 more")},
		"2000 paths": {payments, changed(attested(), numbered(2000)...),
			excluded("no changed path matches services/payments/** or *.sql")},
		"2001 paths": {payments, changed(attested(), numbered(2001)...),
			unmet(0, "test:payments: 0 of 1 signatures; applies because the commit changes more than 2000 paths")},
		"2001 paths, and tested": {payments, changed(attested(signed(ci, "test:payments", ledger.Pass)), numbered(2001)...),
			met(1, "met by "+ci)},
		"paths that take too long": {`{"state":"ATTESTED","predicate":"x","paths":["*` + strings.Repeat("a", 200) + `?b*"]}`,
			changed(attested(), slices.Repeat([]string{strings.Repeat("a", 4000) + "/b"}, 40)...),
			unmet(0, "x: 0 of 1 signatures; applies because matching the changed paths takes too long")},
		"hidden files": {`{"state":"ATTESTED","predicate":"x","paths":["**/*.yml"]}`,
			changed(attested(), ".github/.ci.yml"), unmet(0, "x: 0 of 1 signatures")},

		// Branches.
		"an exact target": {releases, attested(), unmet(0, "test:*: 0 of 1 signatures")},
		"a matching target": {releases, targeting(attested(signed(ci, "test:go", ledger.Pass)), "release/1.2"),
			met(1, "met by "+ci)},
		"another target": {releases, targeting(attested(signed(ci, "test:go", ledger.Pass)), "feature-x"),
			excluded("the target branch is feature-x")},
		"a target one level deeper": {releases, targeting(attested(), "release/1/2"),
			excluded("the target branch is release/1/2")},
		"no target": {releases, targeting(attested()), excluded("the commit has no target branch")},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, test.requirement)
			got := c.Derive(test.facts, policyNow).Requirements[0]
			if got.State != c.Requirements[0].State || got.Predicate != c.Requirements[0].Predicate ||
				got.Applies && got.Need != c.Requirements[0].Threshold || len(got.SignersCounted) != got.Have {
				t.Errorf("got %+v", got)
			}
			if v := (verdict{got.Applies, got.Met, got.Have, got.Reason}); v != test.want {
				t.Errorf("got  %+v\nwant %+v", v, test.want)
			}
		})
	}
}

// numbered returns n paths.
func numbered(n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("services/web/%d.go", i)
	}
	return paths
}

func TestState(t *testing.T) {
	const (
		tests   = `{"state":"ATTESTED","predicate":"test:*"}`
		lint    = `{"state":"ATTESTED","predicate":"lint:*"}`
		reviews = `{"state":"PROMOTABLE","predicate":"review:*"}`
		release = `{"state":"PROMOTABLE","predicate":"review:*","branches":["release/*"]}`
		deploys = `{"state":"DEPLOYED","predicate":"deploy:*"}`
		smoke   = `{"state":"DEPLOYED","predicate":"smoke:*"}`
		canary  = `{"state":"DEPLOYED","predicate":"deploy:*","branches":["canary"]}`
	)
	var (
		tested   = signed(ci, "test:go", ledger.Pass)
		linted   = signed(ci, "lint:go", ledger.Pass)
		reviewed = signed(bob, "review:code", ledger.Pass)
		deployed = signed(ops, "deploy:prod", ledger.Pass)
		other    = signed(ci, "other:thing", ledger.Pass)
	)
	all := []string{tests, reviews, deploys}

	for name, test := range map[string]struct {
		requirements []string
		facts        Facts
		want         ledger.State
	}{
		"no evidence":                     {all, Facts{}, ledger.Draft},
		"no evidence, no requirements":    {nil, Facts{}, ledger.Draft},
		"other evidence":                  {all, attested(other), ledger.Validating},
		"other evidence, no requirements": {nil, attested(other), ledger.Promotable},
		"tested":                          {all, attested(tested), ledger.Attested},
		"tested and reviewed":             {all, attested(tested, reviewed), ledger.Promotable},
		"reviewed, not tested":            {all, attested(reviewed), ledger.Validating},
		"tested, reviewed, deployed":      {all, attested(tested, reviewed, deployed), ledger.Deployed},
		"deployed, not reviewed":          {all, attested(tested, deployed), ledger.Attested},
		"deployed before PROMOTABLE": {all, attested(tested, reviewed, deployed.early()),
			ledger.Promotable},
		"one of two requirements": {[]string{tests, lint, reviews, deploys}, attested(tested, reviewed),
			ledger.Validating},
		"two of two requirements": {[]string{tests, reviews, lint, deploys},
			attested(tested, linted, reviewed), ledger.Promotable},
		"one of two requirements for DEPLOYED": {[]string{tests, reviews, deploys, smoke},
			attested(tested, reviewed, deployed), ledger.Promotable},
		"a state without requirements": {[]string{tests, deploys}, attested(tested), ledger.Promotable},
		"a state whose requirements do not apply": {[]string{tests, release, deploys}, attested(tested),
			ledger.Promotable},
		"ATTESTED without requirements": {[]string{reviews}, attested(other), ledger.Attested},
		"DEPLOYED without requirements": {[]string{tests, reviews}, attested(tested, reviewed, deployed),
			ledger.Promotable},
		"DEPLOYED whose requirements do not apply": {[]string{tests, reviews, canary},
			attested(tested, reviewed, deployed), ledger.Promotable},
		"a fail": {all, attested(signed(ci, "test:go", ledger.Fail), reviewed),
			ledger.Validating},
		"DEPLOYED, with unmet requirements": {all, Facts{Attested: true, Deployed: true}, ledger.Deployed},
		"DEPLOYED, with another contract":   {nil, Facts{Attested: true, Deployed: true}, ledger.Deployed},
		"requirements in another order": {[]string{deploys, reviews, tests},
			attested(deployed, reviewed, tested), ledger.Deployed},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustParse(t, test.requirements...).Derive(test.facts, policyNow)
			if got.State != test.want {
				t.Errorf("got %s, want %s: %+v", got.State, test.want, got.Requirements)
			}
			if len(got.Requirements) != len(test.requirements) {
				t.Errorf("got %d requirements, want %d", len(got.Requirements), len(test.requirements))
			}
		})
	}
}

func TestExpires(t *testing.T) {
	const (
		tests  = `{"state":"ATTESTED","predicate":"test:*","max_age":"3h"}`
		lint   = `{"state":"ATTESTED","predicate":"lint:*","max_age":"2h"}`
		always = `{"state":"ATTESTED","predicate":"test:*"}`
		main   = `{"state":"ATTESTED","predicate":"test:*","max_age":"1h30m","branches":["x"]}`
	)
	deployed := attested(signed(ci, "test:go", ledger.Pass))
	deployed.Deployed = true

	for name, test := range map[string]struct {
		requirements []string
		facts        Facts
		want         ledger.Time
	}{
		"no evidence": {[]string{tests}, attested(), 0},
		"no max_age":  {[]string{always}, attested(signed(ci, "test:go", ledger.Pass)), 0},
		"one that counts": {[]string{tests}, attested(signed(ci, "test:go", ledger.Pass)),
			policyNow + 2*hour},
		"the first of two": {[]string{tests},
			attested(signed(ci, "test:go", ledger.Pass), signed(ci2, "test:go", ledger.Pass).ago(2*hour)), policyNow + hour},
		"the first of two requirements": {[]string{tests, lint},
			attested(signed(ci, "test:go", ledger.Pass), signed(ci, "lint:go", ledger.Pass)), policyNow + hour},
		"an expired one is ignored": {[]string{tests},
			attested(signed(ci, "test:go", ledger.Pass), signed(ci2, "test:go", ledger.Pass).ago(3*hour)), policyNow + 2*hour},
		"a fail does not expire":            {[]string{tests}, attested(signed(ci, "test:go", ledger.Fail)), 0},
		"a skip is ignored":                 {[]string{tests}, attested(signed(ci, "test:go", ledger.Skip)), 0},
		"a requirement that does not apply": {[]string{main}, attested(signed(ci, "test:go", ledger.Pass)), 0},
		"DEPLOYED does not expire":          {[]string{tests}, deployed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustParse(t, test.requirements...).Derive(test.facts, policyNow).Expires; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestRollsBack(t *testing.T) {
	c := mustParse(t,
		`{"state":"ATTESTED","predicate":"test:*"}`,
		`{"state":"DEPLOYED","predicate":"deploy:*","signers":["ou=platform"],"accept":["pass","warn"],`+
			`"exclude_author":true}`,
		`{"state":"DEPLOYED","predicate":"canary:*","branches":["canary"]}`)

	for name, test := range map[string]struct {
		evidence Evidence
		want     bool
	}{
		"a fail":                            {signed(ops, "deploy:prod", ledger.Fail), true},
		"a skip":                            {signed(ops, "deploy:prod", ledger.Skip), true},
		"a fail recorded before PROMOTABLE": {signed(ops, "deploy:prod", ledger.Fail).early(), true},
		"a pass":                            {signed(ops, "deploy:prod", ledger.Pass), false},
		"another accepted status":           {signed(ops, "deploy:prod", ledger.Warn), false},
		"another signer's fail":             {signed(bob, "deploy:prod", ledger.Fail), false},
		"the author's fail":                 {signed("cn=alice,ou=platform", "deploy:prod", ledger.Fail), true},
		"a fail of another predicate":       {signed(ops, "test:go", ledger.Fail), false},
		"a requirement that is not met":     {signed(ops, "canary:eu", ledger.Fail), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := attested(test.evidence)
			f.Deployed = true
			if got := c.RollsBack(f, test.evidence); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	requirements := []ledger.RequirementStatus{
		{State: ledger.Attested, Predicate: "met", Applies: true, Met: true},
		{State: ledger.Attested, Predicate: "test", Applies: true},
		{State: ledger.Attested, Predicate: "elsewhere"},
		{State: ledger.Deployed, Predicate: "deploy", Applies: true},
	}
	for state, want := range map[ledger.State]string{
		ledger.Draft: "test", ledger.Validating: "test", ledger.Attested: "deploy", ledger.Promotable: "deploy",
		ledger.Deployed: "",
	} {
		var got []string
		for _, r := range Missing(state, requirements) {
			got = append(got, r.Predicate)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %q", state, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	for _, test := range []struct {
		from, to ledger.State
		want     []ledger.State
	}{
		{ledger.Draft, ledger.Promotable, []ledger.State{ledger.Validating, ledger.Attested, ledger.Promotable}},
		{ledger.Validating, ledger.Deployed, []ledger.State{ledger.Attested, ledger.Promotable, ledger.Deployed}},
		{ledger.Promotable, ledger.Deployed, []ledger.State{ledger.Deployed}},
		{ledger.Promotable, ledger.Validating, []ledger.State{ledger.Validating}},
		{ledger.Deployed, ledger.Draft, []ledger.State{ledger.Draft}},
		{ledger.Attested, ledger.Attested, nil},
	} {
		if got := Path(test.from, test.to); !slices.Equal(got, test.want) {
			t.Errorf("Path(%s, %s) = %v, want %v", test.from, test.to, got, test.want)
		}
	}
}

// An exception alone makes no commit DEPLOYED: somebody must have deployed it, and the deployment must
// not have failed.
func TestAnExceptionDeploysNothing(t *testing.T) {
	c, err := Parse([]byte(`{"requirements":[{"name":"deploy","state":"DEPLOYED","predicate":"deploy:prod"}],
  "exceptions":{"signers":["o=acme"],"max_duration":"1d"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for status, want := range map[ledger.Status]ledger.State{
		ledger.Fail: ledger.Promotable, ledger.Warn: ledger.Promotable, ledger.Pass: ledger.Deployed,
	} {
		e := signed(ops, "deploy:prod", status)
		e.WhilePromotable = status == ledger.Pass
		f := attested(e)
		f.Exceptions = []Exception{{Attestation: "att_x", Requirement: "deploy", Signer: identity.DN{CN: "sec", O: "acme"},
			RecordedAt: policyNow, Until: policyNow + hour}}
		if state, _ := c.State(f, policyNow); state != want {
			t.Errorf("with a deployment whose status is %s: %s, want %s", status, state, want)
		}
	}
}

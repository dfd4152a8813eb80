package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// policyNow is the time in the tables of this file.
const policyNow = ledger.Time(1795424400000)

const hour = ledger.Time(3600 * 1000)

// attested returns facts with the given evidence, for main.
func attested(evidence ...Evidence) Facts {
	return Facts{
		Author: ledger.Author{Name: "Alice", Email: "alice@acme.org"}, Target: "main",
		Evidence: evidence, Attested: true,
	}
}

// said returns evidence of an hour ago, recorded while PROMOTABLE.
func said(dn, predicate string, s ledger.Status) Evidence {
	d, err := identity.ParseDN(dn)
	if err != nil {
		panic(err)
	}
	return Evidence{Predicate: predicate, Signer: d, Status: s, RecordedAt: policyNow - hour, WhilePromotable: true}
}

func (e Evidence) ago(t ledger.Time) Evidence { e.RecordedAt = policyNow - t; return e }
func (e Evidence) early() Evidence            { e.WhilePromotable = false; return e }
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
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequirement(t *testing.T) {
	type verdict struct {
		applies, met bool
		have         int
		reason       string
	}
	met := func(have int, reason string) verdict { return verdict{true, true, have, reason} }
	unmet := func(have int, reason string) verdict { return verdict{true, false, have, reason} }
	leftOut := func(reason string) verdict { return verdict{reason: "does not apply: " + reason} }

	changed := func(f Facts, paths ...string) Facts { f.HasChanges, f.Changes = true, paths; return f }
	meantFor := func(f Facts, branch string) Facts { f.Target = branch; return f }
	by := func(f Facts, name, email string) Facts { f.Author = ledger.Author{Name: name, Email: email}; return f }

	const (
		unknown  = "the commit's author is unknown (register the commit with its author)"
		tests    = `{"state":"ATTESTED","predicate":"test:*"`
		reviews  = `{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true`
		deploys  = `{"state":"DEPLOYED","predicate":"deploy:prod"`
		payments = `{"state":"ATTESTED","predicate":"test:payments","paths":["services/payments/**","*.sql"]}`
		releases = `{"state":"ATTESTED","predicate":"test:*","branches":["main","release/*"]}`
	)
	for name, test := range map[string]struct {
		requirement string
		facts       Facts
		want        verdict
	}{
		// What the evidence is about.
		"a prefix":       {tests + `}`, attested(said(ci, "test:go", ledger.Pass)), met(1, "met by "+ci)},
		"a prefix alone": {tests + `}`, attested(said(ci, "test:", ledger.Pass)), met(1, "met by "+ci)},
		"an exact predicate": {deploys + `}`, attested(said(ops, "deploy:prod", ledger.Pass)),
			met(1, "met by "+ops)},
		"a longer one than the exact": {deploys + `}`, attested(said(ops, "deploy:production", ledger.Pass)),
			unmet(0, "deploy:prod: 0 of 1 signatures")},
		"another case": {tests + `}`, attested(said(ci, "Test:go", ledger.Pass)), unmet(0, "test:*: 0 of 1 signatures")},
		"any predicate": {`{"state":"ATTESTED","predicate":"*"}`,
			attested(said(ci, "https://slsa.dev/provenance/v1", ledger.Pass)), met(1, "met by "+ci)},
		"nothing said": {tests + `}`, attested(), unmet(0, "test:*: 0 of 1 signatures")},

		// Who counts.
		"a signer who matches": {tests + `,"signers":["cn=*,ou=build,o=acme"]}`,
			attested(said(ci, "test:go", ledger.Pass)), met(1, "met by "+ci)},
		"a signer who does not": {tests + `,"signers":["cn=*,ou=build,o=acme"]}`,
			attested(said(bob, "test:go", ledger.Pass)), unmet(0, "test:*: 0 of 1 signatures matching cn=*,ou=build,o=acme")},
		"a signer of another pattern": {tests + `,"signers":["ou=build","ou=platform"]}`,
			attested(said(ops, "test:go", ledger.Pass)), met(1, "met by "+ops)},
		"several patterns, all in vain": {tests + `,"signers":["ou=build","ou=platform"]}`,
			attested(said(bob, "test:go", ledger.Pass)),
			unmet(0, "test:*: 0 of 1 signatures matching ou=build or ou=platform")},
		"a stranger's fail": {tests + `,"signers":["ou=build"]}`,
			attested(said(ci, "test:go", ledger.Pass), said(bob, "test:go", ledger.Fail)), met(1, "met by "+ci)},

		// How many.
		"two of two": {tests + `,"threshold":2}`,
			attested(said(ci2, "test:go", ledger.Pass), said(ci, "test:go", ledger.Pass)), met(2, "met by "+ci+" and "+ci2)},
		"one of two": {tests + `,"threshold":2}`, attested(said(ci, "test:go", ledger.Pass)),
			unmet(1, "test:*: 1 of 2 signatures ("+ci+")")},
		"one signer twice is one": {tests + `,"threshold":2}`, attested(said(ci, "test:go", ledger.Pass),
			said(ci, "test:js", ledger.Pass)), unmet(1, "test:*: 1 of 2 signatures ("+ci+")")},
		"five of one, told in short": {
			tests + `}`, attested(said(ci, "test:go", ledger.Pass), said(ops, "test:go", ledger.Pass),
				said(alice, "test:go", ledger.Pass), said(bob, "test:go", ledger.Pass), said(ci2, "test:go", ledger.Pass)),
			met(5, "met by "+alice+" and "+bob+" and "+ci+" and 2 more")},
		"two who differ in o are two": {tests + `,"threshold":2}`, attested(said("cn=ci", "test:go", ledger.Pass),
			said("cn=ci,o=acme", "test:go", ledger.Pass)), met(2, "met by cn=ci and cn=ci,o=acme")},
		"two who differ in case are two": {tests + `,"threshold":2}`, attested(said("cn=ci", "test:go", ledger.Pass),
			said("cn=CI", "test:go", ledger.Pass)), met(2, "met by cn=CI and cn=ci")},

		// What was said.
		"a fail": {tests + `}`, attested(said(ci, "test:go", ledger.Fail)),
			unmet(0, "test:go failed ("+ci+")")},
		"an error": {tests + `}`, attested(said(ci, "test:go", ledger.Errored)),
			unmet(0, "test:go errored ("+ci+")")},
		"a fail whatever others say": {
			tests + `}`, attested(said(ci, "test:go", ledger.Pass), said(ci2, "test:go", ledger.Fail)),
			unmet(1, "test:go failed ("+ci2+")")},
		"a fail beside one's pass": {
			tests + `}`, attested(said(ci, "test:go", ledger.Pass), said(ci, "test:js", ledger.Fail)),
			unmet(1, "test:js failed ("+ci+")")},
		"two fails": {
			tests + `}`, attested(said(ci2, "test:go", ledger.Fail), said(ci, "test:go", ledger.Errored)),
			unmet(0, "test:go errored ("+ci+") and test:go failed ("+ci2+")")},
		"a fail that is accepted": {tests + `,"accept":["fail"]}`, attested(said(ci, "test:go", ledger.Fail)),
			met(1, "met by "+ci)},
		"an error where fail counts": {tests + `,"accept":["pass","fail"]}`, attested(said(ci, "test:go", ledger.Errored)),
			unmet(0, "test:go errored ("+ci+")")},
		"a skip": {tests + `}`, attested(said(ci, "test:go", ledger.Skip)),
			unmet(0, "test:*: 0 of 1 signatures; status not accepted: test:go skipped ("+ci+")")},
		"a skip does not stop others": {
			tests + `}`, attested(said(ci, "test:go", ledger.Skip), said(ci2, "test:go", ledger.Pass)), met(1, "met by "+ci2)},
		"a warning that is accepted": {tests + `,"accept":["pass","warn"]}`, attested(said(ci, "test:go", ledger.Warn)),
			met(1, "met by "+ci)},
		"pass where only warn counts": {tests + `,"accept":["warn"]}`, attested(said(ci, "test:go", ledger.Pass)),
			unmet(0, "test:*: 0 of 1 signatures; status not accepted: test:go passed ("+ci+")")},

		// When it was said.
		"young enough": {tests + `,"max_age":"2h"}`, attested(said(ci, "test:go", ledger.Pass).ago(2*hour - 1)),
			met(1, "met by "+ci)},
		"too old to the moment": {tests + `,"max_age":"2h"}`, attested(said(ci, "test:go", ledger.Pass).ago(2 * hour)),
			unmet(0, "test:*: 0 of 1 signatures; expired: test:go passed ("+ci+")")},
		"an old fail stays a fail": {tests + `,"max_age":"2h"}`, attested(said(ci, "test:go", ledger.Fail).ago(5*hour),
			said(ci2, "test:go", ledger.Pass)), unmet(1, "test:go failed ("+ci+")")},
		"old, but no age is set": {tests + `}`, attested(said(ci, "test:go", ledger.Pass).ago(400000 * hour)),
			met(1, "met by "+ci)},

		// The author.
		"the author by name": {reviews + `}`, attested(said(alice, "review:code", ledger.Pass)),
			unmet(0, "review:*: 0 of 1 signatures; by the commit's author: review:code passed ("+alice+")")},
		"the author by e-mail": {
			reviews + `}`, attested(said(bob, "review:code", ledger.Pass).mail("bob@acme.org", "Alice@ACME.org")),
			unmet(0, "review:*: 0 of 1 signatures; by the commit's author: review:code passed ("+bob+")")},
		"the author by e-mail as a name": {reviews + `}`, attested(said("cn=ALICE@acme.org", "review:code", ledger.Pass)),
			unmet(0, "review:*: 0 of 1 signatures; by the commit's author: review:code passed (cn=ALICE@acme.org)")},
		"another than the author": {
			reviews + `}`, attested(said(bob, "review:code", ledger.Pass).mail("bob@acme.org")), met(1, "met by "+bob)},
		"the author's own no": {reviews + `}`,
			attested(said(alice, "review:code", ledger.Fail), said(bob, "review:code", ledger.Pass)), met(1, "met by "+bob)},
		"an unknown author": {reviews + `}`, by(attested(said(bob, "review:code", ledger.Pass).mail("")), "",
			" "), unmet(0, "review:*: 0 of 1 signatures; "+unknown)},
		"an unknown author, and too old": {reviews + `,"max_age":"1m"}`,
			by(attested(said(bob, "review:code", ledger.Pass)), "", ""), unmet(0, "review:*: 0 of 1 signatures; "+unknown)},
		"an unknown author, a skip": {reviews + `}`, by(attested(said(bob, "review:code", ledger.Skip)), "", ""),
			unmet(0, "review:*: 0 of 1 signatures; status not accepted: review:code skipped ("+bob+"); "+unknown)},
		"an unknown author, a fail": {reviews + `}`, by(attested(said(bob, "review:code", ledger.Fail)), "", ""),
			unmet(0, "review:code failed ("+bob+")")},
		"an author by name alone": {reviews + `}`, by(attested(said(bob, "review:code", ledger.Pass)), "Alice", ""),
			met(1, "met by "+bob)},
		"unknown, but not excluded": {tests + `}`, by(attested(said(ci, "test:go", ledger.Pass)), "", ""),
			met(1, "met by "+ci)},
		"the author is not excluded": {`{"state":"PROMOTABLE","predicate":"review:*"}`,
			attested(said(alice, "review:code", ledger.Pass)), met(1, "met by "+alice)},

		// For DEPLOYED, only what was said while the commit was PROMOTABLE.
		"deployed too early": {deploys + `}`, attested(said(ops, "deploy:prod", ledger.Pass).early()),
			unmet(0, "deploy:prod: 0 of 1 signatures; recorded before the commit was PROMOTABLE: "+
				"deploy:prod passed ("+ops+")")},
		"failed early": {deploys + `}`, attested(said(ops, "deploy:prod", ledger.Fail).early()),
			unmet(0, "deploy:prod failed ("+ops+")")},
		"tested early": {tests + `}`, attested(said(ci, "test:go", ledger.Pass).early()), met(1, "met by "+ci)},

		// Paths.
		"a path is changed": {payments, changed(attested(said(ci, "test:payments", ledger.Pass)), "README.md",
			"services/payments/api/pay.go"), met(1, "met by "+ci)},
		"a path by the second": {payments, changed(attested(), "schema.sql"),
			unmet(0, "test:payments: 0 of 1 signatures")},
		"no path is changed": {payments, changed(attested(said(ci, "test:payments", ledger.Fail)), "README.md",
			"db/schema.sql"), leftOut("no changed path matches services/payments/** or *.sql")},
		"an empty commit": {
			payments, changed(attested()), leftOut("no changed path matches services/payments/** or *.sql")},
		"without change record": {payments, attested(), unmet(0, "test:payments: 0 of 1 signatures")},
		"many paths, in short": {`{"state":"ATTESTED","predicate":"x","paths":["a","b","c","d","e"]}`,
			changed(attested(), "f"), leftOut("no changed path matches a or b or c or 2 more")},
		"2000 paths are changed": {payments, changed(attested(), numbered(2000)...),
			leftOut("no changed path matches services/payments/** or *.sql")},
		"2001 paths are changed": {payments, changed(attested(), numbered(2001)...),
			unmet(0, "test:payments: 0 of 1 signatures; applies because the commit changes more than 2000 paths")},
		"2001, and tested": {payments, changed(attested(said(ci, "test:payments", ledger.Pass)), numbered(2001)...),
			met(1, "met by "+ci)},
		"paths that take ages": {`{"state":"ATTESTED","predicate":"x","paths":["*` + strings.Repeat("a", 200) + `?b*"]}`,
			changed(attested(), slices.Repeat([]string{strings.Repeat("a", 4000) + "/b"}, 40)...),
			unmet(0, "x: 0 of 1 signatures; applies because matching the changed paths takes too long")},
		"hidden files match too": {`{"state":"ATTESTED","predicate":"x","paths":["**/*.yml"]}`,
			changed(attested(), ".github/.ci.yml"), unmet(0, "x: 0 of 1 signatures")},

		// Branches.
		"meant for a branch that is named": {releases, attested(), unmet(0, "test:*: 0 of 1 signatures")},
		"meant for one that matches": {releases, meantFor(attested(said(ci, "test:go", ledger.Pass)), "release/1.2"),
			met(1, "met by "+ci)},
		"meant for another": {releases, meantFor(attested(said(ci, "test:go", ledger.Pass)), "feature-x"),
			leftOut("the target branch is feature-x")},
		"meant for one a level deeper": {releases, meantFor(attested(), "release/1/2"),
			leftOut("the target branch is release/1/2")},
		"meant for nothing": {releases, meantFor(attested(), ""), leftOut("the commit has no target branch")},
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

// numbered returns so many paths.
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
		tested   = said(ci, "test:go", ledger.Pass)
		linted   = said(ci, "lint:go", ledger.Pass)
		reviewed = said(bob, "review:code", ledger.Pass)
		deployed = said(ops, "deploy:prod", ledger.Pass)
		other    = said(ci, "other:thing", ledger.Pass)
	)
	whole := []string{tests, reviews, deploys}

	for name, test := range map[string]struct {
		requirements []string
		facts        Facts
		want         ledger.State
	}{
		"nothing signed":                  {whole, Facts{}, ledger.Draft},
		"nothing signed, nothing needed":  {nil, Facts{}, ledger.Draft},
		"anything signed":                 {whole, attested(other), ledger.Validating},
		"anything signed, nothing needed": {nil, attested(other), ledger.Promotable},
		"tested":                          {whole, attested(tested), ledger.Attested},
		"tested and reviewed":             {whole, attested(tested, reviewed), ledger.Promotable},
		"reviewed, not tested":            {whole, attested(reviewed), ledger.Validating},
		"tested, reviewed, deployed":      {whole, attested(tested, reviewed, deployed), ledger.Deployed},
		"deployed, not reviewed":          {whole, attested(tested, deployed), ledger.Attested},
		"deployed before it was PROMOTABLE": {whole, attested(tested, reviewed, deployed.early()),
			ledger.Promotable},
		"one of two for a state": {[]string{tests, lint, reviews, deploys}, attested(tested, reviewed),
			ledger.Validating},
		"two of two for a state": {[]string{tests, reviews, lint, deploys},
			attested(tested, linted, reviewed), ledger.Promotable},
		"one of two for DEPLOYED": {[]string{tests, reviews, deploys, smoke},
			attested(tested, reviewed, deployed), ledger.Promotable},
		"a state without requirements": {[]string{tests, deploys}, attested(tested), ledger.Promotable},
		"a state without requirements that apply": {[]string{tests, release, deploys}, attested(tested),
			ledger.Promotable},
		"the lowest without requirements": {[]string{reviews}, attested(other), ledger.Attested},
		"DEPLOYED without requirements": {[]string{tests, reviews}, attested(tested, reviewed, deployed),
			ledger.Promotable},
		"DEPLOYED without requirements that apply": {[]string{tests, reviews, canary},
			attested(tested, reviewed, deployed), ledger.Promotable},
		"a fail takes it down": {whole, attested(said(ci, "test:go", ledger.Fail), reviewed),
			ledger.Validating},
		"DEPLOYED stays, whatever is unmet":          {whole, Facts{Attested: true, Deployed: true}, ledger.Deployed},
		"DEPLOYED stays, whatever the contract says": {nil, Facts{Attested: true, Deployed: true}, ledger.Deployed},
		"requirements in any order give the same state": {[]string{deploys, reviews, tests},
			attested(deployed, reviewed, tested), ledger.Deployed},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustParse(t, test.requirements...).Derive(test.facts, policyNow)
			if got.State != test.want {
				t.Errorf("got %s, want %s: %+v", got.State, test.want, got.Requirements)
			}
			if len(got.Requirements) != len(test.requirements) {
				t.Errorf("told of %d requirements", len(got.Requirements))
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
	deployed := attested(said(ci, "test:go", ledger.Pass))
	deployed.Deployed = true

	for name, test := range map[string]struct {
		requirements []string
		facts        Facts
		want         ledger.Time
	}{
		"nothing counts":               {[]string{tests}, attested(), 0},
		"what counts, counts for ever": {[]string{always}, attested(said(ci, "test:go", ledger.Pass)), 0},
		"the one that counts": {[]string{tests}, attested(said(ci, "test:go", ledger.Pass)),
			policyNow + 2*hour},
		"the first of two": {[]string{tests},
			attested(said(ci, "test:go", ledger.Pass), said(ci2, "test:go", ledger.Pass).ago(2*hour)), policyNow + hour},
		"the first of two requirements": {[]string{tests, lint},
			attested(said(ci, "test:go", ledger.Pass), said(ci, "lint:go", ledger.Pass)), policyNow + hour},
		"not what has expired": {[]string{tests},
			attested(said(ci, "test:go", ledger.Pass), said(ci2, "test:go", ledger.Pass).ago(3*hour)), policyNow + 2*hour},
		"not a fail, which does not expire":  {[]string{tests}, attested(said(ci, "test:go", ledger.Fail)), 0},
		"not what is not accepted":           {[]string{tests}, attested(said(ci, "test:go", ledger.Skip)), 0},
		"not a requirement that is left out": {[]string{main}, attested(said(ci, "test:go", ledger.Pass)), 0},
		"not what is DEPLOYED":               {[]string{tests}, deployed, 0},
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
		"a fail": {said(ops, "deploy:prod", ledger.Fail), true},
		"a skip": {said(ops, "deploy:prod", ledger.Skip), true},
		"a fail recorded while it was not PROMOTABLE": {said(ops, "deploy:prod", ledger.Fail).early(), true},
		"a pass":                        {said(ops, "deploy:prod", ledger.Pass), false},
		"another accepted status":       {said(ops, "deploy:prod", ledger.Warn), false},
		"a stranger's fail":             {said(bob, "deploy:prod", ledger.Fail), false},
		"the author's fail":             {said("cn=alice,ou=platform", "deploy:prod", ledger.Fail), false},
		"a fail of something else":      {said(ops, "test:go", ledger.Fail), false},
		"a fail of what does not apply": {said(ops, "canary:eu", ledger.Fail), false},
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
			t.Errorf("%s waits for %v, want %q", state, got, want)
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

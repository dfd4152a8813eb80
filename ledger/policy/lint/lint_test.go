package lint_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
)

// facts returns the facts of an org in which the given predicates and types were signed.
func facts(c policy.Contract, signed []string, signers ...lint.Signer) lint.Facts {
	f := lint.Facts{Signers: signers, Signed: make(map[string][]string), AnySigned: len(signed) > 0,
		RecordedPredicates: attestation.RecordedPredicates(),
		Type: func(uri string) lint.TypeFacts {
			predicates, outcome := attestation.Known(uri)
			return lint.TypeFacts{Predicates: predicates, Outcome: outcome}
		}}
	for _, subject := range c.Subjects() {
		for _, name := range signed {
			prefix, wild := strings.CutSuffix(subject, "*")
			if name == subject || wild && strings.HasPrefix(name, prefix) {
				f.Signed[subject] = append(f.Signed[subject], name)
			}
		}
	}
	return f
}

func parseContract(t *testing.T, document string) policy.Contract {
	t.Helper()
	return must.Get(policy.Parse([]byte(document)))(t)
}

// key returns a key of a person, who may attest what the patterns match.
func key(person int64, dn string, may ...string) lint.Signer {
	parsed, err := identity.ParseDN(dn)
	if err != nil {
		panic(err)
	}
	return lint.Signer{Person: person, DN: parsed, May: may}
}

// root returns a root for DNs that match a pattern.
func root(certifies string, may ...string) lint.Signer {
	r := lint.Signer{IsRoot: true, May: may}
	if certifies != "" {
		var err error
		if r.Certifies, err = identity.ParsePattern(certifies); err != nil {
			panic(err)
		}
	}
	return r
}

// findings formats findings as "code field".
func findings(r lint.Review) []string {
	list := []string{}
	for _, f := range r.Findings {
		list = append(list, string(f.Code)+" "+f.Field)
	}
	return list
}

var (
	ci       = key(1, "cn=ci,ou=build,o=acme")
	reviewer = key(2, "cn=ada,ou=review,o=acme")
	platform = key(3, "cn=ops,ou=platform,o=acme")
)

// Requirements without a finding in an org with ci, reviewer and platform.
const (
	testByCI    = `{"state":"ATTESTED","predicate":"test:*","signers":["ou=build"]}`
	reviewByAda = `{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=review"]}`
	deployByOps = `{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=platform"]}`
	changeByAda = `{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=review"],"covers":"change"}`
	shipByOps   = `{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=platform"],"delivery":true}`
	byAcme      = `"signers":["o=acme"]}`
)

func TestLint(t *testing.T) {
	everybody := []lint.Signer{ci, reviewer, platform}
	for _, test := range []struct {
		name         string
		requirements string
		rest         string // other members of the contract
		signed       []string
		signers      []lint.Signer
		want         []string
	}{
		{name: "nothing to find", requirements: testByCI + "," + reviewByAda + "," + deployByOps},

		{name: "any key for a review", requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*"},` +
			deployByOps, want: []string{"any_signer requirements[1].signers"}},
		{name: "any key but the author's", want: []string{"any_signer requirements[1].signers"}, requirements: testByCI +
			`,{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true},` + deployByOps},
		{name: "any key for a deployment", want: []string{"any_signer requirements[2].signers"},
			requirements: testByCI + "," + reviewByAda + `,{"state":"DEPLOYED","predicate":"deploy:prod"}`},
		{name: "any two keys", requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*","threshold":2},` +
			deployByOps},
		{name: "another key than that of the test", requirements: testByCI +
			`,{"state":"PROMOTABLE","predicate":"review:*","distinct_from":["ATTESTED"]},` + deployByOps},
		{name: "another key than that of no test", want: []string{"any_signer requirements[0].signers"}, requirements: `
			{"state":"PROMOTABLE","predicate":"review:*","distinct_from":["ATTESTED"]},` + deployByOps},
		{name: "any key may test", requirements: `{"state":"ATTESTED","predicate":"test:*"},` + reviewByAda + "," +
			deployByOps, want: []string{"one_for_all requirements"}},
		{name: "a test is enough", want: []string{"any_signer requirements[0].signers"},
			requirements: `{"state":"ATTESTED","predicate":"test:*"},` + deployByOps},
		{name: "may instead of signers", requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*"},` +
			deployByOps, signers: []lint.Signer{key(1, "cn=ci,ou=build,o=acme", "test:*", "build:*"), reviewer, platform}},
		{name: "may has the review", requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*"},` + deployByOps,
			signers: []lint.Signer{key(1, "cn=ci,ou=build,o=acme", "test:*", "review:code"), reviewer, platform},
			want:    []string{"any_signer requirements[1].signers"}},

		{name: "tools without signers", requirements: testByCI + "," + reviewByAda + "," + deployByOps + `,
			{"state":"ATTESTED","predicate":"vsa:verifier.example"},{"state":"ATTESTED","predicate":"scan:*"},
			{"state":"PROMOTABLE","predicate":"svr:x"},{"state":"ATTESTED","predicate":"sbom:spdx","threshold":2},
			{"state":"ATTESTED","type":"https://slsa.dev/verification_summary/v1"},
			{"state":"ATTESTED","predicate":"vsa:named","signers":["ou=build"]},{"state":"ATTESTED","predicate":"vsax"}`,
			want: []string{"tool_without_signer requirements[3].signers", "tool_without_signer requirements[4].signers",
				"tool_without_signer requirements[5].signers", "tool_without_signer requirements[6].signers",
				"tool_without_signer requirements[7].signers"}},

		{name: "no requirements", want: []string{"no_requirements requirements", "no_deployment requirements"}},
		{name: "only deployments", requirements: deployByOps, want: []string{"no_requirements requirements"}},
		{name: "no deployments", requirements: testByCI + "," + reviewByAda, want: []string{"no_deployment requirements"}},

		{name: "nobody matches", want: []string{"nobody_matches requirements[1].signers"}, requirements: testByCI +
			`,{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=none"]},` + deployByOps},
		{name: "nobody may", want: []string{"nobody_matches requirements[0].predicate"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			signers: []lint.Signer{key(1, "cn=ci,ou=build", "lint:*"), key(2, "cn=a,ou=review", "review:*"),
				key(3, "cn=b,ou=platform", "deploy:*")}},
		{name: "nobody may attest the type", want: []string{"nobody_matches requirements[0].type"},
			requirements: `{"state":"ATTESTED","type":"https://slsa.dev/provenance/v1","signers":["ou=build"]},` + reviewByAda +
				"," + deployByOps,
			signers: []lint.Signer{key(1, "cn=ci,ou=build", "test:*"), key(2, "cn=a,ou=review", "review:*"),
				key(3, "cn=b,ou=platform", "deploy:*")}},
		{name: "the match may not, others may", want: []string{"nobody_matches requirements[0].signers"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			signers:      []lint.Signer{key(1, "cn=ci,ou=build,o=acme", "lint:*"), reviewer, platform}},
		{name: "a root may certify one", requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			signers: []lint.Signer{root("ou=*,o=acme")}},
		{name: "a root may not attest it", want: []string{"nobody_matches requirements[0].predicate"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			signers:      []lint.Signer{root("", "review:*", "deploy:*")}},
		{name: "a root certifies others", want: []string{"nobody_matches requirements[0].signers"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			signers:      []lint.Signer{root("ou=tests"), reviewer, platform}},

		{name: "two keys of one person", want: []string{"threshold_too_high requirements[1].threshold"},
			requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*","threshold":2,"signers":["ou=review"]},` +
				deployByOps,
			signers: []lint.Signer{ci, reviewer, key(2, "cn=ada2,ou=review"), platform}},
		{name: "two people", requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*","threshold":2,` +
			`"signers":["ou=review"]},` + deployByOps,
			signers: []lint.Signer{ci, reviewer, key(4, "cn=bob,ou=review"), platform}},
		{name: "one person and a root", requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*",` +
			`"threshold":2,"signers":["ou=review"]},` + deployByOps,
			signers: []lint.Signer{ci, reviewer, root("ou=review"), platform}},

		{name: "one key for test and review", want: []string{"too_few_people requirements[1].distinct_from",
			"too_few_people requirements[2].distinct_from"}, signers: []lint.Signer{ci},
			requirements: `{"state":"ATTESTED","predicate":"test:*"},{"state":"PROMOTABLE","predicate":"review:*",` +
				`"distinct_from":["ATTESTED"]},{"state":"DEPLOYED","predicate":"deploy:prod","distinct_from":["PROMOTABLE"]}`},
		{name: "two keys for test, review and deployment", signers: []lint.Signer{ci, reviewer},
			requirements: `{"state":"ATTESTED","predicate":"test:*"},{"state":"PROMOTABLE","predicate":"review:*",` +
				`"distinct_from":["ATTESTED"]},{"state":"DEPLOYED","predicate":"deploy:prod","distinct_from":["PROMOTABLE"]}`},
		{name: "distinct, but the lower one is for some paths", signers: []lint.Signer{ci},
			requirements: `{"state":"ATTESTED","predicate":"test:*","paths":["a"]},{"state":"PROMOTABLE","predicate":` +
				`"review:*","distinct_from":["ATTESTED"]},{"state":"DEPLOYED","predicate":"deploy:prod","signers":["o=acme"]}`},
		{name: "distinct with a root", signers: []lint.Signer{ci, root("")},
			requirements: `{"state":"ATTESTED","predicate":"test:*"},{"state":"PROMOTABLE","predicate":"review:*",` +
				`"distinct_from":["ATTESTED"]},` + deployByOps},
		{name: "two of three for each", want: []string{"too_few_people requirements[1].distinct_from"},
			requirements: `{"state":"ATTESTED","predicate":"test:*","threshold":2},{"state":"PROMOTABLE","predicate":` +
				`"review:*","threshold":2,"distinct_from":["ATTESTED"]},` + deployByOps},

		{name: "the lower one cannot be met itself", want: []string{"threshold_too_high requirements[0].threshold"},
			requirements: `{"state":"ATTESTED","predicate":"test:*","threshold":4},{"state":"PROMOTABLE","predicate":` +
				`"review:*","distinct_from":["ATTESTED"]},` + deployByOps},

		{name: "never signed", signed: []string{"test:go", "deploy:prod", "reviews:code"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			want:         []string{"never_signed requirements[1].predicate"}},
		{name: "a type never signed",
			signed: []string{"test:go", "deploy:prod", "review:x", "https://slsa.dev/provenance/v0.2"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps + `,
				{"state":"ATTESTED","type":"https://slsa.dev/provenance/v1","signers":["ou=build"]},
				{"state":"ATTESTED","type":"https://slsa.dev/*","signers":["ou=build"]}`,
			want: []string{"never_signed requirements[3].type"}},

		{name: "passkeys of members", signers: append(everybody, root("ou=people-*,o=acme", "review:*")),
			requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*","passkey":true},` + deployByOps},
		{name: "passkeys of members for some type", signers: append(everybody, root("ou=people-*,o=acme", "review:*")),
			requirements: testByCI + `,{"state":"PROMOTABLE","type":"https://github.com/ledgerd/ledgerd/predicate/result/v1",` +
				`"passkey":true},{"state":"PROMOTABLE","predicate":"rev*","passkey":true},` + deployByOps},
		{name: "a passkey, but only keys", want: []string{"never_confirmed requirements[1].passkey"},
			requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*","passkey":true},` + deployByOps},
		{name: "a passkey, but members do not match", want: []string{"never_confirmed requirements[1].passkey"},
			signers: append(everybody, root("ou=people-*,o=acme", "review:*")), requirements: testByCI +
				`,{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=review"],"passkey":true},` + deployByOps},
		{name: "a passkey, and nobody matches", want: []string{"nobody_matches requirements[1].signers"},
			requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=none"],"passkey":true},` +
				deployByOps},
		{name: "passkeys for tools", signers: append(everybody, root("o=acme")), requirements: testByCI + "," +
			reviewByAda + "," + deployByOps + `,{"state":"PROMOTABLE","predicate":"vsa:x","passkey":true},
			{"state":"ATTESTED","type":"https://slsa.dev/provenance/v1","passkey":true},
			{"state":"ATTESTED","predicate":"review","passkey":true}`,
			want: []string{"never_confirmed requirements[3].passkey", "never_confirmed requirements[4].passkey",
				"never_confirmed requirements[5].passkey"}},

		{name: "an SBOM that passes", requirements: testByCI + "," + reviewByAda + "," + deployByOps + `,
			{"state":"ATTESTED","type":"https://spdx.dev/Document","signers":["ou=build"]},
			{"state":"ATTESTED","type":"https://spdx.dev/Document","accept":["pass","recorded"],"signers":["ou=build"]},
			{"state":"ATTESTED","predicate":"https://x.example/own","accept":["warn"],"signers":["ou=build"]},
			{"state":"ATTESTED","type":"https://slsa.dev/provenance/v1","signers":["ou=build"]},
			{"state":"ATTESTED","type":"https://slsa.dev/*","signers":["ou=build"]},
			{"state":"ATTESTED","predicate":"scan:*","signers":["ou=build"]}`,
			want: []string{"never_counts requirements[3].accept", "never_counts requirements[5].accept"}},
		{name: "types that were signed",
			signed: []string{"test:go", "review:x", "deploy:prod", "https://spdx.dev/Document/v2.3"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps + `,
			{"state":"ATTESTED","type":"https://spdx.dev/*","signers":["ou=build"]}`,
			want: []string{"never_counts requirements[3].accept"}},
		{name: "a test that is recorded", requirements: `{"state":"ATTESTED","predicate":"test:*","accept":["recorded"],` +
			`"signers":["ou=build"]},{"state":"ATTESTED","predicate":"sbom:*","accept":["recorded"],"signers":["ou=build"]},
			{"state":"ATTESTED","predicate":"test:*","accept":["recorded","pass"],"signers":["ou=build"]},` +
			reviewByAda + "," + deployByOps, want: []string{"never_counts requirements[0].accept"}},

		{name: "staging and production", signed: []string{"test:go", "review:x", "deploy:prod", "deploy:staging"},
			requirements: testByCI + "," + reviewByAda + `,{"state":"DEPLOYED","predicate":"deploy:*",` + byAcme,
			want:         []string{"mixed_environments requirements[2].predicate"}},
		{name: "two regions", signed: []string{"test:go", "review:x", "deploy:prod-eu", "deploy:prod-us"},
			requirements: testByCI + "," + reviewByAda + `,{"state":"DEPLOYED","predicate":"deploy:*",` + byAcme},
		{name: "one environment", signed: []string{"test:go", "review:x", "deploy:eu"},
			requirements: testByCI + "," + reviewByAda + `,{"state":"DEPLOYED","predicate":"deploy:*",` + byAcme},
		{name: "staging before production", requirements: testByCI + "," + reviewByAda + `,
			{"state":"PROMOTABLE","predicate":"deploy:staging",` + byAcme + `,{"state":"DEPLOYED","predicate":"deploy:*",` +
			byAcme, want: []string{"mixed_environments requirements[3].predicate"}},

		{name: "claimed targets", requirements: testByCI + "," + reviewByAda + "," + deployByOps + `,
			{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=review"],"branches":["main"]}`,
			rest: `,"targets":"claimed"`, want: []string{"claimed_targets targets"}},
		{name: "claimed targets without branches", requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			rest: `,"targets":"claimed"`},
		{name: "exceptions by nobody", requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			rest: `,"exceptions":{"signers":["ou=none"]}`, want: []string{"nobody_matches exceptions.signers"}},
		{name: "exceptions", requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			rest: `,"exceptions":{"signers":["ou=none","ou=platform"]}`},
		{name: "artifacts by nobody", requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			rest: `,"artifacts":{"signers":["ou=none"]}`, want: []string{"nobody_matches artifacts.signers"}},
		{name: "artifacts", requirements: testByCI + "," + reviewByAda + "," + deployByOps,
			rest: `,"artifacts":{"signers":["ou=none","ou=platform"]}`},
		{name: "exceptions by one who may not", requirements: reviewByAda + "," + deployByOps,
			signers: []lint.Signer{reviewer, key(3, "cn=ops,ou=platform", "deploy:*")},
			rest:    `,"exceptions":{"signers":["ou=platform"]}`, want: []string{"nobody_matches exceptions.signers"}},

		{name: "merges that a key of their own claims",
			signers: append(everybody, key(9, "cn=main,ou=merge,o=acme", "merge:*", "changes:*")),
			requirements: testByCI + "," + reviewByAda + "," + deployByOps +
				`,{"state":"ATTESTED","predicate":"build:x","carry":["tree","merge"],"carry_signers":["cn=main"],` + byAcme},
		{name: "merges that the key of tests claims", want: []string{"claims_by_tests requirements[3].carry"},
			signers: append(everybody, key(9, "cn=main,ou=merge,o=acme", "*", "merge:squash")),
			requirements: testByCI + "," + reviewByAda + "," + deployByOps +
				`,{"state":"ATTESTED","predicate":"build:x","carry":["merge"],"carry_signers":["cn=main"],` + byAcme},
		{name: "merges that no pattern names", want: []string{"nobody_matches requirements[3].carry_signers"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps +
				`,{"state":"ATTESTED","predicate":"build:x","carry":["tree","merge"],"carry_signers":["cn=ci"],` + byAcme},
		{name: "merges that nobody claims", want: []string{"nobody_matches requirements[3].carry_signers"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps +
				`,{"state":"ATTESTED","predicate":"build:x","carry":["merge"],"carry_signers":["cn=queue"],` + byAcme},
		{name: "merges that CI may not claim", want: []string{"nobody_matches requirements[1].carry_signers"},
			signers: []lint.Signer{key(1, "cn=ci,ou=build,o=acme", "test:*"), reviewer, platform},
			requirements: testByCI + `,{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=review"],` +
				`"carry":["merge"],"carry_signers":["cn=ci"]},` + deployByOps},
		{name: "carry of a signature", want: []string{"never_carries requirements[3].carry"},
			requirements: testByCI + "," + reviewByAda + "," + deployByOps +
				`,{"state":"ATTESTED","predicate":"signed:commit","carry":["tree"],` + byAcme},
		{name: "carry of a deployment",
			want: []string{"mixed_environments requirements[2].predicate", "never_carries requirements[3].carry"},
			requirements: testByCI + "," + reviewByAda + `,{"state":"DEPLOYED","predicate":"deploy:prod*",` + byAcme +
				`,{"state":"ATTESTED","predicate":"deploy:prod-canary","carry":["tree"],` + byAcme},

		{name: "reviews of changes, deployments of commits", want: []string{"delivery_unchecked requirements[2].delivery"},
			requirements: testByCI + "," + changeByAda + "," + deployByOps},
		{name: "reviews of changes, one environment of two", want: []string{"delivery_unchecked requirements[3].delivery"},
			requirements: testByCI + "," + changeByAda + "," + shipByOps +
				`,{"state":"DEPLOYED","predicate":"deploy:eu",` + byAcme},
		{name: "reviews of changes, and environments that a pattern names",
			requirements: testByCI + "," + changeByAda + `,{"state":"DEPLOYED","predicate":"deploy:pr*","delivery":true,` +
				byAcme + "," + deployByOps},
		{name: "reviews of changes, and a release", requirements: testByCI + "," + changeByAda + "," + shipByOps +
			`,{"state":"DEPLOYED","predicate":"release:notes",` + byAcme},
		{name: "changes, checked after the deployment", requirements: testByCI + "," + reviewByAda + "," + deployByOps +
			`,{"state":"DEPLOYED","predicate":"smoke:live","covers":"change",` + byAcme},
		{name: "deliveries of reviewed changes", requirements: testByCI + "," + changeByAda + "," + shipByOps},
		{name: "deliveries of reviewed files", want: []string{"review_covers_tree requirements[1].covers"},
			requirements: testByCI + "," + reviewByAda + "," + shipByOps},
		{name: "deliveries of changes with one review of files", want: []string{"review_covers_tree requirements[2].covers"},
			requirements: testByCI + "," + changeByAda + `,{"state":"ATTESTED","predicate":"review:design","covers":"tree",` +
				byAcme + "," + shipByOps},
		{name: "deliveries, and results of any kind", requirements: testByCI + "," + changeByAda + "," + shipByOps +
			`,{"state":"ATTESTED","type":"https://github.com/ledgerd/ledgerd/predicate/result/v1",` + byAcme},
		{name: "deliveries, and a review after them", want: []string{"mixed_environments requirements[3].predicate"},
			requirements: testByCI + "," + changeByAda + "," + shipByOps +
				`,{"state":"DEPLOYED","predicate":"review:live",` + byAcme},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := parseContract(t, `{"requirements":[`+test.requirements+`]`+test.rest+`}`)
			if test.signers == nil {
				test.signers = everybody
			}
			review := lint.Check(c, facts(c, test.signed, test.signers...))
			// Most keys of this table may attest everything: see TestPeople.
			got := slices.DeleteFunc(findings(review), func(f string) bool { return f == "may_everything requirements" })
			if !slices.Equal(got, test.want) || review.Unchecked != "" {
				t.Errorf("got %+v %s\nwant %q", review.Findings, review.Unchecked, test.want)
			}
			for _, f := range review.Findings {
				if f.Message == "" || f.Fix == "" || len(f.Message) > 200 || len(f.Fix) > 100 {
					t.Errorf("%+v lacks a message or a fix, or has a long one", f)
				}
			}
		})
	}
}

// The documentation explains each kind of finding.
func TestFindingsAreDocumented(t *testing.T) {
	docs := must.Read(t, "../../../docs/policy.md")
	source := must.Read(t, "facts.go")
	codes := regexp.MustCompile(`FindingCode = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(codes) < 12 {
		t.Fatalf("found %d kinds of findings", len(codes))
	}
	for _, code := range codes {
		if !bytes.Contains(docs, []byte("\n| `"+string(code[1])+"` |")) {
			t.Errorf("docs/policy.md lacks %s", code[1])
		}
	}
}

// An org without identities has one finding about them, not one for each requirement.
func TestLintWithoutIdentities(t *testing.T) {
	c := parseContract(t, `{"requirements":[`+testByCI+","+reviewByAda+","+deployByOps+`,
		{"state":"PROMOTABLE","predicate":"review:*","passkey":true}]}`)
	if got := findings(lint.Check(c, facts(c, nil))); !slices.Equal(got, []string{"no_identities requirements"}) {
		t.Errorf("%q", got)
	}
}

// TestLintBounds checks that a review of the largest contract in a large org says what it
// did not check, and lists a limited number of findings.
func TestLintBounds(t *testing.T) {
	var requirements []string
	for i := range 200 {
		signers := `"ou=none"`
		for j := range 99 {
			if i < 39 {
				signers += fmt.Sprintf(`,"ou=none%d-%d"`, i, j)
			}
		}
		requirements = append(requirements, fmt.Sprintf(`{"state":"DEPLOYED","predicate":"d%d:*","accept":["recorded"],`+
			`"signers":[%s]}`, i, signers))
	}
	c := parseContract(t, `{"requirements":[`+strings.Join(requirements, ",")+`]}`)

	var many []lint.Signer
	for i := range 1000 {
		many = append(many, key(int64(i+1), fmt.Sprintf("cn=k%d,ou=u,o=acme", i)))
	}
	few := many[:100]
	review := lint.Check(c, facts(c, nil, few...))
	if len(review.Findings) != lint.MaxFindings || review.Truncated != 3 || review.Unchecked != "" {
		t.Errorf("%d findings, %d more, unchecked: %s", len(review.Findings), review.Truncated, review.Unchecked)
	}

	for i, want := range []string{"200 entries, at most 50", "4061 in all lists together, at most 256"} {
		if f := review.Findings[1+i]; f.Code != lint.FindingTooLarge || !strings.Contains(f.Message, want) {
			t.Errorf("found %+v, want too_large with %q", f, want)
		}
	}

	review = lint.Check(c, facts(c, nil, many...))
	if !strings.Contains(review.Unchecked, "3862000 steps") {
		t.Errorf("unchecked: %q", review.Unchecked)
	}
	if i := slices.IndexFunc(review.Findings, func(f lint.Finding) bool { return f.Code == "nobody_matches" }); i >= 0 {
		t.Errorf("found without a check: %+v", review.Findings[i])
	}

	c = parseContract(t, `{"requirements":[{"state":"PROMOTABLE","predicate":"vsa:*"},`+deployByOps+`]}`)
	incomplete := facts(c, nil, few...)
	incomplete.Missing = true
	review = lint.Check(c, incomplete)
	if !strings.Contains(review.Unchecked, "more than 100 identities") || len(review.Findings) > 0 {
		t.Errorf("%+v, unchecked: %q", review.Findings, review.Unchecked)
	}
}

// A stored contract of an earlier release lets everybody link artifacts, unless it names who does.
func TestAnyLinker(t *testing.T) {
	for rest, want := range map[string]bool{
		``: true, `,"artifacts":{"signers":["ou=build"]}`: false, `,"rules":2`: false,
	} {
		c, err := policy.ParseStored([]byte(`{"requirements":[],"targets":"all"` + rest + `}`))
		must.OK(t, err)
		got := slices.ContainsFunc(lint.Check(c, lint.Facts{}).Findings,
			func(f lint.Finding) bool { return f.Code == lint.FindingAnyLinker })
		if got != want {
			t.Errorf("%s: any_linker %t, want %t", c.Canonical(), got, want)
		}
	}
}

// A stored contract of an earlier release believes what registrations say of changed paths.
func TestUnsignedPaths(t *testing.T) {
	const paths = `{"state":"ATTESTED","predicate":"test:*","signers":["ou=build"],"paths":["billing/**"]}`
	for name, test := range map[string]struct {
		requirements, rest string
		want               string // of the finding, or "" for none
	}{
		"without a number": {requirements: testByCI + "," + paths, want: "requirements[1].paths: anybody with a write " +
			"token can keep requirements[1] from applying: by the rules of an earlier release, registrations say which " +
			"paths a commit changes"},
		"two of rules 3": {requirements: paths + "," + reviewByAda + "," + paths, rest: `,"rules":3`,
			want: "requirements[0].paths: anybody with a write token can keep requirements[0] and requirements[2] from"},
		"rules 3 without paths": {requirements: testByCI, rest: `,"rules":3`},
		"rules 4":               {requirements: paths, rest: `,"rules":4`},
	} {
		c, err := policy.ParseStored([]byte(`{"requirements":[` + test.requirements + `],"targets":"all"` + test.rest + `}`))
		must.OK(t, err)
		got := ""
		for _, f := range lint.Check(c, lint.Facts{}).Findings {
			if f.Code == lint.FindingUnsignedPaths {
				got += f.Field + ": " + f.Message
			}
		}
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

// Lint says whether everybody or nobody links artifacts, if there are any.
func TestWhoLinks(t *testing.T) {
	builder := key(4, "cn=b,ou=build,o=acme", "build:*")
	everybody := []lint.Signer{ci, reviewer, platform}
	for name, test := range map[string]struct {
		rest    string
		signers []lint.Signer
		without bool // artifacts
		want    []string
	}{
		"everybody": {rest: `,"artifacts":{"signers":["cn=*"]}`, want: []string{"any_linker artifacts.signers"}},
		"everybody, with a builder": {rest: `,"artifacts":{"signers":["ou=build","cn=**,o=*"]}`,
			want: []string{"any_linker artifacts.signers"}},
		"everybody there is": {rest: `,"artifacts":{"signers":["o=acme"]}`, want: []string{"any_linker artifacts.signers"}},
		"everybody, and a root": {rest: `,"artifacts":{"signers":["cn=*"]}`, signers: append(everybody, root("")),
			want: []string{"any_linker artifacts.signers"}},
		"a name, and a root":        {rest: `,"artifacts":{"signers":["o=acme"]}`, signers: append(everybody, root(""))},
		"a name":                    {rest: `,"artifacts":{"signers":["ou=build"]}`},
		"the only identity":         {rest: `,"artifacts":{"signers":["ou=build"]}`, signers: []lint.Signer{ci}},
		"nobody":                    {want: []string{"nobody_links artifacts"}},
		"nobody, without artifacts": {without: true},
		"a builder":                 {signers: append(everybody, builder)},
		"a list that includes builds": {signers: append(everybody, key(4, "cn=b,ou=build,o=acme", "b*")),
			want: []string{"nobody_links artifacts"}},
	} {
		c := parseContract(t, `{"requirements":[`+testByCI+","+reviewByAda+","+deployByOps+`]`+test.rest+`}`)
		if test.signers == nil {
			test.signers = everybody
		}
		f := facts(c, nil, test.signers...)
		f.HasArtifacts = !test.without
		isOther := func(finding string) bool { return !strings.Contains(finding, " artifacts") }
		got := slices.DeleteFunc(findings(lint.Check(c, f)), isOther)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

// Commits whose authors the org does not know are counted for what leaves authors out.
func TestUnknownAuthors(t *testing.T) {
	for _, tc := range []struct {
		rule    string
		unknown int
		want    string // of the finding, or "" for none
	}{
		{`true`, 2, "2 of the newest 10 commits are by somebody whom the org does not know, so an author who signs by " +
			"another name counts"},
		{`"proven"`, 2, "so an author who signs by another name counts"},
		{`"known"`, 2, "so no signature counts for these"},
		{`"known"`, 0, ""},
		{`false`, 2, ""},
	} {
		c := parseContract(t, `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=review"],`+
			`"exclude_author":`+tc.rule+`}]}`)
		f := facts(c, nil, reviewer)
		f.UnknownAuthors, f.NewestCommits = tc.unknown, 10
		got := ""
		for _, finding := range lint.Check(c, f).Findings {
			if finding.Code == lint.FindingAuthorUnknown {
				got = finding.Message
			}
		}
		if !strings.HasSuffix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("exclude_author %s, %d unknown: found %q, want %q", tc.rule, tc.unknown, got, tc.want)
		}
	}
}

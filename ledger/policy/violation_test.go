package policy

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestViolation(t *testing.T) {
	c := mustParse(t,
		`{"state":"ATTESTED","predicate":"test:*"}`,
		`{"state":"PROMOTABLE","predicate":"review:*"}`,
		`{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=platform"],"distinct_from":["PROMOTABLE"],`+
			`"branches":["main"]}`)
	tested, reviewed := signed(ci, "test:go", ledger.Pass), signed(bob, "review:code", ledger.Pass)
	elsewhere := attested(tested, reviewed)
	elsewhere.Targets = []string{"topic"}
	const reviewer = "cn=rev,ou=platform"

	for name, test := range map[string]struct {
		facts    Facts
		evidence Evidence
		missing  string // joined; empty if it is no violation
	}{
		"a deployment that counts": {attested(tested, reviewed), signed(ops, "deploy:prod", ledger.Pass), ""},
		"one that failed":          {attested(), signed(bob, "deploy:prod", ledger.Fail), ""},
		"another environment":      {attested(), signed(bob, "deploy:staging", ledger.Pass), ""},
		"a review":                 {attested(), signed(bob, "review:code", ledger.Pass), ""},
		"before the commit was PROMOTABLE": {attested(tested), signed(ops, "deploy:prod", ledger.Pass).early(),
			"review:*: 0 of 1 signatures / deploy:prod: 0 of 1 signatures matching ou=platform; recorded before"},
		"by a signer who is not accepted": {attested(tested, reviewed), signed(bob, "deploy:prod", ledger.Pass),
			"deploy:prod: 0 of 1 signatures matching ou=platform"},
		"by another one than the first": {attested(tested, reviewed, signed(ops, "deploy:prod", ledger.Pass)),
			signed(bob, "deploy:prod", ledger.Pass), "deploy:prod: " + bob + " does not count"},
		"by the only reviewer": {attested(tested, signed(reviewer, "review:code", ledger.Pass)),
			signed(reviewer, "deploy:prod", ledger.Pass), "1 more person is needed, who is not needed for PROMOTABLE"},
		"despite a failure": {attested(tested, reviewed, signed(ci, "deploy:prod", ledger.Fail)),
			signed(ops, "deploy:prod", ledger.Pass), "deploy:prod failed (" + ci + ")"},
		"from another branch": {elsewhere, signed(ops, "deploy:prod", ledger.Pass),
			"deploy:prod does not apply: the target branch is topic"},
	} {
		t.Run(name, func(t *testing.T) {
			f, e := test.facts, test.evidence
			e.Attestation = "att_z"
			f.Evidence = append(f.Evidence, e)
			missing, ok := c.Violation(f, e, policyNow)
			if text := strings.Join(missing, " / "); ok != (test.missing != "") || !strings.Contains(text, test.missing) {
				t.Errorf("violation %t: %q, want %q", ok, text, test.missing)
			}
		})
	}
}

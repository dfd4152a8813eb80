package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// baselineBy returns the baseline of an environment by a signer.
func baselineBy(dn, environment string) Evidence {
	signer, err := identity.ParseDN(dn)
	if err != nil {
		panic(err)
	}
	return Evidence{Predicate: ledger.BaselinePredicate(environment), PredicateType: ledger.BaselineType,
		Signer: signer, Status: ledger.Recorded}
}

// Only who may deploy to an environment sets its baseline: by the identity, and by the contract if it names deployments
// there.
func TestCheckBaseline(t *testing.T) {
	contract, err := Parse([]byte(`{"requirements":[
		{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=cd"]},
		{"state":"DEPLOYED","predicate":"deploy:eu","signers":["ou=cd"],"branches":["main"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	onMain, onOther := Facts{Targets: []string{"main"}}, Facts{Targets: []string{"next"}}

	for _, test := range []struct {
		name, dn, may, environment string
		facts                      Facts
		want                       string // in the error
	}{
		{"a deployer", "cn=ann,ou=cd,o=acme", "baseline:* deploy:prod", "prod", onMain, ""},
		{"all deployments", "cn=ann,ou=cd,o=acme", "baseline:* deploy:*", "prod", onMain, ""},
		{"everything", "cn=ann,ou=cd,o=acme", "* baseline:*", "prod", onMain, ""},
		{"no deployments", "cn=ann,ou=cd,o=acme", "baseline:*", "prod", onMain,
			"ledgerd identity update idn_1 --may 'baseline:*,deploy:prod'"},
		{"other deployments", "cn=ann,ou=cd,o=acme", "baseline:* deploy:eu", "prod", onMain, "may not attest deploy:prod"},
		{"not by the policy", "cn=eve,ou=build,o=acme", "baseline:* deploy:*", "prod", onMain,
			"cn=eve,ou=build,o=acme does not deploy to prod"},
		{"an environment that the policy does not name", "cn=eve,ou=build,o=acme", "baseline:* deploy:*", "test", onMain, ""},
		{"the branch of the requirement", "cn=ann,ou=cd,o=acme", "baseline:* deploy:*", "eu", onMain, ""},
		{"another branch", "cn=ann,ou=cd,o=acme", "baseline:* deploy:*", "eu", onOther, "does not deploy to eu"},
	} {
		e := baselineBy(test.dn, test.environment)
		signer := identity.Signer{Identity: "idn_1", DN: e.Signer, May: strings.Fields(test.may)}
		err := contract.CheckBaseline(test.facts, e, &signer)
		fault, _ := errors.AsType[*ledger.Error](err)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (fault == nil || fault.Code != ledger.CodePredicateNotAllowed ||
			!strings.Contains(fault.Detail, test.want)):
			t.Errorf("%s: %v, want an error with %q", test.name, err, test.want)
		}

		e.PredicateType = ledger.ResultType // of an earlier release
		if err := contract.CheckBaseline(test.facts, e, &signer); err != nil {
			t.Errorf("%s: an ordinary result is refused: %v", test.name, err)
		}
	}
}

// A baseline says what runs, and meets no requirement, whatever the contract asks for.
func TestBaselinesMeetNoRequirement(t *testing.T) {
	contract, err := Parse([]byte(`{"requirements":[
		{"state":"PROMOTABLE","predicate":"*","accept":["pass","recorded"]},
		{"state":"DEPLOYED","predicate":"deploy:*"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	e := baselineBy("cn=ann,ou=cd,o=acme", "prod")
	e.Attestation = "att_1"
	f := Facts{Attested: true, Evidence: []Evidence{e}}
	if state := contract.Derive(f, 1).State; state > ledger.Attested {
		t.Errorf("the state is %s", state)
	}
	if contract.RollsBack(f, e) || contract.Effect(f, e, true, false) != Based {
		t.Error("it is taken for a rollback, or has another effect than Based")
	}
}

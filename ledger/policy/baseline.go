package policy

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// CheckBaseline returns CodePredicateNotAllowed if e is a baseline by a signer who may not deploy to its environment:
// the identity may not attest deployments to it, or by the contract they would not count.
func (c Contract) CheckBaseline(f Facts, e Evidence, s *identity.Signer) error {
	environment, ok := ledger.BaselineOf(e.Predicate, e.PredicateType)
	if !ok {
		return nil
	}

	d := e.deployment(environment)
	switch {
	case !s.May.Match(d.Predicate):
		return ledger.Errorf(ledger.CodePredicateNotAllowed,
			"%s may not attest %s: identity %s may not attest %s, and only who deploys to %s sets its baseline (to allow it, "+
				"an admin adds the pattern: ledgerd identity update %s --may '%s,%s')",
			s.DN, e.Predicate, s.Identity, d.Predicate, environment, s.Identity, s.May, d.Predicate)
	case c.isDeployment(&d) && !c.isDeployer(c.scopes(&f), &d, nil):
		return ledger.Errorf(ledger.CodePredicateNotAllowed,
			"by the policy, %s does not deploy to %s, so it sets no baseline there (sign with the key of a deployer, or name "+
				"the signer in the requirement for %s)", s.DN, environment, d.Predicate)
	}
	return nil
}

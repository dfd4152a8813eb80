package store

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/signers"
)

// An environmentNote is what an attestation says of an environment.
type environmentNote struct {
	name string // empty if it says nothing
	// predicateID is the row of the predicate of the deployments to it, or without an environment that
	// of the attestation.
	predicateID int64
	isRollback  bool
	// required reports whether a DEPLOYED requirement names the predicate.
	required bool
}

// environmentOf returns what an attestation with the given predicate says of an environment.
func (t *tx) environmentOf(s *subject, e *policy.Evidence, predicateID int64) (n environmentNote, err error) {
	n.predicateID = predicateID
	if n.name, n.isRollback = ledger.RollbackOf(e.Predicate, e.PredicateType); !n.isRollback {
		var ok bool
		if n.name, ok = ledger.EnvironmentOf(e.Predicate); !ok {
			return environmentNote{predicateID: predicateID}, nil
		}
	}

	predicate, predicateType := e.Predicate, e.PredicateType
	if n.isRollback {
		predicate, predicateType = ledger.EnvironmentPredicate(n.name), ledger.ResultType
		n.predicateID, err = t.s.Signers.RowFor(t.kernel, signers.PredicateOf(s.d.repo.OrgID, predicate), identity.DN{})
	}
	n.required = s.d.contract.RequiresDeployment(predicate, predicateType)
	return n, err
}

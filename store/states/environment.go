package states

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An environmentNote is what an attestation says of an environment.
type environmentNote struct {
	Name string // empty if it says nothing
	// PredicateID is the row of the predicate of the deployments to it, or without an environment that
	// of the attestation.
	PredicateID int64
	IsRollback  bool
	// Required reports whether a DEPLOYED requirement names the predicate.
	Required bool
}

// EnvironmentOf returns what an attestation with the given predicate says of an environment.
func (st *States) EnvironmentOf(t *txn.Tx, s *facts.Commit, e *policy.Evidence, predicateID int64) (n environmentNote,
	err error) {
	n.PredicateID = predicateID
	if n.Name, n.IsRollback = ledger.RollbackOf(e.Predicate, e.PredicateType); !n.IsRollback {
		var ok bool
		if n.Name, ok = ledger.EnvironmentOf(e.Predicate); !ok {
			return environmentNote{PredicateID: predicateID}, nil
		}
	}

	predicate, predicateType := e.Predicate, e.PredicateType
	if n.IsRollback {
		predicate, predicateType = ledger.EnvironmentPredicate(n.Name), ledger.ResultType
		n.PredicateID, err = st.signers.RowFor(t, signers.PredicateOf(s.Deriver.Repo.OrgID, predicate), identity.DN{})
	}
	n.Required = s.Deriver.Contract.RequiresDeployment(predicate, predicateType)
	return n, err
}

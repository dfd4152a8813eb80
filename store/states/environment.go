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
	// IsRollback and IsBaseline report what it is about; otherwise it is a deployment.
	IsRollback, IsBaseline bool
	// Required reports whether a DEPLOYED requirement names the predicate.
	Required bool
}

// EnvironmentOf returns what an attestation with the given predicate says of an environment.
func (st *States) EnvironmentOf(t *txn.Tx, s *facts.Commit, e *policy.Evidence, predicateID int64) (n environmentNote,
	err error) {
	n.PredicateID = predicateID
	if n.Name, n.IsRollback = ledger.RollbackOf(e.Predicate, e.PredicateType); !n.IsRollback {
		n.Name, n.IsBaseline = ledger.BaselineOf(e.Predicate, e.PredicateType)
	}
	if n.IsRollback || n.IsBaseline {
		predicate := ledger.EnvironmentPredicate(n.Name)
		n.Required = s.Deriver.Contract.RequiresDeployment(predicate, ledger.ResultType)
		n.PredicateID, err = st.signers.RowFor(t, signers.PredicateOf(s.Deriver.Repo.OrgID, predicate), identity.DN{})
		return n, err
	}

	var ok bool
	if n.Name, ok = ledger.EnvironmentOf(e.Predicate); !ok {
		return environmentNote{PredicateID: predicateID}, nil
	}
	n.Required = s.Deriver.Contract.RequiresDeployment(e.Predicate, e.PredicateType)
	return n, nil
}

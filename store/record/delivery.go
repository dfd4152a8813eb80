package record

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// uncovered says why a deployment of a commit does not count for what it ships. It is nil if it may.
func (re *Recorder) uncovered(t *txn.Tx, s *facts.Commit, e *policy.Evidence) ([]string, error) {
	environment, ok := ledger.EnvironmentOf(e.Predicate)
	if !ok {
		return []string{e.Predicate + " names no environment"}, nil
	}
	if err := t.Flush(); err != nil { // what this write has recorded of the others
		return nil, err
	}
	d, err := re.lists.Ships(t.Reader, s, environment)
	if err != nil {
		return nil, err
	}
	return d.Reasons(), nil
}

package derived

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// selectUncounted are attestations, and whether they are violations: of each commit, one of a predicate is open at a
// time.
const selectUncounted = `
SELECT a.commit_id, a.id, p.name, t.uri, a.status, a.event_id, EXISTS (
  SELECT 1 FROM violations v /*+index violations_by_commit*/
  WHERE v.commit_id = a.commit_id AND v.predicate_id = a.predicate_id AND (v.attestation_id = a.id
    OR v.attestation_id < a.id AND (v.closed_by = '' OR v.closed_by > a.attestation_id)))
FROM attestations a /*+ordered*/ JOIN predicates p ON p.id = a.predicate_id
  /*+ordered*/ JOIN predicate_types t ON t.id = a.type_id
WHERE a.id IN `

// excuse takes from what is uncounted the deployments that may not have counted for what they shipped: the contract of
// their time asked for that, and those with a pass are violations, as the log says. Whether anything was not covered is
// not derived again: that follows from the evidence of other commits at the time, and 'ledgerd verify --rederive' does
// it. One that shipped what was not covered, and whose row says that it counts, is found only if its commit has another
// state than that gives.
func excuse(conn *sqldb.Conn, repo int64, page []*commit) error {
	byID := make(map[int64]*commit)
	var rows []any
	for _, v := range page {
		if v.evidence.isRolledBack {
			continue
		}
		byID[v.id] = v
		for id := range v.evidence.uncounted {
			rows = append(rows, id)
		}
	}
	if rows == nil {
		return nil
	}

	contracts, err := contractsOf(conn, repo)
	if err != nil {
		return err
	}
	err = conn.EachIn(func(row sqldb.Scanner) error {
		var commit, id int64
		var e policy.Evidence
		var event string
		var isViolation bool
		err := row.Scan(&commit, &id, &e.Predicate, &e.PredicateType, &e.Status, &event, &isViolation)
		c := contractAt(contracts, event)
		if c != nil && c.Delivers(&e) && isViolation == c.IsDeployment(e) { // others that are accepted are none
			delete(byID[commit].evidence.uncounted, id)
		}
		return err
	}, selectUncounted, 1, rows)
	if err != nil {
		return fmt.Errorf("read what did not count: %w", err)
	}
	return nil
}

package derived

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	selectLatest = `
SELECT commit_id, predicate_id, slot, signer_id, attestation_id FROM latest WHERE commit_id IN `
	selectRecords = `
SELECT a.commit_id, a.id, a.previous, a.attestation_id, a.predicate_id, a.slot, a.signer_id, a.status,
  a.mapping_version, a.identity_id, CASE a.aged_from WHEN 0 THEN a.recorded_at ELSE a.aged_from END, a.event_id,
  a.while_promotable, p.name >= 'rollback:' AND p.name < 'rollback;'
FROM attestations a /*+index attestations_by_commit*/ /*+ordered*/ JOIN predicates p ON p.id = a.predicate_id
WHERE a.commit_id IN `
)

// readLatest reads the attestations of commits, and which of them are stored as the latest.
func readLatest(conn *sqldb.Conn, org int64, page []*commit) error {
	byID, ids := make(map[int64]*commit, len(page)), make([]any, len(page))
	for i, v := range page {
		v.evidence = evidenceOf{
			stored: make(map[topic]latest), derived: make(map[topic]latest), replaced: make(map[topic]bool),
		}
		byID[v.id], ids[i] = v, v.id
	}
	err := conn.EachIn(func(row sqldb.Scanner) error {
		var commit int64
		var t topic
		var l latest
		err := row.Scan(&commit, &t.predicate, &t.slot, &t.signer, &l.id)
		byID[commit].evidence.stored[t] = l
		return err
	}, selectLatest, 1, ids)
	if err != nil {
		return fmt.Errorf("read the latest attestations: %w", err)
	}
	distrusted, isReplacing, err := readDistrusted(conn, org)
	if err != nil {
		return err
	}

	err = conn.EachIn(func(row sqldb.Scanner) error {
		var commit int64
		var t topic
		var l latest
		var n predecessor
		var mapping int
		var identity, event string
		var at ledger.Time
		var whilePromotable, isRollback bool
		err := row.Scan(&commit, &n.id, &n.previous, &l.public, &t.predicate, &t.slot, &t.signer, &l.status, &mapping,
			&identity, &at, &event, &whilePromotable, &isRollback)
		l.id = n.id

		v := byID[commit]
		e := &v.evidence
		e.judge(v.stateBefore(event), l, whilePromotable)
		e.isRolledBack = e.isRolledBack || isRollback
		e.chain = append(e.chain, n)
		e.isUnmapped = e.isUnmapped || mapping < attestation.MappingVersion
		since, isDistrusted := distrusted[identity]
		isDistrusted = isDistrusted && since <= at
		if e.stored[t].id == l.id {
			e.stored[t] = l
			e.replaced[t] = isDistrusted && isReplacing
		}
		if !isDistrusted {
			e.add(t, l)
		}
		return err
	}, selectRecords, 1, ids)
	if err != nil {
		return fmt.Errorf("read attestations: %w", err)
	}
	return nil
}

// readDistrusted returns since when identities of an org are distrusted, and whether what they have
// attested is still to be replaced.
func readDistrusted(conn *sqldb.Conn, org int64) (since map[string]ledger.Time, isReplacing bool, err error) {
	since = make(map[string]ledger.Time)
	err = conn.Each(func(row sqldb.Scanner) error {
		var id string
		var at ledger.Time
		err := row.Scan(&id, &at)
		since[id] = at
		return err
	}, "SELECT identity_id, distrusted_since FROM identities WHERE org_id = ? AND distrusted_since > 0", org)
	if err == nil {
		err = conn.Row("SELECT EXISTS (SELECT 1 FROM backlog WHERE org_id = ? AND kind = 'distrust')", org).Scan(&isReplacing)
	}
	if err != nil {
		return nil, false, fmt.Errorf("read distrusted identities: %w", err)
	}
	return since, isReplacing, nil
}

// latest compares the latest attestations of a commit with all that it has.
func (o *Org) latest(org, row string, v *commit) {
	e := &v.evidence
	if e.isUnmapped {
		o.Uncheckedf("%s: the latest attestations of commits: statements are still to be mapped by the rules of this release",
			org)
	} else {
		o.compareLatest(org, row, e)
	}

	for _, public := range slices.Concat(e.unlike, slices.Sorted(maps.Values(e.uncounted))) {
		if !e.isRolledBack {
			o.Problemf(verify.CheckRecord, org, row, "%s was not recorded in the state of the commit that its row says", public)
		}
	}

	slices.SortFunc(e.chain, func(a, b predecessor) int { return cmp.Compare(a.id, b.id) })
	last := int64(0)
	for _, n := range e.chain {
		if n.previous != last {
			o.Problemf(verify.CheckRecord, org, row,
				"the one in row %d was recorded after row %d, and its row says after row %d", n.id, last, n.previous)
		}
		last = n.id
	}
	if n := int64(len(e.chain)); v.attestations != n || v.newest != last {
		o.Problemf("counter", org, row, "it counts %d attestations, the last of them row %d, and has %d, the last row %d",
			v.attestations, v.newest, n, last)
	}
}

func (o *Org) compareLatest(org, row string, e *evidenceOf) {
	for t, l := range e.derived {
		if stored := e.stored[t]; stored.id != l.id && !e.replaced[t] {
			o.Problemf("latest", org, row, "attestation %s is the latest of its signer, and the row is of %s", l.public,
				cmp.Or(stored.public, "none"))
		}
	}
	for t, l := range e.stored {
		switch _, ok := e.derived[t]; {
		case e.replaced[t]:
			o.Uncheckedf("%s: the latest attestations of some commits: distrusted ones are still to be replaced", org)
		case !ok:
			o.Problemf("latest", org, row, "the row is of attestation %s, and none of its signer counts",
				cmp.Or(l.public, fmt.Sprint("in row ", l.id)))
		}
	}
}

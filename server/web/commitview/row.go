package commitview

import "github.com/ledgerd/ledgerd/ledger"

// A Row is an attestation in a list, with those that differ from it only in their slot.
type Row struct {
	Shard
	// Others are older, or as old.
	Others []Shard
}

// A rowKey is what the attestations of a row have in common.
type rowKey struct {
	commit, predicate, identity string
	status                      ledger.Status
	distrusted                  bool
}

// Rows folds attestations that differ only in their slot into one row, in the order of the
// first of each.
func Rows(list []ledger.AttestationRecord) []Row {
	var rows []Row
	places := make(map[rowKey]int)
	for _, a := range list {
		key := rowKey{a.Commit, a.Predicate, a.Identity, a.Result.Status, a.Distrusted}
		at, ok := places[key]
		if ok && a.Slot != "" && rows[at].Slot != "" {
			rows[at].Others = append(rows[at].Others, Shard{AttestationRecord: a})
			continue
		}
		places[key] = len(rows)
		rows = append(rows, Row{Shard: Shard{AttestationRecord: a}})
	}
	return rows
}

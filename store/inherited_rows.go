package store

import "github.com/ledgerd/ledgerd/ledger"

// inherited is the evidence recorded in a write that other commits inherit. It is written
// by flush.
type inherited struct {
	latest map[treeKey]treeRow
	// trees and sources are those whose evidence has changed, with how often and why.
	trees, sources map[int64]change
}

// A treeKey is the key of the table tree_latest.
type treeKey struct {
	tree, predicate int64
	slot            string
	signer          int64
	stated          bool
}

// A treeRow is the rest of a row of tree_latest: an attestation, and its commit.
type treeRow struct {
	attestation, commit int64
	failed              bool
}

// A change of what commits inherit.
type change struct {
	times int64
	cause ledger.Cause
}

// note notes that a tree or a source has changed.
func note(changes *map[int64]change, id int64, cause ledger.Cause) {
	if *changes == nil {
		*changes = make(map[int64]change)
	}
	(*changes)[id] = change{(*changes)[id].times + 1, cause}
}

// bufferTo adds the rows to the buffers, and forgets them. It reports whether there are any.
func (in *inherited) bufferTo(rows *buffers) bool {
	if len(in.trees)+len(in.sources) == 0 {
		return false
	}
	for key, row := range in.latest {
		rows.treeLatest.Add(key.tree, key.predicate, key.slot, key.signer, key.stated, row.attestation,
			row.commit, row.failed)
	}
	for id, change := range in.trees {
		rows.treeVersions.Add(id, change.times, int64(0))
		rows.inheritances.Add(id, int64(0), string(change.cause.Type), change.cause.ID, int64(0), int64(0))
	}
	for id, change := range in.sources {
		rows.mergeSources.Add(id, change.times)
		rows.inheritances.Add(int64(0), id, string(change.cause.Type), change.cause.ID, int64(0), int64(0))
	}
	clear(in.latest)
	clear(in.trees)
	clear(in.sources)
	return true
}

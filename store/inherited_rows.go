package store

// inherited is the evidence recorded in a write that other commits inherit. It is written
// by flush.
type inherited struct {
	latest map[treeKey]treeRow
	// trees and sources are those whose evidence has changed, with how often.
	trees, sources map[int64]int64
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

// countChange notes that a tree or a source has changed once more.
func countChange(changes *map[int64]int64, id int64) {
	if *changes == nil {
		*changes = make(map[int64]int64)
	}
	(*changes)[id]++
}

// bufferTo adds the rows to the buffers, and forgets them.
func (in *inherited) bufferTo(rows *buffers) {
	for key, row := range in.latest {
		rows.treeLatest.Add(key.tree, key.predicate, key.slot, key.signer, key.stated, row.attestation,
			row.commit, row.failed)
	}
	for id, times := range in.trees {
		rows.treeVersions.Add(id, times, int64(0))
	}
	for id, times := range in.sources {
		rows.mergeSources.Add(id, times)
	}
	clear(in.latest)
	clear(in.trees)
	clear(in.sources)
}

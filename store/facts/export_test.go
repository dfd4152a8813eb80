package facts

import "github.com/ledgerd/ledgerd/ledger/radar"

// AddPaths returns all paths that were ever claimed.
func AddPaths(claimed []string, before, now []radar.Change) []string {
	return addPaths(claimed, before, now)
}

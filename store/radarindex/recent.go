package radarindex

import (
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Recent caches the footprints of the tips that this process registered last:
// concurrent registrations have to be compared with them. Its size is bounded.
// It is not safe for concurrent use.
type Recent struct {
	tips [64]recentTip
	next int
}

// maxRecentNames is the maximum number of paths of a cached footprint.
const maxRecentNames = 1000

type recentTip struct {
	commitID, seq int64
	policyVersion int
	footprint     *radar.Footprint
}

// Add caches the footprint of a tip under the contract that t.PolicyVersion
// names. It replaces the oldest. A footprint of too many paths is not cached.
func (r *Recent) Add(t Tip, footprint *radar.Footprint) {
	if len(footprint.Names()) > maxRecentNames {
		return
	}
	r.tips[r.next%len(r.tips)] = recentTip{t.CommitID, t.Seq, t.PolicyVersion, footprint}
	r.next++
}

// Footprint returns the cached footprint of a tip under a version of the
// contract; nil if there is none.
func (r *Recent) Footprint(t *Tip, policyVersion int) *radar.Footprint {
	for i := range r.tips {
		known := &r.tips[i]
		if known.commitID == t.CommitID && known.seq == t.Seq && known.policyVersion == policyVersion {
			return known.footprint
		}
	}
	return nil
}

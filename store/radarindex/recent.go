package radarindex

import (
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Recent caches the footprints of the tips that this process registered last, to
// compare them with concurrent registrations. Its size is bounded. It is not safe
// for concurrent use.
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

// Add caches the footprint of a tip under the contract version t.PolicyVersion,
// in place of the oldest one. It ignores a footprint with too many paths.
func (r *Recent) Add(t Tip, footprint *radar.Footprint) {
	if len(footprint.Names()) > maxRecentNames {
		return
	}
	r.tips[r.next%len(r.tips)] = recentTip{t.CommitID, t.Seq, t.PolicyVersion, footprint}
	r.next++
}

// Footprint returns the cached footprint of a tip under a contract version, or
// nil if it is not cached.
func (r *Recent) Footprint(t *Tip, policyVersion int) *radar.Footprint {
	for i := range r.tips {
		cached := &r.tips[i]
		if cached.commitID == t.CommitID && cached.seq == t.Seq && cached.policyVersion == policyVersion {
			return cached.footprint
		}
	}
	return nil
}

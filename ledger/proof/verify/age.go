package verify

import (
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
)

// CosignedAt returns the latest time at which a quorum of the policy's witnesses had cosigned a
// checkpoint, given its cosignatures: zero without any. Cosignatures from the future count
// as much as others.
func CosignedAt(p *trustpolicy.Policy, cosigned []trustpolicy.Cosignature) time.Time {
	times := make([]time.Time, 0, len(cosigned))
	for _, c := range cosigned {
		times = append(times, c.Time)
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	for _, at := range times {
		if p.Satisfied(func(witness string) bool {
			return slices.ContainsFunc(cosigned, func(c trustpolicy.Cosignature) bool {
				return c.Witness == witness && !c.Time.Before(at)
			})
		}) {
			return at
		}
	}
	return time.Time{}
}

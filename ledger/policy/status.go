package policy

import "github.com/ledgerd/ledgerd/ledger"

// A statusSet is a set of statuses.
type statusSet uint8

const (
	passBit statusSet = 1 << iota
	warnBit
	failBit
	errorBit
	skipBit
	recordedBit

	failures = failBit | errorBit
)

func setOf(statuses ...ledger.Status) (set statusSet) {
	for _, s := range statuses {
		switch s {
		case ledger.Pass:
			set |= passBit
		case ledger.Warn:
			set |= warnBit
		case ledger.Fail:
			set |= failBit
		case ledger.Errored:
			set |= errorBit
		case ledger.Skip:
			set |= skipBit
		case ledger.Recorded:
			set |= recordedBit
		}
	}
	return set
}

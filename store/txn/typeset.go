package txn

import "github.com/ledgerd/ledgerd/ledger"

// A TypeSet is a set of event types, as a bit set in the database.
type TypeSet int64

// TypeBit returns the set that contains only kind.
func TypeBit(kind ledger.EventType) TypeSet {
	for i, t := range ledger.EventTypes() {
		if t == kind {
			return 1 << i
		}
	}
	return 0
}

// TypeSetOf returns the set of some types.
func TypeSetOf(types []ledger.EventType) (set TypeSet) {
	for _, t := range types {
		set |= TypeBit(t)
	}
	return set
}

// Types returns the types in the set, in the order of ledger.EventTypes.
func (s TypeSet) Types() []ledger.EventType {
	var types []ledger.EventType
	for _, t := range ledger.EventTypes() {
		if s&TypeBit(t) != 0 {
			types = append(types, t)
		}
	}
	return types
}

package store

import "github.com/ledgerd/ledgerd/ledger"

// A typeSet is a set of event types, as a bit set in the database.
type typeSet int64

// typeBit returns the set that contains only kind.
func typeBit(kind ledger.EventType) typeSet {
	for i, t := range ledger.EventTypes() {
		if t == kind {
			return 1 << i
		}
	}
	return 0
}

func typeSetOf(types []ledger.EventType) (set typeSet) {
	for _, t := range types {
		set |= typeBit(t)
	}
	return set
}

func (s typeSet) types() []ledger.EventType {
	var types []ledger.EventType
	for _, t := range ledger.EventTypes() {
		if s&typeBit(t) != 0 {
			types = append(types, t)
		}
	}
	return types
}

// A hookKey holds the row id and the public id of a webhook.
type hookKey struct {
	id     int64
	public string
}

// A hook is an active webhook with its event types.
type hook struct {
	hookKey
	events typeSet
}

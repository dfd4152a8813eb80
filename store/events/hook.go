package events

import "github.com/ledgerd/ledgerd/store/txn"

// A HookKey holds the row id and the public id of a webhook.
type HookKey struct {
	ID     int64
	Public string
}

// A Hook is an active webhook with its event types.
type Hook struct {
	HookKey
	events txn.TypeSet
}

package store

import "github.com/ledgerd/ledgerd/store/txn"

// A hookKey holds the row id and the public id of a webhook.
type hookKey struct {
	id     int64
	public string
}

// A hook is an active webhook with its event types.
type hook struct {
	hookKey
	events txn.TypeSet
}

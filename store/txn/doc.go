// Package txn is what all rooms of the store share: the ledger's clock, the identifiers, pages
// and walks of lists, caches, and the errors of the storage. It knows no commits and no policies.
// It has no table of its own.
package txn

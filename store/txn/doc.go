// Package txn is what all rooms of the store share: one read, one write, one page. It has the
// ledger's clock, identifiers, the buffers' place in a write, lists, caches, the row of a repo, and
// the errors of the storage, but decides nothing about commits and policies. It reads the tables
// orgs, repos and cursor_key, and writes none.
package txn

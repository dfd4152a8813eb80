// Package ledger is the subject of ledgerd itself: signed attestations about
// git commits, the identities that sign them, the policy contract that says
// what a commit needs, and the one function that derives a commit's state.
//
// The package is pure. It knows nothing of SQL, HTTP or clocks: what time it
// is and what has been recorded are arguments.
package ledger

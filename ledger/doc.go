// Package ledger defines the types that all of ledgerd shares: orgs, repos, commits and
// their states, events, errors, times, and the bodies of the HTTP API.
//
// Its subpackages hold the rules. Package identity verifies who signed, attestation
// parses what was signed, policy derives a commit's state from it, and radar finds
// commits that git could not merge. Package eventstream defines what the live stream
// sends for each event. All of them are pure: they use no SQL, HTTP or clock. The
// time and the recorded facts are arguments.
package ledger

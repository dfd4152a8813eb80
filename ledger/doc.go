// Package ledger holds the nouns that all of ledgerd shares: orgs, repos, commits and
// their states, events, errors, times, and the bodies of the HTTP API.
//
// The packages below it decide, along the way of an attestation: identity tells who
// signed, attestation what was said, policy what follows from it for a commit's
// state, and radar which commits git could not merge. Package eventstream says what
// the live stream sends for each event. All of them are pure. They
// know nothing of SQL, HTTP or clocks: what time it is and what has been recorded are
// arguments.
package ledger

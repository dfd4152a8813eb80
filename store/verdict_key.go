package store

import "github.com/ledgerd/ledgerd/ledger/policy"

// A verdictKey identifies what an expression says of an attestation, by row ids.
type verdictKey struct{ attestation, expression int64 }

// An unevaluated is an attestation on which an expression was not evaluated yet.
type unevaluated struct {
	row         int64  // of the attestation
	attestation string // its id
	expression  string
}

// A verdictRow is what an expression says of an attestation.
type verdictRow struct {
	unevaluated
	verdict policy.Verdict
}

package attestation

import "github.com/ledgerd/ledgerd/ledger"

const (
	// SignedCommitPredicate is the predicate of the SSH signature in a commit object. Only
	// the ledger gives it.
	SignedCommitPredicate = "signed:commit"
	// SignedCommitType is its predicate type. No statement may have it.
	SignedCommitType = "https://github.com/ledgerd/ledgerd/predicate/signed-commit/v1"
)

// IsCommitObject reports whether an envelope is a commit object, as that of an attestation
// that OfCommit returned. All others are JSON.
func IsCommitObject(envelope []byte) bool {
	const start = "tree "
	return len(envelope) > len(start) && string(envelope[:len(start)]) == start
}

// refuseSignedCommit refuses statements of SignedCommitType.
func refuseSignedCommit([]byte) (body, error) {
	return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType",
		"only the SSH signature in a commit object gives %s (register the commit with its object)", SignedCommitPredicate)
}

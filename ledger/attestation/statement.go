package attestation

import (
	"github.com/ledgerd/ledgerd/ledger"
)

// A statement is the content of an in-toto statement about a commit.
type statement struct {
	commit        string
	predicate     string
	predicateType string
	result        ledger.Result
}

// parseStatement parses an in-toto statement about a commit.
func parseStatement(payload []byte) (statement, error) {
	var doc statementJSON
	if err := decodeStatement(payload, &doc, ""); err != nil {
		return statement{}, err
	}
	if err := doc.check(); err != nil {
		return statement{}, err
	}
	body, err := doc.parsePredicate(payload[doc.Predicate.start:doc.Predicate.end])
	if err != nil {
		return statement{}, err
	}
	commit, err := doc.commit(body.sources)
	if err != nil {
		return statement{}, err
	}
	return statement{commit, body.predicate, doc.PredicateType, body.result}, nil
}

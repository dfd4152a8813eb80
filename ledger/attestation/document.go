package attestation

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// decodeStatement decodes a statement, or the part of it at the path prefix. Every error
// is a CodeInvalidStatement.
func decodeStatement(data []byte, v any, prefix string) error {
	err := ledger.DecodeForeign(data, v, ledger.CodeInvalidStatement, prefix)
	if err == nil {
		return checkMembers(reflect.ValueOf(v), ledger.CodeInvalidStatement, prefix)
	}
	if fault, ok := errors.AsType[*ledger.Error](err); ok && fault.Code != ledger.CodeInvalidStatement {
		detail := "invalid payload: " + fault.Detail
		return &ledger.Error{Code: ledger.CodeInvalidStatement, Detail: detail, Fields: fault.Fields}
	}
	return err
}

type statementJSON struct {
	Type          string         `json:"_type"`
	Subject       []resourceJSON `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     byteRange      `json:"predicate"`
	Other         otherMembers   `json:",embed"`
}

// A byteRange is the position of a value in the document. The predicate is decoded after
// the rest, because its type may come later in the document.
type byteRange struct{ start, end int64 }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *byteRange) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	s.end = dec.InputOffset()
	s.start = s.end - int64(len(value))
	return err
}

func (d *statementJSON) check() error {
	if d.Type != statementV1 && d.Type != statementV01 {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "_type", "%q is not a statement type (use %s or v0.1)",
			text.Clip(d.Type), statementV1)
	}
	if d.Subject == nil {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "subject", "required")
	}

	switch {
	case d.PredicateType == "":
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "required")
	case len(d.PredicateType) > maxPredicateType:
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "too long: at most %d bytes",
			maxPredicateType)
	case strings.ContainsFunc(d.PredicateType, notInURI):
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "%q has characters that a URI may not have",
			text.Clip(d.PredicateType))
	case !strings.Contains(d.PredicateType, "://") && withoutVersion(d.PredicateType) != chainloopType:
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType", "%q is not a URI (use e.g. %s)",
			text.Clip(d.PredicateType), ResultPredicateType)
	case strings.HasPrefix(d.PredicateType, ownPredicateTypes) && !slices.Contains(ownTypes(), d.PredicateType):
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType",
			"unknown predicate type %q (use %s)", text.Clip(d.PredicateType), strings.Join(ownTypes(), ", "))
	}
	return resources{"subject", d.Subject}.checkDigests()
}

func notInURI(r rune) bool { return r <= ' ' || r >= 0x7f }

// The types of an in-toto statement.
const (
	statementV1  = "https://in-toto.io/Statement/v1"
	statementV01 = "https://in-toto.io/Statement/v0.1"
)

// ResultPredicateType is the ledger's own predicate type: the name of a check and its
// result.
const ResultPredicateType = ledger.ResultType

// ExceptionPredicateType is the ledger's own predicate type for exceptions: somebody
// vouches for a commit in place of one requirement, until an end.
const ExceptionPredicateType = ownPredicateTypes + "exception/v1"

// MergePredicateType is the ledger's own predicate type for claims that a commit is a clean
// merge of a commit of the mainline and another commit.
const MergePredicateType = ownPredicateTypes + "merge/v1"

// RollbackPredicateType is the ledger's own predicate type for rollbacks: a commit no longer
// runs in an environment, and is not to be deployed there again.
const RollbackPredicateType = ledger.RollbackType

// BaselinePredicateType is the ledger's own predicate type for baselines: a commit runs in an environment since before
// deployments to it were recorded.
const BaselinePredicateType = ledger.BaselineType

// ownTypes returns the ledger's own predicate types that can be sent.
func ownTypes() []string {
	return []string{
		ResultPredicateType, ExceptionPredicateType, MergePredicateType, RollbackPredicateType, BaselinePredicateType,
		ledger.ChangesType,
	}
}

// ownPredicateTypes is the prefix of all present and future predicate types of the
// ledger.
const ownPredicateTypes = "https://github.com/ledgerd/ledgerd/predicate/"

// chainloopType is the type of the statements of Chainloop, without its version. It is no URI.
const chainloopType = "chainloop.dev/attestation"

const maxPredicateType = 512

package ledger

import (
	"fmt"
	"strings"
)

// A Code names one kind of failure. Codes are part of the API: clients branch
// on them, and docs/api.md lists each with its HTTP status.
type Code string

// The codes, grouped by cause.
const (
	// The request could not be read.
	CodeInvalidJSON          Code = "invalid_json"
	CodeUnknownField         Code = "unknown_field"
	CodeUnknownParameter     Code = "unknown_parameter"
	CodeInvalidParameter     Code = "invalid_parameter"
	CodeInvalidCursor        Code = "invalid_cursor"
	CodePayloadTooLarge      Code = "payload_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeEndpointRemoved      Code = "endpoint_removed" // an earlier release had it
	CodeNotAcceptable        Code = "not_acceptable"

	// The caller lacks permission, or the resource does not exist.
	CodeUnauthenticated Code = "unauthenticated"
	CodeForbidden       Code = "forbidden"
	CodeSignInAgain     Code = "sign_in_again" // the person's last sign-in is too long ago
	CodeNotFound        Code = "not_found"
	CodePruned          Code = "pruned" // it existed, and is no longer kept

	// The token of an issuer is not exchanged for an API token.
	CodeInvalidExchange      Code = "invalid_exchange"
	CodeUnsupportedGrantType Code = "unsupported_grant_type"
	CodeInvalidTarget        Code = "invalid_target"
	CodeInvalidScope         Code = "invalid_scope"
	CodeIssuerUnavailable    Code = "issuer_unavailable"
	CodeInvalidToken         Code = "invalid_token"
	CodeWrongAudience        Code = "wrong_audience"
	CodeTokenExpired         Code = "token_expired"
	CodeTokenNotYetValid     Code = "token_not_yet_valid"
	CodeTokenUsed            Code = "token_used"
	CodeNoMatchingRule       Code = "no_matching_rule"

	// The envelope, its signature or its statement is invalid.
	CodeInvalidEnvelope        Code = "invalid_envelope"
	CodeUnsupportedPayloadType Code = "unsupported_payload_type"
	CodeSeveralSignatures      Code = "several_signatures"
	CodeInvalidSignature       Code = "invalid_signature"
	CodeInvalidAssertion       Code = "invalid_assertion" // a passkey has not confirmed the statement
	CodeUntrustedIdentity      Code = "untrusted_identity"
	CodeExpiredCertificate     Code = "expired_certificate"
	CodeRevokedIdentity        Code = "revoked_identity"
	CodePredicateNotAllowed    Code = "predicate_not_allowed"
	CodeCertificateCommit      Code = "certificate_commit_mismatch"
	CodeInvalidStatement       Code = "invalid_statement"
	CodeNoCommitSubject        Code = "no_commit_subject"
	CodeSeveralCommits         Code = "several_commits"
	CodeWrongRepo              Code = "wrong_repo"

	// The document is valid JSON, but a value in it is invalid.
	CodeInvalidField    Code = "invalid_field"
	CodeInvalidContract Code = "invalid_contract"

	// The request conflicts with what is recorded.
	CodeStaleStatement  Code = "stale_statement"
	CodeTooMuchEvidence Code = "too_much_evidence"
	CodeTooManyMerges   Code = "too_many_merges"
	CodeAmbiguousCommit Code = "ambiguous_commit"
	CodeArchived        Code = "archived"
	CodeNotDeleted      Code = "not_deleted"
	CodeAlreadyExists   Code = "already_exists"
	CodeNotInCheckpoint Code = "not_in_checkpoint"
	CodeStateNotReached Code = "state_not_reached"

	CodePreconditionRequired Code = "precondition_required"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeLimitReached         Code = "limit_reached"
	CodeWebhookInactive      Code = "webhook_inactive"

	// The server failed or is overloaded.
	CodeStorageUnavailable Code = "storage_unavailable"
	CodeClockJumped        Code = "clock_jumped"
	CodeTooManyStreams     Code = "too_many_streams"
	CodeStopping           Code = "stopping"
	CodeTooManyRequests    Code = "too_many_requests"
	CodeServerBusy         Code = "server_busy"
	CodeRequestTimeout     Code = "request_timeout"
	CodeInternal           Code = "internal"
)

// An Error is a failure that the caller can correct. Detail says what is wrong
// and what to do. Fields repeats this for each invalid field; if there is only
// one, Detail already has its name and message.
type Error struct {
	Code   Code
	Detail string
	Fields []FieldError
}

// A FieldError says what is wrong with one field of a document. Field is its
// path, such as requirements[1].state.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (e *Error) Error() string {
	if len(e.Fields) < 2 {
		return e.Detail
	}
	var b strings.Builder
	b.WriteString(e.Detail)
	for i, f := range e.Fields {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", f.Field, f.Message)
	}
	return b.String()
}

// Errorf returns an Error of the given code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// FieldErrorf returns an Error of the given code about one field.
func FieldErrorf(code Code, field, format string, args ...any) *Error {
	return FieldsError(code, FieldError{field, fmt.Sprintf(format, args...)})
}

// FieldsError returns an Error of the given code about one or more fields.
func FieldsError(code Code, fields ...FieldError) *Error {
	detail := fmt.Sprintf("%d invalid fields", len(fields))
	if len(fields) == 1 {
		detail = fmt.Sprintf("invalid %s: %s", fields[0].Field, fields[0].Message)
	}
	return &Error{Code: code, Detail: detail, Fields: fields}
}

package ledger

import (
	"fmt"
	"strings"
)

// A Code names one kind of failure. Codes are part of the API: clients branch
// on them, and docs/api.md lists each with its HTTP status.
type Code string

// The codes, grouped by who has to act.
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
	CodeNotAcceptable        Code = "not_acceptable"

	// The caller may not do this.
	CodeUnauthenticated Code = "unauthenticated"
	CodeForbidden       Code = "forbidden"
	CodeNotFound        Code = "not_found"

	// The envelope, its signature or its statement is not acceptable.
	CodeInvalidEnvelope        Code = "invalid_envelope"
	CodeUnsupportedPayloadType Code = "unsupported_payload_type"
	CodeSeveralSignatures      Code = "several_signatures"
	CodeInvalidSignature       Code = "invalid_signature"
	CodeUntrustedIdentity      Code = "untrusted_identity"
	CodeExpiredCertificate     Code = "expired_certificate"
	CodeRevokedIdentity        Code = "revoked_identity"
	CodeInvalidStatement       Code = "invalid_statement"
	CodeNoCommitSubject        Code = "no_commit_subject"
	CodeSeveralCommits         Code = "several_commits"

	// The document was read, but says something that cannot be.
	CodeInvalidField    Code = "invalid_field"
	CodeInvalidContract Code = "invalid_contract"

	// The request does not fit what the ledger holds.
	CodeStaleStatement       Code = "stale_statement"
	CodeAmbiguousCommit      Code = "ambiguous_commit"
	CodeAlreadyExists        Code = "already_exists"
	CodePreconditionRequired Code = "precondition_required"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeLimitReached         Code = "limit_reached"
	CodeWebhookInactive      Code = "webhook_inactive"

	// The server cannot.
	CodeStorageUnavailable Code = "storage_unavailable"
	CodeTooManyStreams     Code = "too_many_streams"
	CodeInternal           Code = "internal"
)

// An Error is a failure that its cause can mend: it says what is wrong, in
// which field, and what would be right.
type Error struct {
	Code   Code
	Detail string
	Fields []FieldError
}

// A FieldError names one field of a document, by a path such as
// requirements[1].state, and what is wrong with it.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (e *Error) Error() string {
	if len(e.Fields) == 0 {
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
	message := fmt.Sprintf(format, args...)
	return &Error{Code: code, Detail: field + " is not acceptable", Fields: []FieldError{{field, message}}}
}

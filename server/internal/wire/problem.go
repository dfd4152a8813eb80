package wire

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Kind of problem is the HTTP status and the title that go with a code.
type Kind struct {
	Status int
	Title  string
}

// kinds is the one place that gives codes their HTTP status.
var kinds = map[ledger.Code]Kind{
	ledger.CodeInvalidJSON:      {http.StatusBadRequest, "The body is not the JSON that it has to be"},
	ledger.CodeUnknownField:     {http.StatusBadRequest, "The body has a field that there is not"},
	ledger.CodeUnknownParameter: {http.StatusBadRequest, "The query has a parameter that there is not"},
	ledger.CodeInvalidParameter: {http.StatusBadRequest, "A parameter of the query is not acceptable"},
	ledger.CodeInvalidCursor:    {http.StatusBadRequest, "The cursor is not one of this list"},
	ledger.CodePayloadTooLarge:  {http.StatusRequestEntityTooLarge, "The body is too large"},
	ledger.CodeUnsupportedMediaType: {
		http.StatusUnsupportedMediaType, "The body has a media type that is not accepted here"},
	ledger.CodeMethodNotAllowed: {http.StatusMethodNotAllowed, "The method does not work here"},
	ledger.CodeNotAcceptable:    {http.StatusNotAcceptable, "The answer cannot have the media type asked for"},

	ledger.CodeUnauthenticated: {http.StatusUnauthorized, "A valid API token is needed"},
	ledger.CodeForbidden:       {http.StatusForbidden, "The API token does not allow this"},
	ledger.CodeNotFound:        {http.StatusNotFound, "There is no such thing"},

	ledger.CodeInvalidEnvelope: {
		http.StatusUnprocessableEntity, "The envelope is not a DSSE envelope or Sigstore bundle as expected"},
	ledger.CodeUnsupportedPayloadType: {
		http.StatusUnprocessableEntity, "The envelope holds something other than an in-toto statement"},
	ledger.CodeSeveralSignatures:  {http.StatusUnprocessableEntity, "The envelope has more than one signature"},
	ledger.CodeInvalidSignature:   {http.StatusUnprocessableEntity, "The signature does not verify"},
	ledger.CodeUntrustedIdentity:  {http.StatusUnprocessableEntity, "The signer is not trusted by the org"},
	ledger.CodeExpiredCertificate: {http.StatusUnprocessableEntity, "The signer's certificate is not valid at this time"},
	ledger.CodeRevokedIdentity:    {http.StatusUnprocessableEntity, "The signer's identity was revoked"},
	ledger.CodeInvalidStatement:   {http.StatusUnprocessableEntity, "The payload is not a statement that can be recorded"},
	ledger.CodeNoCommitSubject:    {http.StatusUnprocessableEntity, "The statement names no commit"},
	ledger.CodeSeveralCommits:     {http.StatusUnprocessableEntity, "The statement names several commits"},

	ledger.CodeInvalidField:    {http.StatusUnprocessableEntity, "A field has a value that cannot be"},
	ledger.CodeInvalidContract: {http.StatusUnprocessableEntity, "The policy contract says something that cannot be"},

	ledger.CodeStaleStatement:       {http.StatusConflict, "The statement has been replaced by a newer one"},
	ledger.CodeAmbiguousCommit:      {http.StatusConflict, "Several commits begin with these digits"},
	ledger.CodeAlreadyExists:        {http.StatusConflict, "It exists already"},
	ledger.CodePreconditionRequired: {http.StatusPreconditionRequired, "The request needs an If-Match header"},
	ledger.CodePreconditionFailed:   {http.StatusPreconditionFailed, "It has changed since it was read"},
	ledger.CodeLimitReached:         {http.StatusUnprocessableEntity, "There are as many as there may be"},
	ledger.CodeWebhookInactive:      {http.StatusConflict, "The webhook is not active"},

	ledger.CodeStorageUnavailable: {http.StatusServiceUnavailable, "The ledger cannot be used at the moment"},
	ledger.CodeTooManyStreams:     {http.StatusServiceUnavailable, "Too many live streams are open"},
	ledger.CodeInternal:           {http.StatusInternalServerError, "Something went wrong inside ledgerd"},
}

// Kinds returns the kind of every code.
func Kinds() map[ledger.Code]Kind { return maps.Clone(kinds) }

// StatusOf returns the HTTP status of an error that Explain returned.
func StatusOf(e *ledger.Error) int { return kinds[e.Code].Status }

// ProblemTypes is the beginning of every problem's type, before its code.
const ProblemTypes = "https://github.com/ledgerd/ledgerd/blob/main/docs/api.md#"

// ProblemOf returns an error that Explain returned as the API answers it.
func ProblemOf(e *ledger.Error, requestID string) ledger.Problem {
	kind := kinds[e.Code]
	return ledger.Problem{
		Type: ProblemTypes + string(e.Code), Title: kind.Title, Status: kind.Status, Detail: e.Detail, Code: e.Code,
		RequestID: requestID, Errors: e.Fields,
	}
}

// Explain turns any error into one that clients may see. An error that is not
// meant for them becomes CodeInternal without details: the caller logs it.
func Explain(err error) *ledger.Error {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		if _, known := kinds[e.Code]; known && e.Code != ledger.CodeInternal {
			return e
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the request ended before its turn came: nothing was done")
	}
	return ledger.Errorf(ledger.CodeInternal, "the fault is ledgerd's, and its log tells more")
}

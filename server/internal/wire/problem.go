package wire

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Kind is the HTTP status and the title of a problem code.
type Kind struct {
	Status int
	Title  string
}

// kinds has the HTTP status and the title of every code.
var kinds = map[ledger.Code]Kind{
	ledger.CodeInvalidJSON:          {http.StatusBadRequest, "Invalid JSON"},
	ledger.CodeUnknownField:         {http.StatusBadRequest, "Unknown field"},
	ledger.CodeUnknownParameter:     {http.StatusBadRequest, "Unknown query parameter"},
	ledger.CodeInvalidParameter:     {http.StatusBadRequest, "Invalid query parameter"},
	ledger.CodeInvalidCursor:        {http.StatusBadRequest, "Invalid cursor"},
	ledger.CodePayloadTooLarge:      {http.StatusRequestEntityTooLarge, "Request body too large"},
	ledger.CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "Unsupported media type"},
	ledger.CodeMethodNotAllowed:     {http.StatusMethodNotAllowed, "Method not allowed"},
	ledger.CodeEndpointRemoved:      {http.StatusGone, "Endpoint removed"},
	ledger.CodeNotAcceptable:        {http.StatusNotAcceptable, "Not acceptable"},

	ledger.CodeUnauthenticated: {http.StatusUnauthorized, "Authentication required"},
	ledger.CodeForbidden:       {http.StatusForbidden, "Permission denied"},
	ledger.CodeSignInAgain:     {http.StatusForbidden, "Sign in again"},
	ledger.CodeNotFound:        {http.StatusNotFound, "Not found"},
	ledger.CodePruned:          {http.StatusGone, "No longer kept"},

	ledger.CodeInvalidExchange:      {http.StatusBadRequest, "Invalid token exchange"},
	ledger.CodeUnsupportedGrantType: {http.StatusBadRequest, "Unsupported grant type"},
	ledger.CodeInvalidTarget:        {http.StatusBadRequest, "Invalid target"},
	ledger.CodeInvalidScope:         {http.StatusBadRequest, "Invalid scope"},
	ledger.CodeIssuerUnavailable:    {http.StatusServiceUnavailable, "Issuer unavailable"},
	ledger.CodeInvalidToken:         {http.StatusBadRequest, "Invalid token"},
	ledger.CodeWrongAudience:        {http.StatusBadRequest, "Token for another audience"},
	ledger.CodeTokenExpired:         {http.StatusBadRequest, "Token expired"},
	ledger.CodeTokenNotYetValid:     {http.StatusBadRequest, "Token not yet valid"},
	ledger.CodeTokenUsed:            {http.StatusBadRequest, "Token already used"},
	ledger.CodeNoMatchingRule:       {http.StatusBadRequest, "No matching rule"},

	ledger.CodeInvalidEnvelope:        {http.StatusUnprocessableEntity, "Invalid envelope"},
	ledger.CodeUnsupportedPayloadType: {http.StatusUnprocessableEntity, "Unsupported payload type"},
	ledger.CodeSeveralSignatures:      {http.StatusUnprocessableEntity, "More than one signature"},
	ledger.CodeInvalidSignature:       {http.StatusUnprocessableEntity, "Invalid signature"},
	ledger.CodeInvalidAssertion:       {http.StatusUnprocessableEntity, "Not confirmed by the passkey"},
	ledger.CodeUntrustedIdentity:      {http.StatusUnprocessableEntity, "Untrusted signer"},
	ledger.CodeExpiredCertificate:     {http.StatusUnprocessableEntity, "Certificate not valid now"},
	ledger.CodeRevokedIdentity:        {http.StatusUnprocessableEntity, "Identity revoked"},
	ledger.CodePredicateNotAllowed:    {http.StatusUnprocessableEntity, "Predicate not allowed for the signer"},
	ledger.CodeCertificateCommit:      {http.StatusUnprocessableEntity, "Certificate of another commit"},
	ledger.CodeInvalidStatement:       {http.StatusUnprocessableEntity, "Invalid statement"},
	ledger.CodeNoCommitSubject:        {http.StatusUnprocessableEntity, "No commit in the statement"},
	ledger.CodeSeveralCommits:         {http.StatusUnprocessableEntity, "More than one commit in the statement"},
	ledger.CodeWrongRepo:              {http.StatusUnprocessableEntity, "Statement for another repo"},

	ledger.CodeInvalidField:    {http.StatusUnprocessableEntity, "Invalid field"},
	ledger.CodeInvalidContract: {http.StatusUnprocessableEntity, "Invalid policy contract"},

	ledger.CodeStaleStatement:  {http.StatusConflict, "Stale statement"},
	ledger.CodeTooMuchEvidence: {http.StatusUnprocessableEntity, "Too much evidence"},
	ledger.CodeTooManyMerges:   {http.StatusUnprocessableEntity, "Too many claims of merges"},
	ledger.CodeAmbiguousCommit: {http.StatusConflict, "Ambiguous commit"},
	ledger.CodeAlreadyExists:   {http.StatusConflict, "Already exists"},
	ledger.CodeArchived:        {http.StatusConflict, "Archived"},
	ledger.CodeNotDeleted:      {http.StatusConflict, "Not deleted"},
	ledger.CodeNotInCheckpoint: {http.StatusConflict, "Not in a checkpoint"},
	ledger.CodeStateNotReached: {http.StatusConflict, "State not reached"},

	ledger.CodePreconditionRequired: {http.StatusPreconditionRequired, "If-Match header required"},
	ledger.CodePreconditionFailed:   {http.StatusPreconditionFailed, "Changed since it was read"},
	ledger.CodeLimitReached:         {http.StatusUnprocessableEntity, "Limit reached"},
	ledger.CodeWebhookInactive:      {http.StatusConflict, "Webhook not active"},

	ledger.CodeStorageUnavailable: {http.StatusServiceUnavailable, "Storage unavailable"},
	ledger.CodeClockJumped:        {http.StatusServiceUnavailable, "System clock wrong"},
	ledger.CodeTooManyStreams:     {http.StatusServiceUnavailable, "Too many live streams"},
	ledger.CodeStopping:           {http.StatusServiceUnavailable, "Server stopping"},
	ledger.CodeTooManyRequests:    {http.StatusTooManyRequests, "Too many requests"},
	ledger.CodeServerBusy:         {http.StatusServiceUnavailable, "Server busy"},
	ledger.CodeRequestTimeout:     {http.StatusRequestTimeout, "Request too slow"},
	ledger.CodeInternal:           {http.StatusInternalServerError, "Internal error"},
}

// Kinds returns the kind of every code.
func Kinds() map[ledger.Code]Kind { return maps.Clone(kinds) }

// StatusOf returns the HTTP status of an error that Explain returned.
func StatusOf(e *ledger.Error) int { return kinds[e.Code].Status }

// ProblemTypes is the prefix of every problem's type, before its code.
const ProblemTypes = "https://github.com/ledgerd/ledgerd/blob/main/docs/api.md#"

// ProblemOf returns the API's problem for an error that Explain returned.
func ProblemOf(e *ledger.Error, requestID string) ledger.Problem {
	kind := kinds[e.Code]
	return ledger.Problem{
		Type: ProblemTypes + string(e.Code), Title: kind.Title, Status: kind.Status, Detail: e.Detail, Code: e.Code,
		RequestID: requestID, Errors: e.Fields,
	}
}

// Explain returns the error that a client may see. Any error that is not meant for
// clients becomes CodeInternal without details. The caller logs the original.
func Explain(err error) *ledger.Error {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		if _, ok := kinds[e.Code]; ok && e.Code != ledger.CodeInternal {
			return e
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ledger.Errorf(ledger.CodeStorageUnavailable,
			"the request was cancelled or timed out while it waited: nothing was changed")
	}
	return ledger.Errorf(ledger.CodeInternal, "internal error: look up the request ID in the server log")
}

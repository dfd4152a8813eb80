package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
)

// A kind of problem: the HTTP status and the title that go with a code.
type kind struct {
	status int
	title  string
}

// problems is the one place that gives codes their HTTP status.
var problems = map[ledger.Code]kind{
	ledger.CodeInvalidJSON:          {http.StatusBadRequest, "The body is not the JSON that it has to be"},
	ledger.CodeUnknownField:         {http.StatusBadRequest, "The body has a field that there is not"},
	ledger.CodeUnknownParameter:     {http.StatusBadRequest, "The query has a parameter that there is not"},
	ledger.CodeInvalidParameter:     {http.StatusBadRequest, "A parameter of the query is not acceptable"},
	ledger.CodeInvalidCursor:        {http.StatusBadRequest, "The cursor is not one of this list"},
	ledger.CodePayloadTooLarge:      {http.StatusRequestEntityTooLarge, "The body is too large"},
	ledger.CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "The body has a media type that is not accepted here"},
	ledger.CodeMethodNotAllowed:     {http.StatusMethodNotAllowed, "The method does not work here"},
	ledger.CodeNotAcceptable:        {http.StatusNotAcceptable, "The answer cannot have the media type asked for"},

	ledger.CodeUnauthenticated: {http.StatusUnauthorized, "A valid API token is needed"},
	ledger.CodeForbidden:       {http.StatusForbidden, "The API token does not allow this"},
	ledger.CodeNotFound:        {http.StatusNotFound, "There is no such thing"},

	ledger.CodeInvalidEnvelope:        {http.StatusUnprocessableEntity, "The envelope is not a DSSE envelope or Sigstore bundle as expected"},
	ledger.CodeUnsupportedPayloadType: {http.StatusUnprocessableEntity, "The envelope holds something other than an in-toto statement"},
	ledger.CodeSeveralSignatures:      {http.StatusUnprocessableEntity, "The envelope has more than one signature"},
	ledger.CodeInvalidSignature:       {http.StatusUnprocessableEntity, "The signature does not verify"},
	ledger.CodeUntrustedIdentity:      {http.StatusUnprocessableEntity, "The signer is not trusted by the org"},
	ledger.CodeExpiredCertificate:     {http.StatusUnprocessableEntity, "The signer's certificate is not valid at this time"},
	ledger.CodeRevokedIdentity:        {http.StatusUnprocessableEntity, "The signer's identity was revoked"},
	ledger.CodeInvalidStatement:       {http.StatusUnprocessableEntity, "The payload is not a statement that can be recorded"},
	ledger.CodeNoCommitSubject:        {http.StatusUnprocessableEntity, "The statement names no commit"},
	ledger.CodeSeveralCommits:         {http.StatusUnprocessableEntity, "The statement names several commits"},

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

const (
	problemTypes   = "https://github.com/ledgerd/ledgerd/blob/main/docs/api.md#"
	internalDetail = "the fault is ledgerd's, and its log tells more under the request id"
	retryAfter     = "5" // seconds
)

// fail answers with the problem that err is.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	id := w.Header().Get(headerRequestID)
	e := s.explain(err)
	if e.Code == ledger.CodeInternal {
		s.log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err, "request", id)
	}
	drain(r)
	k := problems[e.Code]
	switch k.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	}
	body, err := marshal(ledger.Problem{
		Type: problemTypes + string(e.Code), Title: k.title, Status: k.status, Detail: e.Detail, Code: e.Code, RequestID: id, Errors: e.Fields,
	})
	if err != nil {
		panic(fmt.Sprintf("encode a problem: %v", err))
	}
	writeBody(w, k.status, typeProblem, body)
}

// explain turns any error into one that can be told to a client. What is not
// meant for clients becomes CodeInternal without details.
func (s *Server) explain(err error) *ledger.Error {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		if _, known := problems[e.Code]; known && e.Code != ledger.CodeInternal {
			return e
		}
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		hint := ""
		if e.Limit == s.maxBody {
			hint = " (the config key max_body)"
		}
		return ledger.Errorf(ledger.CodePayloadTooLarge, "the body may have %d bytes at most%s", e.Limit, hint)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the request ended before its turn came: nothing was done")
	}
	return ledger.Errorf(ledger.CodeInternal, internalDetail)
}

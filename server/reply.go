package server

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// The media types of the API.
const (
	typeJSON      = "application/json"
	typeProblem   = "application/problem+json"
	typeYAML      = "application/yaml"
	typeEvents    = wire.EventStream
	typeDSSE      = attestation.EnvelopeType
	typeBundle    = attestation.BundleType
	typeBinary    = "application/octet-stream"
	typeBundleOld = "application/vnd.dev.sigstore.bundle+json" // with a parameter such as version=0.3
	typeLines     = "application/jsonl"
	typeLinesX    = "application/x-ndjson"
)

// A reply is a handler's response. It is written once it is complete, so that any
// earlier error becomes a problem with its own status.
type reply struct {
	status int
	// record is written as JSON. Without a record, body is written unchanged, with
	// mediaType.
	record    any
	body      []byte
	mediaType string
	// stream, if not nil, writes the whole response. The response may continue after it
	// has returned.
	stream func(http.ResponseWriter, *http.Request)

	location string // URL of the created or queued resource, below the base path
	next     string // URL of the next page, with the base path
	// tagged reports whether the response has an ETag and honours If-None-Match.
	// If etag is empty, the ETag is a hash of the body.
	tagged bool
	etag   string
	vary   string
	secret bool   // whether the response contains a secret and must not be cached
	cache  string // value of Cache-Control; if empty, the client must ask each time
}

// encode encodes the record as the body, and drops it to free its memory.
func (a *reply) encode() error {
	if a.record == nil {
		return nil
	}
	body, err := marshal(a.record)
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	a.record, a.body, a.mediaType = nil, body, typeJSON
	return nil
}

// write writes a reply that was encoded.
func (a *reply) write(w http.ResponseWriter, r *http.Request) {
	if a.stream != nil {
		a.stream(w, r)
		return
	}

	a.writeHeader(w.Header())
	if a.tagged {
		if a.etag == "" {
			a.etag = wire.ETagOf(a.body)
		}
		w.Header().Set("ETag", a.etag)
		if match, ok := wire.MatchETag(r.Header["If-None-Match"], a.etag); ok && wire.IsRead(r) {
			w.Header().Set("ETag", match)
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}

	if a.status == http.StatusNoContent {
		w.WriteHeader(a.status)
		return
	}
	wire.WriteBody(w, r, a.status, a.mediaType, a.body)
}

func (a *reply) writeHeader(h http.Header) {
	if a.location != "" {
		h.Set("Location", a.location)
	}
	if a.next != "" {
		h.Set("Link", "<"+a.next+`>; rel="next"`)
	}
	if a.vary != "" {
		h.Add("Vary", a.vary)
	}
	if a.cache != "" {
		h.Set("Cache-Control", a.cache)
	}
	if a.secret {
		h.Set("Cache-Control", "no-store")
	}
}

// marshal encodes a record as JSON. It is deterministic, and leaves the stored
// bodies of events unchanged. It allows invalid UTF-8, which a problem may quote.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true))
}

// The URLs of resources, below the base path.

func orgURL(org string) string { return "/v1/orgs/" + org }

func repoURL(org, repo string) string { return orgURL(org) + "/repos/" + repo }

func commitURL(org, repo, sha string) string { return repoURL(org, repo) + "/commits/" + sha }

func attestationsURL(org, repo string) string { return repoURL(org, repo) + "/attestations" }

func webhookURL(org, repo, id string) string { return repoURL(org, repo) + "/webhooks/" + id }

func identityURL(org, id string) string { return orgURL(org) + "/identities/" + id }

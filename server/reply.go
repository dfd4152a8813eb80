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
	typeDSSE      = "application/vnd.dsse.envelope.v1+json"
	typeBundle    = attestation.BundleType
	typeBundleOld = "application/vnd.dev.sigstore.bundle+json" // with the parameter version=0.3
)

// A reply is what a handler answers. It is written when it is complete, so
// that whatever fails before is still a problem with a status of its own.
type reply struct {
	status int
	// record is written as JSON; body, of mediaType, is written as it is.
	record    any
	body      []byte
	mediaType string
	// stream writes the answer itself, for as long as it lasts.
	stream func(http.ResponseWriter, *http.Request)

	location string // of what was made
	next     string // page
	// tagged answers carry an ETag and heed If-None-Match: etag, or one made
	// from the body where it is empty.
	tagged bool
	etag   string
	vary   string
	secret bool // must not be kept by anybody
}

func (a *reply) write(w http.ResponseWriter, r *http.Request) error {
	if a.stream != nil {
		a.stream(w, r)
		return nil
	}
	if a.record != nil {
		body, err := marshal(a.record)
		if err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
		a.body, a.mediaType = body, typeJSON
	}
	a.writeHeader(w.Header())
	if a.tagged {
		if a.etag == "" {
			a.etag = wire.TagOf(a.body)
		}
		w.Header().Set("ETag", a.etag)
		if known, ok := wire.TagIn(r.Header["If-None-Match"], a.etag); ok && wire.IsRead(r) {
			w.Header().Set("ETag", known)
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	if a.status == http.StatusNoContent {
		w.WriteHeader(a.status)
		return nil
	}
	wire.WriteBody(w, a.status, a.mediaType, a.body)
	return nil
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
	if a.secret {
		h.Set("Cache-Control", "no-store")
	}
}

// marshal writes an answer: the same record always as the same bytes, and the
// bodies of events as they are stored. A problem may quote what is not UTF-8.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true))
}

// The URLs of resources, relative to the server, as answers name them.

func orgURL(org string) string { return "/v1/orgs/" + org }

func repoURL(org, repo string) string { return orgURL(org) + "/repos/" + repo }

func commitURL(org, repo, sha string) string { return repoURL(org, repo) + "/commits/" + sha }

func attestationsURL(org, repo string) string { return repoURL(org, repo) + "/attestations" }

func webhookURL(org, repo, id string) string { return repoURL(org, repo) + "/webhooks/" + id }

func identityURL(org, id string) string { return orgURL(org) + "/identities/" + id }

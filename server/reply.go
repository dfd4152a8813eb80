package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// The media types of the API.
const (
	typeJSON      = "application/json"
	typeProblem   = "application/problem+json"
	typeYAML      = "application/yaml"
	typeEvents    = "text/event-stream"
	typeDSSE      = "application/vnd.dsse.envelope.v1+json"
	typeBundle    = ledger.BundleType
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
			a.etag = tagOf(a.body)
		}
		w.Header().Set("ETag", a.etag)
		if known, ok := tagIn(r.Header["If-None-Match"], a.etag); ok && isRead(r) {
			w.Header().Set("ETag", known)
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	if a.status == http.StatusNoContent {
		w.WriteHeader(a.status)
		return nil
	}
	writeBody(w, a.status, a.mediaType, a.body)
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

// writeBody writes the body to a HEAD too: net/http leaves it out, and the
// headers are as for GET.
func writeBody(w http.ResponseWriter, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) // fails only when the client has gone
}

// marshal writes an answer: the same record always as the same bytes, and the
// bodies of events as they are stored. A problem may quote what is not UTF-8.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true))
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// tagOf makes an ETag of a body.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// tagIn looks for tag in the headers If-Match or If-None-Match and returns it
// as it stands there. The mark of a compressed answer makes no difference, nor
// does W/, which proxies put before the ETags of what they compress.
func tagIn(headers []string, tag string) (as string, ok bool) {
	for _, header := range headers {
		for candidate := range strings.SplitSeq(header, ",") {
			candidate = strings.TrimSpace(candidate)
			bare := strings.TrimPrefix(candidate, "W/")
			switch {
			case candidate == "*":
				return tag, true
			case bare == tag, bare == strings.TrimSuffix(tag, `"`)+gzipSuffix+`"`:
				return candidate, true
			}
		}
	}
	return "", false
}

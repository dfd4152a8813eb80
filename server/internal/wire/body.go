package wire

import (
	"net/http"
	"strconv"
)

// retryAfter is the Retry-After header of a 503, in seconds.
const retryAfter = "5"

// WriteBody writes a response with a complete body. It also writes the body in
// response to HEAD: net/http omits it, and the headers are the same as for GET.
func WriteBody(w http.ResponseWriter, status int, mediaType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if status == http.StatusServiceUnavailable {
		header.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	w.Write(body) // fails only if the client has disconnected
}

// IsRead reports whether a request only reads: it is a GET or a HEAD.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

package wire

import (
	"net/http"
	"strconv"
)

// retryAfter is how many seconds a client waits after a 503.
const retryAfter = "5"

// WriteBody writes an answer whose body is complete. It writes the body to a
// HEAD too: net/http leaves it out, and the headers are as for GET.
func WriteBody(w http.ResponseWriter, status int, mediaType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if status == http.StatusServiceUnavailable {
		header.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	w.Write(body) // fails only if the client has gone
}

// IsRead reports whether a request changes nothing.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

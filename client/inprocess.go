package client

import (
	"bytes"
	"io"
	"net/http"
)

// InProcess returns a transport that sends requests to a handler instead of over the
// network, for use in Options.HTTPClient. The handler gets the request's context.
// Responses are buffered in memory, except for streams.
func InProcess(handler http.Handler) http.RoundTripper { return &inProcess{handler} }

type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "in process"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if r.Header.Get("Accept") == "text/event-stream" {
		return stream(t.handler, in)
	}

	w := &recorder{header: http.Header{}}
	t.handler.ServeHTTP(w, in)
	if r.Body != nil {
		r.Body.Close()
	}
	w.WriteHeader(http.StatusOK)
	return newResponse(r, w.status, w.sent, io.NopCloser(&w.body), int64(w.body.Len())), nil
}

// A recorder buffers a response in memory.
type recorder struct {
	header http.Header
	sent   http.Header // copy of header from when WriteHeader was called
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

func TestPanics(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		status  int // 0: the connection is closed without a response
		body    string
		failure string // prefix of the error that Fail gets
	}{
		"no panic": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "all") }, 200, "all", ""},
		"before the first byte": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			panic("out of cheese")
		}, 500, "failed", "panic: out of cheese\n"},
		"after the first byte": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			io.WriteString(w, "start, ")
			http.NewResponseController(w).Flush()
			panic("out of cheese")
		}, 202, "start, ", "panic: out of cheese\n"},
		"after taking the connection over": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				io.WriteString(conn, "HTTP/1.0 202 Accepted\r\nServer: test\r\nX-Content-Type-Options: nosniff\r\n\r\nstart")
				conn.Close()
			}
			panic("out of cheese")
		}, 202, "start", "panic: out of cheese\n"},
		"http.ErrAbortHandler": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			failure := ""
			frame := Frame{Header: map[string]string{"Server": "test"},
				Fail: func(w http.ResponseWriter, _ *http.Request, err error) {
					failure = err.Error()
					w.WriteHeader(http.StatusInternalServerError)
					io.WriteString(w, "failed")
				}}
			handler, done := Compressed(frame.Handler(test.handler), "text/plain"), make(chan struct{})
			network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(done)
				handler.ServeHTTP(w, r)
			}))
			defer network.Close()

			status, body, header := get(t, network.URL)
			<-done // the handler fails after it has sent the response
			if status != test.status || body != test.body {
				t.Errorf("%d %q, want %d %q", status, body, test.status, test.body)
			}
			if !strings.HasPrefix(failure, test.failure) || (failure == "") != (test.failure == "") {
				t.Errorf("error %q, want prefix %q", failure, test.failure)
			}
			if status != 0 && (header.Get("Server") != "test" || header.Get("X-Content-Type-Options") != "nosniff") {
				t.Errorf("headers %v", header)
			}
		})
	}
}

// get returns the status 0 if there is no response.
func get(t *testing.T, url string) (status int, body string, header http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return 0, "", nil
	}
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(text), resp.Header
}

package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// stream sends a request to a handler whose response does not end. The handler runs
// until the response's body is closed or the request's context is done.
func stream(handler http.Handler, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	read, write := net.Pipe()
	w := &streamWriter{conn: write, header: http.Header{}, started: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer write.Close()
		handler.ServeHTTP(w, r.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
	}()

	body := &streamBody{read, cancel, ended}
	select {
	case <-w.started:
	case <-ctx.Done():
		_ = body.Close()
		return nil, ctx.Err()
	}
	return newResponse(r, w.status, w.sent, body, -1), nil
}

// A streamBody is the body of a streamed response. Close waits for the handler to
// return.
type streamBody struct {
	net.Conn
	cancel context.CancelFunc
	ended  <-chan struct{}
}

func (b *streamBody) Close() error {
	b.cancel()
	err := b.Conn.Close()
	<-b.ended
	return err
}

// A streamWriter is the http.ResponseWriter of a streamed response. A Write blocks
// until the client has read it, or until its deadline.
type streamWriter struct {
	conn    net.Conn
	header  http.Header
	once    sync.Once
	started chan struct{} // closed when status and sent are set
	status  int
	sent    http.Header // copy of header from when WriteHeader was called
}

func (w *streamWriter) Header() http.Header { return w.header }

func (w *streamWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	})
}

func (w *streamWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.conn.Write(b)
}

// The following methods are for http.ResponseController.

func (w *streamWriter) FlushError() error { return nil }

func (w *streamWriter) SetReadDeadline(time.Time) error { return nil }

func (w *streamWriter) SetWriteDeadline(t time.Time) error { return w.conn.SetWriteDeadline(t) }

// newResponse returns an HTTP response. A length of -1 means that it is unknown.
func newResponse(r *http.Request, status int, header http.Header, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          body,
		ContentLength: length,
		Request:       r,
	}
}

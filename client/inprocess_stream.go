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

// stream makes a request whose answer has no end: the handler runs until the
// answer is closed or the request's context ends.
func stream(handler http.Handler, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	read, write := net.Pipe()
	w := &streamed{conn: write, header: http.Header{}, begun: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer write.Close()
		handler.ServeHTTP(w, r.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
	}()
	body := &streamBody{read, cancel, ended}
	select {
	case <-w.begun:
	case <-ctx.Done():
		_ = body.Close()
		return nil, ctx.Err()
	}
	return answered(r, w.status, w.sent, body, -1), nil
}

// A streamBody is the reading end of a streamed answer. Closed, it waits for
// the handler to end.
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

// A streamed passes an answer on while it is written. A write waits until it
// is read, or its deadline is over.
type streamed struct {
	conn   net.Conn
	header http.Header
	once   sync.Once
	begun  chan struct{} // closed once there is:
	status int
	sent   http.Header // as it was when the answer began
}

func (w *streamed) Header() http.Header { return w.header }

func (w *streamed) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *streamed) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.conn.Write(b)
}

// The following are for http.ResponseController.

func (w *streamed) FlushError() error { return nil }

func (w *streamed) SetReadDeadline(time.Time) error { return nil }

func (w *streamed) SetWriteDeadline(t time.Time) error { return w.conn.SetWriteDeadline(t) }

// answered makes the response that a client sees; a length of -1 is unknown.
func answered(r *http.Request, status int, header http.Header, body io.ReadCloser, length int64) *http.Response {
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

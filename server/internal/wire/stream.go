package wire

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// streamWrite is the maximum number of bytes in one write to a stream.
const streamWrite = 64 << 10

// A Block is text for streams. It is encoded once for all of them, as a chunk of
// HTTP/1.1 (RFC 9112, section 7.1). The zero Block is empty. A Block is immutable.
type Block struct{ framed, text []byte }

// NewBlock returns a Block with the concatenated texts.
func NewBlock(texts ...[]byte) Block {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if size == 0 {
		return Block{} // a chunk without text would end the response
	}

	framed := append(strconv.AppendInt(make([]byte, 0, size+12), int64(size), 16), "\r\n"...)
	start := len(framed)
	for _, text := range texts {
		framed = append(framed, text...)
	}
	framed = append(framed, "\r\n"...)
	return Block{framed, framed[start : start+size]}
}

// Len returns the length of the text.
func (b Block) Len() int { return len(b.text) }

// A Stream is the body of a response that does not end by itself.
type Stream interface {
	// Send writes a Block to the client. It returns an error if the client reads
	// nothing for the timeout.
	Send(b Block, timeout time.Duration) error
}

// NewStream returns the body of a response that ends when its handler returns.
func NewStream(w http.ResponseWriter) Stream { return attached{w, http.NewResponseController(w)} }

type attached struct {
	io.Writer
	*http.ResponseController
}

func (a attached) Send(b Block, timeout time.Duration) error {
	return send(a, b.text, timeout, a.Flush)
}

// A Detached is a Stream that continues after the handler has returned. Without the
// stack of the handler and the buffers of net/http, it takes a fraction of the memory.
type Detached struct {
	conn    net.Conn
	chunked bool
	failed  bool // the last block may be incomplete
}

// Detach returns the body of a response to r that continues after the handler has
// returned. The handler must have flushed the header, with Connection: close, and must
// not use w afterwards. Detach returns false if w does not support it, for example
// because it records the response for the access log.
func Detach(w http.ResponseWriter, r *http.Request) (*Detached, bool) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return nil, false
	}
	conn, _, err := hijacker.Hijack()
	return &Detached{conn: conn, chunked: r.ProtoAtLeast(1, 1)}, err == nil
}

// Send implements Stream.
func (d *Detached) Send(b Block, timeout time.Duration) error {
	text := b.text
	if d.chunked {
		text = b.framed
	}
	err := send(d.conn, text, timeout, func() error { return nil })
	d.failed = err != nil
	return err
}

// WaitForClient returns true when the client has disconnected. It returns false if the
// client sends something, which is ignored.
func (d *Detached) WaitForClient() (disconnected bool) {
	_, err := d.conn.Read(make([]byte, 1))
	return err != nil
}

// Close ends the response and closes the connection. It must not be called during Send.
func (d *Detached) Close() {
	if d.chunked && !d.failed {
		// Best effort: the client may have disconnected.
		_ = d.conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(d.conn, "0\r\n\r\n")
	}
	_ = d.conn.Close()
}

// send writes text in pieces, each of which has the timeout.
func send(w interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}, text []byte, timeout time.Duration, flush func() error) error {
	for len(text) > 0 {
		if err := w.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		n, err := w.Write(text[:min(len(text), streamWrite)])
		if err == nil {
			err = flush()
		}
		if err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

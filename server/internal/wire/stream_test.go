package wire

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A block is one chunk of HTTP/1.1. A block without text is no chunk, because an empty
// chunk would end the body.
func TestBlock(t *testing.T) {
	b := NewBlock([]byte("first, "), nil, []byte("second, third"))
	if string(b.text) != "first, second, third" || string(b.framed) != "14\r\nfirst, second, third\r\n" || b.Len() != 20 {
		t.Errorf("text %q, framed %q, length %d", b.text, b.framed, b.Len())
	}
	for _, texts := range [][][]byte{nil, {nil}, {{}, {}}} {
		if b := NewBlock(texts...); b.framed != nil || b.Len() != 0 {
			t.Errorf("a block without text is %q", b.framed)
		}
	}
}

// The timeout of Send is for each piece of a block. So a client may read a large block
// slowly, but has to read.
func TestFaultSlowReaderOfABlock(t *testing.T) {
	const timeout = 10 * time.Second
	block := NewBlock(make([]byte, 10*streamWrite))
	for pause, want := range map[time.Duration]bool{timeout - 1: true, timeout + 1: false} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			body := &Detached{conn: far, chunked: true}
			sent := make(chan error, 1)
			go func() {
				sent <- body.Send(block, timeout)
				body.Close()
			}()

			var got bytes.Buffer
			for {
				time.Sleep(pause)
				if _, err := io.CopyN(&got, near, streamWrite); err != nil {
					break
				}
			}
			if err := <-sent; (err == nil) != want {
				t.Errorf("reads every %v: Send returned %v, want success: %v", pause, err, want)
			}
			if want && !bytes.HasPrefix(got.Bytes(), block.framed) {
				t.Errorf("reads every %v: got %d bytes, want %d", pause, got.Len(), len(block.framed))
			}
		})
	}
}

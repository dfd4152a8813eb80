// Package boundedhttp has the HTTP clients for issuers and providers of OpenID Connect. Their answers are limited
// in time and size, and their redirects are not followed.
package boundedhttp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Timeout is the time limit of a request with its answer.
const Timeout = 10 * time.Second

const (
	connectTimeout = 5 * time.Second
	maxHeader      = 16 << 10 // bytes of the header of an answer
)

// Config configures a client.
type Config struct {
	// MaxAnswer is the maximum size of the body of an answer, in bytes.
	MaxAnswer int
	// Control is called with each address before it is dialled, like that of a [net.Dialer]. It may be nil.
	Control func(network, address string, c syscall.RawConn) error
	// RootCAs verify the certificates of servers. If nil, they are those of the system.
	RootCAs *x509.CertPool
	// UserAgent is the header User-Agent; by default ledgerd.
	UserAgent string
	// KeepAlive reports whether connections are used again, for up to a minute.
	KeepAlive bool
}

// NewClient returns a client that asks for JSON. If an answer is too large, reading its body returns a
// [TooLargeError].
func NewClient(c Config) *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout, Control: c.Control}
	return &http.Client{
		Timeout: Timeout,
		Transport: transport{cmp.Or(c.UserAgent, "ledgerd"), c.MaxAnswer, &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    connectTimeout,
			TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // a small answer must not become a large one
			MaxResponseHeaderBytes: maxHeader,
			DisableKeepAlives:      !c.KeepAlive,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        time.Minute,
		}},
		// A redirect could send a secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A transport sets the headers of requests, and limits the bodies of answers.
type transport struct {
	userAgent string
	maxAnswer int
	next      http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", t.userAgent)
	r.Header.Set("Accept", "application/json")
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, left: t.maxAnswer, max: t.maxAnswer}
	return answer, nil
}

// A TooLargeError is the error of an answer with more bytes than its value.
type TooLargeError int

// Error implements error.
func (e TooLargeError) Error() string {
	return fmt.Sprintf("the answer has more than %d bytes", int(e))
}

// A body is the body of an answer.
type body struct {
	io.ReadCloser
	left, max int
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if n > b.left {
		return b.left, TooLargeError(b.max)
	}
	b.left -= n
	return n, err
}

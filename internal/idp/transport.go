package idp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	connectTimeout = 5 * time.Second
	requestTimeout = 10 * time.Second
	maxAnswer      = 256 << 10 // bytes of an answer
	maxHeader      = 16 << 10  // bytes of its header
)

// newClient returns the HTTP client for all requests to providers. The libraries for OAuth and OpenID
// Connect read answers without a limit, so the client has one.
func newClient(roots *x509.CertPool, userAgent string) *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &http.Client{
		Timeout: requestTimeout,
		Transport: bounded{userAgent, &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    connectTimeout,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // a small answer must not become a large one
			MaxResponseHeaderBytes: maxHeader,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        time.Minute,
		}},
		// A redirect could send the client secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded limits the size of answers.
type bounded struct {
	userAgent string
	next      http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", b.userAgent)
	r.Header.Set("Accept", "application/json")
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &limited{ReadCloser: answer.Body, left: maxAnswer}
	return answer, nil
}

// limited is the body of an answer. Reading more of it than the limit is an error.
type limited struct {
	io.ReadCloser
	left int
}

// Read implements [io.Reader].
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left+1)])
	if n > l.left {
		return l.left, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	l.left -= n
	return n, err
}

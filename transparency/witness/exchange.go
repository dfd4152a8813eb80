package witness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/transparency"
)

const (
	connectTimeout = 5 * time.Second
	requestTimeout = 10 * time.Second
	maxAnswer      = 64 << 10 // bytes of cosignatures
	maxRetryAfter  = time.Hour
	perWitness     = 16 // concurrent requests to a witness
)

// A client sends requests to witnesses.
type client struct {
	http      *http.Client
	userAgent string
}

// newClient returns a client.
func newClient(userAgent string, roots *x509.CertPool) *client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &client{userAgent: userAgent, http: &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    connectTimeout,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 16 << 10,
			MaxIdleConnsPerHost:    perWitness,
			IdleConnTimeout:        90 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// checkURL checks the submission prefix of a witness.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf("invalid URL %.200q: use the submission prefix of the witness, such as https://witness.example",
			text)
	}
	return nil
}

// An answer is the answer of a witness to add-checkpoint.
type answer struct {
	status     int
	line       string // the valid cosignature, if the status is 200
	size       int64  // of the latest checkpoint that the witness cosigned, if the status is 409
	detail     string // of another status
	retryAfter time.Duration
}

// add sends an add-checkpoint request to a witness.
func (c *client) add(ctx context.Context, w trustpolicy.Witness, r request, s transparency.Signed) (answer, error) {
	url := strings.TrimSuffix(w.URL, "/") + "/add-checkpoint"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(r.format()))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	response, err := c.http.Do(req)
	if err != nil {
		return answer{}, withoutURL(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return answer{}, withoutURL(err)
	}

	a := answer{status: response.StatusCode}
	switch {
	case len(body) > maxAnswer:
		return a, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case a.status == http.StatusOK:
		a.line, err = cosignatureIn(body, w.Key, s.Text())
		return a, err
	case a.status == http.StatusConflict && response.Header.Get("Content-Type") == typeSize:
		a.size, err = parseSize(strings.TrimSuffix(string(body), "\n"))
		return a, err
	}
	a.detail = fmt.Sprintf("status %d: %.200q", a.status, body)
	if seconds, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
		a.retryAfter = min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	return a, nil
}

// typeSize is the media type of the size of a tree.
const typeSize = "text/x.tlog.size"

// cosignatureIn returns the cosignature by a key among the lines of an answer.
func cosignatureIn(lines []byte, key trustpolicy.Key, text string) (string, error) {
	policy := trustpolicy.Policy{Witnesses: []trustpolicy.Witness{{Name: "w", Key: key}}, Quorum: trustpolicy.None}
	if bytes.HasPrefix(lines, []byte("\n")) || bytes.Contains(lines, []byte("\n\n")) {
		return "", errors.New("the answer has an empty line")
	}
	found, err := policy.Cosignatures(append([]byte(text+"\n"), lines...))
	if err != nil {
		return "", fmt.Errorf("the cosignature is not valid: %w", err)
	}
	if len(found) == 0 {
		return "", errors.New("the answer has no cosignature by the key in the policy")
	}
	return found[0].Line, nil
}

// withoutURL returns an error of an HTTP client without the URL, which the status has anyway.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// Package client is a Go client for ledgerd's HTTP API. A Client has a method for
// each endpoint, and iterators over lists.
package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxResponse is the maximum size of a response in bytes, so that a wrong URL
// cannot exhaust memory. The largest valid response is a commit with a very large
// change record.
const maxResponse = 256 << 20

// A Client is a client of one ledgerd server. It is safe for concurrent use. It
// never retries a request, except for Follow: creating a token, an org, a repo or a
// webhook is not idempotent.
type Client struct {
	base      string // without a trailing slash
	token     string
	userAgent string
	http      *http.Client
}

// Options configures a Client. All fields are optional.
type Options struct {
	// Token is sent as the bearer token of every request.
	Token string
	// UserAgent is the User-Agent header. The default is "ledgerd-client".
	UserAgent string
	// HTTPClient makes the requests. The default has a timeout of 30 seconds and does
	// not follow redirects, so that the token is only sent to the given server.
	HTTPClient *http.Client
}

// New returns a client of the server at a base URL, such as https://ledger.example
// or https://host.example/ledger.
func New(base string, o Options) (*Client, error) {
	if !strings.Contains(base, "://") { // it may hold a password
		return nil, errors.New("invalid server URL: it begins with https:// or http://, such as https://ledger.example")
	}
	u, err := url.Parse(base)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("invalid server URL: %w", e.Err) // e repeats the URL, which may hold a password
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("invalid server URL %q: use e.g. https://ledger.example", u.Redacted())
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("invalid server URL %q: remove the query and the fragment", u.Redacted())
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New(
			"invalid API token: it contains a space, a control character or a non-ASCII character (copy it again)")
	}

	c := &Client{
		base:      strings.TrimRight(u.String(), "/"),
		token:     o.Token,
		userAgent: cmp.Or(o.UserAgent, "ledgerd-client"),
		http:      o.HTTPClient,
	}
	if c.http == nil {
		c.http = &http.Client{
			Timeout:       30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return c, nil
}

// A request is a request to the API.
type request struct {
	method  string
	path    string // escaped, starting with the version
	query   url.Values
	accept  string // default: application/json
	ifMatch string
	body    []byte // JSON, or nil
	// contentType is that of the body; default: application/json.
	contentType string
	most        int // maximum size of the response in bytes; 0 means maxResponse
}

// A response is a successful response with its complete body.
type response struct {
	request request
	status  int
	header  http.Header
	body    []byte
}

// created reports whether the request created a resource.
func (a *response) created() bool { return a.status == http.StatusCreated }

// decode decodes the record in a response. It ignores unknown fields, which a newer server may add.
func (a *response) decode(record any) error {
	if err := ledger.DecodeOpen(a.body, record); err != nil {
		return fmt.Errorf("unexpected response to %s %s (check the server URL): %w", a.request.method, a.request.path, err)
	}
	return nil
}

// do sends a request. It returns an *Error if the response is not 2xx.
func (c *Client) do(ctx context.Context, r request) (*response, error) {
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	most := cmp.Or(r.most, maxResponse)
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read the response to %s %s: %w", r.method, r.path, err)
	}
	if len(body) > most {
		return nil, fmt.Errorf("the response to %s %s is larger than %d bytes", r.method, r.path, most)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, newError(resp, body)
	}
	return &response{r, resp.StatusCode, resp.Header, body}, nil
}

func (c *Client) newRequest(ctx context.Context, r request) (*http.Request, error) {
	if err := checkPath(r.path); err != nil {
		return nil, err
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}

	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", cmp.Or(r.accept, "application/json"))
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", cmp.Or(r.contentType, "application/json"))
	}
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	return req, nil
}

// call sends a request and decodes the record in the response. It returns an *AnotherError if
// that is not the one that the request names.
func call[T any](ctx context.Context, c *Client, r request) (T, *response, error) {
	var record, none T
	a, err := c.do(ctx, r)
	if err != nil {
		return none, nil, err
	}
	if err := a.decode(&record); err != nil {
		return none, nil, err
	}
	if err := r.check(record); err != nil {
		return none, nil, err
	}
	return record, a, nil
}

// check returns an *AnotherError if a record is not the one that the request names.
func (r request) check(record any) error {
	return keyIn(r.path, r.query).check(record, r.method == http.MethodPatch)
}

func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	record, _, err := call[T](ctx, c, request{method: http.MethodGet, path: path})
	return record, err
}

func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	return send[T](ctx, c, http.MethodPost, path, body)
}

// patch changes the resource at path and returns it.
func patch[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	return send[T](ctx, c, http.MethodPatch, path, body)
}

func send[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var record T
	data, err := json.Marshal(body)
	if err != nil {
		return record, fmt.Errorf("encode the request: %w", err)
	}
	record, _, err = call[T](ctx, c, request{method: method, path: path, body: data})
	return record, err
}

// pathOf returns the path of a resource, with its segments escaped.
func pathOf(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// checkPath returns an error if a segment of the path could lead to another
// resource: servers and proxies resolve dots and decode %2F to a slash.
func checkPath(path string) error {
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." || strings.Contains(segment, "%2F") {
			name, _ := url.PathUnescape(segment)
			return fmt.Errorf("invalid name %q: names are not empty, . or .., and contain no slash", name)
		}
	}
	return nil
}

// Package client is the Go client of ledgerd's HTTP API: a method for each
// endpoint, and iterators over its lists.
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

// maxAnswer bounds what is read of one answer, so that a wrong URL cannot fill
// the memory. The largest honest answer is the record of a commit that
// changes very many paths.
const maxAnswer = 256 << 20

// A Client speaks to one ledgerd server. It may be used by several goroutines
// at once. It never repeats a request by itself: what to do about an error is
// its caller's to decide. Making a token, an org, a repo or a webhook again does
// not do the same again.
type Client struct {
	base      string // without a slash at its end
	token     string
	userAgent string
	http      *http.Client
}

// Options are what a Client can do without.
type Options struct {
	// Token is sent as the bearer token of every request.
	Token string
	// UserAgent names the program; "ledgerd-client" where it is empty.
	UserAgent string
	// HTTPClient makes the requests. The default one gives up after 30 seconds
	// and follows no redirect, so that a token only goes where it was meant to.
	HTTPClient *http.Client
}

// New returns a client of the server at base, such as https://ledger.example
// or https://host.example/ledger.
func New(base string, o Options) (*Client, error) {
	if !strings.Contains(base, "://") { // it may hold a password
		return nil, errors.New("the server's URL must begin with https:// or http://, such as https://ledger.example")
	}
	u, err := url.Parse(base)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("the server's URL: %w", e.Err) // e repeats the URL, which may hold a password
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%q is not a server's URL: it must be like https://ledger.example", u.Redacted())
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not a server's URL: it must end with its path", u.Redacted())
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New(
			"the API token holds a blank, a control character or one that is not ASCII: was it copied as it is?")
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

// A request is one call of the API.
type request struct {
	method  string
	path    string // escaped, from the version on
	query   url.Values
	accept  string // application/json where it is empty
	ifMatch string
	body    []byte // JSON, or nil
}

// An answer is a response that was read to its end and tells of success.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// created reports whether the request made something that was not there.
func (a *answer) created() bool { return a.status == http.StatusCreated }

func (c *Client) do(ctx context.Context, r request) (*answer, error) {
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s: %w", r.method, r.path, err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer to %s %s is longer than %d bytes", r.method, r.path, maxAnswer)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, newError(resp, body)
	}
	return &answer{resp.StatusCode, resp.Header, body}, nil
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
		req.Header.Set("Content-Type", "application/json")
	}
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	return req, nil
}

// call makes a request and reads the record that answers it. Members that this
// version does not know are passed over: a newer server may add them.
func call[T any](ctx context.Context, c *Client, r request) (T, *answer, error) {
	var record T
	a, err := c.do(ctx, r)
	if err != nil {
		return record, nil, err
	}
	if err := ledger.DecodeOpen(a.body, &record); err != nil {
		return record, nil, fmt.Errorf("the answer to %s %s is not of this API (is the URL right?): %w", r.method, r.path,
			err)
	}
	return record, a, nil
}

func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	record, _, err := call[T](ctx, c, request{method: http.MethodGet, path: path})
	return record, err
}

func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var record T
	data, err := json.Marshal(body)
	if err != nil {
		return record, fmt.Errorf("writing the request as JSON: %w", err)
	}
	record, _, err = call[T](ctx, c, request{method: http.MethodPost, path: path, body: data})
	return record, err
}

// pathOf returns the path of a resource, its segments escaped.
func pathOf(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// checkPath refuses a path with a segment that would lead elsewhere than its
// name says: servers and proxies resolve dots and take %2F for a slash.
func checkPath(path string) error {
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." || strings.Contains(segment, "%2F") {
			name, _ := url.PathUnescape(segment)
			return fmt.Errorf("%q cannot name anything in the ledger: names are not empty, are not . or .. and have no slash",
				name)
		}
	}
	return nil
}

package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// stream follows an org's events for up to ten minutes. Some streams resume where another
// one was.
func (l *load) stream(ctx context.Context) error {
	n := l.anyRepo().tenant
	path := "/v1/orgs/" + n.name + "/events"
	if last := n.cursor.Load(); last != nil && mathrand.IntN(3) == 0 {
		path += "?last_event_id=" + *last
	}
	return l.listen(ctx, path, "Authorization", "Bearer "+n.readSecret, 10*time.Minute, &n.cursor)
}

// loneStream follows the events of an org that has no other streams.
func (l *load) loneStream(ctx context.Context) error {
	return l.listen(ctx, "/v1/orgs/quiet/events", "Authorization", "Bearer "+l.quiet, 10*time.Second, nil)
}

// listen reads a stream for up to a duration. If cursor is not nil, it stores the ids of
// events there.
func (l *load) listen(
	ctx context.Context, path, header, value string, limit time.Duration, cursor *atomic.Pointer[string],
) error {
	ctx, cancel := context.WithTimeout(ctx, l.real(time.Second+mathrand.N(limit)))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.o.url+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set(header, value)
	request.Header.Set("Accept", "text/event-stream")

	response, err := l.transport.RoundTrip(request)
	if err == nil {
		defer response.Body.Close()
		if err = responseError(response); err == nil {
			err = readStream(response.Body, func(m message) {
				if cursor != nil {
					cursor.Store(&m.id)
				}
			}, nil)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // the usual end
	}
	return cmp.Or(err, fmt.Errorf("the server ended the stream"))
}

// stall requests a stream from the beginning and does not read it.
func (l *load) stall(ctx context.Context) error {
	n := l.anyRepo().tenant
	conn, err := net.Dial("tcp", l.o.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/orgs/%s/events?last_event_id=earliest HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Accept: text/event-stream\r\n\r\n", n.name, l.o.address, n.readSecret)
	l.pause(ctx, 2*time.Minute)
	return nil
}

// halfSent announces a body and sends a part of it. The server or the client closes the
// connection.
func (l *load) halfSent(ctx context.Context) error {
	r := l.anyRepo()
	conn, err := net.Dial("tcp", l.o.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/orgs/%s/repos/%s/attestations HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"payload\":\"", r.tenant.name, r.name,
		l.o.address, r.adminSecret)
	l.pause(ctx, mathrand.N(2*time.Minute))
	if mathrand.IntN(2) == 0 {
		return conn.(*net.TCPConn).SetLinger(0)
	}
	return nil
}

var liveStream = regexp.MustCompile(`data-live="([^"]*)"`)

// view is a visit of the web interface: sign in, view pages, follow a live page. Half of
// the visitors sign out; the sessions of the others expire.
func (l *load) view(ctx context.Context) error {
	r := l.anyRepo()
	cookie, err := l.signIn(ctx, r.readSecret)
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	base := "/orgs/" + r.tenant.name
	paths := []string{base, base + "/repos/" + r.name, base + "/activity"}
	if sha := r.aCommit(); sha != "" {
		paths = append(paths, base+"/repos/"+r.name+"/commits/"+sha)
	}

	var page []byte
	for _, path := range paths {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.o.url+path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Cookie", cookie)
		if page, err = l.respond(request); err != nil {
			return fmt.Errorf("view %s: %w", path, err)
		}
	}
	if live := liveStream.FindSubmatch(page); live != nil {
		if err := l.listen(ctx, html.UnescapeString(string(live[1])), "Cookie", cookie, time.Minute, nil); err != nil {
			return fmt.Errorf("follow a page: %w", err)
		}
	}
	if mathrand.IntN(2) == 0 {
		return nil
	}
	_, err = l.post(ctx, "/logout", cookie, nil)
	return err
}

// signIn returns the cookie of a new session.
func (l *load) signIn(ctx context.Context, token string) (cookie string, err error) {
	response, err := l.post(ctx, "/login", "", url.Values{"token": {token}})
	if err != nil {
		return "", err
	}
	for _, c := range response.Cookies() {
		cookie = c.Name + "=" + c.Value
	}
	if cookie == "" {
		return "", &client.Error{Status: response.StatusCode, Problem: ledger.Problem{Detail: response.Status}}
	}
	return cookie, nil
}

// post submits a form.
func (l *load) post(ctx context.Context, path, cookie string, form url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.o.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", l.o.url)
	request.Header.Set("Cookie", cookie)
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response, err
}

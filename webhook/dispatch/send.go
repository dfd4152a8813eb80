package dispatch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// maxHeader bounds what a receiver may send before its body.
	maxHeader = 64 << 10
	// idlePerHost is for the many webhooks that may have one host. In all no more
	// connections are kept than there may be requests in flight.
	idlePerHost = 256
	idleTimeout = 30 * time.Second
)

// Why a request was given up.
var (
	errSlowConnect = errors.New("no connection in time")
	errSlowAnswer  = errors.New("no answer in time")
	// errShortage is no fault of the receiver's, so no attempt.
	errShortage = errors.New("no file descriptors are left")
)

// A sender makes the requests of deliveries.
type sender struct {
	transport http.RoundTripper
	guard     *Guard
	proxied   bool
	userAgent string
	timeout   time.Duration // of all of a request
	connect   time.Duration // of all until it can be sent
	now       func() ledger.Time
}

func newSender(c Config) *sender {
	// The timer in send bounds dial and handshake together; these end what goes
	// on in the background after it.
	guarded := &net.Dialer{Timeout: c.ConnectTimeout, Control: c.Guard.control, Resolver: c.Guard.resolver}
	t := &http.Transport{
		DialContext:            guarded.DialContext,
		TLSHandshakeTimeout:    c.ConnectTimeout,
		TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: c.Timeout, PingTimeout: c.ConnectTimeout},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           c.TotalInFlight,
		MaxIdleConnsPerHost:    min(idlePerHost, c.TotalInFlight),
		IdleConnTimeout:        idleTimeout,
	}
	if c.Proxy != nil {
		// All that this transport ever dials is the proxy, which the operator has
		// chosen and which may well be on a private network. Targets are checked
		// before each attempt instead.
		t.Proxy = http.ProxyURL(c.Proxy)
		t.DialContext = (&net.Dialer{Timeout: c.ConnectTimeout}).DialContext
	}
	return &sender{transport: t, guard: c.Guard, proxied: c.Proxy != nil, userAgent: c.UserAgent,
		timeout: c.Timeout, connect: c.ConnectTimeout, now: c.Outbox.Now}
}

// close ends the connections that are kept for more requests.
func (s *sender) close() {
	if t, ok := s.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// A sent is what came of one request.
type sent struct {
	attempt    ledger.Attempt
	result     result
	retryAfter time.Duration
	took       time.Duration
}

// send makes one request. It returns an error only when ctx ends: then nobody
// knows what came of it; or when it could not be made for a lack of file
// descriptors.
func (s *sender) send(ctx context.Context, to ledger.Endpoint, d ledger.DueDelivery) (sent, error) {
	start, now := time.Now(), s.now()
	out := sent{attempt: ledger.Attempt{Number: d.Attempts + 1, At: now, Request: ledger.AttemptRequest{URL: to.URL}}}
	response, err := s.exchange(ctx, to, d, &out.attempt)
	if ctx.Err() != nil && (err != nil || response.Status == 0) {
		return out, context.Cause(ctx)
	}
	out.took = time.Since(start)
	out.attempt.DurationMS = out.took.Milliseconds()
	if isShortage(err) {
		return out, fmt.Errorf("%w: %w", errShortage, err)
	}
	if err != nil {
		out.result, out.attempt.Error = s.explain(to.URL, err)
		return out, nil
	}
	out.attempt.Response = response.AttemptResponse
	out.result, out.attempt.Error = judge(response.Status, response.location)
	if out.result != resultSuccess {
		out.retryAfter = parseRetryAfter(response.retryAfter, s.now())
	}
	return out, nil
}

// exchange sends the request, noting in the attempt what was sent, and reads
// the answer.
func (s *sender) exchange(
	ctx context.Context, to ledger.Endpoint, d ledger.DueDelivery, a *ledger.Attempt,
) (response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errSlowAnswer)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	slow := time.AfterFunc(s.connect, func() { giveUp(errSlowConnect) })
	defer slow.Stop()
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { slow.Reset(s.connect) },
		GotConn: func(httptrace.GotConnInfo) { slow.Stop() },
	}), http.MethodPost, to.URL, bytes.NewReader(d.Body))
	if err != nil {
		return response{}, errors.New("the URL cannot be requested")
	}
	request.Header = signedHeader(to, d, a.At)
	request.Header["User-Agent"] = []string{s.userAgent}
	a.Request.Headers = maps.Clone(map[string][]string(request.Header))
	a.Request.Headers["Host"] = []string{request.URL.Host}
	a.Request.Headers["Content-Length"] = []string{strconv.Itoa(len(d.Body))}
	// Not sent, it tells the transport that it may try again when a connection
	// that it had kept turns out to be closed. Receivers know deliveries by id.
	request.Header["X-Idempotency-Key"] = nil
	if s.proxied {
		if err := s.guard.checkStrictly(ctx, to.URL); err != nil {
			return response{}, err
		}
	}
	answer, err := s.transport.RoundTrip(request)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return response{}, err
	}
	return readResponse(answer), nil
}

// isShortage reports whether this process, or the machine, has as many files
// open as it may.
func isShortage(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok { // which wraps nothing
		return strings.HasSuffix(dns.Err, syscall.EMFILE.Error()) || strings.HasSuffix(dns.Err, syscall.ENFILE.Error())
	}
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// explain tells why there was no answer, in words for the webhook's owner, who
// need not learn the addresses of internal names.
func (s *sender) explain(rawURL string, err error) (result, string) {
	var refused *refusedError
	var checked *ledger.Error
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errSlowConnect):
		return resultTimeout, "no connection within " + s.connect.String()
	case errors.Is(err, errSlowAnswer):
		return resultTimeout, "no answer within " + s.timeout.String()
	case errors.As(err, &refused):
		return resultRefused, clean(refusal(rawURL, refused))
	case errors.As(err, &checked) && len(checked.Fields) > 0:
		return resultRefused, clean(checked.Fields[0].Message)
	case errors.As(err, &dns):
		return resultNetwork, clean(fmt.Sprintf("the name %s cannot be looked up: %s", dns.Name, lookupProblem(dns)))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return resultNetwork, "the receiver closed the connection without an answer"
	case errors.As(err, &certificate):
		return resultNetwork, clean("the certificate is not acceptable: " + certificate.Err.Error())
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return resultTimeout, "no connection within " + s.connect.String()
	}
	for op, ok := errors.AsType[*net.OpError](err); ok; op, ok = errors.AsType[*net.OpError](err) {
		err = op.Err
	}
	return resultNetwork, clean("no answer: " + err.Error())
}

// refusal names what was refused as the URL has it.
func refusal(rawURL string, refused *refusedError) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return refused.Error()
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return refused.Error()
	}
	return leadsAway(u.Hostname())
}

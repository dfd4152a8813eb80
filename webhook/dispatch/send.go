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
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

const (
	// maxHeader is the maximum size in bytes of a response's headers.
	maxHeader = 64 << 10
	// idlePerHost is the maximum number of idle connections to one host, which many
	// webhooks may share. The total is at most Config.TotalInFlight.
	idlePerHost = 256
	idleTimeout = 30 * time.Second
)

// Reasons to give up a request.
var (
	errSlowConnect  = errors.New("connection timeout")
	errSlowResponse = errors.New("response timeout")
	// errShortage is not the receiver's fault, so it does not count as an attempt.
	errShortage = errors.New("no file descriptors left")
)

// A sender makes the requests of deliveries.
type sender struct {
	transport http.RoundTripper
	guard     *Guard
	proxied   bool
	userAgent string
	timeout   time.Duration // for a whole request
	connect   time.Duration // for DNS, dialling and TLS
	now, wall func() ledger.Time
}

func newSender(c Config) *sender {
	// The timer in exchange bounds dialling and handshake together. These timeouts end
	// a dial that continues in the background after that.
	guarded := &net.Dialer{Timeout: c.ConnectTimeout, Control: c.Guard.Control, Resolver: c.Guard.resolver}
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
		// This transport dials only the proxy. The operator chose it, and it may be on
		// a private network. Targets are checked before each attempt instead.
		t.Proxy = http.ProxyURL(c.Proxy)
		t.DialContext = (&net.Dialer{Timeout: c.ConnectTimeout}).DialContext
	}
	return &sender{transport: t, guard: c.Guard, proxied: c.Proxy != nil, userAgent: c.UserAgent,
		timeout: c.Timeout, connect: c.ConnectTimeout, now: c.Outbox.Now, wall: c.Outbox.WallTime}
}

// close closes idle connections.
func (s *sender) close() {
	if t, ok := s.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// A sendResult is the result of one request.
type sendResult struct {
	attempt    outbound.Attempt
	result     result
	retryAfter time.Duration
	took       time.Duration
}

// send makes one request. It returns an error only if ctx ended, so that the result is
// unknown, or if no file descriptors were left.
func (s *sender) send(ctx context.Context, to outbound.Endpoint, d outbound.DueDelivery) (sendResult, error) {
	start, now := time.Now(), s.now()
	out := sendResult{attempt: outbound.Attempt{
		Number: d.Attempts + 1, At: now, Request: outbound.AttemptRequest{URL: to.URL}}}
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

	response.mask(to.Authorization)
	out.attempt.Response = response.AttemptResponse
	out.result, out.attempt.Error = classify(response.Status, response.location)
	if out.result != resultSuccess {
		out.retryAfter = parseRetryAfter(response.retryAfter, s.wall())
	}
	return out, nil
}

// exchange sends the request, records its headers in the attempt, and reads the
// response.
func (s *sender) exchange(
	ctx context.Context, to outbound.Endpoint, d outbound.DueDelivery, a *outbound.Attempt,
) (response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errSlowResponse)
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
		return response{}, errors.New("invalid URL")
	}

	request.Header = signedHeader(to, d, a.At, s.wall())
	request.Header["User-Agent"] = []string{s.userAgent}
	a.Request.Headers = maps.Clone(map[string][]string(request.Header))
	a.Request.Headers["Host"] = []string{request.URL.Host}
	a.Request.Headers["Content-Length"] = []string{strconv.Itoa(len(d.Body))}
	if to.Authorization != "" {
		a.Request.Headers["Authorization"] = []string{outbound.MaskedAuthorization}
	}
	// A nil value is not sent. It allows the transport to retry if an idle connection
	// turns out to be closed. Receivers deduplicate by id.
	request.Header["X-Idempotency-Key"] = nil

	if s.proxied {
		if err := s.guard.checkStrictly(ctx, to.URL); err != nil {
			return response{}, err
		}
	}

	r, err := s.transport.RoundTrip(request)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return response{}, err
	}
	return readResponse(r), nil
}

// isShortage reports whether an error means that this process or the machine has
// reached its limit of open files.
func isShortage(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok { // it does not wrap the errno
		return strings.HasSuffix(dns.Err, syscall.EMFILE.Error()) || strings.HasSuffix(dns.Err, syscall.ENFILE.Error())
	}
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// explain returns the result and the error message of a request without a response.
// The message is for the webhook's owner, so it omits addresses of internal names.
func (s *sender) explain(rawURL string, err error) (result, string) {
	var refused *refusedError
	var checked *ledger.Error
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError

	switch {
	case errors.Is(err, errSlowConnect):
		return resultTimeout, "no connection within " + s.connect.String()
	case errors.Is(err, errSlowResponse):
		return resultTimeout, "no response within " + s.timeout.String()
	case errors.As(err, &refused):
		return resultRefused, clean(refusalMessage(rawURL, refused))
	case errors.As(err, &checked) && len(checked.Fields) > 0:
		return resultRefused, clean(checked.Fields[0].Message)
	case errors.As(err, &dns):
		return resultNetwork, clean(fmt.Sprintf("cannot resolve %s: %s", dns.Name, lookupProblem(dns)))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return resultNetwork, "the receiver closed the connection without a response"
	case errors.As(err, &certificate):
		return resultNetwork, clean("invalid certificate: " + certificate.Err.Error())
	}

	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return resultTimeout, "no connection within " + s.connect.String()
	}
	for op, ok := errors.AsType[*net.OpError](err); ok; op, ok = errors.AsType[*net.OpError](err) {
		err = op.Err
	}
	return resultNetwork, clean("no response: " + err.Error())
}

// refusalMessage returns the message of a refused address, with the host as the URL
// has it.
func refusalMessage(rawURL string, refused *refusedError) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return refused.Error()
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return refused.Error()
	}
	return notPublic(u.Hostname(), refused.setting)
}

package dispatch

import (
	"net"
	"net/http"
)

// What tests need to see of the inside.
var (
	RetryIn         = retryIn
	ParseRetryAfter = parseRetryAfter
	Clip            = clip
)

// SetResolver gives the guard a DNS of the test's own.
func (g *Guard) SetResolver(r *net.Resolver) { g.resolver = r }

// SetTransport replaces what makes the requests.
func (d *Dispatcher) SetTransport(t http.RoundTripper) { d.sender.transport = t }

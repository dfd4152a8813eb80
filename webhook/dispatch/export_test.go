package dispatch

import (
	"net"
	"net/http"
)

// Unexported functions for tests.
var (
	RetryIn         = retryIn
	ParseRetryAfter = parseRetryAfter
	Clip            = clip
)

// SetResolver replaces the guard's resolver.
func (g *Guard) SetResolver(r *net.Resolver) { g.resolver = r }

// SetTransport replaces the dispatcher's transport.
func (d *Dispatcher) SetTransport(t http.RoundTripper) { d.sender.transport = t }

package session

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxLinks is the maximum number of links that wait to be used.
const maxLinks = 16

// Links are the links that have not been used. They are in memory only.
type Links struct{ pool *Pool[link] }

type link struct {
	token ledger.Token  // with its secret
	used  chan struct{} // closed by Take
}

// NewLinks returns an empty set of links, which expire by the given clock.
func NewLinks(now func() time.Time) *Links { return &Links{NewPool[link](maxLinks, now)} }

// Add creates a link to sign in with a token, whose secret must be set. It returns the key of
// the link, and a channel that is closed when the link is used.
func (l *Links) Add(token ledger.Token, lifetime time.Duration) (key string, used <-chan struct{}) {
	added := link{token, make(chan struct{})}
	return l.pool.Add(added, lifetime), added.used
}

// Check returns the token of a link, without its secret, if the request may use it. The link
// remains: programs that look at links in advance must not use them up.
func (l *Links) Check(r *http.Request, key string) (ledger.Token, error) {
	k, err := find(r, key, l.pool.Get)
	k.token.Secret = ""
	return k.token, err
}

// Take returns the token of a link, if the request may use it, and ends the link.
func (l *Links) Take(r *http.Request, key string) (ledger.Token, error) {
	k, err := find(r, key, l.pool.Take)
	if err == nil {
		close(k.used)
	}
	return k.token, err
}

// find returns what get has for a key, if the request may use a link.
func find(r *http.Request, key string, get func(key string) (link, bool)) (link, error) {
	if !isLocal(r) {
		return link{}, ledger.Errorf(ledger.CodeForbidden, "sign-in links only work on the machine of the server: sign in "+
			"with an API token")
	}
	k, ok := get(key)
	if !ok {
		return k, ledger.Errorf(ledger.CodeForbidden, "sign-in link used or expired: it works once, for a short time "+
			"(sign in with an API token)")
	}
	return k, nil
}

// isLocal reports whether a request comes from this machine, and not through a proxy on it.
func isLocal(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Unmap().IsLoopback() || !IsLoopback(r.Host) {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return true
}

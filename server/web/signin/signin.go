// Package signin has links that sign a person in, once, on the machine of the server.
package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/session"
)

// maxLinks is the maximum number of links that wait to be used. One more replaces the link
// that expires first.
const maxLinks = 16

// Links are the links that have not been used. They are in memory only.
type Links struct {
	now func() time.Time

	mu    sync.Mutex
	links map[[sha256.Size]byte]*link // by the digest of the key
}

type link struct {
	token   ledger.Token // with its secret
	expires time.Time
	used    chan struct{} // closed by Take
}

// New returns an empty set of links, which expire by the given clock.
func New(now func() time.Time) *Links {
	return &Links{now: now, links: make(map[[sha256.Size]byte]*link)}
}

// Add creates a link to sign in with a token, whose secret must be set. It returns the key of
// the link, and a channel that is closed when the link is used.
func (l *Links) Add(token ledger.Token, lifetime time.Duration) (key string, used <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.links) >= maxLinks {
		l.removeFirst()
	}
	key = rand.Text()
	added := &link{token: token, expires: l.now().Add(lifetime), used: make(chan struct{})}
	l.links[sha256.Sum256([]byte(key))] = added
	return key, added.used
}

// removeFirst removes the link that expires first.
func (l *Links) removeFirst() {
	var first [sha256.Size]byte
	for digest, k := range l.links {
		if oldest := l.links[first]; oldest == nil || k.expires.Before(oldest.expires) {
			first = digest
		}
	}
	delete(l.links, first)
}

// Check returns the token of a link, without its secret, if the request may use it. The link
// remains: programs that look at links in advance must not use them up.
func (l *Links) Check(r *http.Request, key string) (ledger.Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, err := l.find(r, key)
	if err != nil {
		return ledger.Token{}, err
	}
	token := k.token
	token.Secret = ""
	return token, nil
}

// Take returns the token of a link, if the request may use it, and ends the link.
func (l *Links) Take(r *http.Request, key string) (ledger.Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, err := l.find(r, key)
	if err != nil {
		return ledger.Token{}, err
	}
	delete(l.links, sha256.Sum256([]byte(key)))
	close(k.used)
	return k.token, nil
}

// find returns a link that has not expired. The caller holds l.mu.
func (l *Links) find(r *http.Request, key string) (*link, error) {
	if !isLocal(r) {
		return nil, ledger.Errorf(ledger.CodeForbidden, "sign-in links only work on the machine of the server: sign in "+
			"with an API token")
	}
	k := l.links[sha256.Sum256([]byte(key))]
	if k == nil || !l.now().Before(k.expires) {
		return nil, ledger.Errorf(ledger.CodeForbidden, "sign-in link used or expired: it works once, for a short time "+
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
	if err != nil || !ip.Unmap().IsLoopback() || !session.IsLoopback(r.Host) {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return true
}

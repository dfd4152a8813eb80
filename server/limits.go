package server

import (
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A pace is how a stream goes with time.
type pace struct {
	silence time.Duration // after which it writes a comment
	check   time.Duration // between two looks whether its token is still good
	stall   time.Duration // that a write may wait for a client that does not read
}

// defaultPace keeps a little below the 15 s that are promised for silence and
// revocation.
var defaultPace = pace{silence: 14 * time.Second, check: 10 * time.Second, stall: 10 * time.Second}

// A limits counts the streams that are open.
type limits struct {
	perOrg, perToken int

	mu   sync.Mutex
	open map[string]int // by org, and by token id
}

// take counts one more stream, if that is within the limits. It must be released.
func (l *limits) take(org, token string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[org] >= l.perOrg {
		return nil, ledger.Errorf(
			ledger.CodeTooManyStreams, "the org has %d streams open already (the config key streams.per_org)", l.perOrg)
	}
	if l.open[token] >= l.perToken {
		return nil, ledger.Errorf(ledger.CodeTooManyStreams,
			"the API token has %d streams open already (the config key streams.per_token)", l.perToken)
	}
	l.open[org]++
	l.open[token]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, key := range []string{org, token} {
			if l.open[key]--; l.open[key] == 0 {
				delete(l.open, key)
			}
		}
	}, nil
}

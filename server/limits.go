package server

import (
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A streamTiming holds the timeouts and intervals of a stream.
type streamTiming struct {
	silence time.Duration // time without events after which it writes a comment
	check   time.Duration // interval between two checks of its token
	stall   time.Duration // timeout of a write, if the client does not read
}

// defaultTiming is a little below the documented 15 s for silence and revocation.
var defaultTiming = streamTiming{silence: 14 * time.Second, check: 10 * time.Second, stall: 10 * time.Second}

// limits counts the open streams and limits their number.
type limits struct {
	perOrg, perToken int

	mu   sync.Mutex
	open map[string]int // by org, and by token id
}

// acquire counts one more stream, or returns an error with CodeTooManyStreams. The
// caller must call release when the stream ends.
func (l *limits) acquire(org, token string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[org] >= l.perOrg {
		return nil, ledger.Errorf(
			ledger.CodeTooManyStreams, "the org already has %d open streams (setting streams.per_org)", l.perOrg)
	}
	if l.open[token] >= l.perToken {
		return nil, ledger.Errorf(ledger.CodeTooManyStreams,
			"the API token already has %d open streams (setting streams.per_token)", l.perToken)
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

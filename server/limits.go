package server

import (
	"context"
	"maps"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/internal/rate"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/budget"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// openStreams counts the open streams and limits their number.
type openStreams struct {
	total, perOrg, perToken int

	mu   sync.Mutex
	all  int
	open map[string]int // by org, and by token id
	none chan struct{}  // closed when all is 0; nil if nobody waits for it
}

func newOpenStreams(l Limits) *openStreams {
	return &openStreams{total: l.Streams, perOrg: l.StreamsPerOrg, perToken: l.StreamsPerToken, open: make(map[string]int)}
}

// acquire counts one more stream, or returns an error with CodeTooManyStreams. The
// caller must call release when the stream ends.
func (l *openStreams) acquire(org, token string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.total {
		return nil, ledger.Errorf(ledger.CodeTooManyStreams, "the server already has %d open streams "+
			"(its limit of open files, ulimit -n, allows no more)", l.total)
	}
	if l.open[org] >= l.perOrg {
		return nil, ledger.Errorf(
			ledger.CodeTooManyStreams, "the org already has %d open streams (see docs/limits.md)", l.perOrg)
	}
	if l.open[token] >= l.perToken {
		return nil, ledger.Errorf(ledger.CodeTooManyStreams,
			"the API token already has %d open streams (see docs/limits.md)", l.perToken)
	}

	l.all++
	l.open[org]++
	l.open[token]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.all--; l.all == 0 && l.none != nil {
			close(l.none)
			l.none = nil
		}
		for _, key := range []string{org, token} {
			if l.open[key]--; l.open[key] == 0 {
				delete(l.open, key)
			}
		}
	}, nil
}

// wait waits until no streams are open or ctx is done.
func (l *openStreams) wait(ctx context.Context) error {
	l.mu.Lock()
	if l.all == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.none == nil {
		l.none = make(chan struct{})
	}
	none := l.none
	l.mu.Unlock()

	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A credential is the hash of the secret by which a caller was identified.
type credential struct {
	hash    [32]byte
	session bool // whether the secret is that of a session, or of a token
}

// recheckLife is how long the result of a recheck is valid.
const recheckLife = time.Second

// rechecks check the callers of long responses again. A check serves all who ask for it
// within recheckLife, so thousands of streams of a caller cost no more than one.
type rechecks struct {
	mu sync.Mutex
	by map[credential]recheck
}

type recheck struct {
	begun  time.Time
	result func() error // waits for the result
}

// of returns the result of check for a credential, which may be that of another call.
func (r *rechecks) of(c credential, check func() error) error {
	r.mu.Lock()
	now := time.Now()
	latest, ok := r.by[c]
	if !ok || now.Sub(latest.begun) >= recheckLife {
		maps.DeleteFunc(r.by, func(_ credential, old recheck) bool { return now.Sub(old.begun) >= recheckLife })
		latest = recheck{now, sync.OnceValue(check)}
		r.by[c] = latest
	}
	r.mu.Unlock()
	return latest.result()
}

// The limits of concurrent requests.
const (
	// minMemory is the minimum memory in bytes for the bodies and responses of one
	// token. It has to be enough for the largest body.
	minMemory = 12 << 20
	// memoryShares is the number of tokens that can use their full share of the memory
	// at the same time.
	memoryShares = 3

	// minReads is the minimum number of concurrent reads of a token. More than there are
	// CPUs only take memory.
	minReads   = 4
	readShares = 4 // like memoryShares

	maxReviews = 1

	maxWait        = 10 * time.Second
	waiting        = 2048 // requests that wait at the same time
	waitingOfToken = 512
)

// budgets are what concurrent requests share.
type budgets struct {
	memory *budget.Budget // bytes of bodies that are being read, and of responses that are being written
	reads  *budget.Budget // number of responses that are being prepared
	// reviews is the number of contracts that are being reviewed, by org. In a large org, a
	// review takes a CPU for up to a tenth of a second.
	reviews *budget.Budget
}

func newBudgets(maxBody int64) budgets {
	share, reads := max(minMemory, wire.BodyMemory*maxBody), readsPerToken()
	return budgets{
		memory: budget.New(budget.Config{
			Total: memoryShares * share, Share: share, Wait: maxWait, Waiting: waiting, ShareWaiting: waitingOfToken,
			ShareFull: ledger.Errorf(ledger.CodeTooManyRequests,
				"the bodies and responses of requests with this API token take more than %d MiB "+
					"(read responses completely, or send fewer requests at the same time)", share>>20),
			TotalFull: ledger.Errorf(ledger.CodeServerBusy, "too many large requests at the same time: nothing was changed"),
		}),
		reads: budget.New(budget.Config{
			Total: readShares * reads, Share: reads, Wait: maxWait, Waiting: waiting, ShareWaiting: waitingOfToken,
			ShareFull: ledger.Errorf(ledger.CodeTooManyRequests,
				"the API token already has %d concurrent reads (send fewer requests at the same time)", reads),
			TotalFull: ledger.Errorf(ledger.CodeServerBusy, "too many concurrent reads"),
		}),
		reviews: budget.New(budget.Config{
			Total: maxReviews, Share: maxReviews, Wait: maxWait, Waiting: waiting, ShareWaiting: waitingOfToken,
			ShareFull: ledger.Errorf(ledger.CodeTooManyRequests, "too many concurrent reviews of policies of the org"),
			TotalFull: ledger.Errorf(ledger.CodeServerBusy, "too many concurrent reviews of policies"),
		}),
	}
}

// readsPerToken returns the maximum number of concurrent reads of a token.
func readsPerToken() int64 { return max(minReads, int64(runtime.GOMAXPROCS(0))) }

// memoryOf returns a lease on behalf of a token. Reads and writes of a token have
// separate shares, so that responses that nobody reads keep out no attestations.
func (b budgets) memoryOf(token string, r *http.Request) *budget.Lease {
	if wire.IsRead(r) {
		token += " reads"
	}
	return b.memory.Lease(token)
}

// rates limit how often callers send requests.
type rates struct {
	requests *rate.Limiter // by token, or by address if there is none
	failures *rate.Limiter // by address
}

// rateWindow is in how many seconds a caller may send its burst of requests again.
const rateWindow = 10

// newRates returns limits for requests per second, and for failed sign-ins per minute.
func newRates(l Limits) rates {
	return rates{
		requests: rate.New(float64(l.Requests), rateWindow*l.Requests),
		failures: rate.New(float64(l.FailedSignIns)/60, l.FailedSignIns),
	}
}

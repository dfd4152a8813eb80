package witness

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/transparency"
)

// A PoolConfig configures a Pool.
type PoolConfig struct {
	// Policy lists the witnesses. Those without a URL are not asked.
	Policy    *trustpolicy.Policy
	Logger    *slog.Logger
	UserAgent string
	RootCAs   *x509.CertPool // nil: those of the system
}

// A Pool asks witnesses to cosign the checkpoints of our logs. It is a
// transparency.Cosigner. Call Close.
type Pool struct {
	log       *slog.Logger
	client    *client
	witnesses []*remote

	background context.Context // of the requests
	cancel     context.CancelFunc
	running    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	logs   map[string]*observed // by origin
}

// observed is what is known about one of our logs.
type observed struct {
	links []*link

	mu    sync.Mutex
	size  int64  // of the latest checkpoint
	text  string // of the latest checkpoint
	alarm *alarmError
}

// NewPool returns a pool.
func NewPool(c PoolConfig) (*Pool, error) {
	p := &Pool{log: c.Logger, client: newClient(c.UserAgent, c.RootCAs), logs: make(map[string]*observed)}
	p.background, p.cancel = context.WithCancel(context.Background())
	for _, w := range c.Policy.Witnesses {
		if w.URL == "" {
			continue
		}
		if err := checkURL(w.URL); err != nil {
			return nil, fmt.Errorf("witness %s: %w", w.Name, err)
		}
		p.witnesses = append(p.witnesses, &remote{Witness: w, slots: make(chan struct{}, perWitness)})
	}
	return p, nil
}

// Close ends all requests.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.running.Wait()
	p.client.http.CloseIdleConnections()
}

// observed returns what is known about a log.
func (p *Pool) observed(origin string) *observed {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, ok := p.logs[origin]
	if !ok {
		o = &observed{}
		for _, w := range p.witnesses {
			o.links = append(o.links, &link{to: w})
		}
		p.logs[origin] = o
	}
	return o
}

// Stopped implements transparency.Cosigner.
func (p *Pool) Stopped(origin string) error {
	o := p.observed(origin)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.alarm != nil {
		return o.alarm
	}
	return nil
}

// Cosign implements transparency.Cosigner. It waits for each witness that usually answers in
// time; those that are slow or failing delay nothing.
func (p *Pool) Cosign(ctx context.Context, s transparency.Signed) (string, error) {
	if err := p.Stopped(s.Origin); err != nil {
		return "", err
	}
	o := p.observed(s.Origin)
	o.mu.Lock()
	o.size, o.text = s.Size, s.Text()
	o.mu.Unlock()

	answers, awaited := make(chan struct{}, len(o.links)), 0
	for _, l := range o.links {
		if l.begin(s.Text(), time.Now()) && p.start(o, l, s, answers) {
			awaited++
		}
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for ; awaited > 0; awaited-- {
		select {
		case <-answers:
			continue
		case <-timeout.C:
		case <-ctx.Done():
		}
		break
	}

	var lines strings.Builder
	for _, l := range o.links {
		lines.WriteString(l.take(s.Text()))
	}
	return lines.String(), p.Stopped(s.Origin)
}

// start submits a checkpoint to a witness in the background, and then sends to answers. It
// reports whether the answer is worth waiting for: whether the witness is not slow.
func (p *Pool) start(o *observed, l *link, s transparency.Signed, answers chan<- struct{}) (await bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	slow := l.to.isSlow()
	p.running.Go(func() {
		begun := time.Now()
		if alarm := l.submit(p.background, p.client, s); alarm != nil {
			p.raise(o, s, alarm)
		}
		l.to.took(time.Since(begun))
		if !slow {
			answers <- struct{}{}
		}
	})
	return !slow
}

// raise stops the signing of a log.
func (p *Pool) raise(o *observed, s transparency.Signed, alarm *alarmError) {
	o.mu.Lock()
	first := o.alarm == nil
	if first {
		o.alarm = alarm
	}
	o.mu.Unlock()
	if first {
		p.log.Error("A WITNESS KNOWS ANOTHER HISTORY OF THE LOG: it is not signed any more", "origin", s.Origin,
			"size", s.Size, "reason", alarm.text, "help", "see docs/witness.md, 'When a witness refuses'")
	}
}

// Lagging implements transparency.Cosigner.
func (p *Pool) Lagging() bool {
	p.mu.Lock()
	logs := make([]*observed, 0, len(p.logs))
	for _, o := range p.logs {
		logs = append(logs, o)
	}
	p.mu.Unlock()

	now := time.Now()
	for _, o := range logs {
		if o.lags(now) {
			return true
		}
	}
	return false
}

// lags reports whether a cosignature of the latest checkpoint can be had.
func (o *observed) lags(now time.Time) bool {
	o.mu.Lock()
	text, stopped := o.text, o.alarm != nil
	o.mu.Unlock()
	if text == "" || stopped {
		return false
	}
	return slices.ContainsFunc(o.links, func(l *link) bool { return l.waiting(text, now) })
}

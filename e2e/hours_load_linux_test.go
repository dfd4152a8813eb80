package e2e_test

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A load is what the users of a server do on ordinary days, at the pace of its clocks:
// durations are in the server's time, unless their names begin with real.
type load struct {
	t         *testing.T
	o         *org
	factor    int64
	began     time.Time // by the server's clock
	realBegan time.Time
	tenants   []*tenant
	quiet     string // token of the org quiet, which has no repos
	transport *http.Transport
	receiver  *moodyReceiver

	serial  atomic.Int64
	running sync.WaitGroup
	mu      sync.Mutex
	tasks   map[string]*outcomes
}

// outcomes counts how the runs of a task ended.
type outcomes struct {
	done, refused, busy, failed int
	last                        error // of those that failed
}

// A tenant is an org with its tokens, and the key of its CI.
type tenant struct {
	name                       string
	adminSecret                string
	adminOf, writerOf, readsOf *client.Client
	readSecret                 string
	key                        ed25519.PrivateKey
	repos                      []*busyRepo
	cursor                     atomic.Pointer[string] // id of an event that a stream has sent
}

// A busyRepo is a repo with the commits that were registered last.
type busyRepo struct {
	*tenant
	name string

	mu      sync.Mutex
	commits []string
}

// newLoad creates the orgs in the database and starts the server with fast clocks.
func newLoad(t *testing.T, factor int64) *load {
	t.Helper()
	o := newEmptyLedger(t)
	l := &load{t: t, o: o, factor: factor, tasks: map[string]*outcomes{}, receiver: newMoodyReceiver(t),
		transport: &http.Transport{MaxIdleConnsPerHost: 50}}
	l.transport.IdleConnTimeout = l.real(30 * time.Second)
	for _, name := range []string{"acme", "globex", "initech"} {
		o.ledgerd("org", "create", name)
		secret := o.ledgerd("token", "create", "--org", name, "--name", "admin", "--scope", "admin")
		l.tenants = append(l.tenants, &tenant{name: name, adminSecret: secret})
	}
	o.ledgerd("org", "create", "quiet")
	l.quiet = o.ledgerd("token", "create", "--org", "quiet", "--name", "people", "--scope", "read")

	l.start()
	for _, n := range l.tenants {
		n.adminOf = l.client(n.adminSecret)
		must.OK(t, l.furnish(n))
	}
	return l
}

// real returns how long a duration of the server's time takes.
func (l *load) real(d time.Duration) time.Duration { return d / time.Duration(l.factor) }

// now returns the server's time.
func (l *load) now() time.Time {
	return l.began.Add(time.Since(l.realBegan) * time.Duration(l.factor))
}

func (l *load) client(token string) *client.Client {
	c, err := client.New(l.o.url, client.Options{Token: token,
		HTTPClient: &http.Client{Transport: l.transport, Timeout: 10 * time.Second}})
	must.OK(l.t, err)
	return c
}

// furnish creates the tokens, repos, policies and webhooks of an org.
func (l *load) furnish(n *tenant) error {
	ctx := l.t.Context()
	writer, err := n.adminOf.CreateToken(ctx, n.name, ledger.NewToken{Name: "ci", Scope: ledger.Write})
	if err != nil {
		return err
	}
	reader, err := n.adminOf.CreateToken(ctx, n.name, ledger.NewToken{Name: "people", Scope: ledger.Read})
	if err != nil {
		return err
	}
	n.writerOf, n.readsOf, n.readSecret = l.client(writer.Secret), l.client(reader.Secret), reader.Secret
	if n.key, _, err = l.addIdentity(ctx, n, "ci"); err != nil {
		return err
	}

	for i, name := range []string{"api", "web", "infra"} {
		if _, err := n.adminOf.CreateRepo(ctx, n.name, ledger.NewRepo{Name: name}); err != nil {
			return err
		}
		r := &busyRepo{tenant: n, name: name}
		n.repos = append(n.repos, r)
		if err := l.setPolicy(ctx, r, 1); err != nil {
			return err
		}
		path := []string{"/good", "/moody", "/broken"}[i]
		hook := outbound.NewWebhook{URL: l.receiver.url + path}
		if _, err := n.adminOf.CreateWebhook(ctx, n.name, name, hook); err != nil {
			return err
		}
	}
	return nil
}

// addIdentity creates a key and makes the org trust it.
func (l *load) addIdentity(ctx context.Context, n *tenant, cn string) (ed25519.PrivateKey, string, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, "", err
	}
	added, err := n.adminOf.AddIdentity(ctx, n.name, identity.NewIdentity{
		Kind: identity.KeyIdentity, DN: fmt.Sprintf("cn=%s,ou=build,o=%s", cn, n.name),
		PEM: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	})
	return private, added.ID, err
}

// contract returns a policy under which evidence expires after five minutes, and tips are
// in flight for ten. One key may sign for all states.
func contract(threshold int) ([]byte, error) {
	c := policy.Default()
	for i := range c.Requirements {
		c.Requirements[i].ExcludeAuthor, c.Requirements[i].DistinctFrom = policy.AuthorCounts, nil
	}
	c.Requirements[0].MaxAge = ledger.Duration(5 * time.Minute)
	c.Requirements[1].Threshold = threshold
	c.Radar.Block = radar.High
	c.Radar.MaxAge = ledger.Duration(10 * time.Minute)
	return json.Marshal(c)
}

func (l *load) setPolicy(ctx context.Context, r *busyRepo, threshold int) error {
	document, err := contract(threshold)
	if err != nil {
		return err
	}
	_, etag, err := r.adminOf.Policy(ctx, r.tenant.name, r.name)
	if err != nil {
		return err
	}
	_, err = r.adminOf.SetPolicy(ctx, r.tenant.name, r.name, document, etag)
	return err
}

// run runs the load until ctx is done.
func (l *load) run(ctx context.Context) {
	for range 6 {
		l.repeat(ctx, "CI job", time.Minute, l.job)
	}
	for range 2 {
		l.repeat(ctx, "lists", 20*time.Second, l.lists)
		l.repeat(ctx, "viewer", 30*time.Second, l.view)
		l.repeat(ctx, "stalled stream", 2*time.Minute, l.stall)
		l.repeat(ctx, "half-sent body", time.Minute, l.halfSent)
	}
	for range 12 {
		l.repeat(ctx, "stream", 15*time.Second, l.stream)
	}
	l.repeat(ctx, "lone stream", 20*time.Second, l.loneStream)
	l.repeat(ctx, "refused write", 15*time.Second, l.refused)
	l.repeat(ctx, "token", 5*time.Minute, l.token)
	l.repeat(ctx, "policy", 10*time.Minute, l.policy)
	l.repeat(ctx, "identity", 10*time.Minute, l.identity)
	l.repeat(ctx, "webhook", 5*time.Minute, l.webhook)
	l.running.Wait()
}

// repeat runs a task in a goroutine until ctx is done, at an interval if the task does
// not take longer.
func (l *load) repeat(ctx context.Context, name string, interval time.Duration, task func(context.Context) error) {
	l.outcomes(name)
	l.running.Go(func() {
		for ctx.Err() == nil {
			next := time.Now().Add(l.real(interval/2 + mathrand.N(interval)))
			if err := task(ctx); ctx.Err() == nil {
				l.note(name, err)
			}
			l.pause(ctx, time.Until(next)*time.Duration(l.factor))
		}
	})
}

// pause waits for a duration, or until ctx is done.
func (l *load) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(l.real(d)):
	}
}

// outcomes returns the outcomes of a task. Its fields are guarded by l.mu.
func (l *load) outcomes(name string) *outcomes {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks[name] == nil {
		l.tasks[name] = &outcomes{}
	}
	return l.tasks[name]
}

// note counts the outcome of a task.
func (l *load) note(name string, err error) {
	o := l.outcomes(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		o.done++
	case ok && (e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable):
		o.busy++
	case ok && e.Status < 500:
		o.refused++
		o.last = err
	default:
		o.failed++
		o.last = err
	}
}

// total returns how often a task succeeded, and how often it failed or was refused. That
// the server was busy counts as neither.
func (l *load) total(name string) (done, failed int) {
	o := l.outcomes(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	return o.done, o.refused + o.failed
}

func (l *load) anyRepo() *busyRepo {
	n := l.tenants[mathrand.IntN(len(l.tenants))]
	return n.repos[mathrand.IntN(len(n.repos))]
}

// aCommit returns one of the latest commits of the repo, or "".
func (r *busyRepo) aCommit() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.commits) == 0 {
		return ""
	}
	return r.commits[mathrand.IntN(len(r.commits))]
}

func (r *busyRepo) add(sha string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.commits = append(r.commits, sha); len(r.commits) > 50 {
		r.commits = r.commits[1:]
	}
}

// job is a run of CI: it registers a commit, previews its overlaps, attests what it has
// found, and polls the gate. Some commits are deployed, rolled back or withdrawn.
func (l *load) job(ctx context.Context) error {
	r, n := l.anyRepo(), l.serial.Add(1)
	sha := fakeID(r.tenant.name, r.name, n)
	g := registration(n)
	if n%4 == 0 {
		if _, err := r.writerOf.PreviewOverlaps(ctx, r.tenant.name, r.name,
			ledger.RadarQuery{Commit: sha, Registration: g}); err != nil {
			return fmt.Errorf("preview: %w", err)
		}
	}
	if _, _, err := r.writerOf.Register(ctx, r.tenant.name, r.name, sha, g); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	r.add(sha)

	predicates := []string{"test:go", "test:race", "lint:go", "review:code"}
	if n%3 == 0 {
		predicates = append(predicates, "deploy:prod")
	}
	for _, predicate := range predicates {
		status := ledger.Pass
		if mathrand.IntN(20) == 0 {
			status = ledger.Fail
		}
		if err := l.attest(ctx, r, sha, predicate, status, r.key); err != nil {
			return fmt.Errorf("attest: %w", err)
		}
	}

	if _, err := r.readsOf.Commit(ctx, r.tenant.name, r.name, sha); err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	switch n % 20 {
	case 0:
		return l.attest(ctx, r, cmp.Or(r.aCommit(), sha), "deploy:prod", ledger.Fail, r.key)
	case 1:
		_, err := r.writerOf.Withdraw(ctx, r.tenant.name, r.name, sha)
		return err
	}
	return nil
}

// fakeID returns the id of a commit.
func fakeID(parts ...any) string {
	sum := sha1.Sum([]byte(fmt.Sprintln(parts...)))
	return hex.EncodeToString(sum[:])
}

// registration returns the record of a commit that changes eight of 200 files.
func registration(n int64) ledger.Registration {
	g := ledger.Registration{
		Branch: fmt.Sprintf("feature/%d", mathrand.IntN(60)), Base: fakeID("base"), Parents: []string{fakeID("parent", n)},
		Author:  ledger.Author{Name: "Grace Okafor", Email: fmt.Sprintf("grace%d@example.org", n%50)},
		Message: fmt.Sprintf("Change %d\n\nIt changes eight files.", n), CommittedAt: ledger.TimeOf(time.Now()),
	}
	for _, file := range mathrand.Perm(200)[:8] {
		g.Changes = append(g.Changes, radar.Change{
			Path: fmt.Sprintf("part%d/file%03d.go", file%9, file), Status: "M", OldMode: "100644", Mode: "100644",
			OldBlob: fakeID("old", file), Blob: fakeID("new", file, n),
			Hunks: []radar.Hunk{{Start: 1 + mathrand.IntN(500), Lines: 3, Added: 2, Text: fakeID(n, file)[:16],
				Near: []string{fakeID("near", file)[:16]}, Far: []string{fakeID("far", file)[:16]},
				Function: "func run(ctx context.Context) error {"}},
		})
	}
	return g
}

func (l *load) attest(
	ctx context.Context, r *busyRepo, sha, predicate string, status ledger.Status, key ed25519.PrivateKey,
) error {
	payload, err := attestation.NewStatement("git+https://git.example/"+r.tenant.name+"/"+r.name, sha,
		attestation.ResultPredicate{Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200},
			Annotations: map[string]string{"run": fmt.Sprint(l.serial.Add(1))}})
	if err != nil {
		return err
	}
	envelope, err := attestation.SignDSSE(key, payload)
	if err != nil {
		return err
	}
	_, _, err = r.writerOf.Record(ctx, r.tenant.name, r.name, envelope)
	return err
}

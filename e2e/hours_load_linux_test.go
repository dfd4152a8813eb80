package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"html"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
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
		check(t, l.furnish(n))
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
	check(l.t, err)
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
		hook := ledger.NewWebhook{URL: l.receiver.url + path}
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
// in flight for ten.
func contract(threshold int) ([]byte, error) {
	c := policy.Default()
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
		predicates = append(predicates, "deploy:production")
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
		return l.attest(ctx, r, cmp.Or(r.aCommit(), sha), "deploy:production", ledger.Fail, r.key)
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

// lists reads pages of lists, with and without filters.
func (l *load) lists(ctx context.Context) error {
	r := l.anyRepo()
	org, few := r.tenant.name, client.Query{Limit: 50}
	_, err := r.readsOf.CommitsPage(ctx, org, r.name, client.CommitFilter{}, few)
	if err != nil {
		return fmt.Errorf("commits: %w", err)
	}
	hour := ledger.TimeOf(l.now().Add(-time.Hour))
	filter := client.AttestationFilter{Predicate: "test:*", Status: ledger.Fail, Since: hour}
	if _, err = r.readsOf.AttestationsPage(ctx, org, r.name, filter, few); err != nil {
		return fmt.Errorf("attestations: %w", err)
	}
	if _, err = r.readsOf.OverlapsPage(ctx, org, r.name, client.OverlapFilter{}, few); err != nil {
		return fmt.Errorf("radar: %w", err)
	}
	_, err = r.readsOf.EventsPage(ctx, org, client.EventFilter{Repo: r.name, NewestFirst: true}, few)
	return err
}

// token creates a token that expires within the hour, uses it, and revokes every other
// one.
func (l *load) token(ctx context.Context) error {
	n, serial := l.anyRepo().tenant, l.serial.Add(1)
	token, err := n.adminOf.CreateToken(ctx, n.name, ledger.NewToken{
		Name: fmt.Sprint("job ", serial), Scope: ledger.Read, ExpiresAt: ledger.TimeOf(l.now().Add(time.Hour))})
	if err != nil {
		return err
	}
	c := l.client(token.Secret)
	if _, err := c.OwnToken(ctx); err != nil || serial%2 == 0 {
		return err
	}
	return n.adminOf.RevokeToken(ctx, n.name, token.ID)
}

// policy simulates a policy and applies it.
func (l *load) policy(ctx context.Context) error {
	r, threshold := l.anyRepo(), 1+mathrand.IntN(2)
	document, err := contract(threshold)
	if err != nil {
		return err
	}
	if _, err := r.adminOf.Simulate(ctx, r.tenant.name, r.name, document); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return l.setPolicy(ctx, r, threshold)
}

// identity adds a key, signs with it, and revokes it.
func (l *load) identity(ctx context.Context) error {
	r := l.anyRepo()
	key, id, err := l.addIdentity(ctx, r.tenant, fmt.Sprint("robot", l.serial.Add(1)))
	if err != nil {
		return err
	}
	if sha := r.aCommit(); sha != "" {
		if err := l.attest(ctx, r, sha, "scan:deps", ledger.Pass, key); err != nil {
			return err
		}
	}
	return r.adminOf.RevokeIdentity(ctx, r.tenant.name, id)
}

// webhook creates a webhook, uses all its functions, and deletes it after half an hour.
func (l *load) webhook(ctx context.Context) error {
	r := l.anyRepo()
	org, api := r.tenant.name, r.adminOf
	w, err := api.CreateWebhook(ctx, org, r.name, ledger.NewWebhook{URL: l.receiver.url + "/moody"})
	if err != nil {
		return err
	}
	ping, err := api.PingWebhook(ctx, org, r.name, w.ID)
	if err != nil {
		return err
	}
	if _, err := api.RotateWebhook(ctx, org, r.name, w.ID, ledger.Duration(time.Minute)); err != nil {
		return err
	}
	if _, err := api.ReplayWebhook(ctx, org, r.name, w.ID, ledger.TimeOf(l.now().Add(-5*time.Minute))); err != nil {
		return err
	}

	l.pause(ctx, 5*time.Minute)
	if _, err := api.Redeliver(ctx, org, r.name, w.ID, ping.ID); err != nil && client.CodeOf(err) == "" {
		return err
	}
	if _, err := api.DeliveriesPage(ctx, org, r.name, w.ID, client.DeliveryFilter{}, client.Query{}); err != nil {
		return err
	}
	return api.DeleteWebhook(ctx, org, r.name, w.ID)
}

// refused sends a request that the server has to refuse.
func (l *load) refused(ctx context.Context) error {
	r := l.anyRepo()
	path := fmt.Sprintf("/v1/orgs/%s/repos/%s/attestations", r.tenant.name, r.name)
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}

	var want []int
	switch l.serial.Add(1) % 6 {
	case 0: // signed by an unknown key
		err, want = l.attest(ctx, r, fakeID("x"), "test:go", ledger.Pass, stranger), []int{403, 422}
	case 1: // an unknown token, of which there are many
		err, want = l.send(ctx, http.MethodPost, path, "ldg_"+rand.Text(), "{}"), []int{401}
	case 2:
		err, want = l.send(ctx, http.MethodPost, path, r.readSecret, "{}"), []int{403}
	case 3:
		err, want = l.send(ctx, http.MethodPost, path, r.adminSecret, `{"payload`), []int{400, 422}
	case 4:
		err, want = l.send(ctx, http.MethodPost, path, r.adminSecret, strings.Repeat(" ", 5<<20)), []int{413}
	case 5:
		err, want = l.send(ctx, http.MethodGet, "/v1/orgs/"+r.tenant.name+"/repos/"+rand.Text(), r.adminSecret, ""),
			[]int{404, 400}
	}
	if e, ok := errors.AsType[*client.Error](err); ok {
		for _, status := range want {
			if e.Status == status {
				return nil
			}
		}
	}
	return cmp.Or(err, fmt.Errorf("the request was not refused"))
}

// send sends a request and returns an error response as a client.Error.
func (l *load) send(ctx context.Context, method, path, token, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, l.o.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	_, err = l.respond(request)
	return err
}

// respond sends a request and returns the body of the response.
func (l *load) respond(request *http.Request) ([]byte, error) {
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return body, cmp.Or(err, responseError(response))
}

// responseError returns the error of an error response, or nil.
func responseError(response *http.Response) error {
	if response.StatusCode < 400 {
		return nil
	}
	return &client.Error{Status: response.StatusCode, Problem: ledger.Problem{Detail: response.Status}}
}

// stream follows an org's events for up to ten minutes. Some streams resume where another
// one was.
func (l *load) stream(ctx context.Context) error {
	n := l.anyRepo().tenant
	path := "/v1/orgs/" + n.name + "/events"
	if last := n.cursor.Load(); last != nil && mathrand.IntN(3) == 0 {
		path += "?last_event_id=" + *last
	}
	return l.listen(ctx, path, "Authorization", "Bearer "+n.readSecret, 10*time.Minute, &n.cursor)
}

// loneStream follows the events of an org that has no other streams.
func (l *load) loneStream(ctx context.Context) error {
	return l.listen(ctx, "/v1/orgs/quiet/events", "Authorization", "Bearer "+l.quiet, 10*time.Second, nil)
}

// listen reads a stream for up to a duration. If cursor is not nil, it stores the ids of
// events there.
func (l *load) listen(
	ctx context.Context, path, header, value string, limit time.Duration, cursor *atomic.Pointer[string],
) error {
	ctx, cancel := context.WithTimeout(ctx, l.real(time.Second+mathrand.N(limit)))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.o.url+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set(header, value)
	request.Header.Set("Accept", "text/event-stream")

	response, err := l.transport.RoundTrip(request)
	if err == nil {
		defer response.Body.Close()
		if err = responseError(response); err == nil {
			err = readStream(response.Body, func(m message) {
				if cursor != nil {
					cursor.Store(&m.id)
				}
			}, nil)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // the usual end
	}
	return cmp.Or(err, fmt.Errorf("the server ended the stream"))
}

// stall requests a stream from the beginning and does not read it.
func (l *load) stall(ctx context.Context) error {
	n := l.anyRepo().tenant
	conn, err := net.Dial("tcp", l.o.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/orgs/%s/events?last_event_id=earliest HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Accept: text/event-stream\r\n\r\n", n.name, l.o.address, n.readSecret)
	l.pause(ctx, 2*time.Minute)
	return nil
}

// halfSent announces a body and sends a part of it. The server or the client closes the
// connection.
func (l *load) halfSent(ctx context.Context) error {
	r := l.anyRepo()
	conn, err := net.Dial("tcp", l.o.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/orgs/%s/repos/%s/attestations HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"payload\":\"", r.tenant.name, r.name,
		l.o.address, r.adminSecret)
	l.pause(ctx, mathrand.N(2*time.Minute))
	if mathrand.IntN(2) == 0 {
		return conn.(*net.TCPConn).SetLinger(0)
	}
	return nil
}

var liveStream = regexp.MustCompile(`data-live="([^"]*)"`)

// view is a visit of the web interface: sign in, view pages, follow a live page. Half of
// the visitors sign out; the sessions of the others expire.
func (l *load) view(ctx context.Context) error {
	r := l.anyRepo()
	cookie, err := l.signIn(ctx, r.readSecret)
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	base := "/orgs/" + r.tenant.name
	paths := []string{base, base + "/repos/" + r.name, base + "/activity"}
	if sha := r.aCommit(); sha != "" {
		paths = append(paths, base+"/repos/"+r.name+"/commits/"+sha)
	}

	var page []byte
	for _, path := range paths {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.o.url+path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Cookie", cookie)
		if page, err = l.respond(request); err != nil {
			return fmt.Errorf("view %s: %w", path, err)
		}
	}
	if live := liveStream.FindSubmatch(page); live != nil {
		if err := l.listen(ctx, html.UnescapeString(string(live[1])), "Cookie", cookie, time.Minute, nil); err != nil {
			return fmt.Errorf("follow a page: %w", err)
		}
	}
	if mathrand.IntN(2) == 0 {
		return nil
	}
	_, err = l.post(ctx, "/logout", cookie, nil)
	return err
}

// signIn returns the cookie of a new session.
func (l *load) signIn(ctx context.Context, token string) (cookie string, err error) {
	response, err := l.post(ctx, "/login", "", url.Values{"token": {token}})
	if err != nil {
		return "", err
	}
	for _, c := range response.Cookies() {
		cookie = c.Name + "=" + c.Value
	}
	if cookie == "" {
		return "", &client.Error{Status: response.StatusCode, Problem: ledger.Problem{Detail: response.Status}}
	}
	return cookie, nil
}

// post submits a form.
func (l *load) post(ctx context.Context, path, cookie string, form url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.o.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", l.o.url)
	request.Header.Set("Cookie", cookie)
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response, err
}

// A moodyReceiver is a receiver of webhooks. /good accepts every delivery, /broken none,
// and /moody nearly all, except during an outage.
type moodyReceiver struct {
	url      string
	outage   atomic.Bool
	received atomic.Int64
}

func newMoodyReceiver(t *testing.T) *moodyReceiver {
	m := &moodyReceiver{}
	m.url = serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		body.ReadFrom(r.Body)
		m.received.Add(1)
		if r.URL.Path == "/good" {
			return
		}
		switch n := mathrand.IntN(200); {
		case r.URL.Path == "/broken" || m.outage.Load() || n < 6:
			http.Error(w, "out of order", http.StatusInternalServerError)
		case n == 6: // longer than the server's timeout
			select {
			case <-r.Context().Done():
			case <-time.After(time.Second):
			}
		}
	})
	return m
}

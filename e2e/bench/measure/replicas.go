package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/e2e/bench/network"
	"github.com/ledgerd/ledgerd/ledger"
)

// Replicas is a run of bench replicas, which measures servers that share a PostgreSQL database.
type Replicas struct {
	Core
	Orgs int

	second  *process // on the same database
	distant *process // on the same database, behind a slow network
	list    []*tenant
}

// A tenant is an org that gets attestations.
type tenant struct {
	core        *Core // which signs
	name, token string
	recorded    int
}

const (
	// replicaRounds is how often each workload runs, in turns.
	replicaRounds = 3
	// replicaCommits is how many commits get attestations at the same time, in all orgs together,
	// and replicaTurns how many each gets.
	replicaCommits, replicaTurns = 800, 20
	// roundTrip is what the slow network adds to each round trip.
	roundTrip = 500 * time.Microsecond
	// neighborRate is the rate of the org whose neighbor is busy, and of the stream, in
	// attestations per second.
	neighborRate = 40
)

// ServeNetwork runs a slow network before a database until the context ends, and prints its address. bench
// replicas starts it as a separate process.
func ServeNetwork(ctx context.Context, stdout io.Writer, database string) error {
	slow, err := network.NewSlow(database, roundTrip)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "a slow network at http://%s\n", slow.Address())
	<-ctx.Done()
	return slow.Close()
}

// Check returns an error if an option is invalid.
func (b *Replicas) Check() error {
	if b.Attestations < 1 || b.Orgs < 2 || b.Connections < 2 || b.ReadingTime < time.Second {
		return errors.New("--attestations must be at least 1, --orgs and --connections at least 2, --seconds at least 1s")
	}
	return nil
}

// Measure runs the benchmark, in env.Database.
func (b *Replicas) Measure(ctx context.Context, env Env) error {
	b.Env, b.Commits, b.PerCommit = env, replicaCommits, replicaTurns
	err := b.withTempDir(ctx, func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		return b.withServer(ctx, b.withOthers)
	})
	if err != nil {
		return err
	}
	return b.printFigures()
}

// withOthers starts the other servers, and measures.
func (b *Replicas) withOthers(ctx context.Context) error {
	// The proxy is a process of its own, so that it does not wait for the load.
	proxy, err := startSelf(ctx, b.Stderr, "replicas", "network", "--database", b.database)
	if err != nil {
		return err
	}
	defer proxy.kill()
	database, err := network.Behind(b.database, proxy.address)
	if err != nil {
		return err
	}
	if b.second, err = b.startReplica(ctx, b.database, "second"); err != nil {
		return err
	}
	defer b.second.kill()
	if b.distant, err = b.startReplica(ctx, database, "distant"); err != nil {
		return err
	}
	defer b.distant.kill()
	if err := b.roundTrips(ctx, database); err != nil {
		return err
	}

	if err := b.addOrgs(ctx); err != nil {
		return err
	}
	for _, workload := range []func(context.Context) error{b.rates, b.streams, b.withNeighbor} {
		if err := workload(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startReplica starts another server, with the keys of the first one.
func (b *Replicas) startReplica(ctx context.Context, database, name string) (*process, error) {
	return startProcess(ctx, b.Program, b.Stderr, "serve", "--listen", "127.0.0.1:0", "--database", database,
		"--log-level", "warn", "--log-key-dir", filepath.Join(b.Dir, "keys"), "--log-state-dir", filepath.Join(b.Dir, name))
}

// addOrgs creates the orgs after the first one, which has as many commits as all of them together.
func (b *Replicas) addOrgs(ctx context.Context) error {
	b.list = []*tenant{{core: &b.Core, name: orgName, token: b.token}}
	shared := b.Core
	shared.Commits = max(1, replicaCommits/b.Orgs)
	for i := range b.Orgs {
		name := fmt.Sprint(orgName, "-", i+1)
		token, err := b.addOrg(ctx, name)
		if err != nil {
			return err
		}
		b.list = append(b.list, &tenant{core: &shared, name: name, token: token})
	}
	return nil
}

// addOrg is like createOrg, but has the server do most of it, which is faster than commands that open
// the database. It returns a token.
func (b *Replicas) addOrg(ctx context.Context, org string) (token string, err error) {
	if _, err := b.ledgerd(ctx, "org", "create", org); err != nil {
		return "", err
	}
	if token, err = b.ledgerd(ctx, "token", "create", "--org", org, "--name", "bench", "--scope", "admin"); err != nil {
		return "", err
	}

	c, err := client.New("http://"+b.server.address, client.Options{Token: token})
	if err != nil {
		return "", err
	}
	if _, err := c.CreateRepo(ctx, org, ledger.NewRepo{Name: repoName}); err != nil {
		return "", err
	}
	for _, s := range b.signers {
		n, err := s.identity()
		if err != nil {
			return "", err
		}
		if _, err := c.AddIdentity(ctx, org, n); err != nil {
			return "", err
		}
	}
	return token, nil
}

// single is the org that is alone, and several are the others.
func (b *Replicas) single() []*tenant  { return b.list[:1] }
func (b *Replicas) several() []*tenant { return b.list[1:] }

// signFor returns requests that record n attestations, in orgs that take turns.
func signFor(orgs []*tenant, n int) ([][]byte, error) {
	requests := make([][]byte, n)
	for i := range requests {
		t := orgs[i%len(orgs)]
		envelope, err := t.core.envelopeOf(t.name, t.recorded)
		if err != nil {
			return nil, fmt.Errorf("sign statements: %w", err)
		}
		t.recorded++
		requests[i] = attestRequest(t.name, t.token, envelope)
	}
	return requests, nil
}

// recordOn records the attestations of a round on servers, each with its share of the requests and
// of the connections, and adds the result to total.
func (b *Replicas) recordOn(total *load.Result, orgs []*tenant, servers ...*process) error {
	requests, err := signFor(orgs, b.Attestations)
	if err != nil {
		return err
	}
	results := make([]load.Result, len(servers))
	errs := make([]error, len(servers))
	var recording sync.WaitGroup
	start := time.Now()
	for i, share := range slices.Collect(slices.Chunk(requests, (len(requests)+len(servers)-1)/len(servers))) {
		recording.Go(func() {
			part := load.Load{Address: servers[i].address, Conns: b.Connections / len(servers), Requests: share}
			results[i], errs[i] = part.Run()
		})
	}
	recording.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("attest: %w", err)
	}

	all := load.Result{Elapsed: time.Since(start)}
	for _, r := range results {
		all.Latencies = append(all.Latencies, r.Latencies...)
	}
	total.Add(all)
	return nil
}

// roundTrips measures the round trips to the database, and to the same one behind the slow network.
func (b *Replicas) roundTrips(ctx context.Context, slow string) error {
	near, err := network.RoundTrips(ctx, b.database)
	if err != nil {
		return err
	}
	far, err := network.RoundTrips(ctx, slow)
	if err != nil {
		return err
	}
	b.figure(latencyFigure("round trip to the database", load.Result{Latencies: near}))
	b.figure(latencyFigure(fmt.Sprintf("the same, %v more", roundTrip), load.Result{Latencies: far}))
	return nil
}

// rates measures recording as fast as possible.
func (b *Replicas) rates(context.Context) error {
	type workload struct {
		name    string
		orgs    []*tenant
		servers []*process
		result  load.Result
	}
	list := []workload{
		{name: "attest, one org", orgs: b.single(), servers: []*process{b.server}},
		{name: fmt.Sprintf("attest, %d orgs", b.Orgs), orgs: b.several(), servers: []*process{b.server}},
		{name: "attest, one org, two servers", orgs: b.single(), servers: []*process{b.server, b.second}},
		{name: fmt.Sprintf("attest, %d orgs, two servers", b.Orgs), orgs: b.several(),
			servers: []*process{b.server, b.second}},
		{name: fmt.Sprintf("attest, one org, %v more for each round trip", roundTrip), orgs: b.single(),
			servers: []*process{b.distant}},
	}
	for range replicaRounds {
		for i := range list {
			w := &list[i]
			if err := b.recordOn(&w.result, w.orgs, w.servers...); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}

	for _, w := range list {
		f := latencyFigure(w.name, w.result)
		f.Rate, f.Ratio = w.result.Rate(), w.result.Rate()/list[0].result.Rate()
		b.figure(f)
	}
	return nil
}

// streams measures the time from POST on one server to arrival on a stream of the same one, and of
// the other.
func (b *Replicas) streams(ctx context.Context) error {
	var same, other load.Result
	for range replicaRounds {
		if err := b.stream(ctx, b.server, &same); err != nil {
			return err
		}
		if err := b.stream(ctx, b.second, &other); err != nil {
			return err
		}
	}
	b.figure(latencyFigure(fmt.Sprintf("POST to arrival, same server, %d attestations/s", neighborRate), same))
	f := latencyFigure("POST to arrival on the other server", other)
	f.Ratio = f.P99 / load.MS(same.Percentile(0.99))
	b.figure(f)
	return nil
}

// stream measures the time until attestations arrive on a stream of a server.
func (b *Replicas) stream(ctx context.Context, server *process, total *load.Result) error {
	requests, err := signFor(b.single(), int(b.ReadingTime.Seconds()*neighborRate))
	if err != nil {
		return err
	}
	sent := make([]atomic.Int64, len(requests))
	a, err := newAudience(ctx, server.address, eventsPath+"?types=attestation", b.token, 1, sent)
	if err != nil {
		return err
	}
	defer a.close()

	paced := load.Paced{Address: b.server.address, Rate: neighborRate, N: len(requests), Next: func(i int) []byte {
		sent[i].Store(time.Now().UnixNano())
		return requests[i]
	}}
	if result := paced.Run(ctx); result.Served < len(requests) {
		return fmt.Errorf("%d of %d attestations were recorded: %v", result.Served, len(requests), result.Refused)
	}
	if _, err := a.wait(ctx, int64(len(requests))); err != nil {
		return err
	}
	total.Add(a.close())
	return nil
}

// withNeighbor starts a server with a ledger of its own, and measures how long an org waits while
// another one is busy.
func (b *Replicas) withNeighbor(ctx context.Context) error {
	apart := &Core{Env: b.Env, Connections: b.Connections, Commits: b.Commits, PerCommit: b.PerCommit}
	apart.JSON = true // it prints nothing
	return apart.withTempDir(ctx, func() error {
		if err := apart.setUp(ctx); err != nil {
			return err
		}
		return apart.withServer(ctx, func(ctx context.Context) error { return b.neighbors(ctx, apart) })
	})
}

// neighbors measures an org on the second server: with no others, while another ledger is busy, and
// while another org is busy on the first server.
func (b *Replicas) neighbors(ctx context.Context, apart *Core) error {
	ofOther := &tenant{core: apart, name: orgName, token: apart.token}
	var quiet, control, busy load.Result
	for range replicaRounds {
		if err := b.neighbor(ctx, &quiet, nil, nil); err != nil {
			return err
		}
		if err := b.neighbor(ctx, &control, ofOther, apart.server); err != nil {
			return err
		}
		if err := b.neighbor(ctx, &busy, b.list[0], b.server); err != nil {
			return err
		}
	}

	b.figure(latencyFigure(fmt.Sprintf("attest, %d a second on the other server", neighborRate), quiet))
	f := latencyFigure("the same while another ledger is busy", control)
	f.Ratio = f.P99 / load.MS(quiet.Percentile(0.99))
	b.figure(f)
	f = latencyFigure("the same while another org is busy instead", busy)
	f.Ratio = f.P99 / load.MS(control.Percentile(0.99))
	b.figure(f)
	return nil
}

// maxRecorded is more than what a server records in a second.
const maxRecorded = 5000

// neighbor measures recording for an org on the second server, at a low rate, while another org is
// recorded as fast as possible on a server, unless it is nil.
func (b *Replicas) neighbor(ctx context.Context, total *load.Result, busy *tenant, server *process) (err error) {
	requests, err := signFor(b.list[1:2], int(b.ReadingTime.Seconds()*neighborRate))
	if err != nil {
		return err
	}
	if busy != nil {
		stop, startErr := b.keepBusy(busy, server)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, stop()) }()
	}

	var counted load.Tally
	next := func(i int) []byte { return requests[i] }
	load.Paced{Address: b.second.address, Rate: neighborRate, N: len(requests), Next: next}.Send(ctx, &counted)
	if len(counted.Latencies) < len(requests) {
		return fmt.Errorf("%d of %d attestations were recorded: %v", len(counted.Latencies), len(requests), counted.Refused)
	}
	total.Latencies = append(total.Latencies, counted.Latencies...)
	slices.Sort(total.Latencies)
	return nil
}

// keepBusy records attestations of an org as fast as possible, until stop is called.
func (b *Replicas) keepBusy(busy *tenant, server *process) (stop func() error, err error) {
	requests, err := signFor([]*tenant{busy}, int(b.ReadingTime.Seconds()*maxRecorded))
	if err != nil {
		return nil, err
	}
	stopping, ended := make(chan struct{}), make(chan error)
	go func() {
		_, err := load.Load{Address: server.address, Conns: b.Connections, Requests: requests, Stop: stopping}.Run()
		ended <- err
	}()
	time.Sleep(settle)
	return func() error {
		close(stopping)
		return <-ended
	}, nil
}

// settle is how long a load runs before something else is measured.
const settle = 500 * time.Millisecond

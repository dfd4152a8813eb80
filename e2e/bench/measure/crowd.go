package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
)

// A Crowd is a run of bench crowd, which measures recording and readiness while crowds of
// clients are connected.
type Crowd struct {
	Core
	// The numbers of clients, see crowdClients.
	HostileReaders, Bodies, Loris, Streams, Unread, Viewers, Large int
	// Only has the names of the crowds to measure. If empty, all are.
	Only []string

	Rate int // attestations per second
	Slow int // attestations to record with and without viewers

	readerTokens, streamTokens, viewerTokens []string
	bodyToken                                string
	large                                    largeClient
}

const (
	// probeRate is how many requests for /readyz are sent per second.
	probeRate = 20
	// commitAttestations is how many attestations each commit of the full ledger has.
	commitAttestations = 20
	// settling is how long the load runs before it is measured.
	settling = 2 * time.Second
)

// A namedCrowd is the clients of a crowd, without their tokens.
type namedCrowd struct {
	name, title string
	clients     crowdClients
}

// crowds returns the crowds that can be measured. The last one is all others together.
func (b *Crowd) crowds() []namedCrowd {
	all := crowdClients{Readers: b.HostileReaders, Bodies: b.Bodies, Loris: b.Loris, Streams: b.Streams,
		Unread: b.Unread, Viewers: b.Viewers, Large: b.Large}
	return []namedCrowd{
		{"readers", fmt.Sprintf("%d hostile readers", b.HostileReaders), crowdClients{Readers: all.Readers}},
		{"bodies", fmt.Sprintf("%d half-sent bodies", b.Bodies), crowdClients{Bodies: all.Bodies}},
		{"loris", fmt.Sprintf("%d slow-loris connections", b.Loris), crowdClients{Loris: all.Loris}},
		{"streams", fmt.Sprintf("%d streams, %d not read", b.Streams, b.Unread),
			crowdClients{Streams: all.Streams, Unread: all.Unread}},
		{"viewers", fmt.Sprintf("%d viewers", b.Viewers), crowdClients{Viewers: all.Viewers}},
		{"large", fmt.Sprintf("%d clients of a large commit", b.Large), crowdClients{Large: all.Large}},
		{"together", "all together", all},
	}
}

// Check returns an error if an option is invalid.
func (b *Crowd) Check() error {
	switch {
	case min(b.HostileReaders, b.Bodies, b.Loris, b.Streams, b.Viewers, b.Large, b.Rate, b.Connections) < 1:
		return fmt.Errorf("--readers, --bodies, --loris, --streams, --viewers, --large, --rate and --connections " +
			"must be at least 1")
	case b.Unread < 0 || b.Unread >= b.Streams:
		return fmt.Errorf("invalid --unread %d: use 0 to %d (less than --streams)", b.Unread, b.Streams-1)
	case b.Attestations < commitAttestations:
		return fmt.Errorf("invalid --attestations %d: use at least %d", b.Attestations, commitAttestations)
	case b.Slow < 0:
		return fmt.Errorf("--slowdown must not be negative: use 0 to leave this part out")
	case b.ReadingTime < time.Second:
		return fmt.Errorf("invalid --seconds %v: use at least 1s", b.ReadingTime)
	}

	var names []string
	for _, c := range b.crowds() {
		names = append(names, c.name)
	}
	for _, name := range b.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("invalid --only %q: use %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Measure runs the benchmark.
func (b *Crowd) Measure(ctx context.Context, env Env) error {
	b.Env, b.Commits = env, b.Attestations/commitAttestations
	return b.withTempDir(ctx, func() error {
		if err := b.configure(); err != nil {
			return err
		}
		if err := b.setUp(ctx); err != nil {
			return err
		}
		if err := b.createTokens(ctx); err != nil {
			return err
		}
		if err := b.withServer(ctx, b.fill); err != nil {
			return err
		}
		if err := b.applyLarge(ctx); err != nil {
			return err
		}

		if err := b.eachCrowd(ctx); err != nil {
			return err
		}
		if b.Slow > 0 {
			slowdown := func(ctx context.Context) error {
				return b.slowdownByViewers(ctx, b.Viewers, b.viewerTokens, b.Slow)
			}
			if err := b.withServer(ctx, slowdown); err != nil {
				return err
			}
		}
		return b.printFigures()
	})
}

// configure lets the org have the streams of all crowds: each viewer has one, too.
func (b *Crowd) configure() error {
	file := filepath.Join(b.Dir, "config.yaml")
	b.serveFlags = []string{"--config", file}
	return os.WriteFile(file, fmt.Appendf(nil, "streams:\n  per_org: %d\n", b.Streams+b.Viewers), 0o600)
}

// createTokens creates tokens for the clients of the crowds.
func (b *Crowd) createTokens(ctx context.Context) (err error) {
	if b.readerTokens, err = b.readTokens(ctx, "readers", b.HostileReaders); err != nil {
		return err
	}
	if b.streamTokens, err = b.readTokens(ctx, "streams", (b.Streams+streamsPerToken-1)/streamsPerToken); err != nil {
		return err
	}
	if b.viewerTokens, err = b.readTokens(ctx, "viewers", (b.Viewers+viewersPerToken-1)/viewersPerToken); err != nil {
		return err
	}
	if b.large, err = b.setUpLarge(ctx); err != nil {
		return err
	}
	b.bodyToken, err = b.ledgerd(ctx, "token", "create", "--org", orgName, "--name", "bodies", "--scope", "write")
	return err
}

// readTokens creates n tokens with the scope read.
func (b *Crowd) readTokens(ctx context.Context, name string, n int) ([]string, error) {
	tokens := make([]string, n)
	for i := range tokens {
		token, err := b.ledgerd(ctx, "token", "create", "--org", orgName, "--name", fmt.Sprintf("%s-%d", name, i),
			"--scope", "read")
		if err != nil {
			return nil, err
		}
		tokens[i] = token
	}
	return tokens, nil
}

// fill records the attestations of the ledger. Later ones change no state, and each causes
// a single event.
func (b *Crowd) fill(context.Context) error {
	for b.recorded < b.Attestations {
		if _, err := b.record(min(attestChunk, b.Attestations-b.recorded)); err != nil {
			return err
		}
	}
	b.print("%d attestations in the ledger\n", b.recorded)
	return b.fillLarge(b.large)
}

// eachCrowd measures without a crowd, with each crowd, and with all together.
func (b *Crowd) eachCrowd(ctx context.Context) error {
	b.print(crowdLine, "", "ATTEST", "", "", "", "/READYZ", "", "SERVER", "CPU", "", "")
	b.print(crowdLine, "CROWD", "SERVED", "P50 MS", "P99 MS", "RATIO", "P99 MS", "RATIO", "PEAK MB", "SERVER", "CROWD",
		"LOAD")
	quiet, err := b.meet(ctx, namedCrowd{title: "none"}, crowdFigures{})
	if err != nil {
		return err
	}
	for _, c := range b.crowds() {
		if len(b.Only) > 0 && !slices.Contains(b.Only, c.name) {
			continue
		}
		if _, err := b.meet(ctx, c, quiet); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	b.print("")
	return nil
}

// crowdFigures are the figures of the load while a crowd is connected.
type crowdFigures struct {
	Workload   string                    `json:"workload"` // the crowd
	Attest     load.Responses            `json:"attest"`
	Read       load.Responses            `json:"read"` // of commits
	Ready      load.Responses            `json:"readyz"`
	PeakMemory int64                     `json:"peak_memory_bytes,omitzero"` // of the server
	CPU        map[string]float64        `json:"cpu"`                        // cores used by server, crowd and load
	Crowds     map[string]load.Responses `json:"crowds,omitempty"`
}

// meet measures a new server while a crowd is connected, and prints the figures. quiet are
// the figures without one.
func (b *Crowd) meet(ctx context.Context, c namedCrowd, quiet crowdFigures) (f crowdFigures, err error) {
	seconds := (settling + b.ReadingTime).Seconds()
	requests, err := b.sign(int(seconds * float64(b.Rate)))
	if err != nil {
		return f, fmt.Errorf("sign statements: %w", err)
	}
	if err := b.startServer(ctx); err != nil {
		return f, err
	}
	defer b.server.kill()
	if err := b.checkReady(); err != nil {
		return f, err
	}
	crowd, err := startCrowd(ctx, b.Stderr, b.withTokens(c.clients))
	if err != nil {
		return f, err
	}
	defer crowd.kill()

	settled := b.paced(requests[:int(settling.Seconds())*b.Rate]).Run(ctx)
	f = b.measure(ctx, crowd, requests[settled.Asked:])
	f.Workload = c.title
	f.compare(&quiet)
	b.recorded += len(requests)
	events := settled.Served + f.Attest.Served
	if events < len(requests) {
		events = -1
	}
	report, err := crowd.end(events)
	if err != nil {
		return f, err
	}

	f.Crowds = report.Crowds
	b.figures = append(b.figures, f)
	b.printCrowd(c.title, f)
	if report.Error != "" {
		return f, errors.New(report.Error)
	}
	if err := ctx.Err(); err != nil {
		return f, err
	}
	if err := b.server.stop(); err != nil {
		return f, fmt.Errorf("stop the server: %w", err)
	}
	return f, nil
}

// withTokens adds the server's address and the tokens.
func (b *Crowd) withTokens(c crowdClients) crowdClients {
	c.Address, c.BodyToken = b.server.address, b.bodyToken
	c.LargeClient = b.large
	c.ReaderTokens, c.ViewerTokens = b.readerTokens, b.viewerTokens
	if c.Streams > 0 {
		c.StreamTokens = b.streamTokens
	}
	return c
}

func (b *Crowd) paced(requests [][]byte) load.Paced {
	next := func(i int) []byte { return requests[i] }
	return load.Paced{Address: b.server.address, Rate: b.Rate, N: len(requests), Next: next}
}

// compare sets the ratios to the figures without a crowd.
func (f *crowdFigures) compare(quiet *crowdFigures) {
	for _, pair := range [][2]*load.Responses{
		{&f.Attest, &quiet.Attest}, {&f.Read, &quiet.Read}, {&f.Ready, &quiet.Ready},
	} {
		pair[0].Ratio = ratio(pair[0].P99, pair[1].P99)
		pair[0].MedianRatio = ratio(pair[0].P50, pair[1].P50)
	}
}

// measure records attestations, reads commits and asks for the readiness at the same time.
func (b *Crowd) measure(ctx context.Context, crowd *crowdProcess, requests [][]byte) (f crowdFigures) {
	probe := load.Request(http.MethodGet, "/readyz", "", nil)
	probes := load.Paced{Address: b.server.address, Rate: probeRate, N: int(b.ReadingTime.Seconds() * probeRate),
		Next: func(int) []byte { return probe }}
	read := load.Request(http.MethodGet, "/v1/orgs/"+orgName+"/repos/"+repoName+"/commits/"+commitID(0), b.token, nil)
	reads := probes
	reads.Next = func(int) []byte { return read }
	processes := map[string]int{"server": b.server.command.Process.Pid, "crowd": crowd.command.Process.Pid,
		"load": os.Getpid()}
	before := cpuTimes(processes)
	start := time.Now()

	var probing sync.WaitGroup
	probing.Go(func() { f.Ready = probes.Run(ctx) })
	probing.Go(func() { f.Read = reads.Run(ctx) })
	f.Attest = b.paced(requests).Run(ctx)
	probing.Wait()

	f.CPU = make(map[string]float64)
	for name, used := range cpuTimes(processes) {
		f.CPU[name] = (used - before[name]).Seconds() / time.Since(start).Seconds()
	}
	f.PeakMemory, _ = b.server.peakMemory()
	return f
}

func cpuTimes(pids map[string]int) map[string]time.Duration {
	times := make(map[string]time.Duration)
	for name, pid := range pids {
		times[name] = cpuTime(pid)
	}
	return times
}

// ratio returns a/b, or 0 if b is.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// crowdLine is the format of a row of figures.
const crowdLine = "%-30s  %11s %8s %8s %6s  %8s %6s  %7s  %6s %6s %6s"

func (b *Crowd) printCrowd(title string, f crowdFigures) {
	of := func(x float64) string {
		if x == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f", x)
	}
	percent := func(name string) string { return fmt.Sprintf("%.0f%%", 100*f.CPU[name]) }
	b.print(crowdLine, title, fmt.Sprintf("%d/%d", f.Attest.Served, f.Attest.Asked), of(f.Attest.P50), of(f.Attest.P99),
		of(f.Attest.Ratio), of(f.Ready.P99), of(f.Ready.Ratio), fmt.Sprintf("%.0f", float64(f.PeakMemory)/1e6),
		percent("server"), percent("crowd"), percent("load"))

	b.print("    p50 of attest %.1f ms (%.1f), of reading a commit %.1f ms (%.1f)", f.Attest.P50, f.Attest.MedianRatio,
		f.Read.P50, f.Read.MedianRatio)
	b.printResponses("read", load.Responses{Refused: f.Read.Refused})
	b.printResponses("attest", load.Responses{Refused: f.Attest.Refused})
	b.printResponses("readyz", load.Responses{Refused: f.Ready.Refused})
	for _, name := range slices.Sorted(maps.Keys(f.Crowds)) {
		b.printResponses(name, f.Crowds[name])
	}
}

// printResponses prints the responses to the clients of a crowd, and the refusals by code.
func (b *Crowd) printResponses(name string, r load.Responses) {
	if r.Served > 0 {
		b.print("    %s: %d served, %.0f/s, p50 %.1f ms, p99 %.1f ms", name, r.Served, r.Rate, r.P50, r.P99)
	}
	for _, code := range slices.Sorted(maps.Keys(r.Refused)) {
		b.print("    %s: %d refused: %s", name, r.Refused[code], code)
	}
}

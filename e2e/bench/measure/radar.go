package measure

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// A Radar is a run of bench radar.
type Radar struct {
	Core
	Tips, Paths, Registrations, Files, Pushes int

	work *radarWork
}

// Check returns an error if an option is invalid.
func (b *Radar) Check() error {
	if b.Tips < 1 || b.Paths < filesPerCommit || b.Registrations < radarRounds || b.Files < 1 || b.Pushes < 1 ||
		b.Connections < 1 {
		return fmt.Errorf("--in-flight, --files, --pushes and --connections must be at least 1, --paths at least %d, "+
			"--registrations at least %d", filesPerCommit, radarRounds)
	}
	return nil
}

// Measure runs the benchmark.
func (b *Radar) Measure(ctx context.Context, env Env) error {
	b.Env = env
	b.work = newRadarWork(b.Paths)
	return b.withTempDir(ctx, func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		if _, err := b.ledgerd(ctx, "repo", "create", orgName+"/"+quietRepo); err != nil {
			return err
		}
		if err := b.withServer(ctx, b.fill, b.register, b.push); err != nil {
			return err
		}
		return b.printFigures()
	})
}

// quietRepo is the repo with few commits in flight.
const quietRepo = "quiet"

// radarRounds is how many times registering is measured in each repo. The repos
// alternate, to cancel out machine noise.
const radarRounds = 5

// fill registers the commits in flight, each on its own branch.
func (b *Radar) fill(context.Context) error {
	result, err := b.load(repoName, b.Tips, b.Tips)
	if err != nil {
		return err
	}
	b.figure(rateFigure(fmt.Sprintf("put %d commits in flight", b.Tips), result))
	return nil
}

// register measures registering with and without others in flight.
func (b *Radar) register(context.Context) error {
	var busy, quiet load.Result
	for range radarRounds {
		result, err := b.load(quietRepo, b.Registrations/radarRounds, b.Connections)
		if err != nil {
			return err
		}
		quiet.Add(result)
		if result, err = b.load(repoName, b.Registrations/radarRounds, b.Tips); err != nil {
			return err
		}
		busy.Add(result)
	}

	b.figure(rateFigure("register with none in flight", quiet))
	f := rateFigure(fmt.Sprintf("register with %d in flight over %d paths", b.Tips, b.Paths), busy)
	f.Ratio = quiet.Rate() / busy.Rate()
	b.figure(f)
	return nil
}

// load registers n commits, spread over the given number of branches.
func (b *Radar) load(repo string, n, branches int) (load.Result, error) {
	requests := make([][]byte, n)
	for i := range requests {
		var err error
		if requests[i], err = b.work.request(repo, branches, b.token); err != nil {
			return load.Result{}, fmt.Errorf("create a registration: %w", err)
		}
	}
	result, err := load.Load{Address: b.server.address, Conns: b.Connections, Requests: requests}.Run()
	if err != nil {
		return result, fmt.Errorf("register: %w", err)
	}
	return result, nil
}

// push measures commit register, compared with the git diff-tree that it runs.
func (b *Radar) push(ctx context.Context) error {
	busy, err := newBusy(ctx, b.Dir, b.Files)
	if err != nil {
		return fmt.Errorf("create a git repository: %w", err)
	}

	var diffed, pushed load.Result
	for i := range b.Pushes {
		repo := fmt.Sprint("push-", i)
		if _, err := b.ledgerd(ctx, "repo", "create", orgName+"/"+repo); err != nil {
			return err
		}
		result, err := timed(func() error { return diffTree(ctx, busy) })
		if err != nil {
			return fmt.Errorf("git diff-tree: %w", err)
		}
		diffed.Add(result)

		if result, err = timed(b.pushCommand(ctx, busy, repo).Run); err != nil {
			return fmt.Errorf("commit register: %w", err)
		}
		pushed.Add(result)
	}

	b.figure(latencyFigure(fmt.Sprintf("git diff-tree of %d changed files", b.Files), diffed))
	f := latencyFigure("commit register of the same files", pushed)
	f.Ratio = f.P50 / load.MS(diffed.Percentile(0.50))
	b.figure(f)
	return nil
}

// pushCommand returns the command that pushes the busy commit to the server.
func (b *Radar) pushCommand(ctx context.Context, busy gitrepo.Repo, repo string) *exec.Cmd {
	command := exec.CommandContext(ctx, b.Program, "commit", "register", orgName+"/"+repo,
		"--server", "http://"+b.server.address)
	command.Dir, command.Stderr = busy.Dir, b.Stderr
	command.Env = append(busy.Environ(), "LEDGERD_TOKEN="+b.token)
	return command
}

// timed measures one call.
func timed(f func() error) (load.Result, error) {
	start := time.Now()
	err := f()
	elapsed := time.Since(start)
	return load.Result{Elapsed: elapsed, Latencies: []time.Duration{elapsed}}, err
}

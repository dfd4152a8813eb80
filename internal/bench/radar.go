package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// A Radar is one run of bench radar.
type Radar struct {
	Core
	Tips, Paths, Registrations, Files, Pushes int

	work *radarWork
}

// Check reports an option that is not valid.
func (b *Radar) Check() error {
	if b.Tips < 1 || b.Paths < filesOfCommit || b.Registrations < radarTurns || b.Files < 1 || b.Pushes < 1 ||
		b.Connections < 1 {
		return fmt.Errorf("--in-flight, --files, --pushes and --connections must be at least 1, --paths %d, "+
			"--registrations %d", filesOfCommit, radarTurns)
	}
	return nil
}

// Measure runs the benchmark.
func (b *Radar) Measure(ctx context.Context, env Env) error {
	b.Env = env
	b.work = newRadarWork(b.Paths)
	return b.within(func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		if _, err := b.ledgerd(ctx, "repo", "create", orgName+"/"+quietRepo); err != nil {
			return err
		}
		if err := b.serving(ctx, b.fill, b.register, b.push); err != nil {
			return err
		}
		return b.printFigures()
	})
}

// quietRepo is the repo where no commits are in flight.
const quietRepo = "quiet"

// radarTurns is how often registering is measured in either repo, in turns: for
// the speed of machines varies.
const radarTurns = 5

// fill brings commits into flight, each of a branch of its own.
func (b *Radar) fill(context.Context) error {
	o, err := b.load(repoName, b.Tips, b.Tips)
	if err != nil {
		return err
	}
	b.figure(rateFigure(fmt.Sprintf("bring %d commits into flight", b.Tips), o))
	return nil
}

// register measures registering with and without others in flight.
func (b *Radar) register(context.Context) error {
	var busy, quiet loadResult
	for range radarTurns {
		o, err := b.load(quietRepo, b.Registrations/radarTurns, b.Connections)
		if err != nil {
			return err
		}
		quiet.add(o)
		if o, err = b.load(repoName, b.Registrations/radarTurns, b.Tips); err != nil {
			return err
		}
		busy.add(o)
	}
	b.figure(rateFigure("register with none in flight", quiet))
	f := rateFigure(fmt.Sprintf("register with %d in flight over %d paths", b.Tips, b.Paths), busy)
	f.Ratio = quiet.rate() / busy.rate()
	b.figure(f)
	return nil
}

// load registers n commits of so many branches.
func (b *Radar) load(repo string, n, branches int) (loadResult, error) {
	requests := make([][]byte, n)
	for i := range requests {
		var err error
		if requests[i], err = b.work.request(repo, branches, b.token); err != nil {
			return loadResult{}, fmt.Errorf("make a registration: %w", err)
		}
	}
	o, err := load{address: b.server.address, conns: b.Connections, requests: requests}.run()
	if err != nil {
		return o, fmt.Errorf("register: %w", err)
	}
	return o, nil
}

func rateFigure(what string, o loadResult) figure {
	f := latencyFigure(what, o)
	f.Rate = o.rate()
	return f
}

// push measures commit push beside what git alone needs.
func (b *Radar) push(ctx context.Context) error {
	busy, err := gitrepo.NewSynthetic(ctx, b.Dir, b.Files)
	if err != nil {
		return fmt.Errorf("make a git repository: %w", err)
	}
	var bare, pushed loadResult
	for i := range b.Pushes {
		repo := fmt.Sprint("push-", i)
		if _, err := b.ledgerd(ctx, "repo", "create", orgName+"/"+repo); err != nil {
			return err
		}
		took, err := timed(busy.DiffTree(ctx).Run)
		if err != nil {
			return fmt.Errorf("git diff-tree: %w", err)
		}
		bare.add(took)
		command, err := b.pushCommand(ctx, busy, repo)
		if err != nil {
			return err
		}
		if took, err = timed(command.Run); err != nil {
			return fmt.Errorf("commit push: %w", err)
		}
		pushed.add(took)
	}
	b.figure(latencyFigure(fmt.Sprintf("git diff-tree of %d changed files", b.Files), bare))
	f := latencyFigure("commit push of them", pushed)
	f.Ratio = f.P50 / ms(bare.percentile(0.50))
	b.figure(f)
	return nil
}

// pushCommand returns the commit push of the busy commit to the server.
func (b *Radar) pushCommand(ctx context.Context, busy gitrepo.Synthetic, repo string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, self, "commit", "push", orgName+"/"+repo, "--url", "http://"+b.server.address)
	command.Dir, command.Stderr = busy.Dir, b.Stderr
	command.Env = append(busy.Environ(), "LEDGERD_TOKEN="+b.token)
	return command, nil
}

// timed measures one call.
func timed(f func() error) (loadResult, error) {
	start := time.Now()
	err := f()
	took := time.Since(start)
	return loadResult{elapsed: took, latencies: []time.Duration{took}}, err
}

package cmd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// A radarBench is one run of bench radar.
type radarBench struct {
	*benchRun
	tips, paths, registrations, files, pushes int

	work *radarWork
}

func newBenchRadar(p *program) *cobra.Command {
	b := &radarBench{benchRun: &benchRun{p: p}}
	command := &cobra.Command{
		Use:   "radar",
		Short: "Measure the Conflict Radar on this machine",
		Long: `Bench radar starts a server of its own on a temporary database and registers
commits through its HTTP API, each with a record of 20 files and 60 hunks. Server
and load share the machine's cores.

First it fills a repo with commits in flight. Then it registers new commits of
their branches, so that as many stay in flight, and in turns as many commits in a
repo where none are, but for one branch for each connection: the ratio tells how
much slower registering becomes by what is in flight.

Then it makes a git repository with a commit that changes many files and pushes
that with commit push, the whole command, to repos where nothing is in flight; in
turns with the git diff-tree that commit push reads. That part needs git.`,
		Example: `  ledgerd bench radar
  ledgerd bench radar --in-flight 1000 --paths 2000 --registrations 500 -o json`,
		Args: cobra.NoArgs,
		RunE: interruptible(b.run),
	}
	flags := command.Flags()
	flags.IntVar(&b.tips, "in-flight", 10_000, "how many commits are in flight")
	flags.IntVar(&b.paths, "paths", 20_000, "how many paths the commits change among them")
	flags.IntVar(&b.registrations, "registrations", 5000, "how many commits to register with others in flight, and how many without")
	flags.IntVar(&b.files, "files", 500, "how many files the commit changes that is pushed")
	flags.IntVar(&b.pushes, "pushes", 20, "how often it is pushed")
	flags.IntVar(&b.conns, "connections", 16, "connections of the load")
	flags.StringVar(&b.dir, "dir", "", "folder for the temporary database and git repository (default: the system's)")
	return command
}

func (b *radarBench) run(ctx context.Context) error {
	if b.tips < 1 || b.paths < filesOfCommit || b.registrations < radarTurns || b.files < 1 || b.pushes < 1 || b.conns < 1 {
		return usagef("--in-flight, --files, --pushes and --connections must be at least 1, --paths %d, --registrations %d", filesOfCommit, radarTurns)
	}
	b.work = newRadarWork(b.paths)
	return b.within(func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		if _, err := b.ledgerd(ctx, "repo", "create", quietRepo.String()); err != nil {
			return err
		}
		if err := b.serving(ctx, b.fill, b.register, b.push); err != nil {
			return err
		}
		return b.p.print(b.figures, func() {})
	})
}

var (
	// busyRepo is where many commits are in flight.
	busyRepo  = repoName{benchOrg, benchRepo}
	quietRepo = repoName{benchOrg, "quiet"}
)

// radarTurns is how often registering is measured in either repo, in turns: for
// machines have moods.
const radarTurns = 5

// fill brings commits into flight, each of a branch of its own.
func (b *radarBench) fill(context.Context) error {
	o, err := b.load(busyRepo, b.tips, b.tips)
	if err != nil {
		return err
	}
	b.figure(rateFigure(fmt.Sprintf("bring %d commits into flight", b.tips), o))
	return nil
}

// register measures registering with and without others in flight.
func (b *radarBench) register(context.Context) error {
	var busy, quiet loadResult
	for range radarTurns {
		o, err := b.load(quietRepo, b.registrations/radarTurns, b.conns)
		if err != nil {
			return err
		}
		quiet.add(o)
		if o, err = b.load(busyRepo, b.registrations/radarTurns, b.tips); err != nil {
			return err
		}
		busy.add(o)
	}
	b.figure(rateFigure("register with none in flight", quiet))
	f := rateFigure(fmt.Sprintf("register with %d in flight over %d paths", b.tips, b.paths), busy)
	f.Ratio = quiet.rate() / busy.rate()
	b.figure(f)
	return nil
}

// load registers n commits of so many branches.
func (b *radarBench) load(repo repoName, n, branches int) (loadResult, error) {
	requests := make([][]byte, n)
	for i := range requests {
		var err error
		if requests[i], err = b.work.request(repo, branches, b.token); err != nil {
			return loadResult{}, fmt.Errorf("make a registration: %w", err)
		}
	}
	o, err := load{address: b.server.address, conns: b.conns, requests: requests}.run()
	if err != nil {
		return o, fmt.Errorf("register: %w", err)
	}
	return o, nil
}

func rateFigure(what string, o loadResult) benchFigure {
	f := latencyFigure(what, o)
	f.Rate = o.rate()
	return f
}

// push measures commit push beside what git alone needs.
func (b *radarBench) push(ctx context.Context) error {
	busy, err := gitrepo.NewSynthetic(ctx, b.dir, b.files)
	if err != nil {
		return fmt.Errorf("make a git repository: %w", err)
	}
	var bare, pushed loadResult
	for i := range b.pushes {
		repo := repoName{benchOrg, fmt.Sprint("push-", i)}
		if _, err := b.ledgerd(ctx, "repo", "create", repo.String()); err != nil {
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
	b.figure(latencyFigure(fmt.Sprintf("git diff-tree of %d changed files", b.files), bare))
	f := latencyFigure("commit push of them", pushed)
	f.Ratio = f.P50 / ms(bare.percentile(0.50))
	b.figure(f)
	return nil
}

// pushCommand returns the commit push of the busy commit to the server.
func (b *radarBench) pushCommand(ctx context.Context, busy gitrepo.Synthetic, repo repoName) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, self, "commit", "push", repo.String(), "--url", "http://"+b.server.address)
	command.Dir, command.Stderr = busy.Dir, b.p.stderr
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

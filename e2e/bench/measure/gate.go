package measure

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/ledger"
)

// A Gate measures what gate asks: the record of a commit, and the commits that an artifact
// was built from.
type Gate struct{ Core }

const (
	// gateTurns is the number of attestations of each commit.
	gateTurns = 10
	// gateCommits is how many commits get attestations at the same time, and how many are
	// asked for.
	gateCommits = 1000
	// gateRounds is how often each of the loads runs, in turns.
	gateRounds = 3
)

// Check returns an error if an option is invalid.
func (b *Gate) Check() error {
	if b.Connections < 1 || b.Readers < 1 || b.ReadingTime <= 0 {
		return fmt.Errorf("--connections, --readers and --seconds must be more than 0")
	}
	if b.Attestations < gateTurns*gateCommits {
		return fmt.Errorf("--attestations must be at least %d: %d for each of %d commits", gateTurns*gateCommits,
			gateTurns, gateCommits)
	}
	return nil
}

// Measure runs the benchmark.
func (b *Gate) Measure(ctx context.Context, env Env) error {
	b.Env = env
	b.Commits, b.PerCommit, b.images = gateCommits, gateTurns, true
	err := b.withTempDir(ctx, func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		return b.withServer(ctx, b.fill, b.ask)
	})
	if err != nil {
		return err
	}
	return b.printFigures()
}

// fill records the attestations. All commits have as many.
func (b *Gate) fill(context.Context) error {
	const set = gateCommits * gateTurns
	for left := b.Attestations / set * set; left > 0; left -= set {
		if _, err := b.record(set); err != nil {
			return err
		}
	}
	return nil
}

// ask measures the rates of both questions.
func (b *Gate) ask(context.Context) error {
	commits, artifacts, err := b.questions()
	if err != nil {
		return err
	}
	var byCommit, byArtifact load.Result
	for range gateRounds {
		if err := b.askAll(commits, &byCommit); err != nil {
			return err
		}
		if err := b.askAll(artifacts, &byArtifact); err != nil {
			return err
		}
	}

	commit := latencyFigure(fmt.Sprintf("commit record with %d attestations, of %d", gateTurns, b.recorded), byCommit)
	commit.Rate = byCommit.Rate()
	b.figure(commit)
	artifact := latencyFigure(fmt.Sprintf("artifact, of %d attestations", b.recorded), byArtifact)
	artifact.Rate, artifact.Ratio = byArtifact.Rate(), byArtifact.Rate()/byCommit.Rate()
	b.figure(artifact)
	return nil
}

// askAll sends requests again and again, and adds the result to total.
func (b *Gate) askAll(requests [][]byte, total *load.Result) error {
	result, err := load.Load{Address: b.server.address, Conns: b.Readers, Requests: requests, Repeat: b.ReadingTime}.Run()
	total.Add(result)
	return err
}

// questions returns the requests for commits all over the ledger, and for their images.
func (b *Gate) questions() (commits, artifacts [][]byte, err error) {
	all := b.recorded / gateTurns
	for i := range gateCommits {
		commit := i * (all / gateCommits)
		commits = append(commits,
			load.Request(http.MethodGet, "/v1/orgs/bench/repos/repo/commits/"+commitID(commit), b.token, nil))
		body, err := json.Marshal(ledger.ArtifactQuery{Digests: []string{"sha256:" + imageOf(commit)}})
		if err != nil {
			return nil, nil, err
		}
		artifacts = append(artifacts, load.Request(http.MethodPost, "/v1/orgs/bench/artifacts", b.token, body))
	}
	return commits, artifacts, nil
}

package measure

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
)

// A Proof measures what an auditor asks: the checkpoint of a log and the proof of one of its
// events.
type Proof struct{ Gate }

// Measure runs the benchmark.
func (b *Proof) Measure(ctx context.Context, env Env) error {
	b.Env = env
	b.Commits, b.PerCommit = gateCommits, gateTurns
	b.serveFlags = []string{"--base-url", "https://ledger.example"}
	err := b.withTempDir(ctx, func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		return b.withServer(ctx, b.fill, b.waitForCheckpoint, b.ask, b.restart)
	})
	if err != nil {
		return err
	}
	return b.printFigures()
}

const benchLog = "/v1/orgs/bench/log"

// waitForCheckpoint waits until a checkpoint has all events.
func (b *Proof) waitForCheckpoint(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := b.client()
	if err != nil {
		return err
	}
	for {
		log, err := c.Log(ctx, orgName)
		if err != nil {
			return err
		}
		if log.Size == log.Events {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the checkpoint has %d of %d events: %s", log.Size, log.Events, log.Problem)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ask measures the rates of commit records and of checkpoints with proofs, in turns.
func (b *Proof) ask(ctx context.Context) error {
	commits, proofs, err := b.proofRequests(ctx)
	if err != nil {
		return err
	}
	var byCommit, byEvent load.Result
	for range gateRounds {
		if err := b.askAll(commits, &byCommit); err != nil {
			return err
		}
		if err := b.askAll(proofs, &byEvent); err != nil {
			return err
		}
	}

	commit := latencyFigure(fmt.Sprintf("commit record with %d attestations, of %d", gateTurns, b.recorded), byCommit)
	commit.Rate = byCommit.Rate()
	b.figure(commit)
	proof := latencyFigure(fmt.Sprintf("checkpoint, then proof of one of %d events", b.recorded), byEvent)
	proof.Rate = byEvent.Rate() / 2 // of pairs
	proof.Ratio = proof.Rate / commit.Rate
	b.figure(proof)
	return nil
}

// proofRequests returns the requests for commits all over the ledger, and for the checkpoint
// and the proof of an event of each, in turns.
func (b *Proof) proofRequests(ctx context.Context) (commits, proofs [][]byte, err error) {
	c, err := b.client()
	if err != nil {
		return nil, nil, err
	}
	all := b.recorded / gateTurns
	checkpoint := load.Request(http.MethodGet, benchLog+"/checkpoint", b.token, nil)
	for i := range gateCommits {
		sha := commitID(i * (all / gateCommits))
		commit, err := c.Commit(ctx, orgName, repoName, sha)
		if err != nil {
			return nil, nil, err
		}
		event := commit.Attestations[i%len(commit.Attestations)].Event
		commits = append(commits, load.Request(http.MethodGet, "/v1/orgs/bench/repos/repo/commits/"+sha, b.token, nil))
		proofs = append(proofs, checkpoint,
			load.Request(http.MethodGet, "/v1/orgs/bench/events/"+event+"/proof", b.token, nil))
	}
	return commits, proofs, nil
}

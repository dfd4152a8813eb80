package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/rederive"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// maxVersions bounds the versions of a contract that are read.
const maxVersions = 10_000

// A derivation derives the states of commits again.
type derivation struct {
	*Session
	repo          string
	names         names
	replay        *rederive.Replay
	defaultBranch string
	tally         verify.Tally
	isDefault     bool            // the first contract is the default one
	doubt         string          // why evidence may be missing; empty if it is complete
	asked         map[string]bool // the commits whose records were read
	last          string          // the ID of the last event
	// later has the commits of which something became known after the events that were read;
	// nil until it is needed.
	later map[string]bool
}

// prunedEvidence is a doubt of a derivation.
const prunedEvidence = "the ledger has pruned evidence"

// newDerivation reads the versions of a repo's contract.
func (s *Session) newDerivation(ctx context.Context, n names, versions int) (*derivation, error) {
	name := n.repo
	repo, err := s.client.Repo(ctx, s.Org, name)
	if err != nil {
		return nil, err
	}
	if versions > s.maxVersions {
		return nil, fmt.Errorf("the contract has %d versions, and at most %d are read", versions, s.maxVersions)
	}

	contracts := make(map[int]policy.Contract, versions)
	for version := 1; version <= versions; version++ {
		p, err := s.client.PolicyVersion(ctx, s.Org, name, version)
		if err != nil {
			return nil, err
		}
		contracts[version] = p.Contract
	}
	return &derivation{
		Session: s, repo: name, names: n, replay: rederive.New(contracts), defaultBranch: repo.DefaultBranch,
		asked: make(map[string]bool), isDefault: contracts[1].IsDefault(),
	}, nil
}

// add adds the next event of the org. signed is what was signed, if it is of an attestation in
// the repo, and nil if that is not valid.
func (d *derivation) add(e logged, signed *attestation.Attestation) {
	d.last = e.leaf.Event
	if err := d.replayEvent(e, signed); err != nil {
		d.tally.Add(e.leaf.Event, verify.Failure(verify.CheckDerivation, "%v", err))
	}
}

func (d *derivation) replayEvent(r logged, signed *attestation.Attestation) error {
	isOfRepo := d.names.isRepo(r)
	switch {
	case r.leaf.Type == ledger.EventIdentity:
		return decode(r.body, d.replay.Identity)
	case r.leaf.Type == ledger.EventAttestation && !isOfRepo:
		return decode(r.body, d.replay.Signed)
	case !isOfRepo:
		return nil
	}

	switch r.leaf.Type {
	case ledger.EventAttestation:
		if signed == nil {
			return nil // another check has failed
		}
		return decode(r.body, func(e ledger.AttestationEvent) error { return d.replay.Attestation(e, signed) })
	case ledger.EventPolicy:
		return decode(r.body, d.replay.Policy)
	case ledger.EventState:
		return decode(r.body, func(e ledger.StateEvent) error {
			d.replay.State(e)
			return nil
		})
	case ledger.EventStanding:
		return decode(r.body, func(e ledger.StandingEvent) error {
			d.replay.Standing(e)
			return nil
		})
	case ledger.EventCommit:
		return decode(r.body, func(e ledger.CommitEvent) error {
			d.replay.Commit(e)
			return nil
		})
	}
	return nil
}

// decode decodes the body of an event, and calls add with it.
func decode[E any](body []byte, add func(E) error) error {
	var e E
	if err := ledger.DecodeOpen(body, &e); err != nil {
		return err
	}
	return add(e)
}

// run derives the states of commits.
func (d *derivation) run(ctx context.Context, commits []string) ([]verify.Check, error) {
	if err := d.readObjects(ctx); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(commits, derivedBatch) {
		if err := d.know(ctx, some); err != nil {
			return nil, err
		}
		for _, sha := range some {
			if d.replay.IsKnown(sha) { // else the tally says why
				d.derive(sha)
			}
		}
	}
	checks := d.tally.Checks("commit")
	if !d.isDefault && d.replay.UsesFirst() {
		checks = append(checks, verify.Skipped(verify.CheckPolicy,
			"version 1, from which states follow, is not the default policy of this release, and in no event"))
	}
	return checks, nil
}

// objectsBatch is the number of objects that are read from the clone at once.
const objectsBatch = 1000

// readObjects reads the objects of the commits that the ledger knows by them from the clone, if states may depend on
// them.
func (d *derivation) readObjects(ctx context.Context) error {
	if d.Objects == nil {
		return nil
	}
	d.replay.HasClone()
	for some := range slices.Chunk(d.replay.NeededObjects(), objectsBatch) {
		objects, err := d.Objects(ctx, some)
		if err != nil {
			return fmt.Errorf("read commit objects from the clone: %w", err)
		}
		for _, o := range objects {
			if err := d.replay.AddObject(o); err != nil {
				return fmt.Errorf("read the clone: %w", err)
			}
		}
	}
	return nil
}

// maxTransitions is how many transitions the record of a commit has: the newest.
const maxTransitions = 100

// derivedBatch is the number of commits whose records are read before their states are derived.
const derivedBatch = 32

// derive derives the state of a commit.
func (d *derivation) derive(sha string) {
	state, why, err := d.replay.Check(sha, d.defaultBranch, d.Now)
	switch {
	case err != nil && d.doubt != "":
		d.tally.Add(sha, verify.Skipped(verify.CheckDerivation, "%v; but %s", err, d.doubt))
	case err != nil:
		d.tally.Add(sha, verify.Failure(verify.CheckDerivation, "%v", err))
	case why != "":
		d.tally.Add(sha, verify.Skipped(verify.CheckDerivation, "%s", why))
	default:
		d.tally.Add(sha, verify.Passed(verify.CheckDerivation, "%s", state))
	}
}

// know reads the records of commits, and of those on whose evidence their states may rest, once.
func (d *derivation) know(ctx context.Context, commits []string) error {
	type known struct {
		sha    string
		record ledger.Commit
		err    error
	}
	var list []*known
	for _, commit := range commits {
		for _, sha := range d.replay.Needs(commit) {
			if !d.asked[sha] {
				d.asked[sha] = true
				list = append(list, &known{sha: sha})
			}
		}
	}

	parallel.Each(concurrent, list, func(k *known) { k.record, k.err = d.client.Commit(ctx, d.Org, d.repo, k.sha) })
	for _, k := range list {
		if client.CodeOf(k.err) == ledger.CodeNotFound {
			d.tally.Add(k.sha, verify.Failure(verify.CheckDerivation, "the ledger does not show the commit, which the log has"))
			continue
		}
		if k.err != nil {
			return k.err
		}
		if err := d.compare(ctx, &k.record); err != nil {
			return err
		}
		if shown := k.record.Transitions; len(shown) < maxTransitions { // else the first ones are not there
			if err := verify.Transitions(shown, d.replay.Transitions(k.sha)); err != nil {
				d.tally.Add(k.sha, verify.Failure(verify.CheckStates, "%v", err))
			}
		}
	}
	return nil
}

// compare compares what the ledger shows of a commit with what the log has.
func (d *derivation) compare(ctx context.Context, shown *ledger.Commit) error {
	err := d.replay.Known(shown)
	if err == nil {
		return nil
	}
	if errors.Is(err, verify.ErrNotLogged) {
		d.tally.Add(shown.SHA, verify.Skipped(verify.CheckDerivation, "%v", err))
		return nil
	}

	if d.later == nil {
		if err := d.readLater(ctx); err != nil {
			return err
		}
	}
	if d.later[shown.SHA] {
		d.tally.Add(shown.SHA, verify.Skipped(verify.CheckDerivation,
			"it was registered again while this was verified (run it again)"))
	} else {
		d.tally.Add(shown.SHA, verify.Failure(verify.CheckFacts, "%v", err))
	}
	return nil
}

// readLater reads of which commits something became known after the events that were read.
func (d *derivation) readLater(ctx context.Context) error {
	d.later = make(map[string]bool)
	filter := client.EventFilter{After: d.last, Types: []ledger.EventType{ledger.EventCommit}, Repo: d.repo}
	for body, err := range d.client.Events(ctx, d.Org, filter) {
		if err != nil {
			return err
		}
		var e ledger.CommitEvent
		if err := ledger.DecodeOpen(body, &e); err != nil {
			return err
		}
		if d.later[e.Commit] = true; len(d.later) > d.maxListed {
			return fmt.Errorf("more than %d commits were registered since then", d.maxListed)
		}
	}
	return nil
}

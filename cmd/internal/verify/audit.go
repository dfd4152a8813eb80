package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// An audit verifies a repo, or a commit of it, by all events in the log.
type audit struct {
	*Session
	repo   string
	names  names
	commit string // empty for all
	keys   verify.Keys

	// settled is the size of the log before the ledger was asked for what it shows.
	settled  int64
	shown    []ledger.CommitSummary
	contract policy.Policy

	events   int64
	others   int64 // events that have the name of the repo, and are from before its creation
	pruned   int64 // events whose body the ledger has pruned
	tally    verify.Tally
	states   verify.States
	policies verify.Policies
	attested map[string]bool
	evidence map[string]bool // the events of attestations whose body the ledger has pruned
	derived  *derivation     // nil if states are not derived again
}

// Commit verifies what the ledger shows of a commit: its attestations, and its state by the
// events in the log.
func (s *Session) Commit(ctx context.Context, repo, rev string) (verify.Report, error) {
	c, err := s.newest(ctx)
	if err != nil {
		return verify.Report{}, err
	}
	record, err := s.client.Commit(ctx, s.Org, repo, rev)
	if err != nil {
		return verify.Report{}, err
	}

	a := &audit{Session: s, repo: record.Repo, settled: c.Size}
	if a.names, err = s.namesOf(ctx, a.repo); err != nil {
		return verify.Report{}, err
	}
	if s.Rederive { // evidence of other commits may carry
		return a.runRepo(ctx, "commit", record.SHA, []string{record.SHA})
	}
	a.commit, a.shown = record.SHA, []ledger.CommitSummary{record.CommitSummary}
	checks, err := a.run(ctx)
	if err != nil {
		return verify.Report{}, err
	}
	checks = append(checks, verify.Unasked(verify.CheckComplete,
		"the log may have events of this commit that the ledger passes off as others ('ledgerd verify repo' finds them)"))
	return s.report(ctx, "commit", record.SHA, checks)
}

// Repo verifies all that the ledger shows of a repo, and that the log of the org has nothing
// else about it.
func (s *Session) Repo(ctx context.Context, repo string) (verify.Report, error) {
	known, err := s.client.Repo(ctx, s.Org, repo)
	if err != nil {
		return verify.Report{}, err
	}
	repo = known.Name
	c, err := s.newest(ctx)
	if err != nil {
		return verify.Report{}, err
	}

	a := &audit{Session: s, repo: repo, settled: c.Size}
	if a.names, err = s.namesOf(ctx, repo); err != nil {
		return verify.Report{}, err
	}
	return a.runRepo(ctx, "repo", s.Org+"/"+repo, nil)
}

// runRepo verifies a repo, and reports it under the given name. If states are derived again, it
// is those of the given commits, or of all if there are none.
func (a *audit) runRepo(ctx context.Context, kind, id string, derived []string) (r verify.Report, err error) {
	all := a.client.Commits(ctx, a.Org, a.repo, client.CommitFilter{})
	if a.shown, err = client.Collect(all, a.maxListed+1); err != nil {
		return r, err
	}
	if len(a.shown) > a.maxListed {
		return r, fmt.Errorf("the ledger lists more than %d commits of %s/%s", a.maxListed, a.Org, a.repo)
	}
	if a.contract, _, err = a.client.Policy(ctx, a.Org, a.repo); err != nil {
		return r, err
	}

	if a.Rederive {
		if a.derived, err = a.newDerivation(ctx, a.names, a.contract.Version); err != nil {
			return r, err
		}
	}

	checks, err := a.run(ctx)
	if err != nil {
		return r, err
	}
	if a.derived != nil {
		if derived == nil {
			for _, c := range slices.Backward(a.shown) { // the oldest first: others rest on the mainline below
				derived = append(derived, c.SHA)
			}
		}
		states, err := a.derived.run(ctx, derived)
		if err != nil {
			return r, err
		}
		checks = append(checks, states...)
	}
	return a.report(ctx, kind, id, checks)
}

// covering returns a checkpoint of all events that there are now.
func (s *Session) covering(ctx context.Context) (c proof.Checkpoint, err error) {
	now, err := s.client.Log(ctx, s.Org)
	if err != nil {
		return c, err
	}
	err = s.await(ctx, func() (bool, error) {
		c, err = s.newest(ctx)
		return c.Size >= now.Events, err
	})
	return c, err
}

// run walks the log, and compares it with what the ledger shows.
func (a *audit) run(ctx context.Context) (checks []verify.Check, err error) {
	if a.keys, err = a.Session.keys(ctx); err != nil {
		return nil, err
	}
	c, err := a.covering(ctx)
	if err != nil {
		return nil, err
	}
	a.attested, a.evidence = make(map[string]bool), make(map[string]bool)
	chain, err := a.chain(ctx)
	var before, end int64
	if err == nil {
		chain[len(chain)-1].tree = c
		before, end = a.extent(chain)
		a.enrolled = newEnrolments(before, end)
		a.settled += a.log.FirstEvent
		visit := func(events []logged) error { return a.visit(ctx, events) }
		err = a.walk(ctx, chain, before, ledger.EventTypes(), visit)
	}
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		return nil, fetch
	}
	checks = append(checks, verify.Result(verify.CheckEvents, err,
		"the ledger lists all %d of the log, %d of them read here", end-before-a.unread-a.unknown, a.events))
	if a.unread > 0 {
		checks = append(checks, a.unreadable(ctx))
	}
	if a.unknown > 0 {
		checks = append(checks, verify.Skipped(verify.CheckEvents,
			"%d are of a type that this version of ledgerd does not know", a.unknown))
	}
	if a.pruned > 0 {
		checks = append(checks, verify.Skipped(verify.CheckEvents, "the ledger has pruned what %d of them say", a.pruned))
	}
	checks = append(checks, a.tally.Checks("event")...)
	if err != nil {
		return checks, nil
	}

	listed, err := a.compareAttestations(ctx, before == 0)
	if err != nil {
		return nil, err
	}
	checks = append(checks, listed, a.compareStates())
	checks = append(checks, a.names.checks(a.others)...)
	if a.commit == "" {
		checks = append(checks, verify.Result(verify.CheckPolicy, a.policies.Check(a.contract), "version %d, %s",
			a.contract.Version, a.contract.Digest))
	}
	if before > 0 {
		checks = append(checks, verify.Skipped(verify.CheckEvents, "%d are in earlier logs of the org", before))
	}
	return append(checks, verify.Passed(verify.CheckCheckpoint, "%d events of %s, signed by its key %s", c.Size, c.Origin,
		verify.KeyID(a.open))), nil
}

// unreadable returns the check of the events that the server refuses to show. They were asked for unless
// the token, as the server says, may not read them.
func (a *audit) unreadable(ctx context.Context) verify.Check {
	token, err := a.client.OwnToken(ctx)
	if err == nil && token.Scope < ledger.Admin {
		return verify.Unasked(verify.CheckEvents,
			"%d are of a type that only administrators can read: use a token with the scope %s to verify them", a.unread,
			ledger.Admin)
	}
	return verify.Skipped(verify.CheckEvents,
		"%d are of a type that only administrators can read, and the server refuses them to one", a.unread)
}

// A reading is an event with what the ledger has about it.
type reading struct {
	logged
	proof     []byte
	record    ledger.AttestationRecord
	envelope  []byte
	assertion []byte
	lost      error // the ledger does not have the attestation
	err       error
}

// attestation returns the attestation that the event is about.
func (r *reading) attestation() verify.Attestation {
	return verify.Attestation{
		Envelope: r.envelope, Event: r.body, Record: &r.record, Assertion: r.assertion, Index: r.index,
	}
}

// visit verifies the events of a bundle.
func (a *audit) visit(ctx context.Context, events []logged) error {
	var list []*reading
	for _, e := range events {
		a.enrolled.add(e)
		if a.names.hasName(e) && !a.names.isRepo(e) {
			a.others++
		}
		if a.commit == "" || e.body == nil || a.names.isRepo(e) && e.about.Commit == a.commit {
			list = append(list, &reading{logged: e})
		}
	}
	parallel.Each(concurrent, list, func(r *reading) { r.err = a.read(ctx, r) })

	var known verify.Passkeys
	if slices.ContainsFunc(list, func(r *reading) bool { return r.assertion != nil }) {
		var err error
		if known, err = a.passkeys(ctx); err != nil {
			return err
		}
	}
	for _, r := range list {
		if r.err != nil {
			return &verify.FetchError{Err: r.err}
		}
		if r.body == nil {
			a.prune(r.leaf)
		}
		if r.body == nil && a.commit != "" {
			continue // it may be of another commit
		}
		a.events++
		a.tally.Add(r.leaf.Event, r.opens(r.proof))
		switch {
		case a.names.isRepo(r.logged):
			a.add(r, known)
		case a.derived != nil && r.body != nil:
			a.derived.add(r.logged, nil)
		}
	}
	return nil
}

// prune notes that the body of an event was pruned.
func (a *audit) prune(leaf proof.Leaf) {
	a.pruned++
	switch leaf.Type {
	case ledger.EventState:
		a.states.Pruned = true
	case ledger.EventAttestation:
		a.evidence[leaf.Event] = true
	default:
		return // no state follows from it
	}
	if a.derived != nil {
		a.derived.doubt = prunedEvidence
	}
}

// read reads the proof of an event and, if it is of an attestation, that.
func (a *audit) read(ctx context.Context, r *reading) (err error) {
	if a.commit != "" && r.body == nil {
		return nil
	}
	if r.proof, err = a.proofUnlessSalted(ctx, r.logged); err == nil && r.proof != nil {
		if r.body, err = a.unlessPrunedSince(ctx, r.leaf.Event, r.body, r.proof); r.body == nil {
			r.about = about{}
		}
	}
	if err != nil || !a.names.isRepo(r.logged) || r.leaf.Type != ledger.EventAttestation {
		return err
	}

	id, err := verify.AttestationID(r.body)
	if err != nil {
		r.lost = err
		return nil
	}
	if r.record, err = a.client.Attestation(ctx, a.Org, a.repo, id); err == nil {
		a.names.align(&r.record, r.about)
		r.envelope, err = unlessPruned(a.client.Envelope(ctx, a.Org, a.repo, id))
	}
	if err == nil && r.attestation().IsConfirmed() {
		r.assertion, err = a.assertion(ctx, a.repo, id)
	}
	if client.CodeOf(err) == ledger.CodeNotFound {
		r.lost, err = fmt.Errorf("the ledger does not have the attestation %s, which the log has", id), nil
	}
	return err
}

// add verifies an event of the repo, given the passkeys in the log so far.
func (a *audit) add(r *reading, known verify.Passkeys) {
	isSettled := r.index < a.settled
	switch r.leaf.Type {
	case ledger.EventAttestation:
		if r.lost != nil {
			a.tally.Add(r.leaf.Event, verify.Failure(verify.CheckAttestations, "%v", r.lost))
			return
		}
		a.attested[r.record.ID] = true
		v := r.attestation()
		v.Passkeys = known
		checks, signed := v.Check(a.keys)
		a.tally.Add(r.record.ID, checks...)
		if a.derived == nil {
			return
		}
		switch {
		case r.envelope == nil:
			a.derived.doubt = prunedEvidence
			return
		case v.IsConfirmed() && known.Gap != "":
			a.derived.doubt = "whose passkey has confirmed an attestation is not known"
		}
		a.derived.add(r.logged, signed)
		return

	case ledger.EventState:
		var e ledger.StateEvent
		err := ledger.DecodeOpen(r.body, &e)
		if err == nil {
			err = a.states.Add(e, isSettled)
		}
		if err != nil {
			a.tally.Add(r.leaf.Event, verify.Failure(verify.CheckStates, "%v", err))
		}

	case ledger.EventPolicy:
		var e ledger.PolicyEvent
		err := ledger.DecodeOpen(r.body, &e)
		if err == nil {
			err = a.policies.Add(e, isSettled)
		}
		if err != nil {
			a.tally.Add(r.leaf.Event, verify.Failure(verify.CheckPolicy, "%v", err))
		}
	}
	if a.derived != nil {
		a.derived.add(r.logged, nil)
	}
}

// compareAttestations checks that the log has all attestations that the ledger lists. isWhole says
// whether all events of the org were read.
func (a *audit) compareAttestations(ctx context.Context, isWhole bool) (verify.Check, error) {
	n, total := 0, len(a.attested)
	for record, err := range a.client.Attestations(ctx, a.Org, a.repo, client.AttestationFilter{Commit: a.commit}) {
		if err != nil {
			return verify.Check{}, err
		}
		if n++; n > a.maxListed {
			return verify.Check{}, fmt.Errorf("the ledger lists more than %d attestations of %s/%s", a.maxListed, a.Org, a.repo)
		}
		if a.attested[record.ID] {
			delete(a.attested, record.ID)
			continue
		}
		isOfIt := a.evidence[record.Event]
		delete(a.evidence, record.Event) // it is of one attestation

		checks, isPruned, err := a.attestation(ctx, a.repo, record.ID) // it may be new
		if client.CodeOf(err) == ledger.CodeNotFound {
			return verify.Failure(verify.CheckAttestations, "%s, which the ledger lists, is not in the log: %v", record.ID,
				err), nil
		}
		if err != nil {
			return verify.Check{}, err
		}
		i := slices.IndexFunc(checks, func(c verify.Check) bool { return c.Status == verify.Failed })
		if i >= 0 {
			return verify.Failure(verify.CheckAttestations, "%s, which the ledger lists: %s: %s", record.ID, checks[i].Name,
				checks[i].Detail), nil
		}
		if isWhole && isPruned && !isOfIt {
			return verify.Failure(verify.CheckAttestations,
				"%s, which the ledger lists, has the pruned event %s, which is of another", record.ID, record.Event), nil
		}
	}

	for id := range a.attested {
		return verify.Failure(verify.CheckAttestations, "the ledger does not list %s and %d more, which the log has", id,
			len(a.attested)-1), nil
	}
	return verify.Passed(verify.CheckAttestations, "the ledger lists %d, and the log has %d", n, total), nil
}

// compareStates checks the states that the ledger shows.
func (a *audit) compareStates() verify.Check {
	shown := make(map[string]bool, len(a.shown))
	pruned := 0
	for _, c := range a.shown {
		shown[c.SHA] = true
		err := a.states.Check(c.SHA, c.State, c.StateSince)
		if errors.Is(err, verify.ErrPruned) {
			pruned++
			continue
		}
		if err != nil {
			return verify.Failure(verify.CheckStates, "%v", err)
		}
	}
	for _, commit := range a.states.Settled() {
		if !shown[commit] {
			return verify.Failure(verify.CheckStates, "the ledger does not list the commit %s, which the log has", commit)
		}
	}

	if pruned > 0 {
		return verify.Skipped(verify.CheckStates, "%d of %d commits have theirs by events that the ledger has pruned", pruned,
			len(a.shown))
	}
	if len(a.shown) == 1 {
		return verify.Passed(verify.CheckStates, "%s by the events in the log", a.shown[0].State)
	}
	return verify.Passed(verify.CheckStates, "those of %d commits follow from the events in the log", len(a.shown))
}

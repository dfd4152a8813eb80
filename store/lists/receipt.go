package lists

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A DecisionQuery says what a decision is asked for.
type DecisionQuery struct {
	Org, Repo string
	Commit    string // or a prefix that is unique in the repo
	// Target is the branch for which the requirements are evaluated; empty for all branches
	// that the commit is meant for.
	Target string
	// Environment is the one that the commit is to be deployed to, for a gate; empty for any.
	Environment string
	// State must have been reached. For a receipt, nil is the commit's present state.
	State *ledger.State
	// Validity is how long the decision is valid, if the state does not end before.
	Validity time.Duration
}

// A Decision is what a receipt says of a commit, and the proof that the newest event that it
// rests on is in the org's present log. The scheme of the receipt is not set.
type Decision struct {
	receipt.Receipt
	Proof []byte
}

// Decide decides whether a commit has reached a state, from what is recorded. It returns
// CodeStateNotReached if it has not, and CodeNotInCheckpoint if no checkpoint covers the
// events that the decision rests on.
func (li *Lists) Decide(ctx context.Context, q DecisionQuery) (Decision, error) {
	return decided(ctx, li, q, func(x *question) (Decision, error) {
		if err := li.gather(x); err != nil {
			return Decision{}, err
		}
		return li.decide(x.Reader, q, x.Commit)
	})
}

// A question is asked about a commit. It reads the facts only if it needs them.
type question struct {
	txn.Reader
	*facts.Commit
	target string
	// fresh reports whether it fails if the state of the commit is to be derived again.
	fresh bool
}

// decided runs fn, which decides about a commit.
func decided[T any](
	ctx context.Context, li *Lists, q DecisionQuery, fn func(*question) (T, error),
) (v T, err error) {
	err = li.states.Fresh(ctx, q.Org, func(isLast bool) error {
		v, err = txn.Read(ctx, li.db, txn.ByOrg(q.Org), func(rd txn.Reader) (v T, err error) {
			d, err := li.facts.DeriverOf(rd, q.Org, q.Repo)
			if err != nil {
				return v, err
			}
			row, err := facts.FindRow(rd, d.Repo, q.Commit)
			if err != nil {
				return v, err
			}
			return fn(&question{rd, &facts.Commit{CommitRow: row, Deriver: d}, q.Target, !isLast})
		})
		return err
	})
	return v, err
}

// gather reads the facts about the commit. It fails if its state is to be derived again first, so
// that all transitions are in the log.
func (li *Lists) gather(x *question) error {
	if err := li.facts.Gather(x.Reader, []*facts.Commit{x.Commit}); err != nil {
		return err
	}
	if x.fresh && x.IsDue(x.Now) {
		return &states.Outdated{Commit: x.ID}
	}
	if x.target != "" {
		x.Facts.Targets, x.Facts.Target = []string{x.target}, x.target
	}
	return nil
}

func (li *Lists) decide(rd txn.Reader, q DecisionQuery, s *facts.Commit) (v Decision, err error) {
	d := s.Deriver
	decided := d.Contract.Decide(s.Facts, rd.Now)
	wanted := decided.State
	if q.State != nil {
		wanted = *q.State
	}
	if wanted < ledger.Attested || !ledger.Reached(wanted, decided.State, decided.Standing) {
		return v, notReached(s.SHA, wanted, decided)
	}

	v.Receipt = receipt.Receipt{
		Org: q.Org, Repo: d.Repo.Name, Commit: s.SHA, State: wanted, Target: q.Target,
		PolicyVersion: d.Repo.PolicyVersion, PolicyDigest: d.Repo.PolicyDigest,
		CreatedAt: rd.Now, ValidUntil: validUntil(s, min(wanted, decided.Standing), rd.Now, decided.Expires, q.Validity),
	}
	if wanted == ledger.Deployed {
		v.Standing = &decided.Standing
	}

	if v.Evidence, v.Omitted, err = li.countedEvidence(rd, d.Repo, decided.Counted, wanted); err != nil {
		return v, err
	}
	newest, err := newestEvent(rd, s, v.Evidence)
	if err != nil {
		return v, err
	}
	return v, li.addPosition(rd, &v, newest)
}

// notReached returns why there is no receipt for a commit.
func notReached(sha string, wanted ledger.State, d policy.Decision) error {
	switch {
	case wanted < ledger.Attested:
		return ledger.Errorf(ledger.CodeStateNotReached,
			"commit %s is %s: receipts are for commits that are ATTESTED, PROMOTABLE or DEPLOYED", sha, d.State)
	case d.State >= wanted:
		return ledger.Errorf(ledger.CodeStateNotReached,
			"commit %s is %s, but its standing is %s, not %s (its record says what is missing now)",
			sha, d.State, d.Standing, wanted)
	}
	return ledger.Errorf(ledger.CodeStateNotReached,
		"commit %s is %s, not %s (its record says what is missing)", sha, d.State, wanted)
}

// maxLapses is how many times are tried at which a state may end.
const maxLapses = 8

// validUntil returns how long a decision is valid: until the standing ends because of the time,
// but at most for the given duration. expires is when the decisions about requirements next
// change because of the time.
func validUntil(
	s *facts.Commit, standing ledger.State, now, expires ledger.Time, validity time.Duration,
) ledger.Time {
	end := now.Add(validity)
	for n := 0; expires != 0 && expires < end; n++ {
		then, next := s.Deriver.Contract.Standing(s.Facts, expires)
		if then < standing || n == maxLapses || next != 0 && next <= expires {
			return expires
		}
		expires = next
	}
	return end
}

// maxHashed is how many bytes of envelopes are read for a receipt. Further evidence is
// omitted.
const maxHashed = 16 << 20

// countedEvidence returns what counts for a state and those below it, oldest first. omitted
// counts what is left out, because a receipt has a maximum size.
func (li *Lists) countedEvidence(rd txn.Reader,
	r txn.Repo, list []policy.Counted, wanted ledger.State,
) (evidence []receipt.Evidence, omitted int, err error) {
	requirements := make(map[string][]string) // by attestation
	for _, c := range list {
		if c.State > wanted {
			continue
		}
		for _, id := range c.Attestations {
			requirements[id] = append(requirements[id], c.Name)
		}
	}
	ids := make([]string, 0, len(requirements))
	for id := range requirements {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	rows, err := li.attestationsByID(rd, r, ids[:min(len(ids), receipt.MaxEvidence)])
	if err != nil {
		return nil, 0, err
	}

	evidence = make([]receipt.Evidence, 0, len(rows))
	hashed := 0
	for _, a := range rows {
		v := a.Row
		digest, size, err := envelopeDigest(rd, a.ID, maxHashed-hashed)
		if err != nil {
			return nil, 0, err
		}
		if hashed += size; digest == "" {
			continue
		}
		names := requirements[v.ID]
		slices.Sort(names)
		evidence = append(evidence, receipt.Evidence{
			Attestation: v.ID, Event: v.Event, Commit: v.Commit, Predicate: v.Predicate, Identity: v.Identity,
			PayloadDigest: v.PayloadDigest, EnvelopeDigest: digest, Requirements: slices.Compact(names),
		})
	}
	return evidence, len(ids) - len(evidence), nil
}

// attestationsByID returns attestations of a repo, oldest first.
func (li *Lists) attestationsByID(rd txn.Reader, r txn.Repo, ids []string) (list []txn.Keyed[ledger.AttestationRecord],
	err error) {
	keys := make([]any, 0, 3*len(ids))
	for _, id := range ids {
		if at, ok := txn.IDTime(txn.AttestationPrefix, id); ok {
			keys = append(keys, r.ID, at, id)
		}
	}
	scan := li.facts.AttestationScanner(rd, r)
	err = rd.EachIn(func(row txn.Scanner) error {
		a, err := scan(row)
		list = append(list, a)
		return err
	}, facts.SelectAttestation+"WHERE (a.repo_id, a.recorded_at, a.attestation_id) IN ", 3, keys)
	if err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	slices.SortFunc(list, func(a, b txn.Keyed[ledger.AttestationRecord]) int { return cmp.Compare(a.Row.ID, b.Row.ID) })
	return list, nil
}

// envelopeDigest returns the digest of an envelope and its size, or no digest if the envelope
// has more than limit bytes.
func envelopeDigest(rd txn.Reader, row int64, limit int) (digest string, size int, err error) {
	err = rd.Row("SELECT length(body) + coalesce(length(payload), 0) FROM envelopes WHERE attestation_id = ?", row).
		Scan(&size)
	if err != nil || size > limit {
		return "", 0, err
	}
	body, err := facts.Envelope(rd, row)
	if facts.IsPruned(err) {
		return facts.PrunedDigest(rd, row)
	}
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256(body)
	return facts.DigestText(sum[:]), size, nil
}

// newestEvent returns the newest event that a decision rests on: that of the evidence, of
// the commit's last transition, or of the contract.
func newestEvent(rd txn.Reader, s *facts.Commit, evidence []receipt.Evidence) (newest events.Ref, err error) {
	var transition, contract int64
	err = rd.Row(`
SELECT coalesce((SELECT max(event) FROM transitions WHERE commit_id = ?), 0), event
FROM policies WHERE repo_id = ? AND version = ?`, s.ID, s.RepoID, s.Deriver.Repo.PolicyVersion).
		Scan(&transition, &contract)
	if err != nil {
		return newest, fmt.Errorf("read what a decision rests on: %w", err)
	}
	if row := max(transition, contract); row != 0 {
		newest.Row = row
		if err := rd.Row("SELECT seq FROM events WHERE id = ?", row).Scan(&newest.Seq); err != nil {
			return newest, fmt.Errorf("read event: %w", err)
		}
	}

	event := ""
	for _, e := range evidence {
		event = max(event, e.Event)
	}
	if event == "" {
		return newest, nil
	}
	recorded, err := events.Find(rd, s.Deriver.Repo.OrgID, event)
	if err != nil {
		return newest, fmt.Errorf("find the event of the evidence: %w", err)
	}
	if recorded.Row > newest.Row {
		newest = recorded
	}
	return newest, nil
}

// addPosition adds to a decision where the newest event that it rests on is in the org's
// present log. The first event of a later epoch commits to all before it.
func (li *Lists) addPosition(rd txn.Reader, v *Decision, newest events.Ref) error {
	l, err := events.FindLog(rd, v.Org, 0)
	if err != nil {
		return err
	}
	err = rd.Row("SELECT id, seq FROM events WHERE org_id = ? AND seq = ?", l.OrgID, max(newest.Seq, l.FirstSeq)).
		Scan(&newest.Row, &newest.Seq)
	if err != nil {
		return txn.Missing(err, "the log of %s has no events", v.Org)
	}
	p, err := li.journal.Prove(rd, v.Org, newest)
	if err != nil {
		return err
	}

	// The salt is only for those who may read the body of the event.
	opening, err := proof.ParseOpening(p.Extra)
	if err != nil {
		return err
	}
	opening.Salt = nil
	if p.Extra, err = opening.Format(); err != nil {
		return err
	}
	hash := opening.Leaf.LeafHash()
	v.Log = receipt.Position{Origin: l.Origin, Index: p.Index, Event: opening.Leaf.Event,
		LeafHash: hex.EncodeToString(hash[:])}
	v.Proof = p.Format()
	return nil
}

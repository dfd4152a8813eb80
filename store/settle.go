package store

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// A commitRow is what a derivation needs to know of a commit.
type commitRow struct {
	id            int64
	sha           string
	state         ledger.State
	policyVersion int         // under which the state was derived
	expires       ledger.Time // when evidence that counts, or an overlap that blocks, runs out
	attestations  int64
	branch        string
	target        string
	author        ledger.Author
}

const selectCommitRow = `
SELECT id, sha, state, policy_version, expires, attestations, branch, target, author_name, author_email FROM commits `

func scanCommitRow(row scanner) (commitRow, error) {
	var c commitRow
	err := row.Scan(&c.id, &c.sha, &c.state, &c.policyVersion, &c.expires, &c.attestations, &c.branch, &c.target, &c.author.Name, &c.author.Email)
	return c, err
}

// A deriver applies a contract to commits of one repo.
type deriver struct {
	conn     *conn
	names    *names
	repo     repoRow
	contract *ledger.Contract
	// reevaluating tells that Evaluate is on its way through the repo's commits:
	// it settles those that it has not come to itself, after the radar has
	// looked at each.
	reevaluating bool
}

func (d deriver) policyCause() ledger.Cause {
	return ledger.Cause{Type: ledger.CausePolicy, ID: strconv.Itoa(d.repo.policyVersion)}
}

// facts gathers what the contract may ask of a commit.
func (d deriver) facts(c commitRow) (ledger.Facts, error) {
	f := ledger.Facts{
		Author:   c.author,
		Branch:   c.branch,
		Target:   cmp.Or(c.target, d.repo.defaultBranch),
		Attested: c.attestations > 0,
		Deployed: c.state == ledger.Deployed,
	}
	var err error
	if f.Overlaps, err = d.openOverlaps(c.id); err != nil {
		return f, err
	}
	if f.Evidence, err = findEvidence(d.conn, d.names, c.id); err != nil || !d.contract.NeedsChanges() {
		return f, err
	}
	changes, err := findChanges(d.conn, c.id)
	if err != nil {
		return f, err
	}
	f.HasChanges = changes != nil
	for _, change := range changes {
		f.Changes = append(f.Changes, change.Path)
		if change.OldPath != "" {
			f.Changes = append(f.Changes, change.OldPath)
		}
	}
	return f, nil
}

func findChanges(c *conn, commitID int64) ([]ledger.Change, error) {
	var changes []ledger.Change
	err := c.each(func(row scanner) error {
		var text []byte
		if err := row.Scan(&text); err != nil {
			return err
		}
		var err error
		changes, err = decodeChanges(text)
		return err
	}, "SELECT changes FROM commit_details WHERE commit_id = ?", commitID)
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	return changes, nil
}

// findEvidence reads the evidence of a commit: the latest attestation of each
// signer for each predicate.
func findEvidence(c *conn, n *names, commitID int64) ([]ledger.Evidence, error) {
	var evidence []ledger.Evidence
	err := c.each(func(row scanner) error {
		e, err := scanEvidence(row, c, n)
		evidence = append(evidence, e)
		return err
	}, `
SELECT l.predicate_id, l.signer_id, a.attestation_id, a.emails, a.status, a.recorded_at, a.while_promotable
FROM latest l CROSS JOIN attestations a ON a.id = l.attestation_id WHERE l.commit_id = ?`, commitID)
	if err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	return evidence, nil
}

func scanEvidence(row scanner, c *conn, n *names) (e ledger.Evidence, err error) {
	var predicateID, signerID int64
	var emails string
	if err = row.Scan(&predicateID, &signerID, &e.Attestation, &emails, &e.Status, &e.RecordedAt, &e.WhilePromotable); err != nil {
		return e, err
	}
	if emails != "" {
		e.Emails = strings.Split(emails, "\n")
	}
	if e.Predicate, err = n.predicate(c, predicateID); err != nil {
		return e, err
	}
	e.Signer, err = n.signer(c, signerID)
	return e, err
}

// deriver returns what derives the states of the repo's commits under its
// active contract.
func (s *Store) deriver(c *conn, r repoRow) (deriver, error) {
	contract, err := s.contract(c, r)
	return deriver{conn: c, names: s.names, repo: r, contract: contract}, err
}

// expiry tells what ended at the given moment: evidence, or else an overlap.
func (d deriver) expiry(f ledger.Facts, at ledger.Time) ledger.Cause {
	id := d.contract.RanOut(f, at)
	if id == "" {
		for _, o := range f.Overlaps {
			if o.Until == at {
				return ledger.Cause{Type: ledger.CauseRadar, ID: o.Commit}
			}
		}
	}
	return ledger.Cause{Type: ledger.CauseExpiry, ID: id}
}

// settleDue settles a commit whose policy has changed or whose evidence has run
// out since its state was derived, and for which Evaluate has not come round
// yet: what is done to it next must find it where it belongs. It returns the
// commit and its facts as they are then.
func (t *tx) settleDue(d deriver, c commitRow) (commitRow, ledger.Facts, error) {
	f, err := d.facts(c)
	if err != nil {
		return c, f, err
	}
	var cause ledger.Cause
	switch {
	case c.state == ledger.Deployed:
		return c, f, nil
	case c.policyVersion != d.repo.policyVersion:
		cause = d.policyCause()
	case c.expires != 0 && c.expires <= t.now:
		cause = d.expiry(f, c.expires)
	default:
		return c, f, nil
	}
	c, err = t.settle(d, c, f, cause)
	f.Deployed = c.state == ledger.Deployed
	return c, f, err
}

// settle derives a commit's state anew from its facts and records what
// follows: the state, its transitions and their events. It returns the commit
// as it is then.
func (t *tx) settle(d deriver, c commitRow, f ledger.Facts, cause ledger.Cause) (commitRow, error) {
	derived := d.contract.Derive(f, t.now)
	if c.state == ledger.Deployed && derived.State != ledger.Deployed {
		var err error
		if f.Overlaps, err = t.returnTip(d, c); err != nil {
			return c, err
		}
		derived = d.contract.Derive(f, t.now)
	}
	from := c.state
	for _, to := range ledger.Path(c.state, derived.State) {
		if err := t.transition(d.repo, c, from, to, cause); err != nil {
			return c, err
		}
		from = to
	}
	c.expires, c.policyVersion = derived.Expires, d.repo.policyVersion
	if derived.State == ledger.Deployed {
		c.expires = 0 // age does not end a deployment
	}
	_, err := t.exec("UPDATE commits SET expires = ?, policy_version = ?, attestations = ? WHERE id = ?", c.expires, c.policyVersion, c.attestations, c.id)
	if err != nil {
		return c, fmt.Errorf("update commit: %w", err)
	}
	if derived.State == c.state {
		return c, nil
	}
	if _, err := t.exec("UPDATE commits SET state = ?, state_since = ? WHERE id = ?", derived.State, t.now, c.id); err != nil {
		return c, fmt.Errorf("move commit: %w", err)
	}
	if derived.State == ledger.Deployed {
		if err := t.deployTip(c.id); err != nil {
			return c, err
		}
	}
	t.countState(d.repo.id, c.state, -1)
	t.countState(d.repo.id, derived.State, 1)
	c.state = derived.State
	return c, nil
}

func (t *tx) transition(r repoRow, c commitRow, from, to ledger.State, cause ledger.Cause) error {
	event, err := t.stateEvent(r, c.sha, from, to, cause)
	if err != nil {
		return err
	}
	_, err = t.exec("INSERT INTO transitions (commit_id, event, from_state, to_state, at, cause_type, cause_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
		c.id, event, from, to, t.now, cause.Type, cause.ID)
	if err != nil {
		return fmt.Errorf("insert transition: %w", err)
	}
	return nil
}

package facts

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Gather reads the facts of commits. The list must not contain duplicates.
func (fa *Facts) Gather(rd txn.Reader, list []*Commit) error {
	return fa.gather(rd, list, nil)
}

// gather reads the facts of commits. If latest is not nil, it returns their latest attestations, which were asked
// for before.
func (fa *Facts) gather(rd txn.Reader, list []*Commit, latest func() ([]Latest, error)) error {
	byID := make(map[int64]*Commit, len(list))
	var attested, blockable, changing []any
	var judged []*Commit
	for _, s := range list {
		byID[s.ID] = s
		known, err := s.Known()
		if err != nil {
			return err
		}
		s.Facts = s.Deriver.factsOf(&known)
		s.Facts.RegisteredAt = s.registeredAt
		s.Facts.Attested, s.Facts.Deployed = s.Attestations > 0, s.State == ledger.Deployed
		if s.Attestations > 0 {
			attested = append(attested, s.ID)
		}
		if s.Deriver.Contract.Radar.Blocks() {
			blockable = append(blockable, s.ID)
		}
		s.rows, s.Unevaluated = nil, nil
		switch c := s.Deriver.Contract; {
		case c.FollowsRecords():
			s.rows = []int64{}
		case c.NeedsChanges():
			changing = append(changing, s.ID)
		}
		if s.Deriver.Contract.NeedsVerdicts() {
			s.rows = []int64{}
			judged = append(judged, s)
		}
	}

	if latest == nil {
		latest = AskLatest(rd, attested...)
	}
	if err := fa.gatherEvidence(rd, byID, latest); err != nil {
		return fmt.Errorf("read evidence: %w", err)
	}
	if err := fa.gatherCarried(rd, list); err != nil {
		return fmt.Errorf("read carried evidence: %w", err)
	}
	if err := fa.GatherSpans(rd, list); err != nil {
		return fmt.Errorf("read what reviews are about: %w", err)
	}
	if err := fa.gatherVerdicts(rd, judged); err != nil {
		return fmt.Errorf("read verdicts: %w", err)
	}
	if err := fa.gatherExceptions(rd, list); err != nil {
		return err
	}
	if err := GatherOverlaps(rd, byID, blockable); err != nil {
		return fmt.Errorf("read overlaps: %w", err)
	}
	if err := fa.gatherChanges(rd, byID, changing); err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	if err := gatherRecords(rd, list); err != nil {
		return fmt.Errorf("read change records: %w", err)
	}
	if err := GatherAuthors(rd, list); err != nil {
		return fmt.Errorf("read authors: %w", err)
	}
	return nil
}

// GatherOne is like Gather, for one commit.
func (fa *Facts) GatherOne(rd txn.Reader, d *Deriver, c *CommitRow) (*Commit, error) {
	s := &Commit{CommitRow: c, Deriver: d}
	return s, fa.Gather(rd, []*Commit{s})
}

// GatherAsked is like GatherOne, with the answer of AskLatest.
func (fa *Facts) GatherAsked(
	rd txn.Reader, d *Deriver, c *CommitRow, latest func() ([]Latest, error),
) (*Commit, error) {
	s := &Commit{CommitRow: c, Deriver: d}
	return s, fa.gather(rd, []*Commit{s}, latest)
}

const selectBlocking = `
SELECT o.later, o.level, e.sha, e.branch, o.path, o.reason, l.opened_at, e.opened_at
FROM overlaps o JOIN tips l ON l.commit_id = o.later JOIN tips e ON e.commit_id = o.earlier
WHERE (l.` + IsInFlight + ` OR l.` + isDeployed + `) AND e.` + IsLive + ` AND e.place < l.place AND o.later IN `

// GatherOverlaps reads the overlaps that may block commits from PROMOTABLE. The
// derivation ignores overlaps that are too old.
func GatherOverlaps(rd txn.Reader, byID map[int64]*Commit, ids []any) error {
	return rd.EachIn(func(row txn.Scanner) error {
		var commitID int64
		var o conflicts.Open
		var later, earlier ledger.Time // when the commits came into flight
		err := row.Scan(&commitID, &o.Level, &o.Commit, &o.Branch, &o.Path, &o.Reason, &later, &earlier)
		if err != nil {
			return err
		}
		s := byID[commitID]
		if radar := s.Deriver.Contract.Radar; o.Level >= radar.Block {
			o.Until = min(later, earlier).Add(time.Duration(radar.MaxAge))
			s.Facts.Overlaps = append(s.Facts.Overlaps, o)
		}
		return nil
	}, selectBlocking, 1, ids)
}

// MaxExceptions is the number of exceptions of one commit that are read to derive its
// state: the newest that are not distrusted. Older ones do not count. More exceptions can thus take effect away
// from others, but an exception that was ended never counts again.
const MaxExceptions = 200

// gatherExceptions reads the exceptions of commits whose contract allows any, after their
// evidence, which shows which commits have some.
func (fa *Facts) gatherExceptions(rd txn.Reader, list []*Commit) error {
	for _, s := range list {
		if !s.Deriver.Contract.Exceptions.IsOpen() || !hasException(s.Facts.Evidence) {
			continue
		}
		var err error
		if s.Facts.Exceptions, err = fa.ExceptionsOf(rd, s.ID); err != nil {
			return err
		}
	}
	return nil
}

func hasException(evidence []policy.Evidence) bool {
	return slices.ContainsFunc(evidence, func(e policy.Evidence) bool {
		return e.PredicateType == attestation.ExceptionPredicateType
	})
}

// ExceptionsOf reads the newest exceptions of a commit that are not distrusted, the oldest
// of them first.
func (fa *Facts) ExceptionsOf(rd txn.Reader, commitID int64) (list []policy.Exception, err error) {
	err = rd.Each(func(row txn.Scanner) error {
		var x policy.Exception
		var signerID int64
		var trusted bool
		err := row.Scan(&x.Attestation, &x.Requirement, &x.Reason, &x.Until, &signerID, &x.RecordedAt, &trusted)
		if err != nil || !trusted {
			return err
		}

		signer, err := fa.signers.Signer(rd, signerID)
		if err != nil {
			return err
		}
		x.Signer = signer.DN
		if list = append(list, x); len(list) == MaxExceptions {
			return txn.ErrFull
		}
		return nil
	}, `
SELECT a.attestation_id, x.requirement, x.reason, x.ends_at, a.signer_id, `+AgeOf+`, `+IsTrusted+`
FROM exceptions x /*+index exceptions_by_commit*/ /*+ordered*/ JOIN attestations a ON a.id = x.attestation_id
WHERE x.commit_id = ? ORDER BY x.attestation_id DESC LIMIT ?`, commitID, txn.MaxExamined)

	if err != nil && !errors.Is(err, txn.ErrFull) {
		return nil, fmt.Errorf("read exceptions: %w", err)
	}
	slices.Reverse(list)
	return list, nil
}

// AddException adds an exception, which the newest attestation of a commit has granted or ended, to the facts.
func (fa *Facts) AddException(s *Commit, x policy.Exception) {
	fa.rows.exceptions.Add(s.Newest, s.RepoID, s.ID, x.Requirement, x.Reason, int64(x.Until))
	if s.Deriver.Contract.Exceptions.IsOpen() {
		list := append(s.Facts.Exceptions, x)
		s.Facts.Exceptions = list[max(0, len(list)-MaxExceptions):]
	}
}

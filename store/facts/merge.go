package facts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A MergedSource is a commit that another one merges, as somebody claims.
type MergedSource struct {
	Commit int64 // its row id
	Claims []policy.MergeClaim
	// sides are the row ids of the commits of the mainline that the claims name.
	sides []int64
}

// GatherClaims reads what commits merge, as somebody claims, by the merging commit. Of each
// person, the latest claim about a source counts.
func (fa *Facts) GatherClaims(rd txn.Reader, list []*Commit) (map[int64][]MergedSource, error) {
	var commits []any
	for _, s := range list {
		if s.Merged&IsMerge != 0 {
			commits = append(commits, s.ID)
		}
	}
	claims, err := fa.ClaimsOf(rd, commits)
	if err != nil {
		return nil, err
	}

	merged := make(map[int64][]MergedSource)
	for _, c := range claims {
		sources := merged[c.commitID]
		i := slices.IndexFunc(sources, func(s MergedSource) bool { return s.Commit == c.sourceID })
		if i < 0 {
			i = len(sources)
			sources = append(sources, MergedSource{Commit: c.sourceID})
		}
		claim, err := c.policy()
		if err != nil {
			return nil, err
		}
		sources[i].Claims = append(sources[i].Claims, claim)
		if c.parentID != 0 {
			sources[i].sides = append(sources[i].sides, c.parentID)
		}
		merged[c.commitID] = sources
	}
	return merged, nil
}

// A ClaimRow is a claim of a merge.
type ClaimRow struct {
	ledger.MergeClaim
	Row                int64 // of the attestation
	commitID, sourceID int64
	// parentID is the row id of the commit of the mainline, and met what that meets, in JSON. The id is 0 if the claim
	// is of an early release.
	parentID   int64
	met        string
	Signer     signers.SignerName
	Person     int64
	individual int64
}

// policy returns the claim in the form that a contract reads.
func (c *ClaimRow) policy() (policy.MergeClaim, error) {
	m := policy.MergeClaim{
		Attestation: c.Attestation, Kind: c.Kind, Signer: c.Signer.DN, Person: c.Person,
		Individual: c.individual, ParentState: c.ParentState,
	}
	if c.parentID == 0 {
		return m, nil
	}
	m.Side = &policy.Side{Commit: c.Parent, Refused: c.Reason}
	if c.met == "" {
		return m, nil
	}
	var err error
	m.Side.Met, err = policy.DecodeMet(c.met)
	return m, err
}

// ClaimsOf reads the claims about commits that count, in the order of their recording: the
// latest of each person about each source.
func (fa *Facts) ClaimsOf(rd txn.Reader, commits []any) (list []ClaimRow, err error) {
	err = rd.EachIn(func(row txn.Scanner) error {
		var c ClaimRow
		var signerID int64
		var state ledger.State
		err := row.Scan(&c.Row, &c.commitID, &c.sourceID, &c.Source, &c.Kind, &c.ParentState, &c.Reason, &c.Attestation,
			&c.RecordedAt, &signerID, &c.Person, &c.individual, &c.parentID, &c.Parent, &c.met, &state)
		if err != nil {
			return err
		}
		c.Signer, err = fa.signers.Signer(rd, signerID)
		c.Identity = c.Signer.Text
		if c.parentID != 0 && c.Reason == "" {
			c.ParentState = state
		}
		list = append(list, c)
		return err
	}, `
SELECT m.attestation_id, m.commit_id, m.source_id, c.sha, m.kind, m.parent_state, m.reason, a.attestation_id,
  `+AgeOf+`, a.signer_id, s.person, s.individual,
  m.parent_id, coalesce(p.sha, ''), coalesce(k.met, ''),
  coalesce(CASE WHEN p.standing < p.state THEN p.standing ELSE p.state END, 0)
FROM merges m /*+index merges_by_commit*/
  /*+ordered*/ JOIN attestations a ON a.id = m.attestation_id
  /*+ordered*/ JOIN signers s ON s.id = a.signer_id
  /*+ordered*/ JOIN commits c ON c.id = m.source_id
  LEFT JOIN commits p ON p.id = m.parent_id LEFT JOIN merge_sides k ON k.commit_id = m.parent_id
WHERE a.status = 'pass' AND `+IsTrusted+`
  AND m.commit_id IN `, 1, commits)
	if err != nil {
		return nil, fmt.Errorf("read claims of merges: %w", err)
	}

	slices.SortFunc(list, byRow)
	byCommit := make(map[int64][]ClaimRow)
	for _, c := range list {
		byCommit[c.commitID] = append(byCommit[c.commitID], c)
	}
	latest := list[:0]
	for _, claims := range byCommit {
		latest = append(latest, ancestry.Latest(claims, (*ClaimRow).of)...)
	}
	slices.SortFunc(latest, byRow)
	return latest, nil
}

// of says by whom, and about what, a claim is.
func (c *ClaimRow) of() ancestry.Claim { return ancestry.Claim{Source: c.Source, Person: c.Person} }

func byRow(a, b ClaimRow) int { return cmp.Compare(a.Row, b.Row) }

// AddMerges adds to a commit's record the claims that it is a merge.
func (fa *Facts) AddMerges(rd txn.Reader, commitID int64, v *ledger.Commit) error {
	claims, err := fa.ClaimsOf(rd, []any{commitID})
	for _, c := range claims {
		v.Merges = append(v.Merges, c.MergeClaim)
	}
	return err
}

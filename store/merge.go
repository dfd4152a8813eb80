package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A mergedSource is a commit that another one merges, as somebody claims.
type mergedSource struct {
	commit int64 // its row id
	claims []policy.MergeClaim
}

// gatherClaims reads what commits merge, as somebody claims, by the merging commit. Of each
// person, the latest claim about a source counts.
func (rd reader) gatherClaims(list []*subject) (map[int64][]mergedSource, error) {
	var commits []any
	for _, s := range list {
		if s.merged&isMerge != 0 {
			commits = append(commits, s.id)
		}
	}
	claims, err := rd.claimsOf(commits)
	if err != nil {
		return nil, err
	}

	merged := make(map[int64][]mergedSource)
	for _, c := range claims {
		sources := merged[c.commitID]
		i := slices.IndexFunc(sources, func(s mergedSource) bool { return s.commit == c.sourceID })
		if i < 0 {
			i = len(sources)
			sources = append(sources, mergedSource{commit: c.sourceID})
		}
		sources[i].claims = append(sources[i].claims,
			policy.MergeClaim{Attestation: c.Attestation, Signer: c.signer.DN, ParentState: c.ParentState})
		merged[c.commitID] = sources
	}
	return merged, nil
}

// A claimRow is a claim of a merge.
type claimRow struct {
	ledger.MergeClaim
	row                int64 // of the attestation
	commitID, sourceID int64
	signer             signers.SignerName
	person             int64
}

// claimsOf reads the claims about commits that count, in the order of their recording: the
// latest of each person about each source.
func (rd reader) claimsOf(commits []any) (list []claimRow, err error) {
	err = rd.EachIn(func(row txn.Scanner) error {
		var c claimRow
		var signerID int64
		err := row.Scan(&c.row, &c.commitID, &c.sourceID, &c.Source, &c.Kind, &c.ParentState, &c.Reason, &c.Attestation,
			&c.RecordedAt, &signerID, &c.person)
		if err != nil {
			return err
		}
		c.signer, err = rd.s.Signers.Signer(rd.Reader, signerID)
		c.Identity = c.signer.Text
		list = append(list, c)
		return err
	}, `
SELECT m.attestation_id, m.commit_id, m.source_id, c.sha, m.kind, m.parent_state, m.reason, a.attestation_id,
  `+ageOf+`, a.signer_id, s.person
FROM merges m /*+index merges_by_commit*/
  /*+ordered*/ JOIN attestations a ON a.id = m.attestation_id
  /*+ordered*/ JOIN signers s ON s.id = a.signer_id
  /*+ordered*/ JOIN commits c ON c.id = m.source_id
WHERE a.status = 'pass' AND `+isTrusted+`
  AND m.commit_id IN `, 1, commits)
	if err != nil {
		return nil, fmt.Errorf("read claims of merges: %w", err)
	}

	slices.SortFunc(list, func(a, b claimRow) int { return cmp.Compare(a.row, b.row) })
	latest := list[:0]
	for i, c := range list {
		replaced := slices.ContainsFunc(list[i+1:], func(newer claimRow) bool {
			return newer.commitID == c.commitID && newer.sourceID == c.sourceID && newer.person == c.person
		})
		if !replaced {
			latest = append(latest, c)
		}
	}
	return latest, nil
}

// addMerges adds to a commit's record the claims that it is a merge.
func (rd reader) addMerges(commitID int64, v *ledger.Commit) error {
	claims, err := rd.claimsOf([]any{commitID})
	for _, c := range claims {
		v.Merges = append(v.Merges, c.MergeClaim)
	}
	return err
}

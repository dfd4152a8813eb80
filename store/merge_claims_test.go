package store

import (
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// The claims of several commits are gathered by commit and source.
func TestGatherClaims(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	w.recordEach(t, []*drawn{stated("ci", 0, "test:go", ledger.Pass)})
	for _, c := range []struct {
		signer         string
		commit, source int
	}{{"ci", 1, 7}, {"ann", 1, 7}, {"ci", 1, 8}, {"ci", 2, 7}} {
		w.recordEach(t, []*drawn{squashed(c.signer, c.commit, c.source)})
	}

	list, err := txn.Read(t.Context(), w.Store.db, txn.ByOrg("acme"),
		func(rd txn.Reader) (map[string][]string, error) {
			ids := make(map[int64]string)
			var commits []*facts.Commit
			for i := range 3 {
				found, err := facts.FindCommit(rd, txn.Repo{ID: 1}, numbered(i))
				if err != nil {
					return nil, err
				}
				c, err := facts.FindCommitRow(rd, found.ID)
				if err != nil {
					return nil, err
				}
				ids[c.ID], commits = numbered(i)[39:], append(commits, &facts.Commit{CommitRow: c})
			}
			found, err := w.Facts.GatherClaims(rd, commits)
			states := make(map[string][]string)
			for id, sources := range found {
				for _, s := range sources {
					source, err := facts.FindCommitRow(rd, s.Commit)
					if err != nil {
						return nil, err
					}
					for _, claim := range s.Claims {
						key := ids[id] + " " + source.SHA[39:] + " " + claim.Signer.CN
						states[key] = append(states[key], claim.Side.Commit[39:])
					}
				}
			}
			return states, err
		})
	must.OK(t, err)
	// The last digits of a commit and a source, which are one more than their numbers.
	want := map[string]string{"2 8 ci": "1", "2 8 ann": "1", "2 9 ci": "1", "3 8 ci": "2"}
	for key, parent := range want {
		if got := list[key]; len(got) != 1 || got[0] != parent {
			t.Errorf("claim %s: parents %v, want %s", key, got, parent)
		}
	}
	if len(list) != len(want) {
		t.Errorf("claims: %v, want %v", list, want)
	}
}

// squashed returns a recording of a claim that a commit of proveTwin is a squash.
func squashed(signer string, commit, source int) *drawn {
	d := stated(signer, commit, "merge:squash", ledger.Pass)
	setMerge(d.Attestation, commit, source, 100+commit)
	d.Attestation.PayloadDigest[0] += byte(source)
	return d
}

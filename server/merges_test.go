package server

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// squash returns the envelope of a claim that commit n is a squash of another one.
func (b *backend) squash(s *signer, n, source int) []byte {
	b.t.Helper()
	payload, err := attestation.NewMergeStatement(commitID(n), attestation.Merge{
		Repo: "acme/api", Kind: attestation.Squashed, Tree: strings.Repeat("e", 40),
		Source: attestation.MergedCommit{SHA: commitID(source)}, Parent: attestation.MergedCommit{SHA: commitID(900)},
	})
	must.OK(b.t, err)
	return s.sign(b.t, payload)
}

// The record of a commit has the claims that it is a merge, and says why nothing carries.
func TestClaimsOfMerges(t *testing.T) {
	b := newBackend(t)
	queue := b.limited("cn=queue,ou=merge,o=acme", "merge:*")
	rec := decode[ledger.AttestationRecord](b.attest(b.squash(queue, 1, 2)).want(201))
	if rec.Predicate != "merge:squash" || rec.Slot != commitID(2) || rec.Result.Status != ledger.Pass {
		t.Errorf("recorded %+v", rec)
	}
	c := b.commit(commitID(1))
	if len(c.Merges) != 1 {
		t.Fatalf("claims: %+v", c.Merges)
	}
	want := ledger.MergeClaim{Source: commitID(2), Parent: commitID(900), Kind: "squash", Attestation: rec.ID,
		Identity: "cn=queue,ou=merge,o=acme", RecordedAt: rec.RecordedAt, ParentState: ledger.Draft,
		Reason: "the commit's object was unknown (register it, and claim again)"}
	if c.Merges[0] != want {
		t.Errorf("claim %+v, want %+v", c.Merges[0], want)
	}
}

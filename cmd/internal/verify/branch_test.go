package verify

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A branch has a head with an inner commit that is not registered, on a base, onto which it is squashed.
type branch struct {
	h                  *host
	base, head, squash string
	inner              []lineage.Object
}

// newBranch registers the commits of a branch, whose authors pick picks.
func newBranch(h *host, pick func(...string) string) *branch {
	h.t.Helper()
	b := &branch{h: h}
	n := 0
	commit := func(parent string, isRegistered bool) string {
		n++
		id, object := storetest.ObjectOn(parent, n, pick("ann", "bob", "eve"), n)
		if isRegistered {
			h.register(id, ledger.Registration{Object: object})
		} else {
			b.inner = append(b.inner, lineage.Object{Commit: id, Object: object})
		}
		return id
	}
	b.base = commit(commitID(8), true)
	b.head = commit(commit(b.base, false), true)
	b.squash = commit(b.base, true)
	return b
}

// review returns a review of the changes since a base.
func (b *branch) review(base string) []byte {
	b.h.t.Helper()
	payload, err := attestation.NewStatement("acme/api", b.head, attestation.ResultPredicate{Predicate: "review:code",
		Result: ledger.Result{Status: ledger.Pass}, StartedOn: ledger.TimeOf(time.Now()), Base: base})
	must.OK(b.h.t, err)
	return payload
}

// claim returns a claim that the branch was squashed.
func (b *branch) claim() []byte {
	b.h.t.Helper()
	payload, err := attestation.NewMergeStatement(b.squash, attestation.Merge{Repo: "acme/api", Kind: attestation.Squashed,
		Source: attestation.MergedCommit{SHA: b.head}, Parent: attestation.MergedCommit{SHA: b.base},
		Tree: fmt.Sprintf("%040x", 4), StartedOn: ledger.TimeOf(time.Now())})
	must.OK(b.h.t, err)
	return payload
}

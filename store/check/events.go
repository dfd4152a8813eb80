package check

import (
	"cmp"

	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/check/report"
)

// event checks a row on its own: whether its leaf commits to the body, and the body is that
// of the row.
func (c *checker) event(org string, e *event) {
	leaf := proof.Leaf{At: e.at, Event: e.public, Type: e.kind}
	if e.leaf == nil {
		c.said(org, e, leaf) // follow reports the missing leaf, unless the log is being built
		return
	}
	copy(leaf.Hash[:], e.leaf)
	e.hash = leaf.LeafHash()
	if len(e.leaf) != len(leaf.Hash) {
		c.Problemf(verify.CheckBody, org, e.row(), "the leaf has %d bytes, want %d", len(e.leaf), len(leaf.Hash))
		return
	}

	switch {
	case e.salt == nil && len(e.body) == 0:
		c.Count(func(r *report.Report) *int64 { return &r.Pruned }, 1)
		c.Failed(org, e.row(), verify.Pruned(leaf))
		return
	case len(e.salt) != proof.SaltSize:
		c.Problemf(verify.CheckBody, org, e.row(),
			"the salt has %d bytes, want %d, so nothing shows what the leaf commits to", len(e.salt), proof.SaltSize)
		return
	}
	opening := proof.Opening{Salt: (*proof.Salt)(e.salt), Leaf: leaf}
	if err := opening.VerifyHash(e.body); err != nil {
		c.Problemf(verify.CheckBody, org, e.row(), "%v", err)
		return
	}
	c.said(org, e, leaf)
}

// said checks that the body of an event is that of its row, and keeps it.
func (c *checker) said(org string, e *event, leaf proof.Leaf) {
	body, check := verify.Read(leaf, e.body)
	c.Failed(org, e.row(), check)
	if check.Status == verify.Failed {
		return
	}
	if check.Status == verify.NotChecked {
		c.Incompletef("%s: %s: %s", org, e.row(), check.Detail)
	}
	if err := body.Names(cmp.Or(e.org, org), e.repo); err != nil {
		c.Problemf(verify.CheckBody, org, e.row(), "%v", err)
	}
	e.said = body.Event
}

package check

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy/linking"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// link notes the artifacts that an attestation links.
func (e *evidence) link(o attestation.Outcome, artifacts attestation.Artifacts) {
	isBuild := int64(0)
	if linking.Builds(o.Predicate, o.Result.Status) {
		isBuild = 1
	}
	for _, digest := range artifacts.Digests {
		key := string(store.DigestKey(digest))
		e.links.list = append(e.links.list, link{key, isBuild})
		if e.again {
			e.links.former = append(e.links.former, link{key, 1 - isBuild})
		}
	}
}

// links checks that the artifacts of attestations are linked with their commits, by them or an
// earlier one.
func (c *checker) links(ctx context.Context, o *org, events []*event) error {
	var keys []any
	for _, e := range events {
		if a := e.evidence; a != nil {
			o.isUnmapped = o.isUnmapped || a.isUnmapped
			for _, l := range slices.Concat(a.links.list, a.links.former) {
				keys = append(keys, o.id, []byte(l.digest), a.commitID, a.identity, a.signerID, l.isBuild)
			}
		}
	}
	if keys == nil {
		return nil
	}
	by := make(map[linkKey]int64)
	err := c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.EachIn(func(row sqldb.Scanner) error {
			var k linkKey
			var digest []byte
			var id int64
			err := row.Scan(&digest, &k.commit, &k.identity, &k.signer, &k.isBuild, &id)
			k.digest = string(digest)
			by[k] = id
			return err
		}, `
SELECT digest, commit_id, identity_id, signer_id, is_build, attestation_id FROM artifacts
WHERE (org_id, digest, commit_id, identity_id, signer_id, is_build) IN `, 6, keys)
	})
	if err != nil {
		return fmt.Errorf("read artifacts: %w", err)
	}

	for _, e := range events {
		if e.evidence != nil {
			c.compareLinks(o, e.evidence, by)
		}
	}
	return nil
}

func (c *checker) compareLinks(o *org, a *evidence, by map[linkKey]int64) {
	for _, l := range a.links.list {
		switch id, ok := by[linkKey{l, a.commitID, a.signerID, a.identity}]; {
		case !ok:
			c.Problemf("artifact", o.name, a.row(), "its artifact %x is not linked with its commit", l.digest)
		case id > a.id:
			c.Problemf("artifact", o.name, a.row(), "the artifact %x is linked by a later one, in row %d", l.digest, id)
		case id == a.id:
			o.linked++
		}
	}
	for _, l := range a.links.former {
		if by[linkKey{l, a.commitID, a.signerID, a.identity}] == a.id {
			o.linked++
		}
	}
	a.links = linksOf{}
}

// countLinks compares the number of linked artifacts with those that attestations link. Those of a
// pruned envelope are not known.
func (c *checker) countLinks(ctx context.Context, o *org) error {
	if o.isUnmapped {
		c.Uncheckedf("%s: the artifacts of commits: statements are still to be mapped by the rules of this release", o.name)
		return nil
	}
	if o.artifacts == o.linked {
		return nil
	}

	var pruned int64
	err := c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Row(`
SELECT count(*) FROM artifacts l /*+ordered*/ JOIN envelopes e ON e.attestation_id = l.attestation_id
WHERE l.org_id = ? AND e.payload_at < 0`, o.id).Scan(&pruned)
	})
	if err != nil {
		return fmt.Errorf("count artifacts: %w", err)
	}
	if o.artifacts != o.linked+pruned {
		c.Problemf("artifact", o.name, "", "%d artifacts are linked with commits, and attestations link %d of them",
			o.artifacts, o.linked+pruned)
	}
	return nil
}

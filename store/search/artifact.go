package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/linking"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// maxLinkRows is the number of links up to which they decide about an artifact.
	maxLinkRows = 1000
	// maxLinkReads limits the links that one request reads, for all its artifacts.
	maxLinkReads = 5000
	// maxLinksListed limits the links that one response lists.
	maxLinksListed = 2000
	// maxDerivedLinks is the number of commits, DEPLOYED or due, or all of them if it asks for an
	// environment, whose states one request derives: as many as one artifact has.
	maxDerivedLinks = maxLinkRows
	// maxShipping is the number of commits for which one request asks what their deployment ships.
	maxShipping = 20
)

// Artifacts returns what is known of the artifacts of a query, which has been checked, in its order.
func (fi *Finder) Artifacts(ctx context.Context, org string, q ledger.ArtifactQuery) ([]ledger.Artifact, error) {
	return txn.Read(ctx, fi.db, txn.ByOrg(org), func(rd txn.Reader) ([]ledger.Artifact, error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return nil, err
		}
		l := linker{Reader: rd, fi: fi, orgID: orgID, environment: q.Environment, repos: fi.facts.Derivers(),
			rows:    maxLinkReads,
			derived: maxDerivedLinks, shipping: maxShipping}
		if q.Repo != "" {
			only, err := rd.FindRepo(org, q.Repo)
			if err != nil {
				return nil, err
			}
			l.only = only.ID
		}

		list := make([]ledger.Artifact, len(q.Digests))
		listed := 0
		for i, digest := range q.Digests {
			if list[i], err = l.artifact(digest); err != nil {
				return nil, fmt.Errorf("read the links of %s: %w", digest, err)
			}
			if over := listed + len(list[i].Links) - maxLinksListed; over > 0 {
				list[i].Links, list[i].Truncated = list[i].Links[:len(list[i].Links)-over], true
			}
			listed += len(list[i].Links)
		}
		return list, nil
	})
}

// A linker reads the links of artifacts with commits.
type linker struct {
	txn.Reader
	fi    *Finder
	orgID int64
	only  int64 // the repo whose commits are linked; 0 for all
	// environment is where the artifacts are to be deployed to; empty for anywhere.
	environment string
	repos       *facts.Derivers
	// rows, derived and shipping are how many links may still be read, how many commits derived, and for how many it may
	// be asked what they ship.
	rows, derived, shipping int
}

// A linkRow is a link of an artifact with a commit, by one signer under one identity: the first by
// a statement of a build that passed, or the first by another.
type linkRow struct {
	commit                        facts.CommitRow // those fields that say whether it is due
	repoID                        int64
	signerID, predicateID, typeID int64
	attestationID                 int64
	distrustedSince               ledger.Time
	may                           string
	status                        ledger.Status // of the statement
	link                          ledger.ArtifactLink
}

// selectLinks reads the links of an artifact, those of the commits registered last first.
const selectLinks = `
SELECT l.commit_id, c.repo_id, c.sha, c.state, c.policy_version, c.expires, c.tree_id, c.merged, c.basis, c.distrusts,
  l.signer_id, l.attestation_id,
  a.attestation_id, a.predicate_id, a.type_id, a.status, ` + facts.AgeOf + `, i.may, i.distrusted_since
FROM artifacts l /*+ordered*/ JOIN commits c ON c.id = l.commit_id
  /*+ordered*/ JOIN attestations a ON a.id = l.attestation_id
  /*+ordered*/ JOIN identities i ON i.identity_id = l.identity_id
WHERE l.org_id = ? AND l.digest = ? ORDER BY l.commit_id DESC LIMIT ?`

func scanLink(row txn.Scanner) (r linkRow, err error) {
	c := &r.commit
	return r, row.Scan(&c.ID, &r.repoID, &r.link.Commit, &c.State, &c.PolicyVersion, &c.Expires,
		&c.TreeID, &c.Merged, &c.Basis, &c.Distrusts, &r.signerID, &r.attestationID,
		&r.link.Attestation, &r.predicateID, &r.typeID, &r.status, &r.link.RecordedAt, &r.may, &r.distrustedSince)
}

// artifact returns the artifact with a digest.
func (l *linker) artifact(digest string) (ledger.Artifact, error) {
	limit := min(maxLinkRows, l.rows)
	rows, err := txn.All(l.Reader, scanLink, selectLinks, l.orgID, facts.DigestKey(digest), limit+1)
	if err != nil {
		return ledger.Artifact{}, err
	}
	unknown := ""
	switch {
	case !l.fi.facts.IsMapped():
		unknown = "the statements that an earlier release recorded are still being read (try again later)"
	case len(rows) > limit && limit < maxLinkRows:
		unknown = tooManyLinks
	case len(rows) > limit:
		unknown = fmt.Sprintf("it has more than %d links", maxLinkRows)
	}
	rows = rows[:min(len(rows), limit)]
	l.rows -= len(rows)

	best, err := l.best(rows)
	if err != nil {
		return ledger.Artifact{}, err
	}
	underived, err := l.setStates(best)
	if err != nil {
		return ledger.Artifact{}, err
	}
	unknown = cmp.Or(unknown, underived)
	if unknown == "" {
		if unknown, err = l.setDeliveries(best); err != nil {
			return ledger.Artifact{}, err
		}
	}
	links := make([]ledger.ArtifactLink, len(best))
	for i := range best {
		links[i] = best[i].link
	}
	return ledger.NewArtifact(digest, links, unknown), nil
}

// best returns one link for each commit: the first that counts, rather without a warning, or, if
// none does, the first.
func (l *linker) best(rows []linkRow) ([]linkRow, error) {
	best := rows[:0]
	for i := range rows {
		r := rows[i]
		if l.only != 0 && r.repoID != l.only {
			continue
		}
		if err := l.judge(&r); err != nil {
			return nil, err
		}
		last := len(best) - 1
		if last < 0 || best[last].commit.ID != r.commit.ID {
			best = append(best, r)
			continue
		}
		if b := &best[last]; r.rank() > b.rank() || r.rank() == b.rank() && r.attestationID < b.attestationID {
			*b = r
		}
	}
	return best, nil
}

// rank is higher for a link that says more: one that counts, and then one without a warning.
func (r *linkRow) rank() int {
	switch {
	case !r.link.Counts:
		return 0
	case r.link.Warning != "":
		return 1
	}
	return 2
}

// judge completes a link, and decides whether it counts. It asks for what the signer may do
// now, as the contract does.
func (l *linker) judge(r *linkRow) error {
	d, err := l.repos.Of(l.Reader, r.repoID)
	if err != nil {
		return err
	}
	signer, err := l.fi.signers.Signer(l.Reader, r.signerID)
	if err != nil {
		return err
	}
	if r.link.Predicate, err = l.fi.signers.Predicate(l.Reader, r.predicateID); err != nil {
		return err
	}
	if r.link.PredicateType, err = l.fi.signers.PredicateType(l.Reader, r.typeID); err != nil {
		return err
	}

	var may identity.Predicates
	if r.may != "" {
		may = strings.Split(r.may, "\n")
	}
	r.link.Repo, r.link.Identity = d.Repo.Name, signer.Text
	r.link.Reason, r.link.Warning = linking.Refusal(d.Contract, r.link.Predicate, r.status, signer.DN, may)
	if r.distrustedSince != 0 && r.link.RecordedAt >= r.distrustedSince {
		r.link.Reason = "the identity that signed it is distrusted since " + r.distrustedSince.String()
	}
	if d.Repo.Deleted {
		r.link.Reason = "its repo was deleted"
	}
	if r.link.Counts = r.link.Reason == ""; !r.link.Counts {
		r.link.Warning = ""
	}
	return nil
}

// tooManyLinks is why an artifact has no state in a response that is about too many.
const tooManyLinks = "this request asks for too many links (ask for fewer digests)"

// setStates sets the present states and standings of the commits. If it cannot do so for all of
// them, unknown says why.
func (l *linker) setStates(rows []linkRow) (unknown string, err error) {
	list := make([]*facts.Commit, len(rows))
	for i := range rows {
		d, err := l.repos.Of(l.Reader, rows[i].repoID)
		if err != nil {
			return "", err
		}
		list[i] = &facts.Commit{CommitRow: &rows[i].commit, Deriver: d}
		rows[i].link.State, rows[i].link.Standing = list[i].State, list[i].State
	}
	if err := l.fi.facts.GatherVersions(l.Reader, list); err != nil {
		return "", err
	}
	underived := make(map[*facts.Deriver][]int64)
	for _, s := range list {
		if l.environment != "" || states.NeedsDerivation(s, l.Now) {
			underived[s.Deriver] = append(underived[s.Deriver], s.ID)
			l.derived--
		}
	}
	if l.derived < 0 {
		return tooManyLinks, nil
	}

	now := make(map[int64]states.PresentState)
	for d, ids := range underived {
		found, err := l.fi.states.PresentStates(l.Reader, d, ids)
		if err != nil {
			return "", err
		}
		if len(found) < len(ids) { // an expression has not been evaluated
			return "the states of its commits are still being derived (try again later)", nil
		}
		maps.Copy(now, found)
	}
	for i := range rows {
		if p, ok := now[rows[i].commit.ID]; ok {
			rows[i].link.State, rows[i].link.Standing = p.State, p.Standing
			rows[i].link.RolledBack = slices.DeleteFunc(p.RolledBack, func(r ledger.CommitRollback) bool {
				return r.Environment != l.environment
			})
		}
	}
	return "", nil
}

// setDeliveries sets what a deployment of the commits whose link counts ships to the environment. If it cannot do so
// for all of them, unknown says why.
func (l *linker) setDeliveries(rows []linkRow) (unknown string, err error) {
	if l.environment == "" {
		return "", nil
	}
	for i := range rows {
		r := &rows[i]
		d, err := l.repos.Of(l.Reader, r.repoID)
		if err != nil {
			return "", err
		}
		if !r.link.Counts || !d.Contract.DeliversTo(l.environment) {
			continue
		}
		if l.shipping--; l.shipping < 0 {
			return "too many commits would be deployed to look at all that they ship (ask for fewer digests)", nil
		}

		list, err := l.fi.states.ReadCommits(l.Reader, d, []int64{r.commit.ID})
		if err != nil {
			return "", err
		}
		if r.link.Delivery, err = l.fi.lists.Ships(l.Reader, list[0], l.environment); err != nil {
			return "", err
		}
	}
	return "", nil
}

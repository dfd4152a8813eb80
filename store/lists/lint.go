package lists

import (
	"context"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// MaxLintSigners is the number of identities up to which a review compares them with a
	// contract.
	MaxLintSigners = 10_000
	// lintCommits is the number of newest commits whose authors a review reads. If all of them are
	// proven, it expects the same of the next.
	lintCommits = 20
	// MaxLintNames is how many predicates or types a review reads for each pattern.
	MaxLintNames = 20
)

// LintFacts returns what lint.Check needs to know of an org to review a contract of the
// repo. How much it reads does not depend on how many attestations or predicates the org
// has.
func (li *Lists) LintFacts(ctx context.Context, org, repo string, c policy.Contract) (lint.Facts, error) {
	return txn.Read(ctx, li.db, txn.ByOrg(org), func(rd txn.Reader) (f lint.Facts, err error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return f, err
		}

		f = lint.Facts{Signed: make(map[string][]string), RecordedPredicates: attestation.RecordedPredicates(),
			Type: func(uri string) lint.TypeFacts {
				predicates, outcome := attestation.Known(uri)
				return lint.TypeFacts{Predicates: predicates, Outcome: outcome}
			}}
		if f.Signers, err = lintSigners(rd, r.OrgID); err != nil {
			return f, fmt.Errorf("read the identities of %s: %w", org, err)
		}
		if f.Missing = len(f.Signers) > MaxLintSigners; f.Missing {
			f.Signers = f.Signers[:MaxLintSigners]
		}

		if f.SameNames, err = SameNames(rd, r.OrgID); err != nil {
			return f, fmt.Errorf("read the names of signers of %s: %w", org, err)
		}
		for _, subject := range append(c.Subjects(), "*") {
			if f.Signed[subject], err = signed(rd, r.OrgID, subject); err != nil {
				return f, fmt.Errorf("read what was signed in %s: %w", org, err)
			}
		}
		err = rd.Row("SELECT EXISTS (SELECT 1 FROM artifacts WHERE org_id = ?)", r.OrgID).Scan(&f.HasArtifacts)
		if err != nil {
			return f, fmt.Errorf("find artifacts of %s: %w", org, err)
		}
		f.AnySigned = len(f.Signed["*"]) > 0
		if err := lintAuthors(rd, &f, facts.Deriver{Repo: r, Contract: &c}); err != nil {
			return f, fmt.Errorf("read the authors of commits: %w", err)
		}
		return f, nil
	})
}

// lintAuthors reads who wrote the newest commits of a repo.
func lintAuthors(rd txn.Reader, f *lint.Facts, d facts.Deriver) error {
	commits, err := txn.All(rd, facts.ScanCommitRow, facts.SelectCommitRow+"WHERE repo_id = ? ORDER BY id DESC LIMIT ?",
		d.Repo.ID,
		lintCommits)
	if err != nil {
		return err
	}

	f.NewestCommits, f.AllProven = len(commits), len(commits) == lintCommits
	list := make([]*facts.Commit, len(commits))
	for i, c := range commits {
		known, err := c.Known()
		if err != nil {
			return err
		}
		f.AllProven = f.AllProven && c.IsProven()
		list[i] = &facts.Commit{CommitRow: c, Deriver: &d, Facts: policy.Facts{
			Authors: known.Authors(), SigningKeys: known.SigningKeys, Proven: c.IsProven()}}
	}

	if !d.Contract.ExcludesAuthor() {
		return nil
	}
	if err := facts.GatherAuthors(rd, list); err != nil {
		return err
	}
	for _, s := range list {
		if s.Facts.HasUnknownAuthor() {
			f.UnknownAuthors++
		}
	}
	return nil
}

// lintSigners returns the identities of an org that are neither revoked nor expired, at
// most one more than MaxLintSigners.
func lintSigners(rd txn.Reader, orgID int64) ([]lint.Signer, error) {
	// With the kinds, this uses the index identities_active, which has no revoked identities.
	return txn.All(rd, scanLintSigner, `
SELECT i.id, i.kind, i.dn, i.may, i.dn_pattern, coalesce(s.individual, 0)
FROM identities i LEFT JOIN signers s ON s.org_id = i.org_id AND s.dn = i.dn AND i.kind <> ?
WHERE i.org_id = ? AND i.kind IN (?, ?, ?) AND i.revoked_at = 0 AND (i.not_after = 0 OR i.not_after > ?) LIMIT ?`,
		identity.RootIdentity, orgID, identity.KeyIdentity, identity.RootIdentity, identity.SigstoreIdentity, rd.Now,
		MaxLintSigners+1)
}

func scanLintSigner(row txn.Scanner) (s lint.Signer, err error) {
	var id int64
	var kind identity.Kind
	var dn, may, pattern string
	if err := row.Scan(&id, &kind, &dn, &may, &pattern, &s.Person); err != nil {
		return s, err
	}

	if may != "" {
		s.May = strings.Split(may, "\n")
	}
	if kind == identity.RootIdentity {
		s.IsRoot = true
		if pattern != "" {
			s.Certifies, err = identity.ParsePattern(pattern)
		}
		return s, err
	}
	if s.Person == 0 {
		s.Person = -id // nobody else's number
	}
	s.DN, err = identity.ParseDN(dn)
	return s, err
}

// maxSameNames is how many names of several people a review lists.
const maxSameNames = 20

// SameNames returns names of several people of whom one was distinct before an upgrade, and nobody
// has said so since. It leaves out those of whom an administrator has.
func SameNames(rd txn.Reader, orgID int64) (list []lint.SameName, err error) {
	var isAny bool
	err = rd.Row("SELECT EXISTS (SELECT 1 FROM signers WHERE org_id = ? AND distinct_by > 1)", orgID).Scan(&isAny)
	if err != nil || !isAny {
		return nil, err
	}

	var last lint.SameName
	people, isUndecided := make(map[int64]bool), false
	end := func() {
		if len(people) > 1 && isUndecided && len(list) < maxSameNames {
			list = append(list, last)
		}
	}
	err = rd.Each(func(row txn.Scanner) error {
		var name, dn string
		var person int64
		var byUpgrade bool
		if err := row.Scan(&name, &dn, &person, &byUpgrade); err != nil {
			return err
		}

		if name != last.Name {
			end()
			last, isUndecided = lint.SameName{Name: name}, false
			clear(people)
		}
		last.DNs, people[person] = append(last.DNs, dn), true
		isUndecided = isUndecided || byUpgrade
		return nil
	}, `
SELECT n.name, s.dn, s.person, s.distinct_by > 1
FROM signer_names n /*+ordered*/ JOIN signers s ON s.id = n.signer_id
WHERE n.org_id = ? AND s.person > 0 AND s.distinct_by <> ? ORDER BY n.name, n.signer_id`,
		orgID, signers.DistinctByAdmin)
	end()
	return list, err
}

// signed returns the first predicates or predicate types that were signed in an org and
// match a pattern.
func signed(rd txn.Reader, orgID int64, pattern string) ([]string, error) {
	query := "SELECT name FROM predicates WHERE org_id = ? AND name >= ? AND name <= ? ORDER BY name LIMIT ?"
	if policy.IsTypePattern(pattern) {
		query = "SELECT uri FROM predicate_types WHERE org_id = ? AND uri >= ? AND uri <= ? ORDER BY uri LIMIT ?"
	}
	first, isPrefix := strings.CutSuffix(pattern, "*")
	last := first
	if isPrefix {
		last += lastRune
	}
	return txn.All(rd, txn.ScanText, query, orgID, first, last, MaxLintNames)
}

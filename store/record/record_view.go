package record

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A view holds the data that a set of attestations needs. It is read for all of them at
// once, and then updated with the effects of each.
type view struct {
	repos      map[string]*facts.Deriver // by org/repo in lower case
	commits    map[commitKey]*facts.Commit
	statements map[statementKey][]statement
}

// A commitKey identifies a commit, which need not exist in the ledger.
type commitKey struct {
	repoID int64
	sha    string
}

// A statementKey identifies the records of a statement on a commit.
type statementKey struct {
	commitID int64
	digest   [32]byte
}

// A statement is a recorded statement, with the row ids of its signer and key.
type statement struct {
	rec             ledger.AttestationRecord
	signerID, keyID int64
	predicateID     int64 // only of new ones
	isDistrusted    bool
}

// deriver returns the deriver for the repo of an attestation, or the reason why the
// attestation is refused.
func (v *view) deriver(r *Recording) (*facts.Deriver, error) {
	d := v.repos[repoKey(r.Org, r.Repo)]
	if d == nil {
		return nil, ledger.Errorf(ledger.CodeNotFound, "repo %s/%s not found", r.Org, r.Repo)
	}
	if d.Repo.KeyringVersion != r.KeyringVersion || r.Attestation.IsPlaced && d.Repo.WebURL != r.webURL {
		return nil, &unverified{r}
	}
	return d, d.Repo.CheckWritable()
}

// view reads the view for a set of attestations.
func (re *Recorder) view(t *txn.Tx, list []*Recording) (*view, error) {
	if err := t.Flush(); err != nil { // effects of the set's earlier attestations
		return nil, err
	}
	v := &view{commits: make(map[commitKey]*facts.Commit, len(list)), statements: make(map[statementKey][]statement)}
	if err := re.viewRepos(t, v, list); err != nil {
		return nil, fmt.Errorf("read repos: %w", err)
	}
	if err := viewCommits(t, v, list); err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	if err := re.viewStatements(t, v, list); err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	return v, re.facts.Gather(t.Reader, v.existing(list))
}

// viewPeople reads again who the people of an org are, and the version of its keyring, after some
// have become the given person, or one individual, or authors of commits.
func (re *Recorder) viewPeople(t *txn.Tx, v *view, orgID int64, joined []int64, person int64) error {
	var version int64
	if err := t.Row("SELECT keyring_version FROM orgs WHERE id = ?", orgID).Scan(&version); err != nil {
		return fmt.Errorf("read the version of a keyring: %w", err)
	}
	for _, d := range v.repos {
		if d.Repo.OrgID == orgID {
			d.Repo.KeyringVersion = txn.KeyringVersion(orgID, version)
		}
	}

	commits := v.ofOrg(orgID)
	for _, s := range commits {
		for i := range s.Facts.Evidence {
			e := &s.Facts.Evidence[i]
			if slices.Contains(joined, e.Person) {
				e.Person = person
			}
			w, err := signers.WhoIs(t, e.Person)
			if err != nil {
				return err
			}
			e.Individual = w.Individual
		}
	}
	return re.facts.GatherPeople(t, commits)
}

// ofOrg returns the commits of an org.
func (v *view) ofOrg(orgID int64) []*facts.Commit {
	var list []*facts.Commit
	for _, s := range v.commits {
		if s.Deriver.Repo.OrgID == orgID {
			list = append(list, s)
		}
	}
	return list
}

// isInherited reports whether the commit of an attestation, just recorded, is one from which
// the commits of others may inherit evidence.
func (v *view) isInherited(r *Recording, others []*Recording) bool {
	s := v.commitOf(r)
	return s != nil && r.Created && s.IsNamed() && slices.ContainsFunc(others, func(other *Recording) bool {
		heir := v.commitOf(other)
		return heir != nil && heir != s && heir.InheritsFrom(s.CommitRow)
	})
}

// viewRepos reads the repos of the attestations.
func (re *Recorder) viewRepos(t *txn.Tx, v *view, list []*Recording) error {
	v.repos = make(map[string]*facts.Deriver)

	orgs := make(map[string]int64)
	var names []any
	for _, r := range list {
		if _, ok := orgs[r.Org]; !ok {
			orgs[r.Org] = 0
			names = append(names, r.Org)
		}
	}
	err := t.EachIn(func(row txn.Scanner) error {
		var id int64
		var name string
		err := row.Scan(&id, &name)
		orgs[name] = id
		return err
	}, "SELECT id, name FROM orgs WHERE name IN ", 1, names)
	if err != nil {
		return err
	}
	t.AskRows("events", "attestations")
	for _, id := range orgs {
		if id != 0 {
			re.journal.AskHead(t, id)
		}
	}

	var keys []any
	seen := make(map[string]bool)
	for _, r := range list {
		if key := repoKey(r.Org, r.Repo); orgs[r.Org] != 0 && !seen[key] {
			seen[key] = true
			keys = append(keys, orgs[r.Org], r.Repo)
		}
	}
	var repos []txn.Repo
	err = t.EachIn(func(row txn.Scanner) error {
		r, err := txn.ScanRepo(row)
		repos = append(repos, r)
		return err
	}, txn.SelectRepo+"WHERE (r.org_id, r.name/*+nocase*/) IN ", 2, keys)
	if err != nil {
		return err
	}

	for _, r := range repos {
		d, err := re.facts.Deriver(t.Reader, r)
		if err != nil {
			return err
		}
		v.repos[repoKey(r.Org, r.Name)] = d
	}
	return nil
}

// viewCommits reads those commits of the attestations that exist.
func viewCommits(t *txn.Tx, v *view, list []*Recording) error {
	var keys []any
	derivers := make(map[int64]*facts.Deriver)
	seen := make(map[commitKey]bool, len(list))
	for _, r := range list {
		d := v.repos[repoKey(r.Org, r.Repo)]
		if d == nil {
			continue
		}
		key := commitKey{d.Repo.ID, r.Attestation.Commit}
		if !seen[key] {
			seen[key] = true
			derivers[d.Repo.ID] = d
			keys = append(keys, key.repoID, key.sha)
		}
	}

	return t.EachIn(func(row txn.Scanner) error {
		c, err := facts.ScanCommitRow(row)
		if err != nil {
			return err
		}
		v.commits[commitKey{c.RepoID, c.SHA}] = &facts.Commit{CommitRow: c, Deriver: derivers[c.RepoID]}
		return nil
	}, facts.SelectCommitRow+"WHERE (repo_id, sha) IN ", 2, keys)
}

// existing returns the existing commits of attestations, each once.
func (v *view) existing(list []*Recording) (commits []*facts.Commit) {
	seen := make(map[*facts.Commit]bool, len(list))
	for _, r := range list {
		if s := v.commitOf(r); s != nil && !seen[s] {
			seen[s] = true
			commits = append(commits, s)
		}
	}
	return commits
}

// commitOf returns the commit of an attestation, or nil if it does not exist.
func (v *view) commitOf(r *Recording) *facts.Commit {
	d := v.repos[repoKey(r.Org, r.Repo)]
	if d == nil {
		return nil
	}
	return v.commits[commitKey{d.Repo.ID, r.Attestation.Commit}]
}

// selectStatements reads records by commit and payload digest. It names the index, because
// a commit may have many attestations.
const selectStatements = "SELECT a.commit_id, a.signer_id, a.key_id, NOT (" + facts.IsTrusted + "), " +
	facts.AttestationColumns +
	" FROM attestations a /*+index attestations_by_commit*/ /*+ordered*/ JOIN commits c ON c.id = a.commit_id" +
	" WHERE (a.commit_id, a.payload_digest) IN "

// viewStatements reads the records of statements that are already recorded.
func (re *Recorder) viewStatements(t *txn.Tx, v *view, list []*Recording) error {
	var keys []any
	repos := make(map[int64]txn.Repo) // by commit
	for _, r := range list {
		d := v.repos[repoKey(r.Org, r.Repo)]
		if d == nil {
			continue
		}
		if s := v.commits[commitKey{d.Repo.ID, r.Attestation.Commit}]; s != nil && s.Attestations > 0 {
			repos[s.ID] = d.Repo
			keys = append(keys, s.ID, r.Attestation.PayloadDigest[:])
		}
	}

	return t.EachIn(func(row txn.Scanner) error {
		var st statement
		var commitID int64
		a, err := re.facts.ScanAttestation(t.Reader, row, func() txn.Repo { return repos[commitID] }, &commitID,
			&st.signerID, &st.keyID,
			&st.isDistrusted)
		if err != nil {
			return err
		}
		st.rec = a.Record.Row
		key := statementKey{commitID, [32]byte(a.Digest)}
		v.statements[key] = append(v.statements[key], st)
		return nil
	}, selectStatements, 2, keys)
}

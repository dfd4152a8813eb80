package attestation

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// commit returns the commit that the statement is about.
func (d *statementJSON) commit(b *body, at Place) (string, error) {
	if at.Recorded != "" {
		for commit := range d.possible(b) {
			if commit == at.Recorded {
				return commit, nil
			}
		}
	}
	commits, err := d.commits(b, at)
	if err != nil {
		return "", err
	}
	if len(commits) > 1 {
		return "", ledger.Errorf(ledger.CodeSeveralCommits,
			"the statement names more than one commit: %s (give the repo the web_url of the repository that was built)",
			strings.Join(commits[:min(len(commits), maxNamed)], ", "))
	}
	return commits[0], nil
}

// maxNamed is the number of commits that an error names.
const maxNamed = 4

// commits returns the commits that the statement may be about in a repo at the place, at least one. They are in the
// subjects or, if no subject names one, in the sources of provenance.
func (d *statementJSON) commits(b *body, at Place) ([]string, error) {
	for _, from := range []resources{{"subject", d.Subject}, b.sources} {
		for _, digest := range []string{gitCommit, bareSHA1} {
			commits, err := from.commits(digest, at, nil)
			if err != nil {
				return nil, err
			}
			for _, isSource := range []func(string) bool{at.has, sameRepoAs(b.source)} {
				if own, _ := from.commits(digest, at, isSource); len(commits) > 1 && len(own) > 0 {
					commits = own
				}
			}
			if len(commits) > 0 {
				return commits, nil
			}
		}
	}
	return b.configCommits(at)
}

// configCommits returns the commit of what was run, if it is of the repo: Tekton Chains names a repository with the
// sources and with the definition once. Only the web URL of the repo says that.
func (b *body) configCommits(at Place) ([]string, error) {
	for _, digest := range []string{gitCommit, bareSHA1} {
		commits, err := b.config.commits(digest, at, nil)
		if err != nil {
			return nil, err
		}
		own, _ := b.config.commits(digest, at, at.isAt)
		switch {
		case len(own) > 0:
			return own, nil
		case len(commits) > 0:
			return nil, ledger.Errorf(ledger.CodeNoCommitSubject, "the provenance names only the commit %s, of the definition "+
				"that Tekton ran (give the repo the web_url of that repository if it is the one that was built)", commits[0])
		}
	}
	return nil, ledger.Errorf(ledger.CodeNoCommitSubject,
		`the statement names no commit: a subject needs a gitCommit digest, as {"name": "git+https://github.com/acme/api", `+
			`"digest": {"gitCommit": "<40 or 64 hex digits>"}}`)
}

// commits returns the distinct commits in the digests of the given kind. If isSource is not nil, they are those of the
// resources whose URI or name matches it.
func (r resources) commits(digest string, at Place, isSource func(uri string) bool) (commits []string, err error) {
	seen := make(map[string]bool)
	for i := range r.list {
		if isSource != nil && !isSource(r.list[i].URI) && !isSource(r.list[i].Name) {
			continue
		}
		commit, err := r.commitAt(i, digest, at)
		if err != nil {
			return nil, err
		}
		if commit != "" && !seen[commit] {
			seen[commit] = true
			commits = append(commits, commit)
		}
	}
	return commits, nil
}

// possible returns the commits that the statement may be about in a repo at any web URL.
func (d *statementJSON) possible(b *body) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, list := range [][]resourceJSON{d.Subject, b.sources.list, b.config.list} {
			for i := range list {
				r := &list[i]
				if commit := r.Digest[gitCommit]; commit != "" && !yield(strings.ToLower(commit)) {
					return
				}
				isCommit := r.isCommit(Place{}) || isWebPage(r.Name) || isWebPage(r.URI)
				if commit := r.Digest[bareSHA1]; commit != "" && isCommit && !yield(strings.ToLower(commit)) {
					return
				}
			}
		}
	}
}

// isPlaced reports whether the meaning of the statement depends on the web URL of the repo: what was verified, which
// of several commits counts, or whether a SHA-1 is that of a commit.
func (d *statementJSON) isPlaced(b *body) bool {
	return slices.ContainsFunc(b.verified, isComparable) || d.isCommitPlaced(b)
}

// isCommitPlaced reports whether the commit that the statement is about depends on the web URL of the repo.
func (d *statementJSON) isCommitPlaced(b *body) bool {
	own, err := d.commit(b, Place{})
	for commit := range d.possible(b) {
		if err != nil || commit != own {
			return true
		}
	}
	return false
}

// sameRepoAs returns a function that reports whether a URI is of the same git repo as another one, ignoring the ref.
func sameRepoAs(source string) func(uri string) bool {
	repo := repoOf(source)
	return func(uri string) bool { return repo != "" && repo == repoOf(uri) }
}

// slot returns what the statement is about in addition to the commit, such as an image:
// the digest of the only other subject, or the SHA-256 of all. It is empty if there is no
// other subject.
func (d *statementJSON) slot(commit string) string {
	var others []string
	for i := range d.Subject {
		if other := d.Subject[i].withoutCommit(commit); other != "" {
			others = append(others, other)
		}
	}

	slices.Sort(others)
	others = slices.Compact(others)
	if len(others) == 0 {
		return ""
	}
	if one := others[0]; len(others) == 1 && !strings.Contains(one, "\n") && len(one) <= maxName {
		return one
	}
	sum := sha256.Sum256([]byte(strings.Join(others, "\n\n")))
	return "subjects:" + hex.EncodeToString(sum[:])
}

package attestation

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// commit returns the commit that the statement is about. It is in the subjects or, if no
// subject names one, in the sources of provenance.
func (d *statementJSON) commit(b *body) (string, error) {
	for _, from := range []resources{{"subject", d.Subject}, b.sources} {
		for _, digest := range []string{gitCommit, bareSHA1} {
			commits, err := from.commits(digest)
			if err != nil {
				return "", err
			}
			if len(commits) > 1 && b.source != "" {
				commits = from.of(b.source, digest, commits)
			}
			if len(commits) > 0 {
				return only(commits)
			}
		}
	}
	return "", ledger.Errorf(ledger.CodeNoCommitSubject,
		"the statement names no commit: a subject needs a gitCommit digest")
}

// maxNamed is the number of commits that an error names.
const maxNamed = 4

// commits returns the distinct commits in the digests of the given kind, at most maxNamed.
func (r resources) commits(digest string) ([]string, error) {
	var commits []string
	for i := range r.list {
		commit, err := r.commitAt(i, digest)
		if err != nil {
			return nil, err
		}
		if commit != "" && len(commits) < maxNamed && !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
	}
	return commits, nil
}

// of returns the commits of those resources whose URI is the given repo. If there are
// none, it returns all.
func (r resources) of(repo, digest string, all []string) []string {
	var commits []string
	for i := range r.list {
		if !sameRepo(r.list[i].URI, repo) && !sameRepo(r.list[i].Name, repo) {
			continue
		}
		if commit, _ := r.commitAt(i, digest); commit != "" && !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
	}
	if commits == nil {
		return all
	}
	return commits
}

func only(commits []string) (string, error) {
	if len(commits) > 1 {
		return "", ledger.Errorf(ledger.CodeSeveralCommits, "the statement names more than one commit: %s",
			strings.Join(commits, ", "))
	}
	return commits[0], nil
}

// sameRepo reports whether two URIs are of the same git repo, ignoring the ref.
func sameRepo(a, b string) bool {
	repo := repoOf(a)
	return repo != "" && repo == repoOf(b)
}

// repoOf returns the host and the path of a git repo's URI: git+https://host/a/b@ref and
// https://host/a/b.git are the same repo.
func repoOf(uri string) string {
	_, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "#")
	host, path, _ := strings.Cut(rest, "/")
	host = strings.ToLower(host[strings.LastIndexByte(host, '@')+1:])
	path, _, _ = strings.Cut(path, "@")
	return host + "/" + strings.TrimSuffix(strings.TrimSuffix(path, "/"), ".git")
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

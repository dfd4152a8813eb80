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
func (d *statementJSON) commit(b *body, at Place) (string, error) {
	for _, from := range []resources{{"subject", d.Subject}, b.sources} {
		for _, digest := range []string{gitCommit, bareSHA1} {
			commits, err := from.commits(digest, at)
			if err != nil {
				return "", err
			}
			for _, isSource := range []func(string) bool{at.has, sameRepoAs(b.source)} {
				if len(commits) > 1 {
					commits = from.of(isSource, digest, at, commits)
				}
			}
			if len(commits) > 0 {
				return only(commits, at)
			}
		}
	}
	return b.configCommit(at)
}

// configCommit returns the commit of what was run, if it is of the repo: Tekton Chains names a repository with the
// sources and with the definition once. Only the web URL of the repo says that.
func (b *body) configCommit(at Place) (string, error) {
	for _, digest := range []string{gitCommit, bareSHA1} {
		commits, err := b.config.commits(digest, at)
		if err != nil {
			return "", err
		}
		own := b.config.of(at.isAt, digest, at, nil)
		switch {
		case len(own) > 0:
			return only(own, at)
		case len(commits) > 0:
			return "", ledger.Errorf(ledger.CodeNoCommitSubject, "the provenance names only the commit %s, of the definition "+
				"that Tekton ran (give the repo the web_url of that repository if it is the one that was built)", commits[0])
		}
	}
	return "", ledger.Errorf(ledger.CodeNoCommitSubject,
		`the statement names no commit: a subject needs a gitCommit digest, as {"name": "git+https://github.com/acme/api", `+
			`"digest": {"gitCommit": "<40 or 64 hex digits>"}}`)
}

// maxNamed is the number of commits that an error names.
const maxNamed = 4

// commits returns the distinct commits in the digests of the given kind: the first maxNamed, and that of the place.
func (r resources) commits(digest string, at Place) ([]string, error) {
	var commits []string
	for i := range r.list {
		commit, err := r.commitAt(i, digest, at)
		if err != nil {
			return nil, err
		}
		if commit != "" && (len(commits) < maxNamed || commit == at.Commit) && !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
	}
	return commits, nil
}

// of returns the commits of those resources whose URI or name is that of the source. If there are none, it
// returns all.
func (r resources) of(isSource func(uri string) bool, digest string, at Place, all []string) []string {
	var commits []string
	for i := range r.list {
		if !isSource(r.list[i].URI) && !isSource(r.list[i].Name) {
			continue
		}
		if commit, _ := r.commitAt(i, digest, at); commit != "" && !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
	}
	if commits == nil {
		return all
	}
	return commits
}

func only(commits []string, at Place) (string, error) {
	switch {
	case len(commits) == 1:
		return commits[0], nil
	case slices.Contains(commits, at.Commit):
		return at.Commit, nil
	}
	return "", ledger.Errorf(ledger.CodeSeveralCommits,
		"the statement names more than one commit: %s (give the repo the web_url of the repository that was built)",
		strings.Join(commits, ", "))
}

// isPlaced reports whether the web URL of a repo may decide how the statement is read: what was verified, which source
// was built, and whether the SHA-1 of a subject is of a commit.
func (d *statementJSON) isPlaced(b *body) bool {
	hasSHA1 := func(r resourceJSON) bool { return r.Digest[bareSHA1] != "" }
	return b.resource != "" || b.sources.list != nil || b.config.list != nil || slices.ContainsFunc(d.Subject, hasSHA1)
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

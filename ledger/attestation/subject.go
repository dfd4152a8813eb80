package attestation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// commit returns the commit that the statement is about. It is in the subjects or, if no
// subject names one, in the sources of provenance.
func (d *statementJSON) commit(sources resources) (string, error) {
	subjects := resources{"subject", d.Subject}
	var named commitSet
	if err := named.addGitCommits(subjects); err != nil {
		return "", err
	}
	if err := named.addSHA1s(subjects); err != nil {
		return "", err
	}

	if len(named) == 0 {
		if err := named.addGitCommits(sources); err != nil {
			return "", err
		}
	}
	// A dependency is often a package, whose SHA-1 is that of a file. So it counts as a
	// commit only if nothing else names one.
	if len(named) == 0 {
		if err := named.addSHA1s(sources); err != nil {
			return "", err
		}
	}
	return named.only()
}

// A commitSet holds the distinct commits in resources, at most maxNamed of them.
type commitSet []string

const maxNamed = 4

func (s *commitSet) addGitCommits(from resources) error {
	for i := range from.list {
		digest := from.list[i].Digest.GitCommit
		if !s.add(digest, 40, 64) {
			field := fmt.Sprintf("%s[%d].digest.gitCommit", from.path, i)
			return ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "%q is not a full object ID (use 40 or 64 hex digits)",
				text.Clip(digest))
		}
	}
	return nil
}

func (s *commitSet) addSHA1s(from resources) error {
	for i := range from.list {
		digest := from.list[i].Digest.SHA1
		if !s.add(digest, 40) {
			field := fmt.Sprintf("%s[%d].digest.sha1", from.path, i)
			return ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "%q is not a SHA-1 (use 40 hex digits)",
				text.Clip(digest))
		}
	}
	return nil
}

// add adds a digest unless it is empty. It reports false if the digest is not hex of one
// of the given lengths.
func (s *commitSet) add(digest string, lengths ...int) bool {
	if digest == "" {
		return true
	}
	commit := strings.ToLower(digest)
	if !slices.Contains(lengths, len(commit)) || !text.IsHex(commit) {
		return false
	}
	if len(*s) < maxNamed && !slices.Contains(*s, commit) {
		*s = append(*s, commit)
	}
	return true
}

func (s commitSet) only() (string, error) {
	switch len(s) {
	case 0:
		return "", ledger.Errorf(ledger.CodeNoCommitSubject,
			"the statement names no commit: a subject needs a gitCommit digest (or a sha1 of 40 hex digits)")
	case 1:
		return s[0], nil
	}
	return "", ledger.Errorf(ledger.CodeSeveralCommits, "the statement names more than one commit: %s",
		strings.Join(s, ", "))
}

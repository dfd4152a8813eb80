// Package ancestry decides what the history of commits, as their objects say it, means for evidence: who wrote the
// commits that a review is about, and what claims of merges rest on. The ledger and those who verify it decide with it.
package ancestry

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A Commit is what the object of a commit says of who wrote it, and its subject.
type Commit struct {
	SHA, Subject      string
	Parents           []string
	Author, Committer ledger.Author
	CoAuthors         []ledger.Author
	// SigningKeys are the fingerprints of the keys that signed it.
	SigningKeys []string
}

// Read returns what an object says of who wrote the commit, which the given keys have signed. It keeps no part of the
// object in memory.
func Read(o *gitobject.Commit, keys ...string) Commit {
	c := Commit{
		SHA: strings.Clone(o.ID), Subject: strings.Clone(ledger.Subject(o.Message)), Author: cloned(o.Author.Author),
		Committer: cloned(o.Committer.Author), SigningKeys: keys,
	}
	for _, parent := range o.Parents {
		c.Parents = append(c.Parents, strings.Clone(parent))
	}
	for _, a := range o.CoAuthors {
		c.CoAuthors = append(c.CoAuthors, cloned(a))
	}
	return c
}

// cloned returns an author who does not keep an object in memory.
func cloned(a ledger.Author) ledger.Author {
	return ledger.Author{Name: strings.Clone(a.Name), Email: strings.Clone(a.Email)}
}

// SigningKey returns the fingerprint of the key of an object's SSH signature, or "" if it has no valid one.
func SigningKey(o *gitobject.Commit) string {
	key, err := o.VerifySSH()
	if err != nil {
		return ""
	}
	fingerprint, err := identity.Fingerprint(key.PublicKey)
	if err != nil { // of a type that identities cannot have
		return ""
	}
	return fingerprint
}

// maxAuthors limits the authors of what one review is about. Of more, it is not known who wrote it.
const maxAuthors = 1000

// authorship returns who wrote commits, without their people. It reports false if they are too many.
func authorship(commits []Commit) (a *authors.Authorship, ok bool) {
	a = &authors.Authorship{Proven: true, Several: true}
	listed := make(map[ledger.Author]bool)
	for _, c := range commits {
		a.SigningKeys = append(a.SigningKeys, c.SigningKeys...)
		list := append([]ledger.Author{c.Author}, c.CoAuthors...)
		if !c.Committer.IsForge() || c.Author.IsForge() { // a forge that has pressed the button wrote nothing
			list = append(list, c.Committer)
		}
		for _, author := range list {
			if !listed[author] {
				listed[author] = true
				a.Authors = append(a.Authors, author)
			}
		}
	}
	slices.Sort(a.SigningKeys)
	a.SigningKeys = slices.Compact(a.SigningKeys)
	return a, len(listed) <= maxAuthors
}

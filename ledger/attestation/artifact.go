package attestation

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// An Artifact is one that a statement of the ledger's own type names.
type Artifact struct {
	Name   string
	SHA256 string // in hex
}

// Artifacts are the digests that a statement links with its commit.
type Artifacts struct {
	Digests []string // as of ledger.ParseDigest, each once: at most ledger.MaxArtifacts
	Left    int      // how many more the statement names
}

// digestNames are the digests by which artifacts are linked. Others are of git objects, or
// somebody can make two artifacts with the same digest.
var digestNames = []string{"sha256", "sha384", "sha512"}

// artifacts returns what the statement names in addition to its commit: the digests of its
// subjects and, of a verification summary, that in the URI of what was verified.
func (d *statementJSON) artifacts(b *body, commit string) Artifacts {
	var list Artifacts
	seen := make(map[string]bool)
	add := func(digest string) {
		digest, err := ledger.ParseDigest(digest)
		switch {
		case err != nil || seen[digest] || strings.HasSuffix(digest, ":"+commit):
		case len(list.Digests) == ledger.MaxArtifacts:
			list.Left++
		default:
			seen[digest] = true
			list.Digests = append(list.Digests, digest)
		}
	}

	for i := range d.Subject {
		for _, name := range digestNames {
			if value, ok := d.Subject[i].Digest[name]; ok {
				add(name + ":" + value)
			}
		}
	}
	for _, uri := range b.verified {
		if _, digest, ok := strings.Cut(uri, "@"); ok {
			digest, _, _ = strings.Cut(digest, "?") // of a package URL
			add(strings.Replace(strings.ToLower(digest), "%3a", ":", 1))
		}
	}
	return list
}

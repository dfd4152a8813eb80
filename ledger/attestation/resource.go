package attestation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A resourceJSON is an in-toto resource descriptor: a subject, a dependency, or the
// configuration of a test.
type resourceJSON struct {
	Name   string            `json:"name"`
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
	Other  otherMembers      `json:",embed"`
}

// resources is a list of resources in a statement, and its path.
type resources struct {
	path string
	list []resourceJSON
}

// The digests of git objects.
const (
	gitCommit = "gitCommit"
	bareSHA1  = "sha1"
)

// knownDigests are digests that the ledger reads, or that have a spelling in the in-toto
// specification from which one with another case could differ.
var knownDigests = []string{gitCommit, "gitTree", "gitBlob", "gitTag", "dirHash", bareSHA1,
	"sha256", "sha384", "sha512"}

// checkDigests refuses names of digests that differ from a known one only in case.
func (r resources) checkDigests() error {
	for i := range r.list {
		if found := variantIn(r.list[i].Digest, knownDigests); found != nil {
			return found.refuse(ledger.CodeInvalidStatement, fmt.Sprintf("%s[%d].digest", r.path, i))
		}
	}
	return nil
}

// commitAt returns the commit in a digest of the i-th resource, or "".
func (r resources) commitAt(i int, digest string, at Place) (string, error) {
	value := r.list[i].Digest[digest]
	if value == "" || digest == bareSHA1 && !r.list[i].isCommit(at) {
		return "", nil
	}

	commit := strings.ToLower(value)
	lengths, digits := []int{40, 64}, "40 or 64"
	if digest == bareSHA1 {
		lengths, digits = lengths[:1], "40"
	}
	if !slices.Contains(lengths, len(commit)) || !text.IsHex(commit) {
		return "", ledger.FieldErrorf(ledger.CodeInvalidStatement, fmt.Sprintf("%s[%d].digest.%s", r.path, i, digest),
			"%q is not a full object ID (use %s hex digits)", text.Clip(value), digits)
	}
	return commit, nil
}

// isCommit reports whether the name of a resource says that its sha1 is that of a commit. Witness and Chainloop
// have names for it, and others use the URI of a git repo, as gitsign does. The sha1 of other resources is that of a
// file.
func (r *resourceJSON) isCommit(at Place) bool {
	return strings.Contains(r.Name, "commithash:") || r.Name == "git.head" || isGit(r.Name) || isGit(r.URI) ||
		at.isAt(r.Name) || at.isAt(r.URI)
}

// label returns the label for a resource: its name, or else its URI or its digests.
func (r *resourceJSON) label() string {
	switch {
	case r.Name != "":
		return labelOf(r.Name)
	case r.URI != "":
		return "uri=" + escape(r.URI)
	case len(r.Digest) > 0:
		return "digest=" + escape(r.withoutCommit(""))
	}
	return ""
}

// withoutCommit returns the digests of a subject, one per line, without those that
// identify the commit. For a subject without any digest, it is the name and the URI.
func (r *resourceJSON) withoutCommit(commit string) string {
	if len(r.Digest) == 0 && r.Name+r.URI != "" {
		return "name=" + escape(r.Name) + "=" + escape(r.URI)
	}

	ofCommit := []string{bareSHA1}
	if strings.ToLower(r.Digest[gitCommit]) == commit {
		ofCommit = []string{gitCommit, "gitTree", "gitTag", bareSHA1}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r.Digest)) {
		value := r.Digest[name]
		if slices.Contains(ofCommit, name) && (name != bareSHA1 || strings.ToLower(value) == commit) {
			continue
		}
		lines = append(lines, escape(name)+":"+escape(value))
	}
	return strings.Join(lines, "\n")
}

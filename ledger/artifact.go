package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// An Artifact is what the ledger knows of something that was built, such as an image: the
// commits with which statements link its digest.
type Artifact struct {
	// Digest is an algorithm and the digest in hex, as ParseDigest returns it.
	Digest string `json:"digest"`
	// State is the least state of the commits whose link counts. It is nil if there are
	// none, or if not all are known; Reason then says why.
	State *State `json:"state"`
	// Standing is the least standing of the commits whose link counts. It is nil if State is.
	Standing *State `json:"standing"`
	Reason   string `json:"reason,omitzero"`
	// Links has one link for each commit, those registered last first: at most MaxLinks.
	Links []ArtifactLink `json:"links"`
	// Truncated reports whether there are more links. The State considers them.
	Truncated bool `json:"truncated,omitzero"`
	// Warnings has those of the links that count, each once.
	Warnings []LinkWarning `json:"warnings,omitzero"`
	// RolledBack reports whether any of the commits whose link counts was rolled back from the
	// environment that was asked for.
	RolledBack bool `json:"rolled_back,omitzero"`
	// Uncovered reports whether a deployment of any of the commits whose link counts, to the environment that was asked
	// for, ships a commit that is not covered.
	Uncovered bool `json:"uncovered,omitzero"`
}

// An ArtifactLink is a commit that an artifact was built from, as an attestation says.
type ArtifactLink struct {
	Repo   string `json:"repo"`
	Commit string `json:"commit"`
	// State and Standing are those of the commit.
	State    State `json:"state"`
	Standing State `json:"standing"`
	// RolledBack has the rollbacks from the environment that was asked for that keep the commit out
	// of it.
	RolledBack []CommitRollback `json:"rolled_back,omitempty"`
	// Delivery is what a deployment of the commit to that environment ships, if the link counts. It is nil if the policy
	// of the repo does not ask for it.
	Delivery *Delivery `json:"delivery,omitzero"`
	// Attestation is the id of the first one that makes the link: the first that counts, if
	// any does.
	Attestation   string `json:"attestation"`
	Predicate     string `json:"predicate"`
	PredicateType string `json:"predicate_type"`
	Identity      string `json:"identity"` // the signer's DN
	RecordedAt    Time   `json:"recorded_at"`
	// Counts reports whether the repo's contract lets the signer link artifacts. If not,
	// Reason says why.
	Counts bool   `json:"counts"`
	Reason string `json:"reason,omitzero"`
	// Warning says why a link that counts is weak. It is empty if it is not.
	Warning LinkWarning `json:"warning,omitzero"`
}

// A LinkWarning is the reason why a link of an artifact is weak.
type LinkWarning string

// AnyLinker means that the link counts only by the rules of an earlier release: the contract lets
// everybody link artifacts who may attest build:*, also identities without a list of predicates.
const AnyLinker LinkWarning = "any_linker"

// Advice says what the warning means, and what to do.
func (w LinkWarning) Advice() string {
	return "the link counts by the rules of an earlier release, by which every identity without --may can link any " +
		"artifact (name the builders in the policy's artifacts.signers, or give their identities --may build:…, and apply " +
		"the policy again)"
}

const (
	// MaxArtifacts is the number of artifacts of a statement that are linked with its commit. Builds on GitHub name at
	// most as many.
	MaxArtifacts = 1024
	// MaxLinks is the maximum number of links of an Artifact.
	MaxLinks = 100
	// MaxDigests is the maximum number of digests that one request asks for.
	MaxDigests = 100
)

// Reached reports whether the artifact has reached a state, as Commit.Reached reports of one:
// all commits whose link counts have, and there are some, and none was rolled back from the
// environment that was asked for, or ships there what is not covered.
func (a *Artifact) Reached(s State) bool {
	return a.State != nil && !a.RolledBack && !a.Uncovered && Reached(s, *a.State, *a.Standing)
}

// Gate answers whether the artifact has reached a state.
func (a *Artifact) Gate(required State) Gate {
	g := newGate(required, a.State, a.Standing)
	if g.Reached = a.Reached(required); g.Reached {
		return g
	}
	if a.State == nil {
		g.add(a.Reason)
	}

	for _, l := range a.Links {
		if !l.Counts {
			continue
		}
		if !Reached(required, l.State, l.Standing) {
			g.add(fmt.Sprintf("%s@%.12s is %s, standing %s", l.Repo, l.Commit, l.State, l.Standing))
		}
		for _, r := range l.RolledBack {
			g.add(fmt.Sprintf("%s@%.12s was %s", l.Repo, l.Commit, r))
		}
		if d := l.Delivery; d != nil {
			for _, reason := range d.Reasons() {
				g.add(l.Repo + ": " + reason)
			}
		}
	}
	return g
}

// IsNamed reports whether any statement names the artifact, or may do so.
func (a *Artifact) IsNamed() bool { return len(a.Links) > 0 || a.Reason != unnamed }

// unnamed is the reason why an artifact without links has no state.
const unnamed = "no statement links it with a commit (if it is one platform of an image index, ask for the digest of " +
	"the index, or link the platforms with 'ledgerd attest --artifact-index')"

// An ArtifactQuery asks for several artifacts.
type ArtifactQuery struct {
	// Digests are at most MaxDigests.
	Digests []string `json:"digests"`
	// Repo limits the links to commits of a repo; empty for all.
	Repo string `json:"repo,omitzero"`
	// Environment is where the artifacts are to be deployed to; empty for anywhere.
	Environment string `json:"env,omitzero"`
}

// Check validates the query, and makes its digests as ParseDigest returns them.
func (q *ArtifactQuery) Check() error {
	switch {
	case len(q.Digests) == 0:
		return FieldErrorf(CodeInvalidField, "digests", "required (use e.g. sha256: and 64 hex digits)")
	case len(q.Digests) > MaxDigests:
		return FieldErrorf(CodeInvalidField, "digests", "%d digests: at most %d at once", len(q.Digests), MaxDigests)
	}
	for i, digest := range q.Digests {
		var err error
		if q.Digests[i], err = ParseDigest(digest); err != nil {
			return FieldErrorf(CodeInvalidField, text.Entry("digests", i), "%v", err)
		}
	}
	if q.Environment == "" {
		return nil
	}
	if _, err := ParseEnvironment(q.Environment); err != nil {
		return FieldErrorf(CodeInvalidField, "env", "%v", err)
	}
	return nil
}

// An ArtifactList has the artifacts that a query asked for, in its order. Those that no
// statement names have no links.
type ArtifactList struct {
	Data []Artifact `json:"data"`
}

// NewArtifact returns the artifact with a digest and links, one for each commit. If others
// are unknown, unknown says why.
func NewArtifact(digest string, links []ArtifactLink, unknown string) Artifact {
	a := Artifact{Digest: digest, Links: links, Reason: unknown}
	if links == nil {
		a.Links = []ArtifactLink{}
	}
	least, lowest := -1, -1 // the links with the least state, and with the least standing
	for i := range links {
		l := &links[i]
		if !l.Counts {
			continue
		}
		if l.Warning != "" && !slices.Contains(a.Warnings, l.Warning) {
			a.Warnings = append(a.Warnings, l.Warning)
		}
		a.RolledBack = a.RolledBack || len(l.RolledBack) > 0
		a.Uncovered = a.Uncovered || l.Delivery != nil && l.Delivery.Uncovered > 0
		if least < 0 || l.State < links[least].State {
			least = i
		}
		if lowest < 0 || l.Standing < links[lowest].Standing {
			lowest = i
		}
	}
	switch {
	case unknown != "":
	case least >= 0:
		a.State, a.Standing = new(links[least].State), new(links[lowest].Standing)
	case len(links) > 0:
		a.Reason = "no link counts: " + links[0].Reason
	default:
		a.Reason = unnamed
	}

	if len(links) > MaxLinks {
		a.Truncated = true
		a.Links = slices.Clone(links[:MaxLinks])
		// The commits that decide are always listed.
		if lowest >= MaxLinks {
			a.Links[MaxLinks-1] = links[lowest]
		}
		if least >= MaxLinks && least != lowest {
			a.Links[MaxLinks-2] = links[least]
		}
	}
	return a
}

// DigestDigits returns the number of hex digits of the digests by which artifacts are known;
// 0 if they are not known by those of the algorithm.
func DigestDigits(algorithm string) int {
	switch algorithm {
	case "sha256":
		return 64
	case "sha384":
		return 96
	case "sha512":
		return 128
	}
	return 0
}

// ParseDigest parses the digest of an artifact, such as sha256:… with 64 hex digits, and
// returns it in lower case.
func ParseDigest(s string) (string, error) {
	name, digits, ok := strings.Cut(s, ":")
	if !ok {
		return "", fmt.Errorf("%q is not a digest (use e.g. sha256: and 64 hex digits)", text.Clip(s))
	}
	size := DigestDigits(name)
	if size == 0 {
		return "", fmt.Errorf("%q is not a digest by which artifacts are known (use sha256, sha384 or sha512)", text.Clip(s))
	}
	if digits = strings.ToLower(digits); len(digits) != size || !text.IsHex(digits) {
		return "", fmt.Errorf("%q is not a digest: %s has %d hex digits", text.Clip(s), name, size)
	}
	return name + ":" + digits, nil
}

// ParseArtifact parses the digest of an artifact, or a reference with a digest, such as
// ghcr.io/acme/api@sha256:…, and returns the digest.
func ParseArtifact(s string) (string, error) {
	s = strings.TrimSpace(s)
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		return ParseDigest(s[at+1:])
	}
	digest, err := ParseDigest(s)
	if err != nil && strings.Contains(s, "/") {
		return "", errors.New("a reference needs a digest, because tags move (use e.g. ghcr.io/acme/api@sha256:…)")
	}
	return digest, err
}

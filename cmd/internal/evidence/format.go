// Package evidence exports what a ledger has about commits as one tar file, and reads such files:
// signed statements, contracts, states, and the proofs that the log of the org has them.
package evidence

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// Format is the format of a file, as its manifest says.
const Format = "ledgerd-evidence/v1"

// The files of an export that are about all of it.
const (
	ManifestFile   = "manifest.json"
	SumsFile       = "SHA256SUMS" // of all other files, as sha256sum writes it
	PageFile       = "index.html"
	CheckpointFile = "log/checkpoint"
	KeyFile        = "log/vkey"
	IdentitiesFile = "identities.json" // as 'ledgerd identity list -o json' prints them
	// TrustedRootsFile has the versions of the trusted roots that vouch for keyless signers. An export
	// without such signers lacks it.
	TrustedRootsFile = "trusted-roots.json"
)

// The limits of an export.
const (
	MaxCommits = 10_000
	MaxFiles   = 300_000
	MaxFile    = 64 << 20 // bytes of one file in it
	MaxSize    = 4 << 30  // bytes
)

// A Manifest says what an export is of.
type Manifest struct {
	Format string `json:"format"`
	Org    string `json:"org"`
	Repo   string `json:"repo"`
	// FormerNames has the names that the repo had, oldest first: events have that of their time.
	FormerNames []ledger.FormerName `json:"former_names,omitempty"`
	// Server is the URL of the server; empty if the database file was read.
	Server    string      `json:"server,omitzero"`
	CreatedAt ledger.Time `json:"created_at"`
	// CreatedBy is the version of ledgerd.
	CreatedBy string `json:"created_by"`
	// Page is the version of the text of PageFile.
	Page int `json:"page"`
	// Since and Until are the times between which the commits got an attestation; zero if the
	// export is of one commit.
	Since ledger.Time `json:"since,omitzero"`
	Until ledger.Time `json:"until,omitzero"`
	// Commits has the full IDs.
	Commits []string `json:"commits"`
	// Pruned has the names of files that are not there because the ledger has pruned them.
	Pruned []string `json:"pruned,omitempty"`
	// Unproven has the IDs of events that no checkpoint covers, and none ever will.
	Unproven []string `json:"unproven,omitempty"`
	// Unlisted has the commits with transitions whose events the ledger does not list any more.
	Unlisted []Unlisted `json:"unlisted,omitempty"`
}

// An Unlisted says how many transitions of a commit have no event.
type Unlisted struct {
	Commit      string `json:"commit"`
	Transitions int    `json:"transitions"`
}

// EventFile returns the name of the file with the body of an event.
func EventFile(id string) string { return "events/" + id + ".json" }

// ProofFile returns the name of the file with the proof of an event (C2SP tlog-proof).
func ProofFile(id string) string { return "events/" + id + ".proof" }

// PolicyFile returns the name of the file with a version of the contract.
func PolicyFile(version int) string { return fmt.Sprintf("policy/v%d.json", version) }

// CommitFile returns the name of a file about a commit: record.json, transitions.json or
// receipt.json.
func CommitFile(sha, name string) string { return "commits/" + sha + "/" + name }

// AttestationFile returns the name of a file about an attestation: record.json, statement.json,
// envelope.json or commit.txt, and assertion.json.
func AttestationFile(sha, id, name string) string {
	return CommitFile(sha, "attestations/"+id+"/"+name)
}

// The files of a commit and of an attestation.
const (
	recordFile      = "record.json"
	transitionsFile = "transitions.json"
	receiptFile     = "receipt.json"
	envelopeFile    = "envelope.json"
	objectFile      = "commit.txt" // a commit object of git in place of an envelope
	statementFile   = "statement.json"
	assertionFile   = "assertion.json" // what a passkey has signed to confirm the attestation
)

// encode returns a value as the JSON of a file.
func encode(v any) ([]byte, error) {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return append(text, '\n'), nil
}

// isName reports whether a name is one that a file in an export can have: a relative path of
// letters, digits, dots, hyphens and underscores, without folders that begin with a dot.
func isName(name string) bool {
	if len(name) > maxName {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.Trim(part, nameBytes) != "" {
			return false
		}
	}
	return true
}

const (
	maxName   = 250 // bytes, so that every tar has it in its header
	nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

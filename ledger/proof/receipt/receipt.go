// Package receipt builds and verifies receipts: signed statements that a commit had reached
// a state. A receipt is a DSSE envelope with an in-toto statement, whose predicate is a
// Simple Verification Result (https://in-toto.io/attestation/svr/v0.2). It says what the
// ledger decided at a time, not that it would decide the same now.
package receipt

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// PredicateType is the predicate type of a receipt.
	PredicateType = "https://in-toto.io/attestation/svr/v0.2"
	// MediaType is the media type of its envelope.
	MediaType = "application/vnd.dsse.envelope.v1+json"
	// MaxValidity is the maximum time that a receipt is valid.
	MaxValidity = 7 * 24 * time.Hour
	// MaxEvidence is the maximum number of pieces of evidence in a receipt.
	MaxEvidence = 200
)

const statementType = "https://in-toto.io/Statement/v1"

// A Receipt says that a commit had reached a state.
type Receipt struct {
	// Scheme is that of the ledger's URL: http or https. The rest of the URL is in Log.Origin.
	Scheme            string
	Org, Repo, Commit string
	// State is ATTESTED, PROMOTABLE or DEPLOYED.
	State ledger.State
	// Standing is what the evidence gave for a DEPLOYED commit. It is nil in receipts for other
	// states, and in those of earlier releases.
	Standing *ledger.State
	// Target is the branch for which the requirements were evaluated; empty for all branches
	// that the commit is meant for.
	Target string
	// PolicyVersion and PolicyDigest are those of the contract. The digest begins with
	// "sha256:".
	PolicyVersion int
	PolicyDigest  string
	CreatedAt     ledger.Time
	ValidUntil    ledger.Time
	// Evidence is what counted for the state, at most MaxEvidence. Omitted counts the rest.
	Evidence []Evidence
	Omitted  int
	Log      Position
}

// An Evidence is an attestation that counted.
type Evidence struct {
	Attestation string `json:"attestation"`
	// Event is the event of its recording.
	Event     string `json:"event"`
	Commit    string `json:"commit"` // another one than the receipt's if it carries
	Predicate string `json:"predicate"`
	Identity  string `json:"identity"`
	// PayloadDigest and EnvelopeDigest begin with "sha256:".
	PayloadDigest  string `json:"payloadDigest"`
	EnvelopeDigest string `json:"envelopeDigest"`
	// Requirements names the requirements for which it counted: by their names or, if they
	// have none, by their predicates.
	Requirements []string `json:"requirements"`
}

// A Position is that of the newest event that a decision rests on.
type Position struct {
	// Origin names the log.
	Origin string `json:"origin"`
	Index  int64  `json:"index"`
	Event  string `json:"event"`
	// LeafHash is the hex hash of the event's leaf.
	LeafHash string `json:"leafHash"`
}

// statement is a receipt as an in-toto statement.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string `json:"name"`
	Digest struct {
		GitCommit string `json:"gitCommit"`
	} `json:"digest"`
}

type predicate struct {
	Verifier    verifier    `json:"verifier"`
	TimeCreated ledger.Time `json:"timeCreated"`
	Properties  []string    `json:"properties"`
	Ledgerd     extension   `json:"ledgerd"`
}

type verifier struct {
	ID       string   `json:"id"`
	Policies []policy `json:"policies"`
}

type policy struct {
	URI    string `json:"uri"`
	Digest struct {
		SHA256 string `json:"sha256"`
	} `json:"digest"`
}

// extension is what ledgerd adds to the predicate.
type extension struct {
	Org           string        `json:"org"`
	Repo          string        `json:"repo"`
	Commit        string        `json:"commit"`
	State         ledger.State  `json:"state"`
	Standing      *ledger.State `json:"standing,omitzero"`
	Target        string        `json:"target,omitzero"`
	PolicyVersion int           `json:"policyVersion"`
	ValidUntil    ledger.Time   `json:"validUntil"`
	Evidence      []Evidence    `json:"evidence"`
	Omitted       int           `json:"evidenceOmitted,omitzero"`
	Log           Position      `json:"log"`
}

// Payload returns the receipt as an in-toto statement.
func (r Receipt) Payload() ([]byte, error) {
	text, err := json.Marshal(r.statement())
	if err != nil {
		return nil, fmt.Errorf("marshal receipt: %w", err)
	}
	return text, nil
}

func (r Receipt) statement() statement {
	s := statement{Type: statementType, PredicateType: PredicateType, Subject: []subject{{Name: r.Org + "/" + r.Repo}}}
	s.Subject[0].Digest.GitCommit = r.Commit
	p := policy{URI: r.policyURI()}
	p.Digest.SHA256 = strings.TrimPrefix(r.PolicyDigest, digestPrefix)
	s.Predicate = predicate{
		Verifier: verifier{ID: r.VerifierID(), Policies: []policy{p}}, TimeCreated: r.CreatedAt, Properties: r.Properties(),
		Ledgerd: extension{
			Org: r.Org, Repo: r.Repo, Commit: r.Commit, State: r.State, Standing: r.Standing, Target: r.Target,
			PolicyVersion: r.PolicyVersion, ValidUntil: r.ValidUntil, Evidence: r.Evidence, Omitted: r.Omitted, Log: r.Log,
		},
	}
	return s
}

const (
	digestPrefix   = "sha256:"
	propertyPrefix = "LEDGERD_"
	// verifierVersion changes if the rules change by which states are derived.
	verifierVersion = "#ledgerd/v1"
)

// VerifierID returns the URI that identifies the org's ledger.
func (r Receipt) VerifierID() string { return r.orgURL() + verifierVersion }

// orgURL returns the URL of the org, which the name of its log begins with.
func (r Receipt) orgURL() string {
	base, _, _ := cutLast(r.Log.Origin, logPath(r.Org))
	return r.Scheme + "://" + base + "/v1/orgs/" + r.Org
}

// policyURI returns the URL of the policy contract.
func (r Receipt) policyURI() string {
	return r.orgURL() + "/policies/" + r.Repo + "?version=" + strconv.Itoa(r.PolicyVersion)
}

// logPath returns the path of the log of an org, as its origin has it.
func logPath(org string) string { return "/v1/orgs/" + org + "/log" }

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Properties returns the properties that the receipt asserts: the states from ATTESTED that the
// commit had reached.
func (r Receipt) Properties() []string {
	list := []string{}
	for s := ledger.Attested; s <= ledger.Deployed; s++ {
		if r.says(s) {
			list = append(list, propertyPrefix+s.String())
		}
	}
	return list
}

// says reports whether the receipt says that the commit had reached a state.
func (r Receipt) says(s ledger.State) bool {
	standing := r.State
	if r.Standing != nil {
		standing = *r.Standing
	}
	return ledger.Reached(s, r.State, standing)
}

// Parse parses a statement. It accepts only what Payload writes.
func Parse(payload []byte) (Receipt, error) {
	var s statement
	if err := ledger.DecodeStrict(payload, &s); err != nil {
		return Receipt{}, fmt.Errorf("parse receipt: %w", err)
	}
	switch {
	case s.Type != statementType:
		return Receipt{}, fault("_type", "%q is not %s", s.Type, statementType)
	case s.PredicateType != PredicateType:
		return Receipt{}, fault("predicateType", "%q is not %s", s.PredicateType, PredicateType)
	case len(s.Subject) != 1:
		return Receipt{}, fault("subject", "%d entries, want one commit", len(s.Subject))
	case len(s.Predicate.Verifier.Policies) != 1:
		return Receipt{}, fault("predicate.verifier.policies", "%d entries, want one", len(s.Predicate.Verifier.Policies))
	}

	r := s.receipt()
	if err := r.Validate(); err != nil {
		return Receipt{}, err
	}
	if err := s.compare(r.statement()); err != nil {
		return Receipt{}, err
	}
	if again, err := r.Payload(); err != nil || !bytes.Equal(again, payload) {
		return Receipt{}, fmt.Errorf("parse receipt: it is not in the form that ledgerd writes")
	}
	return r, nil
}

func (s statement) receipt() Receipt {
	p, x := s.Predicate, s.Predicate.Ledgerd
	scheme, _, _ := strings.Cut(p.Verifier.ID, "://")
	return Receipt{
		Scheme: scheme, Org: x.Org, Repo: x.Repo, Commit: x.Commit, State: x.State, Standing: x.Standing, Target: x.Target,
		PolicyVersion: x.PolicyVersion, PolicyDigest: digestPrefix + p.Verifier.Policies[0].Digest.SHA256,
		CreatedAt: p.TimeCreated, ValidUntil: x.ValidUntil, Evidence: x.Evidence, Omitted: x.Omitted, Log: x.Log,
	}
}

// compare returns an error if a field that follows from others differs from what it must be.
func (s statement) compare(want statement) error {
	p, w := s.Predicate, want.Predicate
	for _, f := range []struct{ field, have, want string }{
		{"subject[0].name", s.Subject[0].Name, want.Subject[0].Name},
		{"subject[0].digest.gitCommit", s.Subject[0].Digest.GitCommit, want.Subject[0].Digest.GitCommit},
		{"predicate.verifier.id", p.Verifier.ID, w.Verifier.ID},
		{"predicate.verifier.policies[0].uri", p.Verifier.Policies[0].URI, w.Verifier.Policies[0].URI},
		{"predicate.properties", strings.Join(p.Properties, " "), strings.Join(w.Properties, " ")},
	} {
		if f.have != f.want {
			return fault(f.field, "%q does not agree with the rest of the receipt, want %q", f.have, f.want)
		}
	}
	return nil
}

// Validate returns an error that names the first invalid field.
func (r Receipt) Validate() error {
	const x = "predicate.ledgerd."
	switch {
	case r.Scheme != "http" && r.Scheme != "https":
		return fault("predicate.verifier.id", "it is not an http or https URL")
	case r.Org == "":
		return fault(x+"org", "required")
	case r.Repo == "":
		return fault(x+"repo", "required")
	case !ledger.IsCommit(r.Commit):
		return fault(x+"commit", "%q is not a full commit ID", r.Commit)
	case r.State < ledger.Attested || r.State > ledger.Deployed:
		return fault(x+"state", "%s is not a state that receipts are for (use ATTESTED, PROMOTABLE or DEPLOYED)", r.State)
	case r.Standing != nil && (r.State != ledger.Deployed || *r.Standing > ledger.Promotable):
		return fault(x+"standing", "want a state up to PROMOTABLE, in a receipt for DEPLOYED")
	case r.PolicyVersion < 1:
		return fault(x+"policyVersion", "%d is not a version", r.PolicyVersion)
	}

	switch {
	case !isDigest(r.PolicyDigest):
		return fault("predicate.verifier.policies[0].digest.sha256", "it is not a hex SHA-256")
	case r.CreatedAt == 0:
		return fault("predicate.timeCreated", "required")
	case r.ValidUntil <= r.CreatedAt || r.ValidUntil.Sub(r.CreatedAt) > MaxValidity:
		return fault(x+"validUntil", "%s is not within %s after timeCreated", r.ValidUntil, MaxValidity)
	case r.Evidence == nil || len(r.Evidence) > MaxEvidence || r.Omitted < 0:
		return fault(x+"evidence", "want a list of at most %d entries", MaxEvidence)
	}
	if err := r.Log.validate(r.Org); err != nil {
		return err
	}
	return r.checkEvidence()
}

func (p Position) validate(org string) error {
	const log = "predicate.ledgerd.log."
	_, rest, ok := cutLast(p.Origin, logPath(org))
	switch {
	case !ok || !isEpoch(rest):
		return fault(log+"origin", "%q is not a log of the org %s", p.Origin, org)
	case p.Index < 0:
		return fault(log+"index", "%d is negative", p.Index)
	case p.Event == "":
		return fault(log+"event", "required")
	case !isDigest(digestPrefix + p.LeafHash):
		return fault(log+"leafHash", "it is not a hex SHA-256")
	}
	return nil
}

func (r Receipt) checkEvidence() error {
	for i, e := range r.Evidence {
		field := "predicate.ledgerd.evidence[" + strconv.Itoa(i) + "]."
		switch {
		case e.Attestation == "":
			return fault(field+"attestation", "required")
		case e.Event == "":
			return fault(field+"event", "required")
		case !ledger.IsCommit(e.Commit):
			return fault(field+"commit", "%q is not a full commit ID", e.Commit)
		case !isDigest(e.PayloadDigest):
			return fault(field+"payloadDigest", "it is not sha256: and a hex SHA-256")
		case !isDigest(e.EnvelopeDigest):
			return fault(field+"envelopeDigest", "it is not sha256: and a hex SHA-256")
		case len(e.Requirements) == 0 || slices.Contains(e.Requirements, ""):
			return fault(field+"requirements", "required")
		}
	}
	return nil
}

// isEpoch reports whether s is what the origin of a log ends with after its path: nothing, or
// a slash and an epoch from 2.
func isEpoch(s string) bool {
	if s == "" {
		return true
	}
	n, err := strconv.Atoi(strings.TrimPrefix(s, "/"))
	return err == nil && n > 1 && s == "/"+strconv.Itoa(n)
}

func isDigest(s string) bool {
	text, ok := strings.CutPrefix(s, digestPrefix)
	sum, err := hex.DecodeString(text)
	return ok && err == nil && len(sum) == 32 && hex.EncodeToString(sum) == text
}

// fault returns the error that a field of a receipt is invalid.
func fault(field, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidStatement, field, format, args...)
}

package ledger

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The types below are bodies of the HTTP API, which the server writes and the client
// reads.

// An Org owns repos, identities and tokens.
type Org struct {
	Name      string `json:"name"`
	CreatedAt Time   `json:"created_at"`
	// LogPublic reports whether the files of the org's log may be read without a token.
	LogPublic bool `json:"log_public"`
	// ArchivedAt is when it was archived. An archived org can only be read.
	ArchivedAt Time `json:"archived_at,omitzero"`
	// DeletedAt is when it was deleted. FormerNames has the names that it had, oldest first.
	DeletedAt   Time         `json:"deleted_at,omitzero"`
	FormerNames []FormerName `json:"former_names,omitzero"`
	// PurgedAt is when the deletion became final: nothing of it is kept that can be pruned.
	PurgedAt Time `json:"purged_at,omitzero"`
}

// An OrgChange is the body of a request to update an org. Nil fields are not changed.
type OrgChange struct {
	LogPublic *bool `json:"log_public,omitzero"`
	// Archived archives the org, or ends that.
	Archived *bool `json:"archived,omitzero"`
	// Name renames the org, or restores it if it is deleted. Only the administrator of the host
	// may set it.
	Name *string `json:"name,omitzero"`
}

// Check returns a field error for the first invalid field.
func (c OrgChange) Check() error {
	if c.Name != nil {
		return CheckOrg(*c.Name)
	}
	return nil
}

// A NewOrg is the body of a request to create an org.
type NewOrg struct {
	Name string `json:"name"`
}

// An AttestationRecord is a recorded attestation.
type AttestationRecord struct {
	ID            string `json:"id"`
	Org           string `json:"org"`
	Repo          string `json:"repo"`
	Commit        string `json:"commit"`
	Predicate     string `json:"predicate"`
	PredicateType string `json:"predicate_type"`
	// Slot is what the attestation is about in addition to the commit, such as the digest
	// of an image. It is empty for predicate types that are about commits.
	Slot string `json:"slot,omitzero"`
	// Identity is the signer's DN, Signer is its plain name (CN).
	Identity   string `json:"identity"`
	Signer     string `json:"signer"`
	Result     Result `json:"result"`
	RecordedAt Time   `json:"recorded_at"`
	// Rollout is RolloutFailed if the statement reports an attempt to deploy that failed.
	Rollout string `json:"rollout,omitzero"`
	// Reason is why the commit was rolled back, or is deployed again.
	Reason string `json:"reason,omitzero"`
	// Base is the commit since which a review is about the changes. In a claim of a merge, it is the commit of the
	// mainline. Releases that did not read it have recorded none.
	Base string `json:"base,omitzero"`
	// PayloadDigest is "sha256:" and the hex digest of the payload bytes.
	PayloadDigest string `json:"payload_digest"`
	// Event is the id of the attestation's event.
	Event string `json:"event"`
	// Distrusted reports that it does not count, because the identity that it is by was
	// revoked as compromised since before it was recorded.
	Distrusted bool `json:"distrusted,omitzero"`
	// Violation says that the attestation is a violation. It is set only in the response to
	// its recording.
	Violation *ViolationNote `json:"violation,omitzero"`
	// Notice says in a sentence what the statement means for its environment, if that is not what
	// its signer may expect. It is set only in the response to its recording.
	Notice string `json:"notice,omitzero"`
	// Unlinked is how many artifacts the statement names that are not linked with its commit,
	// because it names too many. It is set only in the response to its recording.
	Unlinked int `json:"unlinked,omitzero"`
	// Verification says how the signature was verified. It is set only in the response to a
	// request for one attestation, and in lists that were requested with it.
	Verification *Verification `json:"verification,omitzero"`
	// AssertionDigest is "sha256:" and the hex digest of the passkey assertion that has confirmed
	// the statement. It is empty without one.
	AssertionDigest string `json:"assertion_digest,omitzero"`
}

// A BulkResponse is the response to a request with several envelopes.
type BulkResponse struct {
	// Data has an item for each envelope, in their order.
	Data []BulkItem `json:"data"`
}

// A BulkItem is the result for one envelope of a request with several: an attestation or a problem.
type BulkItem struct {
	// Index is the position of the envelope in the request, from 0.
	Index int `json:"index"`
	// Status is the HTTP status that the envelope has on its own. It is 201 if the attestation
	// is new, and 200 if it was already recorded.
	Status      int                `json:"status"`
	Attestation *AttestationRecord `json:"attestation,omitzero"`
	Problem     *Problem           `json:"problem,omitzero"`
}

// A Verification says what made an attestation trusted when it was recorded, and where it
// comes from.
type Verification struct {
	// Key is the fingerprint of the key that signed: the hex SHA-256 of its DER
	// SubjectPublicKeyInfo.
	Key string `json:"key"`
	// IdentityID is the ID of the key, the root or the entry for keyless signers that the org trusted.
	IdentityID string `json:"identity_id"`
	// RunURL is the http or https address of the run that made the attestation, as its
	// signer says in the annotation run_url.
	RunURL string `json:"run_url,omitzero"`
	// EnvelopePruned reports whether the envelope is no longer kept.
	EnvelopePruned bool `json:"envelope_pruned,omitzero"`
	// Certificate is what a keyless certificate says of the signer. It is set only in the response to
	// a request for one attestation.
	Certificate *SigstoreCertificate `json:"certificate,omitzero"`
}

// A CommitSummary is a commit in a list.
type CommitSummary struct {
	Org          string `json:"org"`
	Repo         string `json:"repo"`
	SHA          string `json:"sha"`
	State        State  `json:"state"`
	StateSince   Time   `json:"state_since"`
	RegisteredAt Time   `json:"registered_at"`
	Branch       string `json:"branch,omitzero"`
	Target       string `json:"target,omitzero"`
	Author       Author `json:"author,omitzero"`
	Message      string `json:"message,omitzero"`
	CommittedAt  Time   `json:"committed_at,omitzero"`
	// Attested counts the commit's attestations.
	Attested int64 `json:"attested"`
	// Missing holds the requirements that block the commit from its next state, or that a commit which
	// runs must meet to be deployed now. It is set only in lists that were requested with it; nil then means none.
	Missing []RequirementStatus `json:"missing,omitempty"`
	// Overlaps counts the commit's open overlaps by level. It is nil in lists that were
	// requested without it.
	Overlaps map[string]int `json:"overlaps,omitzero"`
	// OverlapsTruncated reports whether the last comparison found more overlaps than
	// radar.MaxPairs, of which only the strongest were stored.
	OverlapsTruncated bool `json:"overlaps_truncated,omitzero"`
}

// A Commit is the full record of a commit.
type Commit struct {
	CommitSummary `json:",embed"`
	Base          string   `json:"base,omitzero"`
	Parents       []string `json:"parents,omitempty"`
	Ancestors     []string `json:"ancestors,omitempty"`
	Contained     []string `json:"contained,omitempty"`
	// Targets holds all targets ever claimed, oldest first.
	Targets []string `json:"targets,omitempty"`
	// Writers holds all who were ever claimed to have written the commit with its author:
	// committers and co-authors.
	Writers []Author `json:"writers,omitempty"`
	// SigningKeys holds the fingerprints of all SSH keys ever claimed to have signed the
	// commit.
	SigningKeys []string `json:"signing_keys,omitempty"`
	// Proven reports whether author, committer, message, parents and tree are those of the
	// commit's object, which the ledger has seen. Tree is then the object's root tree.
	Proven bool   `json:"proven"`
	Tree   string `json:"tree,omitzero"`
	// Signature says what became of the SSH signature in the commit object. It is set only
	// in the response to a registration with an object that has one.
	Signature *CommitSignature `json:"signature,omitzero"`
	// Merges holds the claims that the commit is a merge, oldest first.
	Merges []MergeClaim `json:"merges,omitempty"`
	// Changes is the newest change record. It is nil if the commit has none, and in the
	// response to a registration.
	Changes []radar.Change `json:"changes,omitzero"`
	// Paths holds all paths that change records have ever claimed, if they differ from
	// those of Changes. There may be more if it has over 2,000. It is nil in the response
	// to a registration.
	Paths []string `json:"paths,omitempty"`
	// Corrections holds the newest 100 corrections, newest first.
	Corrections   []Correction `json:"corrections,omitempty"`
	PolicyVersion int          `json:"policy_version"`
	// TargetState is set in the response to a request for one target branch: the state
	// that the commit would have if it was meant for that branch alone. A DEPLOYED commit
	// stays DEPLOYED.
	TargetState *State `json:"target_state,omitzero"`
	// Standing is what the evidence gives at the time of the response: the state that the
	// commit would have if it had not been deployed, at most PROMOTABLE. In the response to a
	// request for one target branch, it is for that branch.
	Standing State `json:"standing"`
	// RolledBack has the rollbacks that keep the commit out of an environment.
	RolledBack []CommitRollback `json:"rolled_back,omitempty"`
	// Delivery is what a deployment to the environment of the request ships. It is nil without one, or if the policy
	// does not ask for it.
	Delivery *Delivery `json:"delivery,omitzero"`
	// Deliveries has the environments to which a deployment counts only if all that it ships is covered, as far as the
	// policy names them: at most MaxDeliveries.
	Deliveries []string `json:"deliveries,omitempty"`
	// Requirements holds the status of each requirement at the time of the response,
	// in the contract's order. In the response to a request for one target branch, they are
	// evaluated for that branch.
	Requirements []RequirementStatus `json:"requirements"`
	// Attestations holds the newest 100; AttestationsURL lists all.
	Attestations    []AttestationRecord `json:"attestations"`
	AttestationsURL string              `json:"attestations_url"`
	// InFlight reports whether the radar compares other commits with this one: it is
	// the tip of its branch, it is not deployed, landed or withdrawn, and it is not
	// older than the contract's max_age.
	InFlight bool `json:"in_flight"`
	// Withdrawn reports whether the commit was taken out of flight by a request.
	Withdrawn bool `json:"withdrawn,omitzero"`
	// Radar holds the strongest overlaps. It is set only in the response to a
	// registration.
	Radar *RadarResult `json:"radar,omitzero"`
	// Transitions holds the newest 100, oldest first; TransitionsURL lists all.
	Transitions    []Transition `json:"transitions"`
	TransitionsURL string       `json:"transitions_url"`
	// Violations holds the commit's open violations, newest first: at most MaxViolations.
	// OpenViolations counts them, up to MaxOpenViolations.
	Violations     []Violation `json:"violations"`
	OpenViolations int         `json:"open_violations"`
}

// A CommitSignature says what became of the SSH signature in a commit object.
type CommitSignature struct {
	// Attestation is the id of the signed:commit attestation. It is empty if the signature
	// gives none; Reason then says why.
	Attestation string `json:"attestation,omitzero"`
	Reason      string `json:"reason,omitzero"`
}

// Limits of the violations in the record of a commit.
const (
	MaxViolations     = 20
	MaxOpenViolations = 1000
)

// Reached reports whether the commit has reached a state: its standing is at least that. For
// DEPLOYED it is its state that counts. In the response to a request for one target branch, it is
// whether the commit has reached the state for that branch.
func (c *Commit) Reached(s State) bool { return Reached(s, c.AnsweredState(), c.Standing) }

// Gate answers whether the commit has reached a state, was not rolled back from the environment if that is not empty,
// and has a delivery there that counts.
func (c *Commit) Gate(required State, environment string) Gate {
	g := newGate(required, new(c.AnsweredState()), &c.Standing)
	g.Deliveries = c.Deliveries

	if d := c.Delivery; d != nil && d.Environment == environment && d.Uncovered > 0 {
		g.Reached = false
		for _, reason := range d.Reasons() {
			g.add(reason)
		}
	}
	for _, r := range c.RolledBack {
		if r.Environment == environment {
			g.Reached = false
			g.add(r.String())
		}
	}
	if g.Reached {
		return g
	}
	for i := range c.Requirements {
		if r := &c.Requirements[i]; r.Applies && !r.Met && r.State <= required {
			g.add(r.State.String() + ": " + r.Reason)
		}
	}
	if g.Reasons == nil {
		g.add("it was not deployed, or was rolled back")
	}
	return g
}

// AnsweredState returns TargetState in the response to a request for one target branch, and
// State otherwise.
func (c Commit) AnsweredState() State {
	if c.TargetState != nil {
		return *c.TargetState
	}
	return c.State
}

// A Transition is a move of a commit from one state to another.
type Transition struct {
	From  State `json:"from"`
	To    State `json:"to"`
	At    Time  `json:"at"`
	Cause Cause `json:"cause"`
}

// A Move is a transition that a draft contract would cause.
type Move struct {
	Commit string `json:"commit"`
	From   State  `json:"from"`
	To     State  `json:"to"`
	// Reasons are the reasons of the requirements that decide the move.
	Reasons []string `json:"reasons"`
}

// A Simulation is the effect that a draft contract would have on a repo's commits.
type Simulation struct {
	// Evaluated counts the evaluated commits: all that are not DEPLOYED.
	Evaluated int64 `json:"evaluated"`
	// Sums count the moves by state, in the order of the old and the new states.
	Sums []MoveSum `json:"sums"`
	// Moves holds the first MaxMoves moves, in the order of registration.
	Moves []Move `json:"moves"`
	// Truncated counts the other moves.
	Truncated int64 `json:"truncated,omitzero"`
}

// MaxMoves is the maximum number of moves in a Simulation.
const MaxMoves = 1000

// A MoveSum counts the moves from one state to another.
type MoveSum struct {
	From  State `json:"from"`
	To    State `json:"to"`
	Count int64 `json:"count"`
}

// Add adds a move.
func (s *Simulation) Add(m Move) {
	i, found := slices.BinarySearchFunc(s.Sums, m, func(sum MoveSum, m Move) int {
		return cmp.Or(cmp.Compare(sum.From, m.From), cmp.Compare(sum.To, m.To))
	})
	if !found {
		s.Sums = slices.Insert(s.Sums, i, MoveSum{From: m.From, To: m.To})
	}
	s.Sums[i].Count++

	if len(s.Moves) == MaxMoves {
		s.Truncated++
		return
	}
	s.Moves = append(s.Moves, m)
}

// Total returns the number of moves.
func (s *Simulation) Total() int64 { return int64(len(s.Moves)) + s.Truncated }

// A PredicateCount is the number of an org's attestations for one predicate.
type PredicateCount struct {
	Predicate      string `json:"predicate"`
	Count          int64  `json:"count"`
	LastRecordedAt Time   `json:"last_recorded_at"`
}

// A Page is one page of a list. NextCursor is empty on the last page. Any other page can
// have fewer records than were asked for, or none.
type Page[T any] struct {
	Data       []T    `json:"data"`
	NextCursor string `json:"next_cursor,omitzero"`
}

// An EventPage is a page of the history of an org, with what shows that the leaves in its log commit to
// the events.
type EventPage[T any] struct {
	Page[T]
	// Salts has the salt of each event, as hex; it is empty if the event is not in the log yet.
	Salts []string `json:"salts"`
}

// A Problem is the body of every error response (RFC 9457).
type Problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      Code         `json:"code"`
	RequestID string       `json:"request_id"`
	Errors    []FieldError `json:"errors,omitempty"`
	// Error and ErrorDescription are only in problems of a token exchange (RFC 6749).
	Error            string `json:"error,omitzero"`
	ErrorDescription string `json:"error_description,omitzero"`
}

// A RequirementStatus is the result of evaluating one requirement for a commit.
type RequirementStatus struct {
	// Name is the requirement's name, if it has one.
	Name      string `json:"name,omitzero"`
	State     State  `json:"state"`
	Predicate string `json:"predicate"`
	// Applies reports whether the requirement applies to the commit. If its paths or
	// branches exclude the commit, Met is false as well but blocks no state.
	Applies bool `json:"applies"`
	Met     bool `json:"met"`
	// Have and Need count distinct signers. Have includes one for an exception. Both are 0
	// for the radar's requirement.
	Have           int      `json:"have"`
	Need           int      `json:"need"`
	SignersCounted []string `json:"signers_counted"`
	// FailedBy holds the signers whose fail or error blocks the requirement, regardless
	// of how many others count.
	FailedBy []string `json:"failed_by,omitempty"`
	// RolledBack holds the rollbacks that block the requirement.
	RolledBack []CommitRollback `json:"rolled_back,omitempty"`
	// Carried holds the evidence of other commits that counts or blocks: at most MaxCarried.
	Carried []CarriedEvidence `json:"carried,omitempty"`
	// Exception stands in for one signer, and overrides FailedBy and RolledBack, until it ends.
	Exception *ExceptionStatus `json:"exception,omitzero"`
	Reason    string           `json:"reason"`
}

// IsFailed reports whether a fail or error or a rollback blocks the requirement, which applies.
func (s *RequirementStatus) IsFailed() bool {
	return s.Applies && !s.Met && len(s.FailedBy)+len(s.RolledBack) > 0 && s.Exception == nil
}

// MaxCarried is the maximum number of pieces of carried evidence in a RequirementStatus.
const MaxCarried = 20

// A CarriedEvidence is evidence about another commit of the repo that a requirement takes
// into account.
type CarriedEvidence struct {
	// Commit is the id of the other commit.
	Commit      string `json:"commit"`
	Attestation string `json:"attestation"`
	Predicate   string `json:"predicate"`
	Identity    string `json:"identity"`
	Status      Status `json:"status"`
	// By is why it carries: tree, or merge. Claim is then the attestation that claims the
	// merge.
	By    string `json:"by"`
	Claim string `json:"claim,omitzero"`
	// Until is when it stops carrying.
	Until Time `json:"until,omitzero"`
}

// An ExceptionStatus is the exception that stands in for a requirement.
type ExceptionStatus struct {
	Attestation string `json:"attestation"`
	// Identity is the DN of the signer.
	Identity string `json:"identity"`
	Reason   string `json:"reason"`
	Until    Time   `json:"until"`
}

// A Log says what is known about the transparency log of an org.
type Log struct {
	Org string `json:"org"`
	// Epoch is the number of the log, from 1. A new epoch begins when a log cannot go on.
	Epoch int `json:"epoch"`
	// Origin names the log, and Key is its verifier key (C2SP signed-note). Both are empty
	// until the first checkpoint.
	Origin string `json:"origin,omitzero"`
	Key    string `json:"key,omitzero"`
	// Events is the number of events in the log, and FirstEvent the number of the org's
	// events before it, which earlier epochs have.
	Events     int64 `json:"events"`
	FirstEvent int64 `json:"first_event"`
	// Size is the number of events that the newest checkpoint covers; SignedAt is its time.
	Size     int64 `json:"size"`
	SignedAt Time  `json:"signed_at,omitzero"`
	// Public reports whether checkpoint, tiles and entries may be read without a token.
	Public bool `json:"public"`
	// Building reports that the events from before an upgrade are not all in the log yet.
	Building bool `json:"building,omitzero"`
	// Built is how many of Events are in the log already, while it is being built.
	Built int64 `json:"built,omitzero"`
	// Problem says why the log is not signed; empty if it is.
	Problem string `json:"problem,omitzero"`
	// Witnesses lists the witnesses that the server asks for cosignatures.
	Witnesses []LogWitness `json:"witnesses,omitzero"`
}

// A LogWitness says how far a witness has cosigned a log.
type LogWitness struct {
	// Name is that in the policy; Key is the witness's verifier key.
	Name string `json:"name"`
	Key  string `json:"key"`
	// Size is the size of the newest checkpoint that it has cosigned, at CosignedAt, since the
	// server started.
	Size       int64 `json:"size"`
	CosignedAt Time  `json:"cosigned_at,omitzero"`
	// Error says why the latest request failed, at FailedAt; empty if it did not.
	Error    string `json:"error,omitzero"`
	FailedAt Time   `json:"failed_at,omitzero"`
}

// A Receipt is a signed statement that a commit had reached a state, with its proofs.
type Receipt struct {
	// Envelope is a DSSE envelope.
	Envelope json.RawMessage `json:"envelope"`
	// Proof shows that the newest event that the decision rests on is in the org's log (C2SP
	// tlog-proof).
	Proof string `json:"proof"`
	// Key is the key that signed the envelope.
	Key ReceiptKey `json:"key"`
}

// A ReceiptKey shows that the log of an org has announced a key of receipts.
type ReceiptKey struct {
	// PublicKey is in PEM.
	PublicKey string `json:"public_key"`
	// Event is the body of the event that announces the key, byte for byte, and Proof shows
	// that the event is in the org's log (C2SP tlog-proof).
	Event string `json:"event"`
	Proof string `json:"proof"`
}

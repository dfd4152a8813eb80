package ledger

import "github.com/ledgerd/ledgerd/ledger/radar"

// The records here are the bodies of the HTTP API: what the server writes and
// the client reads.

// An Org owns repos, identities and tokens.
type Org struct {
	Name      string `json:"name"`
	CreatedAt Time   `json:"created_at"`
}

// A Repo is one git repository whose commits are attested.
type Repo struct {
	Org           string `json:"org"`
	Name          string `json:"name"`
	DefaultBranch string `json:"default_branch"`
	PolicyVersion int    `json:"policy_version"`
	CreatedAt     Time   `json:"created_at"`
	// Commits counts the repo's commits by state; every state is present.
	Commits map[State]int64 `json:"commits"`
	// Attestations counts the repo's attestations.
	Attestations int64 `json:"attestations"`
}

// A NewRepo asks for a repo.
type NewRepo struct {
	Name          string `json:"name"`
	DefaultBranch string `json:"default_branch,omitzero"`
}

// A NewOrg asks for an org.
type NewOrg struct {
	Name string `json:"name"`
}

// An AttestationRecord is one attestation as the ledger recorded it.
type AttestationRecord struct {
	ID            string `json:"id"`
	Org           string `json:"org"`
	Repo          string `json:"repo"`
	Commit        string `json:"commit"`
	Predicate     string `json:"predicate"`
	PredicateType string `json:"predicate_type"`
	// Identity is the signer's DN, Signer its plain name (CN).
	Identity   string `json:"identity"`
	Signer     string `json:"signer"`
	Result     Result `json:"result"`
	RecordedAt Time   `json:"recorded_at"`
	// PayloadDigest is "sha256:" and the hex digest of the payload bytes.
	PayloadDigest string `json:"payload_digest"`
	// Event is the id of the event that told of it.
	Event string `json:"event"`
}

// A CommitSummary is a commit as lists show it.
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
	// Missing are the requirements that keep the commit from the next state;
	// only in lists that were asked for it, where nil means that there are none.
	Missing []RequirementStatus `json:"missing,omitempty"`
	// Overlaps counts the open overlaps with other commits by level; nil in
	// lists that were not asked for it.
	Overlaps map[string]int `json:"overlaps,omitzero"`
	// OverlapsTruncated tells that there were more when the radar looked at it
	// last, and the strongest radar.MaxPairs are kept.
	OverlapsTruncated bool `json:"overlaps_truncated,omitzero"`
}

// A Commit is the whole record of a commit.
type Commit struct {
	CommitSummary `json:",embed"`
	Base          string   `json:"base,omitzero"`
	Parents       []string `json:"parents,omitempty"`
	Ancestors     []string `json:"ancestors,omitempty"`
	Contained     []string `json:"contained,omitempty"`
	// Changes is nil where no change record was given, and in the answer to a
	// registration, which may just have sent it.
	Changes       []radar.Change `json:"changes,omitzero"`
	PolicyVersion int            `json:"policy_version"`
	// Requirements tells, in the contract's order, what is met and what is
	// missing at the time of the answer.
	Requirements []RequirementStatus `json:"requirements"`
	// Attestations are the newest 100; AttestationsURL gives the rest.
	Attestations    []AttestationRecord `json:"attestations"`
	AttestationsURL string              `json:"attestations_url"`
	// InFlight tells that the radar compares other commits with this one: it is
	// what its branch registered last, neither deployed, landed nor withdrawn, and
	// not older than the contract's max_age.
	InFlight bool `json:"in_flight"`
	// Radar is what it overlaps with, the strongest; present only in the answer
	// to a registration.
	Radar       *RadarResult `json:"radar,omitzero"`
	Transitions []Transition `json:"transitions"`
}

// A Transition is one move of a commit between two states.
type Transition struct {
	From  State `json:"from"`
	To    State `json:"to"`
	At    Time  `json:"at"`
	Cause Cause `json:"cause"`
}

// A Move is a transition that a draft contract would bring about.
type Move struct {
	Commit string `json:"commit"`
	From   State  `json:"from"`
	To     State  `json:"to"`
	// Reasons are those of the requirements that decide it.
	Reasons []string `json:"reasons"`
}

// A Simulation is what a draft contract would do to a repo's commits.
type Simulation struct {
	// Evaluated counts the commits looked at: all that are not DEPLOYED.
	Evaluated int64  `json:"evaluated"`
	Moves     []Move `json:"moves"`
}

// A PredicateCount says how many of an org's attestations are about a predicate.
type PredicateCount struct {
	Predicate      string `json:"predicate"`
	Count          int64  `json:"count"`
	LastRecordedAt Time   `json:"last_recorded_at"`
}

// A Page is one page of a list. NextCursor is empty on the last one.
type Page[T any] struct {
	Data       []T    `json:"data"`
	NextCursor string `json:"next_cursor,omitzero"`
}

// A Problem is the body of every error answer (RFC 9457).
type Problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      Code         `json:"code"`
	RequestID string       `json:"request_id"`
	Errors    []FieldError `json:"errors,omitempty"`
}

// A RequirementStatus tells what has become of one requirement.
type RequirementStatus struct {
	State     State  `json:"state"`
	Predicate string `json:"predicate"`
	// Applies is false where paths or branches leave the commit out; Met is
	// false then too, and the state does not wait for it.
	Applies bool `json:"applies"`
	Met     bool `json:"met"`
	// Have and Need count distinct signers; the radar needs none.
	Have           int      `json:"have"`
	Need           int      `json:"need"`
	SignersCounted []string `json:"signers_counted"`
	// FailedBy are the signers whose fail or error keeps it unmet, however many
	// others count.
	FailedBy []string `json:"failed_by,omitempty"`
	Reason   string   `json:"reason"`
}

// Check reports what cannot be about a repo that is asked for.
func (n NewRepo) Check() error {
	if err := CheckRepo(n.Name); err != nil {
		return err
	}
	return checkRef("default_branch", n.DefaultBranch)
}

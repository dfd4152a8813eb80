package ledger

// MaxMergeClaims is the maximum number of claims of merges of one commit: one of each person
// about each source.
const MaxMergeClaims = 16

// A MergeClaim is a signed claim that a commit is a clean merge of its first parent with
// another commit, the source.
type MergeClaim struct {
	Source string `json:"source"`
	// Kind is merge or squash.
	Kind        string `json:"kind"`
	Attestation string `json:"attestation"`
	Identity    string `json:"identity"`
	RecordedAt  Time   `json:"recorded_at"`
	// ParentState is the state of the first parent when the claim was recorded. Evidence about
	// the source carries only to requirements for states up to it. It is DRAFT if the claim
	// does not agree with the objects that the ledger had seen by then; Reason says why.
	ParentState State  `json:"parent_state"`
	Reason      string `json:"reason,omitzero"`
}

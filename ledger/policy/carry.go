package policy

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// defaultCarryAge is how long evidence carries if the requirement has no max_age.
const defaultCarryAge = ledger.Duration(30 * 24 * time.Hour)

// A Source is another commit of the repo whose evidence may carry to the commit.
type Source struct {
	// Commit is its id.
	Commit string
	// Authors, AuthorPeople and Proven are those of the source, as in Facts.
	Authors      []ledger.Author
	AuthorPeople []int64
	Proven       bool
	// SameTree reports whether its proven tree is that of the commit.
	SameTree bool
	// Claims are the claims that the commit is a clean merge of the source.
	Claims []MergeClaim
}

// A MergeClaim says that a commit is a clean merge of its first parent with another commit.
type MergeClaim struct {
	Attestation string
	Signer      identity.DN
	// ParentState is the state of the first parent, a proven one, when the claim was
	// recorded. It is DRAFT if the parent was not proven.
	ParentState ledger.State
}

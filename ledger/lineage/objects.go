package lineage

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// MaxObjects is the maximum number of commits in a request about commit objects.
const MaxObjects = 1000

// Objects are commit objects that say where commits came from, and who wrote them. A commit of which nothing else is
// known has no state, and no list has it.
type Objects struct {
	// Commits are the ids of commits. The response says which of them are unknown, after Objects was recorded.
	Commits []string `json:"commits,omitempty"`
	Objects []Object `json:"objects,omitempty"`
}

// An Object is the raw object of a commit, whose hash is the id.
type Object struct {
	Commit string `json:"commit"`
	Object []byte `json:"object"`
}

// UnknownObjects are the commits whose objects the ledger does not know.
type UnknownObjects struct {
	Unknown []string `json:"unknown"`
}

// Check returns a field error for the first invalid field, apart from the objects themselves.
func (o Objects) Check() error {
	if n := max(len(o.Commits), len(o.Objects)); n > MaxObjects {
		field := "commits"
		if len(o.Objects) == n {
			field = "objects"
		}
		return ledger.FieldErrorf(ledger.CodeInvalidField, field, "too many: %d entries, at most %d", n, MaxObjects)
	}
	for i, id := range o.Commits {
		if !ledger.IsCommit(id) {
			return notCommit(fmt.Sprintf("commits[%d]", i), id)
		}
	}
	for i := range o.Objects {
		if id := o.Objects[i].Commit; !ledger.IsCommit(id) {
			return notCommit(fmt.Sprintf("objects[%d].commit", i), id)
		}
	}
	return nil
}

func notCommit(field, id string) error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, field,
		"%q is not a full object ID (use 40 or 64 lower-case hex digits)", text.Clip(id))
}

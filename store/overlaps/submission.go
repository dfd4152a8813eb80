package overlaps

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// A Submission is a registration, completed from the commit object that it contains.
type Submission struct {
	ledger.Registration
	Object *gitobject.Commit // nil without one
	// ConcernsRadar reports whether what the caller says can change the overlaps.
	ConcernsRadar bool
}

// Submit completes a registration of a commit from its object, and checks that they agree.
func Submit(sha string, n ledger.Registration) (sub Submission, err error) {
	sub = Submission{Registration: n, ConcernsRadar: concernsRadar(n)}
	if n.Object == nil {
		return sub, nil
	}
	if sub.Object, err = gitobject.Parse(sha, n.Object); err != nil {
		return sub, err
	}
	sub.Registration, err = sub.Object.Complete(n)
	return sub, err
}

// concernsRadar reports whether a registration can change the overlaps of its commit.
func concernsRadar(n ledger.Registration) bool {
	return n.Branch != "" || n.Base != "" || n.Parents != nil || n.Ancestors != nil || n.Contained != nil ||
		n.Changes != nil
}

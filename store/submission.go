package store

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// A submission is a registration, completed from the commit object that it contains.
type submission struct {
	ledger.Registration
	object *gitobject.Commit // nil if there is none
	// concernsRadar reports whether what the caller says can change the overlaps.
	concernsRadar bool
}

func submit(sha string, n ledger.Registration) (sub submission, err error) {
	sub = submission{Registration: n, concernsRadar: concernsRadar(n)}
	if n.Object == nil {
		return sub, nil
	}
	if sub.object, err = gitobject.Parse(sha, n.Object); err != nil {
		return sub, err
	}
	sub.Registration, err = sub.object.Complete(n)
	return sub, err
}

// concernsRadar reports whether a registration can change the overlaps of its commit.
func concernsRadar(n ledger.Registration) bool {
	return n.Branch != "" || n.Base != "" || n.Parents != nil || n.Ancestors != nil || n.Contained != nil ||
		n.Changes != nil
}

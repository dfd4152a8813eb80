package verify

import (
	"errors"

	"github.com/ledgerd/ledgerd/ledger/facts"
)

var (
	// ErrNotLogged means that the log does not have what the ledger shows of a commit: it was
	// registered before a release that logs it.
	ErrNotLogged = errors.New("the log does not have what is known of it (register the commit again)")
	// ErrOtherFacts means that the log has something else.
	ErrOtherFacts = errors.New("author, branch, targets, tree, changed paths or another part of the record are not " +
		"those in the log")
)

// Facts checks that what is known of a commit has the digest in its last event in the log, which is empty
// if no event has one.
func Facts(known facts.Commit, logged string) error {
	switch {
	case logged == "" && known.IsRegistered():
		return ErrNotLogged
	case logged != "" && logged != known.Digest():
		return ErrOtherFacts
	}
	return nil
}

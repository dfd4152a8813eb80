package verify

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/proof"
)

// A ConflictKind says how two checkpoints of a log contradict each other.
type ConflictKind string

// The kinds of conflict.
const (
	// Fork means that the log has signed two histories.
	Fork ConflictKind = "fork"
	// Rollback means that the log is smaller than it was.
	Rollback ConflictKind = "rollback"
)

// A Conflict says that two checkpoints are not of one log that only grows.
type Conflict struct {
	Kind         ConflictKind
	Seen, Served proof.Checkpoint
}

func (c *Conflict) Error() string {
	if c.Kind == Rollback {
		return fmt.Sprintf("ROLLBACK: the log had %d events, and now has %d", c.Seen.Size, c.Served.Size)
	}
	return fmt.Sprintf("FORK: the first %d events of the log are not those that were seen before", c.Seen.Size)
}

// Extends checks that the log of a served checkpoint is the one of a checkpoint that was seen
// before, which has only grown. The tiles are those of the served one. The error is a
// *Conflict if the checkpoints contradict each other, and a *FetchError if a tile cannot be
// read.
func Extends(seen, served proof.Checkpoint, tiles *Tiles) error {
	if seen.Origin != served.Origin {
		return fmt.Errorf("the checkpoints are of two logs, %s and %s", seen.Origin, served.Origin)
	}
	if served.Size < seen.Size {
		return &Conflict{Rollback, seen, served}
	}
	root, err := rootOf(seen.Size, served, tiles)
	if err != nil {
		return err
	}
	if root != seen.Root {
		return &Conflict{Fork, seen, served}
	}
	return nil
}

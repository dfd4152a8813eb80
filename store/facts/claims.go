package facts

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// claims holds the columns of a commit to which registrations only add. They are empty
// for most commits, and decoded if needed.
type claims struct {
	Targets     string // one per line; empty if there is no other than the newest
	Writers     string // a JSON array of authors
	SigningKeys string // fingerprints, one per line
}

// DecodeWriters returns all who are claimed to have written a commit with its author.
func (c *claims) DecodeWriters() (list []ledger.Author, err error) {
	if c.Writers == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(c.Writers), &list); err != nil {
		return nil, fmt.Errorf("decode the writers of a commit: %w", err)
	}
	return list, nil
}

// EncodeWriters returns writers as they are stored.
func EncodeWriters(list []ledger.Author) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("encode the writers of a commit: %w", err)
	}
	return string(text), nil
}

// Keys returns the fingerprints of all keys that are claimed to have signed a commit.
func (c *claims) Keys() []string {
	if c.SigningKeys == "" {
		return nil
	}
	return strings.Split(c.SigningKeys, "\n")
}

// Add adds what a registration claims of a commit with the targets claimed before.
func (c *claims) Add(targets []string, n ledger.Registration) error {
	targets, err := ledger.AddTarget(targets, n.Target)
	if err != nil {
		return err
	}
	if len(targets) > 1 {
		c.Targets = strings.Join(targets, "\n")
	}

	before, err := c.DecodeWriters()
	if err != nil {
		return err
	}
	writers, err := ledger.AddWriters(before, n)
	if err != nil {
		return err
	}
	if len(writers) > len(before) {
		if c.Writers, err = EncodeWriters(writers); err != nil {
			return err
		}
	}

	keys, err := ledger.AddSigningKey(c.Keys(), n.SigningKey)
	c.SigningKeys = strings.Join(keys, "\n")
	return err
}

// maxPaths is the number of claimed paths that are stored. With that many, requirements
// with paths apply anyway.
const maxPaths = policy.MaxMatchedPaths + 1

// addPaths returns all paths that two change records of a commit claim, given those
// claimed before. It returns nil if these are the paths of the second record.
func addPaths(claimed []string, before, now []radar.Change) []string {
	if before == nil {
		return nil // the first change record
	}
	if claimed == nil {
		claimed = facts.Paths(before)
	}
	newest := facts.Paths(now)
	union := make([]string, 0, len(claimed)+len(newest))
	seen := make(map[string]bool, len(claimed)+len(newest))
	for _, path := range append(claimed[:len(claimed):len(claimed)], newest...) {
		if !seen[path] {
			seen[path] = true
			union = append(union, path)
		}
	}

	for _, path := range newest {
		delete(seen, path)
	}
	if len(seen) == 0 {
		return nil
	}
	return union[:min(len(union), maxPaths)]
}

// DecodeChanges decodes a stored change record; nil without one.
func DecodeChanges(text []byte) (changes []radar.Change, err error) {
	if text != nil {
		err = json.Unmarshal(text, &changes)
	}
	return changes, err
}

package live

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// A Filter selects the events of a stream.
type Filter struct {
	Types []ledger.EventType // nil: the default types
	Repo  string             // empty: all repos
	// Digest reports whether to send only the latest event, at most every half second.
	Digest bool
	Commit string // of the events of a digest; empty: all
}

func (f Filter) wants(e frame) bool {
	if f.Repo != "" && !strings.EqualFold(f.Repo, e.repo) {
		return false
	}
	if f.Commit != "" && e.kind != ledger.EventPolicy && !bytes.Contains(e.text, []byte(f.Commit)) {
		return false
	}
	if f.Types == nil {
		return isDefault(e.kind)
	}
	for _, t := range f.Types {
		if t == e.kind {
			return true
		}
	}
	return false
}

// latest returns the latest frame in the chunks that matches the filter, starting at a
// sequence number. It is empty if no frame matches.
func (f Filter) latest(chunks []*chunk, from int64) wire.Block {
	for _, c := range slices.Backward(chunks) {
		for _, e := range slices.Backward(c.frames) {
			if e.seq >= from && f.wants(e) {
				return wire.NewBlock(e.text)
			}
		}
	}
	return wire.Block{}
}

// pick returns the frames of a chunk that match the filter, starting at a sequence
// number.
func (f Filter) pick(c *chunk, from int64) wire.Block {
	if from <= c.first && f.Types == nil && f.Repo == "" {
		return c.unfiltered
	}
	var texts [][]byte
	for _, e := range c.frames {
		if e.seq >= from && f.wants(e) {
			texts = append(texts, e.text)
		}
	}
	return wire.NewBlock(texts...)
}

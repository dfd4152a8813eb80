package live

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
)

// A chunk is a run of consecutive events. It is immutable.
type chunk struct {
	first, next int64 // sequence numbers: first is included, next is not
	frames      []frame
	unfiltered  wire.Block // the concatenated frames for streams without filters
}

// A frame is one event in SSE form.
type frame struct {
	seq  int64
	kind ledger.EventType
	repo string
	text []byte
}

func newChunk(events []store.Event) (*chunk, error) {
	c := &chunk{
		first: events[0].Seq, next: events[len(events)-1].Seq + 1, frames: make([]frame, 0, len(events)),
	}
	var unfiltered [][]byte
	for _, e := range events {
		if len(e.Body) == 0 {
			continue // pruned
		}
		data, err := eventstream.Data(e.Type, e.Body)
		if err != nil {
			return nil, err
		}

		text := make([]byte, 0, len(data)+64)
		text = append(append(text, "event: "...), e.Type...)
		text = append(append(text, "\nid: "...), e.ID...)
		text = append(append(text, "\ndata: "...), data...)
		text = append(text, "\n\n"...)
		c.frames = append(c.frames, frame{e.Seq, e.Type, e.Repo, text})
		if isDefault(e.Type) {
			unfiltered = append(unfiltered, text)
		}
	}
	c.unfiltered = wire.NewBlock(unfiltered...)
	return c, nil
}

// size returns the approximate number of bytes that the chunk takes.
func (c *chunk) size() int {
	size := c.unfiltered.Len()
	for _, f := range c.frames {
		size += len(f.text)
	}
	return size
}

// isDefault reports whether a stream without a filter of types has events of
// type t.
func isDefault(t ledger.EventType) bool {
	return t == ledger.EventAttestation || t == ledger.EventState || t == ledger.EventPolicy
}

package powercut

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// A Loss is what a power cut does to the changes of a file that are not synced.
type Loss int

// The losses.
const (
	LoseAll      Loss = iota // all are lost
	LoseNone                 // none is lost, as if only the process was killed
	LoseSome                 // any of them are lost
	LoseOlder                // older ones are lost, newer ones are not
	LoseData                 // the file has its new size, with zeros
	TearPages                // of each write, any pages of 4096 bytes are lost
	TearSectors              // of each write, any sectors of 512 bytes are lost
	LosePerFile              // each file has another loss
	losses                   // the number of losses
	losesOfAFile = LosePerFile
)

func (l Loss) String() string {
	return [...]string{
		"all lost", "nothing lost", "some lost", "older lost", "data lost", "torn pages", "torn sectors",
		"another loss per file",
	}[l]
}

// A Cut is a power cut.
type Cut struct {
	At   int    // the lines of the trace before this one happened
	Loss Loss   // what happens to the content of files
	Name Loss   // what happens to names: LoseAll, LoseNone or LoseSome
	Seed uint64 // decides what is lost
	Why  string // what is special about the moment
}

func (c Cut) String() string {
	return fmt.Sprintf("line %d (%s), %s, names: %s, seed %d", c.At, c.Why, c.Loss, c.Name, c.Seed)
}

// Cuts chooses n power cuts: after messages of the program, around syncs of each file, and
// at any other moment. The messages are those that match.
func (t *Trace) Cuts(n int, r *rand.Rand, match func(Message) bool) []Cut {
	var answered []int
	for _, m := range t.messages {
		if match(m) {
			answered = append(answered, m.At)
		}
	}
	synced := make(map[string][]int) // by file
	for _, s := range t.syncs {
		synced[s.name] = append(synced[s.name], s.began, min(s.ended, t.lines-1))
	}
	names := slices.Sorted(maps.Keys(synced))

	cuts := make([]Cut, 0, n)
	for i := range n {
		c := Cut{Loss: Loss(i % int(losses)), Name: Loss(r.IntN(int(LoseSome + 1))), Seed: r.Uint64()}
		switch {
		case i%3 == 0 && len(answered) > 0:
			c.At, c.Why = answered[r.IntN(len(answered))]+1, "after a message"
		case i%3 == 1 && len(names) > 0:
			name := names[i/3%len(names)]
			// If a sync has one line, a cut at this line is before it, and one line later
			// after it.
			c.At, c.Why = synced[name][r.IntN(len(synced[name]))]+r.IntN(2), fmt.Sprintf("sync of %q", name)
		default:
			c.At, c.Why = r.IntN(t.lines+1), "any moment"
		}
		cuts = append(cuts, c)
	}
	slices.SortStableFunc(cuts, func(a, b Cut) int { return cmp.Compare(a.At, b.At) })
	return cuts
}

// Disk returns the files of the folder after a power cut.
func (t *Trace) Disk(c Cut) map[string][]byte {
	r := rand.New(rand.NewPCG(c.Seed, 0))
	files := maps.Clone(t.start)
	broken := make(map[string]bool) // names of which a change was lost
	for _, n := range t.names {
		if n.began >= c.At {
			continue
		}
		kept := n.durable < c.At || c.Name == LoseNone || c.Name == LoseSome && r.IntN(2) == 0
		if !kept || broken[n.from] || broken[n.to] { // a later change of a name is not kept without the earlier ones
			broken[n.from], broken[n.to] = n.from != "", n.to != ""
			continue
		}
		delete(files, n.from)
		if n.to != "" {
			files[n.to] = n.file
		}
	}

	texts := make(map[string][]byte, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		texts[name] = files[name].after(c, r)
	}
	return texts
}

// after returns the content of the file after a power cut.
func (f *file) after(c Cut, r *rand.Rand) []byte {
	loss := c.Loss
	if loss == LosePerFile {
		loss = Loss(r.IntN(int(losesOfAFile)))
	}
	var unsynced []change
	text := slices.Clone(f.start)
	for _, made := range f.changes {
		switch {
		case made.durable < c.At:
			text = made.apply(text)
		case made.began < c.At:
			unsynced = append(unsynced, made)
		}
	}

	for _, made := range survivors(unsynced, loss, r) {
		text = made.apply(text)
	}
	if f.mapped { // any part of the memory may be on the disk
		for i := range text {
			text[i] = byte(r.Uint32())
		}
	}
	return text
}

// survivors returns which changes, or parts of them, are on the disk after a loss.
func survivors(list []change, loss Loss, r *rand.Rand) []change {
	some := func(list []change) []change {
		return slices.DeleteFunc(list, func(change) bool { return r.IntN(2) == 0 })
	}
	switch loss {
	case LoseNone:
		return list
	case LoseSome:
		return some(list)
	case LoseOlder:
		return list[r.IntN(len(list)+1):]
	case LoseData:
		return sizes(list)
	case TearPages:
		return some(pieces(list, 4096))
	case TearSectors:
		return some(pieces(list, 512))
	}
	return nil
}

// sizes returns the changes of size that writes cause.
func sizes(list []change) []change {
	var sized []change
	for _, made := range list {
		if made.data != nil {
			made.offset, made.data = made.offset+int64(len(made.data)), []byte{}
		}
		sized = append(sized, made)
	}
	return sized
}

// pieces divides writes at multiples of a size.
func pieces(list []change, size int64) []change {
	var divided []change
	for _, made := range list {
		for rest := made; ; {
			n := size - rest.offset%size
			if rest.data == nil || n >= int64(len(rest.data)) {
				divided = append(divided, rest)
				break
			}
			piece := rest
			piece.data = rest.data[:n]
			divided = append(divided, piece)
			rest.offset, rest.data = rest.offset+n, rest.data[n:]
		}
	}
	return divided
}

// apply changes text. A write behind its end fills the gap with zeros.
func (made change) apply(text []byte) []byte {
	if made.data == nil {
		if size := int(made.offset); size <= len(text) {
			return text[:size:size]
		}
		return append(text, make([]byte, int(made.offset)-len(text))...)
	}
	if gap := int(made.offset) - len(text); gap > 0 {
		text = append(text, make([]byte, gap)...)
	}
	n := copy(text[made.offset:], made.data)
	return append(text, made.data[n:]...)
}

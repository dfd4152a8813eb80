package radar

import "encoding/binary"

// A PackedChange is a compact encoding of a change, with only the data that Compare needs.
// An index of the commits in flight holds hundreds of thousands of them in memory, and
// reads hundreds for each registration. Do not store it: the encoding may change between
// releases.
//
// Numbers are varints, texts are prefixed with their length, and hashes have eight bytes.
type PackedChange []byte

// AppendPacked appends the packed form of a change to b.
func AppendPacked(b []byte, c *Change) []byte {
	f := regionsOf(c)
	for _, text := range []string{f.path, f.oldPath, f.status} {
		b = append(appendNumbers(b, len(text)), text...)
	}
	binaryFile := 0
	if f.binary {
		binaryFile = 1
	}
	b = appendNumbers(b, int(f.oldMode), int(f.mode), binaryFile, len(f.regions))
	b = appendPacked(b, f.oldBlob, f.blob)
	for i := range f.regions {
		s := &f.regions[i]
		b = appendNumbers(b, s.start, s.lines, s.added, len(s.near), len(s.far))
		b = appendPacked(b, s.text, s.function)
		b = appendPacked(appendPacked(b, s.near...), s.far...)
	}
	return b
}

func appendNumbers(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, int64(n))
	}
	return b
}

func appendPacked(b []byte, hashes ...uint64) []byte {
	for _, hash := range hashes {
		b = binary.LittleEndian.AppendUint64(b, hash)
	}
	return b
}

// Names returns the path of the change and, for a rename, the old path.
func (p PackedChange) Names() (path, oldPath string) {
	r := unpacker(p)
	return r.text(), r.text()
}

// unpack decodes the change and indexes it for comparison.
func (p PackedChange) unpack() *file {
	r := unpacker(p)
	f := &file{path: r.text(), oldPath: r.text(), status: r.text(), oldMode: uint32(r.number()), mode: uint32(r.number()),
		binary: r.number() == 1}
	f.regions = make([]region, r.number())
	f.oldBlob, f.blob = r.hash(), r.hash()

	hashes := make([]uint64, len(r)/8) // an upper bound
	take := func(n int) (taken []uint64) {
		taken, hashes = hashes[:n], hashes[n:]
		for i := range taken {
			taken[i] = r.hash()
		}
		return taken
	}

	for i := range f.regions {
		s := newRegion(r.number(), r.number(), r.number())
		near, far := r.number(), r.number()
		s.text, s.function = r.hash(), r.hash()
		s.near, s.far = take(near), take(far)
		f.regions[i] = s
	}
	f.index()
	return f
}

// An unpacker is the unread rest of a packed change.
type unpacker []byte

func (r *unpacker) number() int {
	n, size := binary.Varint(*r)
	*r = (*r)[size:]
	return int(n)
}

func (r *unpacker) next(n int) []byte {
	b := (*r)[:n]
	*r = (*r)[n:]
	return b
}

func (r *unpacker) text() string { return string(r.next(r.number())) }

func (r *unpacker) hash() uint64 { return binary.LittleEndian.Uint64(r.next(8)) }

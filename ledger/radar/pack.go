package radar

import "encoding/binary"

// A PackedChange is what Compare needs of a change, in few bytes: whoever finds
// what commits in flight change keeps hundreds of thousands of them, and reads
// hundreds for each registration. It is for memory and not for disks: another
// release may pack in another way.
//
// Numbers are varints, texts stand behind their length, and hashes take eight
// bytes each.
type PackedChange []byte

// AppendPacked appends a change, packed, to b.
func AppendPacked(b []byte, c *Change) []byte {
	f := placesOf(c)
	for _, text := range []string{f.path, f.oldPath, f.status} {
		b = append(appendNumbers(b, len(text)), text...)
	}
	binaryFile := 0
	if f.binary {
		binaryFile = 1
	}
	b = appendNumbers(b, int(f.oldMode), int(f.mode), binaryFile, len(f.places))
	b = appendPacked(b, f.oldBlob, f.blob)
	for i := range f.places {
		s := &f.places[i]
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

// Names returns the path of the change and, where it differs, the old one.
func (p PackedChange) Names() (path, oldPath string) {
	r := unpacker(p)
	return r.text(), r.text()
}

// unpack makes the change ready to be compared.
func (p PackedChange) unpack() *file {
	r := unpacker(p)
	f := &file{path: r.text(), oldPath: r.text(), status: r.text(), oldMode: uint32(r.number()), mode: uint32(r.number()),
		binary: r.number() == 1}
	f.places = make([]place, r.number())
	f.oldBlob, f.blob = r.hash(), r.hash()
	hashes := make([]uint64, len(r)/8) // room enough
	take := func(n int) (taken []uint64) {
		taken, hashes = hashes[:n], hashes[n:]
		for i := range taken {
			taken[i] = r.hash()
		}
		return taken
	}
	for i := range f.places {
		s := newPlace(r.number(), r.number(), r.number())
		near, far := r.number(), r.number()
		s.text, s.function = r.hash(), r.hash()
		s.near, s.far = take(near), take(far)
		f.places[i] = s
	}
	f.index()
	return f
}

// An unpacker is what is left to read of a packed change.
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

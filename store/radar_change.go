package store

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// A change is kept by its paths in a form of its own: a registration reads
// hundreds of them, and writes dozens to as many pages. Numbers are varints;
// texts and lists stand behind their length; object ids and hashes, which are
// hex, behind the number of their bytes.

// appendChange appends a change that ledger.Registration's Check accepts.
func appendChange(b []byte, c *ledger.Change) ([]byte, error) {
	e := changeWriter{b: b}
	for _, s := range []string{c.Path, c.OldPath, c.Status, c.OldMode, c.Mode} {
		e.text(s)
	}
	e.hex(c.OldBlob)
	e.hex(c.Blob)
	binaryFile := 0
	if c.Binary {
		binaryFile = 1
	}
	e.number(binaryFile)
	e.number(len(c.Hunks))
	for i := range c.Hunks {
		h := &c.Hunks[i]
		e.number(h.Start)
		e.number(h.Lines)
		e.number(h.Added)
		e.hex(h.Text)
		e.text(h.Function)
		e.number(len(h.Near))
		e.number(len(h.Far))
		for _, hashes := range [][]string{h.Near, h.Far} {
			for _, hash := range hashes {
				e.hex(hash)
			}
		}
	}
	return e.b, e.err
}

type changeWriter struct {
	b   []byte
	err error
}

func (e *changeWriter) number(n int) { e.b = binary.AppendUvarint(e.b, uint64(n)) }

func (e *changeWriter) text(s string) {
	e.number(len(s))
	e.b = append(e.b, s...)
}

func (e *changeWriter) hex(s string) {
	e.number(len(s) / 2)
	before := len(e.b)
	var err error
	if e.b, err = hex.AppendDecode(e.b, []byte(s)); err != nil || hex.EncodeToString(e.b[before:]) != s {
		e.err = fmt.Errorf("%q is not lower-case hex", s)
	}
}

var errChange = errors.New("the bytes are not those of a change")

// readChange reads what appendChange has written. It does not keep the bytes.
func readChange(b []byte) (ledger.Change, error) {
	d := changeReader{all: string(b), digits: hex.EncodeToString(b)}
	c := ledger.Change{
		Path: d.text(), OldPath: d.text(), Status: d.text(), OldMode: d.text(), Mode: d.text(),
		OldBlob: d.hex(), Blob: d.hex(), Binary: d.number(1) == 1,
	}
	if n := d.count(); n > 0 {
		c.Hunks = make([]ledger.Hunk, n)
	}
	for i := range c.Hunks {
		d.hunk(&c.Hunks[i])
	}
	if d.bad || d.at != len(d.all) {
		return ledger.Change{}, errChange
	}
	return c, nil
}

// A changeReader reads a change. What it gives are parts of two strings, so that
// a change with all its hashes takes few allocations.
type changeReader struct {
	all    string
	digits string // all in hex
	at     int
	bad    bool // then all that it gives is nothing
}

func (d *changeReader) hunk(h *ledger.Hunk) {
	h.Start, h.Lines, h.Added = d.number(maxInt32), d.number(maxInt32), d.number(maxInt32)
	h.Text, h.Function = d.hex(), d.text()
	near, far := d.count(), d.count()
	if d.bad || near+far == 0 {
		return
	}
	hashes := make([]string, near+far)
	for i := range hashes {
		hashes[i] = d.hex()
	}
	if near > 0 {
		h.Near = hashes[:near:near]
	}
	if far > 0 {
		h.Far = hashes[near:]
	}
}

const maxInt32 = 1<<31 - 1

// number reads a number up to the given one.
func (d *changeReader) number(limit int) int {
	var n uint64
	for shift := 0; shift < 35 && d.at < len(d.all) && !d.bad; shift += 7 {
		b := d.all[d.at]
		d.at++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 && n <= uint64(limit) {
			return int(n)
		}
		if b < 0x80 {
			break
		}
	}
	d.bad = true
	return 0
}

// count reads the length of something that takes a byte or more each.
func (d *changeReader) count() int { return d.number(len(d.all) - d.at) }

// next passes over a length and so many bytes behind it.
func (d *changeReader) next() (from, to int) {
	n := d.count()
	if d.bad || n > len(d.all)-d.at {
		d.bad = true
		return 0, 0
	}
	d.at += n
	return d.at - n, d.at
}

func (d *changeReader) text() string {
	from, to := d.next()
	return d.all[from:to]
}

func (d *changeReader) hex() string {
	from, to := d.next()
	return d.digits[2*from : 2*to]
}

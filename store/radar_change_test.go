package store

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// What is read of a change is what was written, whatever the ledger accepts.
func TestAChangeIsReadAsItWasWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		c := randomChange(random)
		if err := (ledger.Registration{Changes: []ledger.Change{c}}).Check(); err != nil {
			t.Fatalf("the ledger refuses %+v: %v", c, err)
		}
		b, err := appendChange([]byte("before"), &c)
		if err != nil {
			t.Fatalf("write %+v: %v", c, err)
		}
		got, err := readChange(b[len("before"):])
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("read %+v (%v), want %+v", got, err, c)
		}
	}
}

// Bytes that are not those of a change are an error, and no more.
func TestOtherBytesAreNoChange(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		c := randomChange(random)
		b, err := appendChange(nil, &c)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range [][]byte{b[:random.IntN(len(b))], append(b, 0)} {
			if got, err := readChange(wrong); err == nil {
				t.Fatalf("read %+v of %x, which is not whole", got, wrong)
			}
		}
		for range 20 { // whatever comes of it
			b[random.IntN(len(b))] = byte(random.Uint32())
			readChange(b)
		}
	}
	huge := ledger.Change{Path: "x", Blob: "ABCD"}
	if _, err := appendChange(nil, &huge); err == nil {
		t.Error("what is not lower-case hex was written")
	}
}

func FuzzReadChange(f *testing.F) {
	f.Add([]byte("\x01x\x00\x01M\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x01x\x00\x01M\x00\x00\x00\x00\x00\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := readChange(b)
		if err != nil {
			return
		}
		again, err := appendChange(nil, &c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readChange(again); err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("read %+v (%v), want %+v", got, err, c)
		}
	})
}

func randomChange(random *rand.Rand) ledger.Change {
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "0123456789abcdef"[random.IntN(16)]
		}
		return string(b)
	}
	maybe := func(s string) string { return s[:len(s)*random.IntN(2)] }
	c := ledger.Change{
		Path: "a/" + strings.Repeat("ä ", random.IntN(100)) + "x", Status: []string{"A", "M", "D", "R", "T"}[random.IntN(5)],
		OldMode: maybe("100644"), Mode: maybe("120000"), OldBlob: maybe(digits(40)), Blob: maybe(digits(64)), Binary: random.IntN(4) == 0,
	}
	if c.Status == "R" {
		c.OldPath = "old"
	}
	if c.Binary || c.Status != "M" && c.Status != "R" {
		return c
	}
	line := 1
	for range random.IntN(5) {
		h := ledger.Hunk{Start: line + random.IntN(1000), Lines: 1 + random.IntN(9), Added: random.IntN(1000), Text: maybe(digits(16)), Function: maybe("func (c *T) f() {")}
		for range 1 + random.IntN(h.Lines) {
			h.Near, h.Far = append(h.Near, maybe(digits(16))), append(h.Far, maybe(digits(16)))
		}
		line = h.Start + h.Lines + 1
		c.Hunks = append(c.Hunks, h)
	}
	return c
}

func BenchmarkReadChange(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	c := randomChange(random)
	for len(c.Hunks) != 3 {
		c = randomChange(random)
	}
	bytes, err := appendChange(nil, &c)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(bytes)))
	for b.Loop() {
		if _, err := readChange(bytes); err != nil {
			b.Fatal(err)
		}
	}
}

package proof

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// A tree is a log in memory.
type tree struct{ hashes []tlog.Hash }

func (r *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		list[i] = r.hashes[index]
	}
	return list, nil
}

// newTree returns a tree with the given number of leaves.
func newTree(t testing.TB, size int64) (*tree, []Leaf) {
	t.Helper()
	r, leaves := &tree{}, make([]Leaf, size)
	for n := range size {
		leaves[n] = leafOf(n)
		hashes, err := tlog.StoredHashesForRecordHash(n, leaves[n].LeafHash(), r)
		must.OK(t, err)
		r.hashes = append(r.hashes, hashes...)
	}
	return r, leaves
}

func leafOf(n int64) Leaf {
	l := Leaf{At: ledger.Time(1_760_000_000_000 + n), Event: fmt.Sprintf("evt_%026d", n), Type: ledger.EventState}
	l.Hash = HashBody(Salt{byte(n)}, bodyOf(n))
	return l
}

func bodyOf(n int64) []byte { return fmt.Appendf(nil, `{"id":"evt_%026d","type":"state"}`, n) }

func newKey(t testing.TB, origin string) (note.Signer, note.Verifier) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(rand.Reader, origin)
	must.OK(t, err)
	signer := must.Get(note.NewSigner(skey))(t)
	verifier := must.Get(note.NewVerifier(vkey))(t)
	return signer, verifier
}

// proved returns the proof of a leaf, as text.
func proved(t testing.TB, r *tree, key note.Signer, leaf Leaf, size, n int64) []byte {
	t.Helper()
	root, err := tlog.TreeHash(size, r)
	must.OK(t, err)
	signed, err := Checkpoint{Origin: key.Name(), Size: size, Root: root}.Sign(key)
	must.OK(t, err)
	path, err := tlog.ProveRecord(size, n, r)
	must.OK(t, err)
	extra, err := Opening{Salt: &Salt{byte(n)}, Leaf: leaf}.Format()
	must.OK(t, err)
	return Inclusion{Extra: extra, Index: n, Path: path, Checkpoint: signed}.Format()
}

// verify checks a proof of a body, as a client does.
func verify(text, body []byte, key note.Verifier) error {
	p, err := ParseInclusion(text)
	if err != nil {
		return err
	}
	c, err := OpenCheckpoint(p.Checkpoint, key)
	if err != nil {
		return err
	}
	opening, err := ParseOpening(p.Extra)
	if err != nil {
		return err
	}
	if err := opening.Verify(body); err != nil {
		return err
	}
	return p.Verify(opening.Leaf.LeafHash(), c)
}

// In 1,000 random trees, a proof verifies, and no change of the body, the proof or the
// checkpoint does.
func TestEveryChangeOfAProofIsNoticed(t *testing.T) {
	const origin = "ledger.example.com/v1/orgs/acme/log"
	key, verifier := newKey(t, origin)
	const largest = 700
	r, leaves := newTree(t, largest)
	random := testenv.Rand(t)
	for range 1000 {
		size := 1 + random.Int64N(largest)
		n := random.Int64N(size)
		text, body := proved(t, r, key, leaves[n], size, n), bodyOf(n)
		if err := verify(text, body, verifier); err != nil {
			t.Fatalf("leaf %d of %d: %v", n, size, err)
		}

		changed := []byte(string(text))
		at := random.IntN(len(changed))
		changed[at] ^= 1 << random.IntN(7)
		if err := verify(changed, body, verifier); err == nil {
			t.Fatalf("leaf %d of %d: byte %d of the proof can be changed:\n%s", n, size, at, changed)
		}
		changed = []byte(string(body))
		changed[random.IntN(len(changed))] ^= 1
		if err := verify(text, changed, verifier); err == nil {
			t.Fatalf("leaf %d of %d: the body can be changed", n, size)
		}
	}
}

// A change that keeps the form of a proof is noticed too.
func TestChangedPartsOfAProof(t *testing.T) {
	const origin = "ledger.example.com/v1/orgs/acme/log"
	key, verifier := newKey(t, origin)
	other, _ := newKey(t, origin)
	elsewhere, elsewhereVerifier := newKey(t, "ledger.example.com/v1/orgs/umbrella/log")
	r, leaves := newTree(t, 300)
	good, err := ParseInclusion(proved(t, r, key, leaves[7], 300, 7))
	must.OK(t, err)
	opening, err := ParseOpening(good.Extra)
	must.OK(t, err)

	for name, change := range map[string]func(p *Inclusion, o *Opening){
		"index":               func(p *Inclusion, _ *Opening) { p.Index++ },
		"index out of range":  func(p *Inclusion, _ *Opening) { p.Index = 300 },
		"hash":                func(p *Inclusion, _ *Opening) { p.Path[3][0]++ },
		"swapped hashes":      func(p *Inclusion, _ *Opening) { p.Path[0], p.Path[1] = p.Path[1], p.Path[0] },
		"a hash less":         func(p *Inclusion, _ *Opening) { p.Path = p.Path[1:] },
		"a hash more":         func(p *Inclusion, _ *Opening) { p.Path = append(p.Path, tlog.Hash{}) },
		"time of the leaf":    func(_ *Inclusion, o *Opening) { o.Leaf.At++ },
		"event of the leaf":   func(_ *Inclusion, o *Opening) { o.Leaf.Event = leaves[8].Event },
		"type of the leaf":    func(_ *Inclusion, o *Opening) { o.Leaf.Type = ledger.EventPolicy },
		"hash of the leaf":    func(_ *Inclusion, o *Opening) { o.Leaf.Hash[0]++ },
		"salt":                func(_ *Inclusion, o *Opening) { o.Salt[0]++ },
		"no salt":             func(_ *Inclusion, o *Opening) { o.Salt = nil },
		"checkpoint, unknown": func(p *Inclusion, _ *Opening) { p.Checkpoint = signedAs(t, r, other, origin, 300) },
		"smaller checkpoint":  func(p *Inclusion, _ *Opening) { p.Checkpoint = signedAs(t, r, key, origin, 299) },
		"checkpoint of another log": func(p *Inclusion, _ *Opening) {
			p.Checkpoint = signedAs(t, r, elsewhere, elsewhere.Name(), 300)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, o, salt := good, opening, *opening.Salt
			p.Path, o.Salt = append([]tlog.Hash{}, good.Path...), &salt
			change(&p, &o)
			p.Extra, err = o.Format()
			must.OK(t, err)
			if err := verify(p.Format(), bodyOf(7), verifier); err == nil {
				t.Errorf("the change is not noticed:\n%s", p.Format())
			}
		})
	}

	// A key is only good for the log that has its name.
	signed, err := note.Sign(&note.Note{Text: Checkpoint{Origin: origin, Size: 300}.Text()}, elsewhere)
	must.OK(t, err)
	if _, err := OpenCheckpoint(signed, verifier, elsewhereVerifier); err == nil {
		t.Error("the key of another log signs this one")
	}
}

func signedAs(t *testing.T, r *tree, key note.Signer, origin string, size int64) []byte {
	t.Helper()
	root, err := tlog.TreeHash(size, r)
	must.OK(t, err)
	signed, err := Checkpoint{Origin: origin, Size: size, Root: root}.Sign(key)
	must.OK(t, err)
	return signed
}

func TestTilePaths(t *testing.T) {
	for path, want := range map[string]Tile{
		"0/000":                {0, 0, 256},
		"0/x001/x234/067":      {0, 1234067, 256},
		"63/999.p/1":           {63, 999, 1},
		"entries/x001/000.p/5": {Entries, 1000, 5},
		"entries/255":          {Entries, 255, 256},
	} {
		got, err := ParseTile(path)
		if err != nil || got != want || got.Path() != path {
			t.Errorf("%s: got %+v, %v, path %s; want %+v", path, got, err, got.Path(), want)
		}
	}
	for _, path := range []string{
		"", "0", "0/", "/0/000", "0/0", "0/00", "0/0000", "0/-01", "0/+01", "64/000", "00/000", "-1/000", "+1/000",
		"data/000", "0/001/000", "0/x000/000", "0/x001/x000", "0/000.p/0", "0/000.p/256", "0/000.p/01",
		"0/000.p/", "0/000.p/1/2",
		"0/000/", "0/../000", "0/000.p/1.p/1", "entries/x000/001", "0/" + strings.Repeat("x999/", 7) + "999",
	} {
		if got, err := ParseTile(path); err == nil {
			t.Errorf("%q is accepted as %+v", path, got)
		}
	}
}

func TestTileWidths(t *testing.T) {
	for _, test := range []struct {
		size  int64
		tile  Tile
		width int
	}{ // the example of C2SP tlog-tiles, and the edges
		{70_000, Tile{Level: 0, N: 272}, 256}, {70_000, Tile{Level: 0, N: 273}, 112}, {70_000, Tile{Level: 0, N: 274}, 0},
		{70_000, Tile{Level: 1, N: 0}, 256}, {70_000, Tile{Level: 1, N: 1}, 17}, {70_000, Tile{Level: 2, N: 0}, 1},
		{256, Tile{Level: 0, N: 0}, 256}, {256, Tile{Level: 1, N: 0}, 1}, {255, Tile{Level: 1, N: 0}, 0},
		{0, Tile{Level: 0, N: 0}, 0}, {1 << 40, Tile{Level: 63, N: 0}, 0}, {300, Tile{Level: Entries, N: 1}, 44},
	} {
		if got := test.tile.WidthIn(test.size); got != test.width {
			t.Errorf("tile %+v of %d leaves has %d hashes, want %d", test.tile, test.size, got, test.width)
		}
	}
}

func TestEntryBundles(t *testing.T) {
	var bundle []byte
	for n := range int64(256) {
		bundle = AppendEntry(bundle, leafOf(n).Record())
	}
	records, err := ParseBundle(bundle)
	must.OK(t, err)
	if len(records) != 256 || string(records[255]) != string(leafOf(255).Record()) {
		t.Errorf("the bundle has %d records", len(records))
	}
	for name, wrong := range map[string][]byte{
		"half a length": {0}, "half a record": bundle[:len(bundle)-1], "257 records": AppendEntry(bundle, []byte("x")),
	} {
		if _, err := ParseBundle(wrong); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Only the canonical form of each text is accepted.
func TestFormsAreCanonical(t *testing.T) {
	record := string(leafOf(1).Record())
	signed := "origin.example/log\n1\n" + strings.Repeat("A", 43) + "=\n\n"
	zeros, hash, badHash := strings.Repeat("0", 64), strings.Repeat("A", 43)+"=\n", strings.Repeat("A", 42)+"B="
	noHash := "c2sp.org/tlog-proof@v1\nindex 0\n\n" + signed
	unordered := `{"event":"e","at":"2026-11-23T00:00:00.000Z","hash":"` + zeros + `","type":"state"}`
	for name, test := range map[string]struct {
		text  string
		parse func(string) error
	}{
		"blanks in a record":         {strings.Replace(record, ":", ": ", 1), parseRecord},
		"order of a record":          {unordered, parseRecord},
		"upper case in a record":     {strings.ToUpper(record[:80]) + record[80:], parseRecord},
		"a short hash":               {record[:len(record)-81] + record[len(record)-79:], parseRecord},
		"another member":             {strings.TrimSuffix(record, "}") + `,"x":1}`, parseRecord},
		"size with a zero":           {strings.Replace(signed, "\n1\n", "\n01\n", 1), parseCheckpoint},
		"negative size":              {strings.Replace(signed, "\n1\n", "\n-1\n", 1), parseCheckpoint},
		"enormous size":              {strings.Replace(signed, "\n1\n", "\n18446744073709551615\n", 1), parseCheckpoint},
		"an extension line":          {strings.Replace(signed, "=\n\n", "=\nmore\n\n", 1), parseCheckpoint},
		"no signatures":              {strings.TrimSuffix(signed, "\n"), parseCheckpoint},
		"a short root":               {strings.Replace(signed, "AAAA", "", 1), parseCheckpoint},
		"another version of a proof": {"c2sp.org/tlog-proof@v2\nindex 0\n\n" + signed, parseProof},
		"no index":                   {"c2sp.org/tlog-proof@v1\n\n" + signed, parseProof},
		"index with a zero":          {"c2sp.org/tlog-proof@v1\nindex 00\n\n" + signed, parseProof},
		"negative index":             {"c2sp.org/tlog-proof@v1\nindex -1\n\n" + signed, parseProof},
		"64 hashes":                  {strings.Replace(noHash, "\n\n", "\n"+strings.Repeat(hash, 64)+"\n", 1), parseProof},
		"a hash that is no base64":   {"c2sp.org/tlog-proof@v1\nindex 0\n" + badHash + "\n" + signed, parseProof},
		"empty extra data":           {"c2sp.org/tlog-proof@v1\nextra \nindex 0\n\n" + signed, parseProof},
	} {
		if err := test.parse(test.text); err == nil {
			t.Errorf("%s is accepted: %q", name, test.text)
		}
	}
	must.OK(t, parseRecord(record))
	must.OK(t, parseCheckpoint(signed))
	must.OK(t, parseProof(
		"c2sp.org/tlog-proof@v1\nindex 0\n"+strings.Repeat(strings.Repeat("A", 43)+"=\n", 63)+"\n"+signed))
}

func parseRecord(s string) error     { _, err := ParseRecord([]byte(s)); return err }
func parseCheckpoint(s string) error { _, err := ReadCheckpoint([]byte(s)); return err }
func parseProof(s string) error      { _, err := ParseInclusion([]byte(s)); return err }

// Cosignatures are added once.
func TestCosigned(t *testing.T) {
	signed := []byte("text\n\n— log AAAA\n")
	cosigned := Cosigned(signed, "— w1 BBBB\n— w2 CCCC\n")
	if want := "text\n\n— log AAAA\n— w1 BBBB\n— w2 CCCC\n"; string(cosigned) != want {
		t.Errorf("got %q, want %q", cosigned, want)
	}
	if again := Cosigned(cosigned, "— w2 CCCC\n"); string(again) != string(cosigned) {
		t.Errorf("a cosignature is added twice: %q", again)
	}
}

// What a parser accepts, it writes again byte for byte.
func FuzzParse(f *testing.F) {
	f.Add(leafOf(1).Record())
	f.Add([]byte("0/x001/234.p/5"))
	f.Add([]byte("origin.example/log\n1\n" + strings.Repeat("A", 43) + "=\n\n— x AAAA\n"))
	f.Add([]byte("c2sp.org/tlog-proof@v1\nextra e30=\nindex 3\n" + strings.Repeat("A", 43) + "=\n\no\n1\n\n"))
	extra, _ := Opening{Salt: &Salt{1}, Leaf: leafOf(1)}.Format()
	f.Add(extra)
	f.Fuzz(func(t *testing.T, text []byte) {
		again := func(what string, got []byte) {
			if string(got) != string(text) {
				t.Errorf("%s %q becomes %q", what, text, got)
			}
		}

		if l, err := ParseRecord(text); err == nil {
			again("record", l.Record())
		}
		if tile, err := ParseTile(string(text)); err == nil {
			again("tile", []byte(tile.Path()))
		}
		if c, err := ParseCheckpoint(string(text)); err == nil {
			again("checkpoint", []byte(c.Text()))
		}
		if p, err := ParseInclusion(text); err == nil {
			again("proof", p.Format())
		}

		if o, err := ParseOpening(text); err == nil {
			got, err := o.Format()
			must.OK(t, err)
			again("opening", got)
		}
		if records, err := ParseBundle(text); err == nil {
			var bundle []byte
			for _, r := range records {
				bundle = AppendEntry(bundle, r)
			}
			again("bundle", bundle)
		}
	})
}

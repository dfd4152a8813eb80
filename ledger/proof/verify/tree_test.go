package verify

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

const origin = "ledger.example/v1/orgs/acme/log"

// A tree is a log in memory, whose leaves begin with a word.
type tree struct {
	t      testing.TB
	hashes []tlog.Hash
	leaves []proof.Leaf
	reads  int
	broken func(file string, tile []byte) ([]byte, error) // changes what is read
}

func (r *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		list[i] = r.hashes[index]
	}
	return list, nil
}

// grow adds leaves.
func (r *tree) grow(n int, word string) *tree {
	r.t.Helper()
	for range n {
		i := int64(len(r.leaves))
		r.add(proof.Leaf{At: ledger.Time(1_760_000_000_000 + i), Event: fmt.Sprintf("evt_%026d", i), Type: ledger.EventState,
			Hash: proof.HashBody(saltOf(i), bodyOf(i, word))})
	}
	return r
}

func (r *tree) add(leaf proof.Leaf) {
	r.t.Helper()
	hashes, err := tlog.StoredHashesForRecordHash(int64(len(r.leaves)), leaf.LeafHash(), r)
	must.OK(r.t, err)
	r.hashes, r.leaves = append(r.hashes, hashes...), append(r.leaves, leaf)
}

func saltOf(i int64) proof.Salt { return proof.Salt{byte(i), 1} }

func bodyOf(i int64, word string) []byte {
	return fmt.Appendf(nil, `{"id":"evt_%026d","type":"state","commit":%q}`, i, word)
}

// at returns the checkpoint of a size.
func (r *tree) at(size int) proof.Checkpoint {
	r.t.Helper()
	root, err := tlog.TreeHash(int64(size), r)
	must.OK(r.t, err)
	return proof.Checkpoint{Origin: origin, Size: int64(size), Root: root}
}

// tiles returns a reader of the tree's tiles.
func (r *tree) tiles() *Tiles {
	return NewTiles(func(file string) ([]byte, error) {
		r.reads++
		tile, err := proof.ParseTile(strings.TrimPrefix(file, "tile/"))
		if err != nil {
			return nil, err
		}
		var data []byte
		for i := range tile.Width {
			index := tlog.StoredHashIndex(tile.Level*proof.TileHeight, tile.N*proof.TileWidth+int64(i))
			if index >= int64(len(r.hashes)) {
				return nil, errors.New("not found")
			}
			data = append(data, r.hashes[index][:]...)
		}
		if r.broken != nil {
			return r.broken(file, data)
		}
		return data, nil
	})
}

func newKey(t testing.TB, name string) (note.Signer, note.Verifier) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(rand.Reader, name)
	must.OK(t, err)
	signer := must.Get(note.NewSigner(skey))(t)
	verifier := must.Get(note.NewVerifier(vkey))(t)
	return signer, verifier
}

func sign(t testing.TB, c proof.Checkpoint, key note.Signer) []byte {
	t.Helper()
	signed, err := c.Sign(key)
	must.OK(t, err)
	return signed
}

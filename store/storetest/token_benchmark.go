package storetest

import (
	"crypto/sha256"
	"strconv"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// BenchmarkTokenByHash measures the lookup of an API token, which every request needs: one after
// the other, and 16 at a time.
func BenchmarkTokenByHash(b *testing.B, newDatabase New) {
	const tokens = 1000
	fx := suite{newDatabase: newDatabase}.newFixture(b)
	hashes := make([][32]byte, tokens)
	for i := range hashes {
		hashes[i] = sha256.Sum256([]byte(strconv.Itoa(i)))
		_, err := fx.CreateToken(b.Context(), "acme", ledger.NewToken{Name: "ci", Scope: ledger.Read}, hashes[i])
		must.OK(b, err)
	}
	lookUp := func(b *testing.B, i int) {
		_, err := fx.TokenByHash(b.Context(), hashes[i%tokens])
		must.OK(b, err)
	}

	b.Run("one after the other", func(b *testing.B) {
		for i := range b.N {
			lookUp(b, i)
		}
	})
	b.Run("16 at a time", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				lookUp(b, i)
			}
		})
	})
}

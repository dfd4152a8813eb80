package store

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// How long recording one attestation holds the writer, on a commit with as much evidence as
// is allowed, under the largest contract.
func BenchmarkRecordLarge(b *testing.B) {
	w := openTwin(b, newTwinFile(b))
	defer w.Close()
	var set []*drawn
	for i := range policy.MaxTopics {
		set = append(set, stated("ci", 0, fmt.Sprint("test:", i), ledger.Pass))
	}
	w.recordSet(b, set)
	w.setLarge(b, 3800)

	n := 0
	for b.Loop() {
		n++
		d := stated("ci", 0, fmt.Sprint("test:", n%policy.MaxTopics), ledger.Fail)
		d.attestation.PayloadDigest[0], d.attestation.PayloadDigest[1] = byte(n), byte(n>>8)
		if _, _, err := w.Record(b.Context(), d.org, d.repo, d.attestation, 0); err != nil {
			b.Fatal(err)
		}
	}
}

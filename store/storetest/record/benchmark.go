package record

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// BenchmarkRecord measures the rate and CPU time of recording verified attestations,
// 64 at a time.
func BenchmarkRecord(b *testing.B, newDatabase storetest.New) {
	fx := suite{NewDatabase: newDatabase}.newFixture(b)
	_, version, err := fx.Keyring(b.Context(), "acme")
	must.OK(b, err)
	attestations := make([]*attestation.Attestation, b.N)
	for i := range attestations {
		attestations[i] = unsigned(i)
	}

	var n atomic.Int64
	b.SetParallelism(64)
	b.ReportAllocs()
	b.ResetTimer()
	before, ok := cpuTime()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _, err := fx.Record(b.Context(), "acme", "api", attestations[n.Add(1)-1], version)
			must.OK(b, err)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	if after, _ := cpuTime(); ok {
		b.ReportMetric(float64((after-before).Nanoseconds())/1000/float64(b.N), "cpu-µs/record")
	}
}

// unsigned returns the i-th example attestation. It has no valid signature.
func unsigned(i int) *attestation.Attestation {
	predicate := []string{"test:go", "lint:golangci", "build:docker", "test:e2e"}[i/1000%4]
	payload := fmt.Appendf(make([]byte, 0, 1000),
		`{"_type":"https://in-toto.io/Statement/v1","run":"%d","log":"%930s"}`, i, "passed")
	envelope := fmt.Appendf(make([]byte, 0, 1500),
		`{"payloadType":"application/vnd.in-toto+json","payload":"%s","signatures":[{"sig":"%088d"}]}`,
		base64.StdEncoding.EncodeToString(payload), i)
	return &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: predicate, Result: ledger.Result{Status: ledger.Pass, DurationMS: 1200}},
		Commit:  sha(i % 1000), PredicateType: attestation.ResultPredicateType,
		Signer: identity.Signer{DN: identity.DN{CN: predicate, OU: "build", O: "acme"}, Identity: "idn_made",
			Key: sha256.Sum256([]byte(predicate))},
		Payload: payload, PayloadDigest: sha256.Sum256(payload), Envelope: envelope,
	}
}

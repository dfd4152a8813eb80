package record

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/radar"
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

// BenchmarkRegisterInFlight registers commits next to 10,000 others in flight, each with its object and a changed path.
func BenchmarkRegisterInFlight(b *testing.B, newDatabase storetest.New) {
	fx := suite{NewDatabase: newDatabase}.newFixture(b)
	n := 0
	register := func() {
		n++
		id, object := storetest.Object(n, "Tom", n)
		_, _, err := fx.Register(b.Context(), "acme", "api", id, ledger.Registration{
			Object: object, Branch: fmt.Sprint("topic/", n),
			Changes: []radar.Change{{Path: fmt.Sprintf("src/%d/%d.go", n%100, n), Status: "M"}},
		})
		must.OK(b, err)
	}
	for n < 10_000 {
		register()
	}
	must.OK(b, fx.Settle(b.Context()))
	for b.Loop() {
		register()
	}
}

// BenchmarkGateOfADelivery asks the gate of a commit for an environment to which it ships 20 and 1,000 others, each
// with a review of its own.
func BenchmarkGateOfADelivery(b *testing.B, newDatabase storetest.New) {
	for _, n := range []int{20, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			g, rita, ops := suite{NewDatabase: newDatabase}.newDelivery(b)
			rita.Attest(g.ids["m0"], "review:code", ledger.Pass)
			ops.Attest(g.ids["m0"], "deploy:prod", ledger.Pass)
			g.review(rita, "m2", "m0")
			for i := 3; i <= n; i++ {
				name, parent := fmt.Sprint("m", i), fmt.Sprint("m", i-1)
				g.commit(name, "Max", parent)
				g.register(name)
				g.review(rita, name, parent)
			}
			head := fmt.Sprint("m", n)
			g.NewSigner("cn=ci,ou=build,o=acme").Attest(g.ids[head], "test:go", ledger.Pass)

			b.ReportAllocs()
			for b.Loop() {
				if gate := g.gate(head); !gate.Reached {
					b.Fatalf("%+v", gate)
				}
			}
		})
	}
}

// BenchmarkMainlineMoves has a commit of the mainline, on which 200 updated branches rest, fall and rise in turns. It
// measures how long it takes until all of them are derived again.
func BenchmarkMainlineMoves(b *testing.B, newDatabase storetest.New) {
	const branches = 200
	g, rita := suite{NewDatabase: newDatabase}.newUpdates(b, branches)
	want := ledger.Promotable
	for b.Loop() {
		status := ledger.Pass
		if want = ledger.Attested + ledger.Promotable - want; want == ledger.Attested {
			status = ledger.Fail
		}
		rita.Attest(g.ids["m1"], "review:code", status)
		must.OK(b, g.Settle(b.Context()))
	}
	for n := range branches {
		g.WantState(g.ids[fmt.Sprint("u", n)], want)
	}
}

// newUpdates returns a mainline m0, m1, and branches from m0 that were reviewed and then updated with m1. All updates
// are PROMOTABLE.
func (s suite) newUpdates(t testing.TB, branches int) (g *graph, rita *storetest.Signer) {
	g = &graph{s.newFixture(t), make(map[string]string), make(map[string][]byte)}
	g.SetContract(updateContract)
	ci, mainline := g.NewSigner("cn=ci,ou=build,o=acme"), g.NewSigner("cn=mainline,ou=build,o=acme")
	rita = g.NewSigner("cn=rita,ou=dev,o=acme")
	g.ids["root"] = sha(0)
	g.commit("m0", "Max", "root")
	g.commit("m1", "Max", "m0")
	g.register("m0", "m1")
	rita.Attest(g.ids["m1"], "review:code", ledger.Pass)

	for n := range branches {
		topic, update := fmt.Sprint("t", n), fmt.Sprint("u", n)
		g.commit(topic, "Tom", "m0")
		g.commit(update, "Max", topic, "m1")
		g.register(topic, update)
		g.review(rita, topic, "m0")
		ci.Attest(g.ids[update], "test:go", ledger.Pass)
		g.claim(mainline, attestation.Updated, update, topic, "m1")
	}
	must.OK(t, g.Settle(t.Context()))
	g.WantState(g.ids["u0"], ledger.Promotable)
	return g, rita
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

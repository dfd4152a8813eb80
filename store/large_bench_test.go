package store

import (
	"fmt"
	"strings"
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

// The longest time that one write holds the writer, for a commit with as much evidence and as
// long a change record as is allowed, under the largest contract, of which nothing is cached.
// The write of the change record itself is not counted.
func BenchmarkWriterHeld(b *testing.B) {
	l := newCostlyLedger(b, "api")
	n := longRegistration("README")
	for i := range n.Changes {
		n.Changes[i].Hunks = append(n.Changes[i].Hunks, n.Changes[1+i%1000].Hunks...)
		n.Changes[i].Hunks = append(n.Changes[i].Hunks, n.Changes[1+i%1000].Hunks...)
		n.Changes[i].Hunks = append(n.Changes[i].Hunks, n.Changes[1+i%1000].Hunks...)
	}
	_, _, err := l.Register(b.Context(), "acme", "api", numbered(0), n)
	check(b, err)
	var set []*drawn
	for i := range policy.MaxTopics {
		set = append(set, stated(fmt.Sprint("p-", i), 0, fmt.Sprint("test:", i%10), ledger.Pass))
	}
	twin{l.Store}.recordSet(b, set)
	twin{l.Store}.setLargest(b)

	w, _ := watch(l.Store, nil)
	check(b, l.Settle(b.Context()))
	settling := w.longest
	w.longest = 0
	for i := 0; b.Loop(); i++ {
		d := stated("p-1", 0, "test:1", []ledger.Status{ledger.Fail, ledger.Pass}[i%2])
		d.attestation.PayloadDigest[0], d.attestation.PayloadDigest[1] = byte(i), byte(i>>8)
		if _, _, err := l.Record(b.Context(), d.org, d.repo, d.attestation, 0); err != nil {
			b.Fatal(err)
		}
	}
	if w.learned > 0 {
		b.Errorf("the writer matched the paths of commits %d times", w.learned)
	}
	b.ReportMetric(settling.Seconds()*1000, "ms-settling")
	b.ReportMetric(w.longest.Seconds()*1000, "ms-longest")
	b.ReportMetric(w.held.Seconds()*1000/float64(w.tries), "ms-held")
}

// setLargest gives a repo a contract with as many requirements, patterns and globs as are
// allowed.
func (w twin) setLargest(t testing.TB) {
	t.Helper()
	var list []string
	for i := range 200 {
		signers, paths := []string{`"cn=p-1"`}, ""
		for n := range 19 {
			signers = append(signers, fmt.Sprintf(`"cn=*-%d-%d"`, i, n))
		}
		if i < 100 {
			paths = fmt.Sprintf(`,"paths":["**/x*/**/y*/**/*.go%d"]`, i)
		}
		list = append(list, fmt.Sprintf(`{"state":"ATTESTED","predicate":"test:%d*","signers":[%s]%s}`,
			i%10, strings.Join(signers, ","), paths))
	}
	contract, err := policy.Parse([]byte(`{"requirements":[` + strings.Join(list, ",") + `]}`))
	check(t, err)
	before, err := w.Policy(t.Context(), "acme", "api", 0)
	check(t, err)
	_, err = w.SetPolicy(t.Context(), "acme", "api", contract, before.Version, "host")
	check(t, err)
}

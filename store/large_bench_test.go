package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// How long recording one attestation takes on a commit with as much evidence as is allowed, under the
// largest contract.
func BenchmarkRecordLarge(b *testing.B) {
	w := openTwin(b, newTwinFile(b))
	defer w.Close()
	var set []*drawn
	for i := range policy.MaxTopics {
		set = append(set, stated("ci", 0, fmt.Sprint("test:", i), ledger.Pass))
	}
	w.recordSet(b, set)
	w.setLargest(b)

	n := 0
	for b.Loop() {
		n++
		d := stated("ci", 0, fmt.Sprint("test:", n%policy.MaxTopics), ledger.Fail)
		d.Attestation.PayloadDigest[0], d.Attestation.PayloadDigest[1] = byte(n), byte(n>>8)
		if _, _, err := w.Record(b.Context(), d.Org, d.Repo, d.Attestation, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// setLargest gives a repo a contract with as many requirements, patterns and globs as are
// allowed.
func (w twin) setLargest(t testing.TB) {
	t.Helper()
	var list []string
	for i := range policy.MaxRequirements {
		var signers []string
		for n := range policy.MaxPatterns / policy.MaxRequirements {
			signers = append(signers, fmt.Sprintf(`"cn=*-%d-%d"`, i, n))
		}
		list = append(list, fmt.Sprintf(
			`{"state":"ATTESTED","predicate":"test:*","signers":[%s],"paths":["**/x*/**/y*/**/*.go%[2]d","%[2]d/**"]}`,
			strings.Join(signers, ","), i))
	}
	contract := must.Get(policy.Parse([]byte(`{"requirements":[` + strings.Join(list, ",") + `]}`)))(t)
	before, err := w.Policy(t.Context(), "acme", "api", 0)
	must.OK(t, err)
	_, err = w.SetPolicy(t.Context(), "acme", "api", contract, before.Version, "host")
	must.OK(t, err)
}

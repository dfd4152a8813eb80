package store_test

import (
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// rollsBack deploys commits in another order than they were deployed in, rolls one back to another, and
// records statements again.
func (e *exerciser) rollsBack() {
	e.t.Helper()
	deploy := func(n int, ago time.Duration) *attestation.Attestation {
		a := e.attestation(sha(n), "deploy:prod", ledger.Pass, buildDN)
		a.FinishedAt = ledger.TimeOf(e.now.Add(-ago))
		_, err := e.post("deployed", a)
		must.OK(e.t, err)
		return a
	}
	rollBack := func(to string) *attestation.Attestation {
		a := e.attestation(sha(6), "rollback:prod", ledger.Recorded, buildDN)
		a.PredicateType = attestation.RollbackPredicateType
		a.Rollback = &attestation.Rollback{Environment: "prod", Reason: "it leaks", To: attestation.RunningCommit{SHA: to}}
		return a
	}

	first := deploy(4, time.Minute)
	deploy(5, time.Hour)
	e.ok(e.post("deployed", first))
	last := deploy(6, 0)
	_, err := e.post("deployed", first)
	e.refused(ledger.CodeStaleStatement, err)

	_, err = e.post("deployed", rollBack(sha(59)))
	e.refused(ledger.CodeInvalidStatement, err)
	a := rollBack(sha(4))
	e.ok(e.post("deployed", a))
	e.ok(e.post("deployed", a))
	_, err = e.post("deployed", last)
	e.refused(ledger.CodeStaleStatement, err)
	e.ok(e.Commit(e.t.Context(), "acme", "deployed", sha(6)))
}

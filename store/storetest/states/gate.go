package states

import (
	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// A gate shuts at once, before the background has derived any state again.
func (s suite) TestGatesDoNotWaitForTheBackground(t *testing.T) {
	for name, shut := range map[string]func(l *live){
		"evidence expires": func(l *live) { l.Clock.Advance(25 * time.Hour) },
		"a key is revoked": func(l *live) { l.distrust(l.reviewer, 1) },
		"the policy changes": func(l *live) {
			l.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"fuzz:*"}],"radar":{"enabled":false}}`)
		},
		"a scan fails": func(l *live) {
			l.ci.Attest(commitOf(1), "scan:image", ledger.Fail)
			l.ci.Attest(commitOf(2), "scan:image", ledger.Fail)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := s.newLive(t)
			l.ci.Attest(commitOf(2), "scan:image", ledger.Pass)
			l.reviewer.Attest(commitOf(2), "review:code", ledger.Pass)
			l.wantGates("", "1 open", "2 open")
			l.wantGates("prod", "1 open", "2 open")
			shut(l)
			l.wantGates("", "1 shut", "2 shut")
			l.wantGates("prod", "1 shut", "2 shut")
		})
	}
}

// The gate of an environment is shut for what was rolled back from there.
func (s suite) TestGateOfAnEnvironment(t *testing.T) {
	l := s.newLive(t)
	l.cd.SendNoticed(l.rollback(commitOf(1), ""), "")
	l.wantGates("", "1 open")
	l.wantGates("prod", "1 shut")
	l.wantGates("pro", "1 open")
}

// wantGates checks the gates for PROMOTABLE and an environment.
func (l *live) wantGates(environment string, want ...string) {
	l.T.Helper()
	for n, want := range want {
		g, err := l.Gate(l.T.Context(), store.DecisionQuery{Org: "acme", Repo: "api", Commit: commitOf(n + 1),
			State: new(ledger.Promotable), Environment: environment})
		must.OK(l.T, err)
		if got := fmt.Sprint(n+1, map[bool]string{true: " open", false: " shut"}[g.Reached]); got != want {
			l.T.Errorf("the gate to %q is %s, want %s", environment, got, want)
		}
	}
}

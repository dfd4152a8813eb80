package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// Events that another process writes to the database reach the stream within a
// second.
func TestStreamShowsWritesOfOtherProcesses(t *testing.T) {
	t.Parallel()
	o := newOrg(t)
	o.start()
	s := o.listen(o.url)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	must.OK(t, os.WriteFile(policy, []byte("requirements:\n- state: ATTESTED\n  predicate: test:*\n"), 0o600))

	for _, test := range []struct {
		args []string
		want []string // event types
	}{
		{[]string{"policy", "apply", "acme/api", "-f", policy}, []string{"policy"}},
		{[]string{"attest", "acme/api", "--commit", "0123456789012345678901234567890123456789", "--predicate", "test:go",
			"--status", "pass", "--key", o.keyFile},
			[]string{"attestation", "state", "state"}},
	} {
		o.ledgerd(test.args...)
		ended := time.Now()
		for _, want := range test.want {
			m := s.next(t)
			if m.event != want {
				t.Errorf("%s: got event %s, want %s", test.args[0], m.event, want)
			}
			if took := m.receivedAt.Sub(ended); took > time.Second {
				t.Errorf("%s: event %s took %s, want at most 1 s", test.args[0], want, took)
			}
		}
	}
}

// If another process revokes a token, the token's streams end within 15 s and
// others stay open.
func TestRevocationEndsTheStream(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	t.Parallel() // mostly waits
	o := newOrg(t)
	o.start()
	open := o.listen(o.url)
	var token ledger.Token
	created := o.ledgerd("token", "create", "--org", "acme", "--name", "short", "--scope", "read", "-o", "json")
	must.OK(t, json.Unmarshal([]byte(created), &token))
	closing := o.listenAs(token.Secret, o.url)

	o.ledgerd("token", "revoke", token.ID, "--org", "acme")
	revoked := time.Now()
	select {
	case m, ok := <-closing.messages:
		if ok {
			t.Errorf("got %+v, want the end of the stream", m)
		}
		t.Logf("the stream ended after %s", time.Since(revoked))
	case <-time.After(15 * time.Second):
		t.Error("the stream is still open after 15 s")
	}

	_, err := o.attest()
	must.OK(t, err)
	open.next(t)
}

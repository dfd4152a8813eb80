package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// What another process writes into the same file reaches the stream within a
// second.
func TestTheStreamTellsWhatOtherProcessesWrite(t *testing.T) {
	t.Parallel()
	o := newOrg(t)
	o.start()
	s := o.listen(o.url)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	check(t, os.WriteFile(policy, []byte("requirements:\n- state: ATTESTED\n  predicate: test:*\n"), 0o600))

	for _, test := range []struct {
		args []string
		want []string // types of events
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
				t.Errorf("%s: got %s, want %s", test.args[0], m.event, want)
			}
			if took := m.at.Sub(ended); took > time.Second {
				t.Errorf("%s: its %s came after %s", test.args[0], want, took)
			}
		}
	}
}

// A token that another process revokes ends its streams within 15 s, and only
// those.
func TestRevocationEndsTheStream(t *testing.T) {
	t.Parallel() // it waits for most of its time
	o := newOrg(t)
	o.start()
	stays := o.listen(o.url)
	var token ledger.Token
	made := o.ledgerd("token", "create", "--org", "acme", "--name", "short", "--scope", "read", "-o", "json")
	check(t, json.Unmarshal([]byte(made), &token))
	ends := o.listenAs(token.Secret, o.url)
	o.ledgerd("token", "revoke", token.ID, "--org", "acme")
	revoked := time.Now()
	select {
	case m, open := <-ends.messages:
		if open {
			t.Errorf("got %+v, want the end of the stream", m)
		}
		t.Logf("the stream ended after %s", time.Since(revoked))
	case <-time.After(15 * time.Second):
		t.Error("the stream goes on after 15 s")
	}
	_, err := o.attest()
	check(t, err)
	stays.next(t)
}

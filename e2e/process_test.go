package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
		{[]string{"attest", "acme/api", "--commit", "0123456789012345678901234567890123456789", "--predicate", "test:go", "--status", "pass", "--key", o.keyFile},
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

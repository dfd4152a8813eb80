package ledger_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestShortSlot(t *testing.T) {
	for slot, want := range map[string]string{
		"": "", "linux/amd64": "linux/amd64",
		"sha256:" + strings.Repeat("ab", 32): "sha256:abababababab",
		strings.Repeat("ab", 20):             "abababababab", // the commit that another one merges
		strings.Repeat("ab", 32):             "abababababab",
		strings.Repeat("long", 20):           strings.Repeat("long", 10),
	} {
		if got := ledger.ShortSlot(slot); got != want {
			t.Errorf("%s: %q, want %q", slot, got, want)
		}
	}
}

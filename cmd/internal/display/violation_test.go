package display

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestNoticeOfArtifactsThatAreNotLinked(t *testing.T) {
	var out strings.Builder
	Notice(&out, ledger.AttestationRecord{Unlinked: 476})
	if got, want := out.String(), "NOTE: 476 more artifacts that the statement names are not linked: "+
		"one links at most 1024 (split it)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out.Reset()
	if Notice(&out, ledger.AttestationRecord{}); out.Len() > 0 {
		t.Errorf("got %q, want nothing", out.String())
	}
}

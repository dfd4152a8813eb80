package gitobject

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A long message is cut, but retains its co-authors.
func TestMessageText(t *testing.T) {
	const trailer = "Co-authored-by: Bob <bob@x>"
	cut := MessageText(strings.Repeat("ü", maxMessage) + "\n\n" + trailer)
	if len(cut) > maxMessage || len(cut) < maxMessage-1 || len(ledger.CoAuthors(cut)) != 1 {
		t.Errorf("%d bytes, end with %q", len(cut), cut[len(cut)-40:])
	}
	if got := MessageText(" One\n\n" + trailer + "\n"); got != "One\n\n"+trailer {
		t.Errorf("short: %q", got)
	}

	var many strings.Builder
	for i := range maxMessage / 20 {
		fmt.Fprintf(&many, "Co-authored-by: %d\n", i)
	}
	if got := MessageText("One\n\n" + many.String()); len(got) > maxMessage {
		t.Errorf("%d bytes", len(got))
	}
}

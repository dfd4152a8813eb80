package authors

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// The sums that show quickly that nobody has a name never say so of somebody's.
func TestSetWrote(t *testing.T) {
	names := []string{"Eve", "eve+work@acme.example", "eve@acme.example", "EVE @acme.example", "github:eve",
		"1+eve@users.noreply.github.com", "Eve@Users.NoReply.GitHub.com", "1-eve@users.noreply.gitlab.com", "github:eve[bot]",
		"evebot", `"eve"@acme.example.`, "mailto:eve@acme.example", "1+eve[bot]@users.noreply.github.com", "\uff25ve", "-"}
	for _, author := range names {
		set := NewSet(&Authorship{Authors: []ledger.Author{{Name: author}}})
		for _, signer := range names {
			want := identity.FoldName(signer) != "" && identity.FoldName(author) == identity.FoldName(signer)
			var s Signer
			s.Set(0, signer, nil)
			if got := set.Wrote(&s); got != want {
				t.Errorf("author %q, signer %q: %t, want %t", author, signer, got, want)
			}
		}
	}
}

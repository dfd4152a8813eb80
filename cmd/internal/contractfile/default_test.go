package contractfile

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// The documentation has the contract of new repos, ready to apply.
func TestDefaultContractIsDocumented(t *testing.T) {
	docs := must.Read(t, "../../../docs/policy.md")
	_, block, ok := strings.Cut(string(docs), "```yaml\n# default.yaml\n")
	block, _, ended := strings.Cut(block, "```")
	if !ok || !ended {
		t.Fatal("docs/policy.md has no default.yaml")
	}

	file, err := Read("default.yaml", []byte(block))
	must.OK(t, err)
	documented, err := file.Contract()
	must.OK(t, err)
	if want := policy.Default(); documented.Digest() != want.Digest() {
		t.Errorf("documented\n%s\nwant\n%s", documented.Canonical(), want.Canonical())
	}
}

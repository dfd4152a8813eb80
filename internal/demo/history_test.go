package demo

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestFitName(t *testing.T) {
	for folder, want := range map[string]string{
		"api": "api", "My Project": "My-Project", "été": "-t-", "..": "repo", "/": "repo",
		strings.Repeat("a", 120): strings.Repeat("a", 100),
	} {
		if got := fitName(folder); got != want || ledger.CheckRepo(got) != nil {
			t.Errorf("%q becomes %q, want %q", folder, got, want)
		}
	}
}

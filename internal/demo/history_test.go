package demo

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestRepoName(t *testing.T) {
	for folder, want := range map[string]string{
		"api": "api", "My Project": "My-Project", "été": "-t-", "..": "repo", "/": "repo",
		strings.Repeat("a", 120): strings.Repeat("a", 100),
	} {
		if got := repoName(folder); got != want || ledger.CheckRepo(got) != nil {
			t.Errorf("repoName(%q) = %q, want %q", folder, got, want)
		}
	}
}

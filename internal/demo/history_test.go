package demo

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// The reviewer is somebody whom no commit names, however the name is written there.
func TestStranger(t *testing.T) {
	for people, want := range map[string]string{
		"": "rita", "Ann ann@example.org": "rita", "RITA": "rita2", "<Rita> Rita2@example.org": "rita3",
		"r i t a": "rita2", "\uff32ita": "rita2", "Co-authored-by: Margarita": "rita2",
	} {
		h := &history{people: policy.FoldName(people)}
		if got := h.stranger("rita"); got != want {
			t.Errorf("among %q: %s, want %s", people, got, want)
		}
	}
}

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

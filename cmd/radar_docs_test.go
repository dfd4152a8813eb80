package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
)

// TestRadarDocs runs the examples for a CI job and a git hook in docs/radar.md, with the
// real binary and the machine's git.
func TestRadarDocs(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	examples := map[string]string{
		"ci.sh":      shellExample(t, "ledgerd commit register acme/api HEAD --branch"),
		"deleted.sh": shellExample(t, "ledgerd commit withdraw acme/api --branch \"$BRANCH\""),
		"pre-push":   shellExample(t, "#!/bin/sh\n"),
	}
	testscript.Run(t, testscript.Params{
		Files:               []string{"testdata/radar_docs.txtar"},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for name, code := range examples {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), []byte(code), 0o755); err != nil {
					return err
				}
			}
			return setUpScript(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": scriptExits, "await": scriptAwait},
	})
}

// shellExample returns the only shell example in docs/radar.md with the given prefix.
func shellExample(t *testing.T, prefix string) string {
	t.Helper()
	text := must.Read(t, filepath.Join("..", "docs", "radar.md"))
	var matches []string
	for _, block := range strings.Split(string(text), "```sh\n")[1:] {
		if code, _, ok := strings.Cut(block, "```"); ok && strings.HasPrefix(code, prefix) {
			matches = append(matches, code)
		}
	}
	if len(matches) != 1 {
		t.Fatalf("docs/radar.md has %d examples with the prefix %q, want 1", len(matches), prefix)
	}
	return matches[0]
}

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
)

// TestRadarDocs runs the examples of docs/radar.md for a CI job and for a git
// hook, with the real binary and the machine's git.
func TestRadarDocs(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	examples := map[string]string{
		"ci.sh":      shellExample(t, "ledgerd commit push acme/api HEAD --branch"),
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

// shellExample returns the one example of docs/radar.md in sh that begins so.
func shellExample(t *testing.T, begin string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "radar.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, block := range strings.Split(string(text), "```sh\n")[1:] {
		if code, _, ok := strings.Cut(block, "```"); ok && strings.HasPrefix(code, begin) {
			found = append(found, code)
		}
	}
	if len(found) != 1 {
		t.Fatalf("docs/radar.md has %d examples that begin with %q, want one", len(found), begin)
	}
	return found[0]
}

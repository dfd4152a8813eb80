package cmd

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/cli"
)

// TestHelp checks that every visible command has a short help, an example and help text
// that fits a terminal.
func TestHelp(t *testing.T) {
	var check func(*cobra.Command)
	check = func(command *cobra.Command) {
		if command.Hidden {
			return
		}
		path := command.CommandPath()
		if command.Short == "" || strings.HasSuffix(command.Short, ".") {
			t.Errorf("%s: short help is %q, want a text without a full stop", path, command.Short)
		}
		if !command.HasSubCommands() && !strings.Contains(command.Example, "  "+path) {
			t.Errorf("%s: example does not use the command: %q", path, command.Example)
		}
		for line := range strings.SplitSeq(command.Long, "\n") {
			if len(line) > 81 {
				t.Errorf("%s: help line is longer than 81 characters: %q", path, line)
			}
		}
		for _, child := range command.Commands() {
			check(child)
		}
	}

	root := newRoot(&cli.Program{})
	check(root)
	for _, name := range []string{"attest", "gate", "radar", "webhook ping", "webhook redeliver", "verify attestation",
		"verify event", "verify commit", "verify repo"} {
		command, _, err := root.Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(command.Long, "EXIT STATUS\n") {
			t.Errorf("%s: help does not list the exit statuses", name)
		}
	}
}

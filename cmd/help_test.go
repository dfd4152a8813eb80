package cmd

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/internal/must"
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

	root := Root()
	check(root)
	for _, name := range []string{"attest", "gate", "radar", "webhook ping", "webhook redeliver", "verify attestation",
		"verify event", "verify commit", "verify repo"} {
		command, _, err := root.Find(strings.Fields(name))
		must.OK(t, err)
		if !strings.Contains(command.Long, "EXIT STATUS\n") {
			t.Errorf("%s: help does not list the exit statuses", name)
		}
	}
}

// TestSecretFlags checks that the help of each flag whose value may be a secret says who can see it
// and what to use instead. Flags of keys take the name of a file.
func TestSecretFlags(t *testing.T) {
	instead := map[string]string{
		"ledgerd --token":                 "LEDGERD_TOKEN or LEDGERD_TOKEN_FILE",
		"ledgerd serve --webhooks-proxy":  "LEDGERD_WEBHOOKS_PROXY",
		"ledgerd webhook add --url":       "- reads it from standard input",
		"ledgerd webhook update --url":    "- reads it from standard input",
		"ledgerd webhook listen --secret": "LEDGERD_WEBHOOK_SECRET or LEDGERD_WEBHOOK_SECRET_FILE",
	}
	checkFlag := func(path string, f *pflag.Flag) {
		kind, usage := pflag.UnquoteUsage(f)
		if want, ok := instead[path]; ok {
			delete(instead, path)
			if !strings.Contains(usage, "other users of this machine") || !strings.Contains(usage, want) {
				t.Errorf("%s: the help is %q, want who can see the value, and %s", path, usage, want)
			}
			return
		}
		for _, word := range []string{"token", "secret", "password", "key", "credential"} {
			if strings.Contains(f.Name, word) && kind != "" && kind != "file" && kind != "folder" {
				t.Errorf("%s takes a %s: if that is a secret, its help must say who can see it", path, kind)
			}
		}
	}

	var checkCommand func(*cobra.Command)
	checkCommand = func(command *cobra.Command) {
		command.LocalFlags().VisitAll(func(f *pflag.Flag) { checkFlag(command.CommandPath()+" --"+f.Name, f) })
		for _, child := range command.Commands() {
			checkCommand(child)
		}
	}
	checkCommand(Root())
	for path := range instead {
		t.Errorf("%s does not exist", path)
	}
}

package run

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newConfig(p *cli.Program) *cobra.Command {
	return cli.Group("config", "Show and check the configuration", newConfigShow(p), newConfigCheck(p))
}

func newConfigShow(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the configuration in effect, without secrets",
		Long: `Prints the configuration in effect. Flags take precedence over the environment,
the environment over the configuration file, and the file over the defaults. The
file is named by --config or LEDGERD_CONFIG. The environment variable of a key
such as log.level is LEDGERD_LOG_LEVEL.`,
		Example: "  ledgerd config show --config /etc/ledgerd/config.yaml",
		RunE: func(command *cobra.Command, _ []string) error {
			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			text, err := terminal.YAML(s)
			if err != nil {
				return err
			}
			var record map[string]any
			if err := yaml.Unmarshal(text, &record); err != nil {
				return fmt.Errorf("read YAML: %w", err)
			}
			return p.Print(record, func() { _, _ = p.Stdout.Exact().Write(text) })
		},
	}
}

func newConfigCheck(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, for instance before a restart",
		Long: `Reports every error in the configuration in effect, and in the files that
log.policy, webhooks.secrets_key and sign_in.providers name. It also reports
unknown environment variables that begin with LEDGERD_, such as misspelt ones;
all other commands ignore them. Settings that were removed have no effect, and
are named.`,
		Example: "  ledgerd config check --config /etc/ledgerd/config.yaml",
		RunE: func(command *cobra.Command, _ []string) error {
			s, err := p.Settings(command)
			if err == nil {
				err = s.CheckFiles()
			}
			if err = errors.Join(err, config.CheckEnvironment(os.Environ())); err != nil {
				return err
			}
			for _, note := range s.Gone {
				fmt.Fprintf(p.Hints(), "ledgerd: %s\n", terminal.Printable(note))
			}
			return p.Confirm(struct {
				OK bool `json:"ok"`
			}{true}, func() { fmt.Fprintln(p.Stdout, "configuration OK") })
		},
	}
}

package cmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newConfig(p *program) *cobra.Command {
	return group("config", "See and check the configuration", newConfigShow(p), newConfigCheck(p))
}

func newConfigShow(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the configuration that holds, without secrets",
		Long: `Prints the configuration that holds here: flags over the environment, where
log.level is LEDGERD_LOG_LEVEL, over the file that --config or LEDGERD_CONFIG
names, over the defaults.`,
		Example: "  ledgerd config show --config /etc/ledgerd/config.yaml",
		Args:    takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			s, err := p.settings(command)
			if err != nil {
				return err
			}
			text, err := terminal.YAML(s)
			if err != nil {
				return err
			}
			var record map[string]any
			if err := yaml.Unmarshal(text, &record); err != nil {
				return fmt.Errorf("reading YAML: %w", err)
			}
			return p.print(record, func() { _, _ = p.stdout.Write(text) })
		},
	}
}

func newConfigCheck(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Tell whether the configuration is right, before a restart does",
		Long: `Tells all that is wrong with the configuration that holds here. It also names
the LEDGERD_ variables of the environment that nothing reads: a misspelt one
changes nothing, and no other command says so.`,
		Example: "  ledgerd config check --config /etc/ledgerd/config.yaml",
		Args:    takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := p.settings(command)
			if err = errors.Join(err, config.CheckEnvironment(os.Environ())); err != nil {
				return err
			}
			return p.print(struct {
				OK bool `json:"ok"`
			}{true}, func() { fmt.Fprintln(p.stdout, "the configuration is right") })
		},
	}
}

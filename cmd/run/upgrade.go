package run

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newUpgrade(p *cli.Program) *cobra.Command {
	var check bool
	url := buildinfo.LatestRelease
	command := &cobra.Command{
		Use:   "upgrade --check",
		Short: "Look for a newer release",
		Long: `Asks GitHub for the latest release, and compares it with this program. Nothing
is replaced: docs/install.md says how to upgrade. No other command asks for
releases.

EXIT STATUS
  0  this is the latest release, or a build that is not a release
  1  the latest release is not known
  2  wrong flags or arguments
  4  there is a newer release`,
		Example: `  ledgerd upgrade --check
  ledgerd upgrade --check --releases https://mirror.example.com/ledgerd/latest.json`,
	}
	command.Flags().BoolVar(&check, "check", false, "look for a newer release")
	command.Flags().StringVar(&url, "releases", url, "`URL` of the latest release, in the form of GitHub's API")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if !check {
			return cli.Usagef("upgrade needs --check: ledgerd does not replace itself")
		}
		ctx, cancel := context.WithTimeout(command.Context(), 10*time.Second)
		defer cancel()
		latest, err := buildinfo.Latest(ctx, url)
		if err != nil {
			return err
		}
		return printUpgrade(p, latest)
	}
	return command
}

// printUpgrade prints the latest release, and returns an error if it is newer than this program.
func printUpgrade(p *cli.Program, latest buildinfo.Release) error {
	version := buildinfo.Version()
	record := struct {
		Version string `json:"version"`
		Latest  string `json:"latest"`
		Newer   bool   `json:"newer"`
		URL     string `json:"url"`
	}{version, latest.Version, latest.IsNewerThan(version), latest.URL}
	err := p.Print(record, func() {
		if record.Newer {
			fmt.Fprintf(p.Stdout, "ledgerd %s is released; this is %s.\n%s\n", latest.Version, version,
				terminal.Clean(latest.URL))
			return
		}
		fmt.Fprintf(p.Stdout, "The latest release is ledgerd %s; this is %s.\n", latest.Version, version)
	})
	if err != nil || !record.Newer {
		return err
	}
	return &cli.ExitError{Status: cli.ExitNotReached}
}

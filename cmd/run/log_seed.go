package run

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/transparency"
)

func newLogNewSeed(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:   "new-seed",
		Short: "Create the seed from which servers derive the keys of logs",
		Long: `Creates the file "seed" in a folder of log keys, by default that of log.key_dir.
The folder is created if it does not exist. A seed that exists is not replaced.

Servers derive the key of each log that has no key file from the seed. So several
servers with one PostgreSQL database have the same keys for the logs of new orgs,
and log.key_dir can be a read-only mount. Set log.state_dir on each of them.

Anyone who has the seed can sign every log whose key is derived from it.`,
		Example: `  ledgerd log new-seed /etc/ledgerd/keys`,
		RunE: func(command *cobra.Command, args []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("log new-seed does not take %s: it writes to a folder of this host", flag)
			}
			folder, err := seedFolder(command, p, args)
			if err != nil {
				return err
			}
			file, err := transparency.CreateSeed(folder)
			if err != nil {
				return err
			}
			return p.Print(struct {
				File string `json:"file"`
			}{file}, func() {
				fmt.Fprintf(p.Stdout, "Created %s\nCopy it to log.key_dir of every server with the database, and back it up "+
					"apart from the database.\n", file)
			})
		},
	}, "[FOLDER]")
}

// seedFolder returns the folder that is given, or that of the settings.
func seedFolder(command *cobra.Command, p *cli.Program, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	s, err := p.Settings(command)
	if err != nil {
		return "", err
	}
	if s.Database.IsServer() && s.Log.KeyDir == "" {
		return "", cli.Usagef("log.key_dir is not set: name a FOLDER")
	}
	return s.KeyDir(), nil
}

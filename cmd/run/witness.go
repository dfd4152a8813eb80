package run

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/transparency"
	"github.com/ledgerd/ledgerd/transparency/witness"
)

func newWitness(p *cli.Program) *cobra.Command {
	return cli.Group("witness", "Show and set up the witness of other servers' logs", newWitnessShow(p),
		newWitnessNewKey(p))
}

// A witnessRecord says how others use the witness.
type witnessRecord struct {
	Name string   `json:"name"`
	Key  string   `json:"key"`
	URL  string   `json:"url,omitzero"`
	Line string   `json:"policy_line"`
	Logs []string `json:"logs"`
}

func newWitnessShow(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the key of the witness, and the logs that it knows",
		Long: `Prints the name and the verifier key of this server's witness, the line for
the trust policies of those who use it, and the logs whose checkpoints it
cosigns (the file in the setting witness.logs). Reads the key in log.state_dir:
run it on the host.`,
		Example: "  ledgerd witness show --config /etc/ledgerd/config.yaml",
		Args:    cli.Takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			key, err := witness.Key(s.StateDir())
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the witness has no key in %s (run 'ledgerd witness new-key', or set witness.logs and start "+
					"the server)", s.StateDir())
			}
			if err != nil {
				return err
			}
			return showWitness(p, s, key.Name, key.String())
		},
	}
}

func newWitnessNewKey(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "new-key",
		Short: "Create a new key for the witness",
		Long: `Creates a new key for this server's witness in log.state_dir. Stop the server
first. The key before it is renamed and not used again: all who use the witness
must replace it in their trust policies. A witness whose database was restored
from a backup needs a new key, since it no longer knows what it has cosigned
with the old one.`,
		Example: "  ledgerd witness new-key --config /etc/ledgerd/config.yaml",
		Args:    cli.Takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			name, err := s.WitnessName()
			if err != nil {
				return err
			}
			if _, err := transparency.OpenKeys(s.KeyDir(), s.StateDir()); err != nil {
				return err
			}
			key, err := witness.NewKey(s.StateDir(), name)
			if err != nil {
				return err
			}
			return showWitness(p, s, key.Name, key.String())
		},
	}
}

// showWitness prints a witness with its key.
func showWitness(p *cli.Program, s config.Settings, name, key string) error {
	logs, err := s.Witness.LoadLogs()
	if err != nil {
		return err
	}
	r := witnessRecord{Name: name, Key: key, Logs: []string{}}
	if u := s.BaseURL.URL(); u != nil {
		r.URL = u.JoinPath("v1", "witness").String()
	}
	r.Line = strings.TrimSpace(fmt.Sprintf("witness %s %s %s", name, key, r.URL))
	for _, l := range logs {
		r.Logs = append(r.Logs, l.Key.String())
	}

	return p.Print(r, func() {
		fmt.Fprintf(p.Stdout, "name    %s\nkey     %s\n", r.Name, r.Key)
		if r.URL != "" {
			fmt.Fprintf(p.Stdout, "URL     %s\n", r.URL)
		}
		fmt.Fprintf(p.Stdout, "policy  %s\n", r.Line)
		for _, l := range r.Logs {
			fmt.Fprintf(p.Stdout, "log     %s\n", l)
		}
		if len(r.Logs) == 0 {
			fmt.Fprintln(p.Stdout, "No logs: name the file with their keys in witness.logs.")
		}
	})
}

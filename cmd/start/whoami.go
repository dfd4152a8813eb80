package start

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newWhoami(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show the ledger, the token and the repo that commands use here",
		Long: `Shows which server or database commands use in this folder, with which token, and
the repo of commands without ORG/REPO. The repo is that of LEDGERD_REPO, else of
.ledgerd.yaml in the git work tree, else of the git remote origin if the ledger
has it.`,
		Example: "  ledgerd whoami\n  ledgerd whoami -o json",
		RunE: func(command *cobra.Command, _ []string) error {
			l, err := p.Locate(command)
			if err != nil {
				return err
			}
			return l.Use(command.Context(), func(ctx context.Context, c *cli.Connection) error {
				return whoami(ctx, p, l, c)
			})
		},
	}
}

func whoami(ctx context.Context, p *cli.Program, l cli.Location, c *cli.Connection) error {
	record := struct {
		Server     string       `json:"server,omitzero"`
		Database   string       `json:"database,omitzero"`
		Context    string       `json:"context,omitzero"`
		Token      ledger.Token `json:"token"`
		Repo       string       `json:"repo,omitzero"`
		RepoSource string       `json:"repo_source,omitzero"`
	}{Server: l.URL, Context: p.ContextName(), Token: ledger.Token{Name: "host", Scope: ledger.Host}}
	if c.Local != nil {
		record.Database = l.Settings.Database.String()
	} else {
		own, err := c.OwnToken(ctx)
		if err != nil {
			return err
		}
		record.Token = own
	}
	if name, source, err := p.DescribeRepo(ctx, c); err == nil {
		record.Repo, record.RepoSource = name.String(), source
	}

	return p.Print(record, func() {
		t := terminal.NewTable(p.Stdout)
		if record.Database != "" {
			t.Row("database", record.Database)
		} else {
			t.Row("server", record.Server)
		}
		t.Row("context", terminal.OrDash(record.Context))
		t.Row("token", record.Token.Name)
		t.Row("scope", record.Token.Scope)
		t.Row("org", terminal.OrDash(record.Token.Org))
		repo := terminal.OrDash(record.Repo)
		if record.RepoSource != "" {
			repo += " (" + record.RepoSource + ")"
		}
		t.Row("repo", repo)
		t.Flush()
	})
}

package manage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newRepoRename(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:   "rename",
		Short: "Rename a repo, or restore a deleted one",
		Long: `Gives a repo another name. Requests for the former name get an error that names
the new one. What was recorded before keeps the former name in its events.

A deleted repo is restored by a name: 'ledgerd repo list --deleted' lists them.
Its webhooks stay disabled, and its branches have to be registered again for
Conflict Radar.`,
		Example: `  ledgerd repo rename acme/api core
  ledgerd repo rename acme/~7 api`,
		RunE: func(command *cobra.Command, args []string) error {
			name, err := cli.ParseRepoName(args[0])
			if err != nil {
				return err
			}
			return p.With(command, func(ctx context.Context, c *cli.Connection) error {
				return changeRepo(ctx, p, c, name, "Renamed "+args[0]+" to %s\n", ledger.RepoChange{Name: &args[1]})
			})
		},
	}, "ORG/REPO", "NAME")
}

func newRepoArchive(p *cli.Program, archived bool) *cobra.Command {
	command := &cobra.Command{
		Use:   "archive",
		Short: "Make a repo read-only",
		Long: `Archives a repo: attestations, commits and policies are refused, and all that is
recorded can be read. Evidence still expires. 'ledgerd repo unarchive' ends it.`,
		Example: "  ledgerd repo archive acme/api",
	}
	text := "Archived %s\n"
	if !archived {
		command.Use, command.Short, text = "unarchive", "Take writes to an archived repo again", "Unarchived %s\n"
		command.Long, command.Example = "", "  ledgerd repo unarchive acme/api"
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
			return changeRepo(ctx, p, c, name, text, ledger.RepoChange{Archived: &archived})
		})
	}
	return p.Takes(command, cli.RepoArg)
}

// changeRepo changes a repo, and prints a text with its name.
func changeRepo(
	ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, text string, change ledger.RepoChange,
) error {
	repo, err := c.ChangeRepo(ctx, name.Org, name.Repo, change)
	if err != nil {
		return err
	}
	return p.Confirm(repo, func() { terminal.Printf(p.Stdout, text, repo.Org+"/"+repo.Name) })
}

// A deletedName is what the commands that delete print.
type deletedName struct {
	Name string `json:"name"`
}

func newRepoDelete(p *cli.Program) *cobra.Command {
	return newRepoEnd(p, "delete", "Deleted", (*client.Client).DeleteRepo, p.Takes(&cobra.Command{
		Use:   "delete",
		Short: "Delete a repo, and keep its evidence",
		Long: `Deletes a repo, after asking for its name. The name becomes free, its webhooks
are disabled, and its branches are no longer in flight. What it has recorded
stays: 'ledgerd repo list --deleted' shows the name under which it can be read,
such as acme/~7, and 'ledgerd repo rename' restores it.`,
		Example: `  ledgerd repo delete acme/api
  ledgerd repo delete acme/api --confirm api`,
	}, "ORG/REPO"))
}

// newRepoEnd makes a command that deletes or purges a repo, after its name is confirmed.
func newRepoEnd(
	p *cli.Program, verb, done string, end func(c *client.Client, ctx context.Context, org, repo string) error,
	command *cobra.Command,
) *cobra.Command {
	var confirmed string
	command.RunE = func(command *cobra.Command, args []string) error {
		name, err := cli.ParseRepoName(args[0])
		if err != nil {
			return err
		}
		return p.With(command, func(ctx context.Context, c *cli.Connection) error {
			if err := p.ConfirmName(verb, "repo", name.Repo, confirmed); err != nil {
				return err
			}
			if err := end(c.Client, ctx, name.Org, name.Repo); err != nil {
				return err
			}
			return p.Confirm(deletedName{name.String()}, func() { terminal.Printf(p.Stdout, "%s %s\n", done, name) })
		})
	}
	cli.ConfirmFlag(command, &confirmed)
	return command
}

func newOrgRename(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:   "rename",
		Short: "Rename an org, or restore a deleted one",
		Long: `Gives an org another name. Its tokens stay valid, for the new name; requests for
the former one are refused. What was recorded before keeps the former name. An
org whose transparency log is signed keeps its name. Only the administrator of
the host may do this.

A deleted org is restored by a name: 'ledgerd org list --deleted' lists them. Its
tokens stay revoked, and its webhooks disabled.`,
		Example: `  ledgerd org rename acme globex --database ledger.db
  ledgerd org rename '~3' acme --database ledger.db`,
		RunE: func(command *cobra.Command, args []string) error {
			return changeOrg(p, command, args[:1], "Renamed "+args[0]+" to %s\n", ledger.OrgChange{Name: &args[1]})
		},
	}, "ORG", "NAME")
}

func newOrgArchive(p *cli.Program, archived bool) *cobra.Command {
	command := &cobra.Command{
		Use:   "archive",
		Short: "Make an org read-only",
		Long: `Archives an org with all its repos: nothing is recorded, and no repo, token or
identity is added. Tokens and identities can be revoked. 'ledgerd org unarchive'
ends it.`,
		Example: "  ledgerd org archive acme",
	}
	text := "Archived %s\n"
	if !archived {
		command.Use, command.Short, text = "unarchive", "Take writes to an archived org again", "Unarchived %s\n"
		command.Long, command.Example = "", "  ledgerd org unarchive acme"
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		return changeOrg(p, command, args, text, ledger.OrgChange{Archived: &archived})
	}
	return p.Takes(command, "[ORG]")
}

// changeOrg changes an org, and prints a text with its name.
func changeOrg(p *cli.Program, command *cobra.Command, args []string, text string, change ledger.OrgChange) error {
	return p.WithOrgArg(command, args, &p.Global.Repo, func(ctx context.Context, c *cli.Connection, org string) error {
		changed, err := c.ChangeOrg(ctx, org, change)
		if err != nil {
			return err
		}
		return p.Confirm(changed, func() { terminal.Printf(p.Stdout, text, changed.Name) })
	})
}

func newOrgDelete(p *cli.Program) *cobra.Command {
	return newOrgEnd(p, "delete", "Deleted", (*client.Client).DeleteOrg, p.Takes(&cobra.Command{
		Use:   "delete",
		Short: "Delete an org, and keep its evidence",
		Long: `Deletes an org, after asking for its name. The name becomes free, its tokens and
sessions end, and its webhooks are disabled. What it has recorded stays: 'ledgerd
org list --deleted' shows the name under which the administrator of the host can
read it, such as ~3, and 'ledgerd org rename' restores it.`,
		Example: "  ledgerd org delete acme --database ledger.db",
	}, "ORG"))
}

// newOrgEnd makes a command that deletes or purges an org, after its name is confirmed.
func newOrgEnd(
	p *cli.Program, verb, done string, end func(c *client.Client, ctx context.Context, org string) error,
	command *cobra.Command,
) *cobra.Command {
	var confirmed string
	command.RunE = func(command *cobra.Command, args []string) error {
		return p.WithOrgArg(command, args, &p.Global.Repo, func(ctx context.Context, c *cli.Connection, org string) error {
			if err := p.ConfirmName(verb, "org", org, confirmed); err != nil {
				return err
			}
			if err := end(c.Client, ctx, org); err != nil {
				return err
			}
			return p.Confirm(deletedName{org}, func() { terminal.Printf(p.Stdout, "%s %s\n", done, org) })
		})
	}
	cli.ConfirmFlag(command, &confirmed)
	return command
}

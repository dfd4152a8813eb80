package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// WithRepo runs do with a connection and the repo of the command: that of ORG/REPO, or
// else the default.
func (p *Program) WithRepo(
	command *cobra.Command, args []string, do func(context.Context, *Connection, RepoName) error,
) error {
	return p.withRest(command, args, func(ctx context.Context, c *Connection, name RepoName, _ []string) error {
		return do(ctx, c, name)
	})
}

// OnArg returns the function of a command that runs do as WithRepo does, and passes it the one argument after
// ORG/REPO, or "" without one.
func (p *Program) OnArg(
	do func(context.Context, *Connection, RepoName, string) error,
) func(command *cobra.Command, args []string) error {
	return func(command *cobra.Command, args []string) error {
		return p.withRest(command, args, func(ctx context.Context, c *Connection, name RepoName, rest []string) error {
			return do(ctx, c, name, strings.Join(rest, "")) // at most one
		})
	}
}

// withRest is like WithRepo, and passes the arguments after ORG/REPO to do.
func (p *Program) withRest(
	command *cobra.Command, args []string, do func(context.Context, *Connection, RepoName, []string) error,
) error {
	n, err := p.named(command, args)
	if err != nil {
		return err
	}
	return p.With(command, func(ctx context.Context, c *Connection) error {
		name, rest, err := p.resolve(ctx, c, n)
		if err != nil {
			return err
		}
		return do(ctx, c, name, rest)
	})
}

// Repo returns the repo of the command, and the arguments after ORG/REPO. It connects to
// the ledger only if it has to ask for the org or for the repo.
func (p *Program) Repo(command *cobra.Command, args []string) (name RepoName, rest []string, err error) {
	n, err := p.named(command, args)
	if err != nil {
		return RepoName{}, nil, err
	}
	if name, ok := n.whole(); ok {
		p.repoSource = n.source
		return name, n.rest, nil
	}
	err = p.With(command, func(ctx context.Context, c *Connection) (err error) {
		name, rest, err = p.resolve(ctx, c, n)
		return err
	})
	return name, rest, err
}

// WithNewRepo runs do with a connection and the name of a repo to create: ORG/REPO, or
// REPO of the default org.
func (p *Program) WithNewRepo(
	command *cobra.Command, text string, do func(context.Context, *Connection, RepoName) error,
) error {
	if !isRepoName(text) && ledger.CheckRepo(text) != nil {
		return Usagef("invalid repo %q: use ORG/REPO, such as acme/api, or REPO", text)
	}
	return p.With(command, func(ctx context.Context, c *Connection) error {
		name, err := p.complete(ctx, c, text)
		if err != nil {
			return err
		}
		return do(ctx, c, name)
	})
}

// OrgArg returns the argument ORG, or else the org of --repo if that is ORG/REPO, or else
// the default. It leaves only REPO in the value of --repo.
func (p *Program) OrgArg(command *cobra.Command, args []string, repo *string) (org string, err error) {
	if org, err = orgArg(args, repo); org != "" || err != nil {
		return org, err
	}
	err = p.WithOrg(command, "", func(_ context.Context, _ *Connection, found string) error {
		org = found
		return nil
	})
	return org, err
}

// WithOrgArg runs do with a connection and the org that OrgArg returns.
func (p *Program) WithOrgArg(
	command *cobra.Command, args []string, repo *string, do func(context.Context, *Connection, string) error,
) error {
	org, err := orgArg(args, repo)
	if err != nil {
		return err
	}
	return p.WithOrg(command, org, do)
}

// orgArg returns the argument ORG, or else the org of --repo, or else "".
func orgArg(args []string, repo *string) (string, error) {
	org, name, ok := cutRepo(*repo)
	if ok {
		*repo = name
	} else {
		org = ""
	}
	switch {
	case len(args) == 0:
		return org, nil
	case ledger.CheckOrg(args[0]) != nil && !ledger.IsDeletedName(args[0]):
		return "", Usagef("invalid org name %q", args[0])
	case org != "" && org != args[0]:
		return "", Usagef("invalid --repo %q: use a repo of %s, such as api", org+"/"+name, args[0])
	}
	return args[0], nil
}

// WithOrgOrRepo runs do with a connection and the argument ORG or ORG/REPO, or else
// --repo, or else the default org. Without a repo, its name is empty.
func (p *Program) WithOrgOrRepo(
	command *cobra.Command, args []string, do func(ctx context.Context, c *Connection, org, repo string) error,
) error {
	text := p.Global.Repo
	if len(args) > 0 {
		if text != "" {
			return Usagef("%s and --repo are mutually exclusive", args[0])
		}
		text = args[0]
		if !isRepoName(text) && ledger.CheckOrg(text) != nil {
			return Usagef("invalid name %q: use ORG or ORG/REPO, such as acme/api", text)
		}
		if !isRepoName(text) {
			return p.With(command, func(ctx context.Context, c *Connection) error { return do(ctx, c, text, "") })
		}
	}

	return p.With(command, func(ctx context.Context, c *Connection) error {
		if text == "" {
			org, err := p.defaultOrg(ctx, c)
			if err != nil {
				return err
			}
			return do(ctx, c, org, "")
		}
		name, err := p.complete(ctx, c, text)
		if err != nil {
			return err
		}
		return do(ctx, c, name.Org, name.Repo)
	})
}

// OrgFlag defines --org.
func OrgFlag(command *cobra.Command, value *string) {
	command.Flags().StringVar(value, "org", "", "`org` (default: that of the token, or the only one of the database)")
}

// ForOrg makes a command run do with a connection, the org of --org or else the default, and the
// arguments. It returns the command, for which it defines --org and declares the arguments as Takes does.
func (p *Program) ForOrg(
	command *cobra.Command, do func(ctx context.Context, c *Connection, org string, args []string) error, names ...string,
) *cobra.Command {
	OrgFlag(command, &p.Global.Org)
	command.RunE = func(command *cobra.Command, args []string) error {
		return p.WithOrg(command, p.Global.Org, func(ctx context.Context, c *Connection, org string) error {
			return do(ctx, c, org, args)
		})
	}
	if len(names) > 0 {
		p.Takes(command, names...)
	}
	return command
}

// An Ended is the JSON output of commands that remove or end something.
type Ended struct {
	ID  string `json:"id"`
	Org string `json:"org"`
}

// ForID makes a command end what has the ID that is its argument, and confirm it, with the word done.
// With a question, which gets the ID and the org, it asks first.
func (p *Program) ForID(
	command *cobra.Command, done, question string,
	end func(c *client.Client, ctx context.Context, org, id string) error,
) *cobra.Command {
	if question != "" {
		p.YesFlag(command)
	}
	return p.ForOrg(command, func(ctx context.Context, c *Connection, org string, args []string) error {
		id := args[0]
		if question != "" {
			if err := p.Askf(question, id, org); err != nil {
				return err
			}
		}
		if err := end(c.Client, ctx, org, id); err != nil {
			return err
		}
		return p.Confirm(Ended{id, org}, func() { terminal.Printf(p.Stdout, "%s %s\n", done, id) })
	}, "ID")
}

// WithOrg runs do with a connection and the org of --org, or else the default.
func (p *Program) WithOrg(
	command *cobra.Command, org string, do func(ctx context.Context, c *Connection, org string) error,
) error {
	return p.With(command, func(ctx context.Context, c *Connection) (err error) {
		if org == "" {
			if org, err = p.defaultOrg(ctx, c); err != nil {
				return err
			}
		}
		if ledger.CheckOrg(org) != nil && !ledger.IsDeletedName(org) {
			return Usagef("invalid --org %q", org)
		}
		return do(ctx, c, org)
	})
}

// OnWebhook is like OnArg, for the argument WEBHOOK.
func (p *Program) OnWebhook(
	do func(ctx context.Context, c *Connection, name RepoName, id string) error,
) func(command *cobra.Command, args []string) error {
	return func(command *cobra.Command, args []string) error {
		return p.withRest(command, args, func(ctx context.Context, c *Connection, name RepoName, rest []string) error {
			err := do(ctx, c, name, rest[0])
			if client.CodeOf(err) == ledger.CodeWebhookInactive {
				err = fmt.Errorf("%w (run 'ledgerd webhook update %s %s --active')", err, name, terminal.Printable(rest[0]))
			}
			return err
		})
	}
}

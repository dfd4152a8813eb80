package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/connect"
	"github.com/ledgerd/ledgerd/internal/display"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// Where a command finds the ledger, and its client.
type (
	location   = connect.Location
	connection = connect.Connection
)

// serverFlag replaces --url in commands whose --url has another meaning.
const serverFlag = "server"

// settings returns the settings in effect for a command.
func (p *program) settings(command *cobra.Command) (config.Settings, error) {
	return config.Load(command.Flags(), p.global.config)
}

// locate returns the location that the flags, the environment and the configuration
// file set. It opens nothing. If they set both a server and a database, it prints which
// one is used.
func (p *program) locate(command *cobra.Command) (location, error) {
	s, err := p.settings(command)
	if err != nil {
		return location{}, err
	}
	flag := "--url"
	if command.Flags().Lookup(serverFlag) != nil {
		flag = "--" + serverFlag
	}
	where, err := s.Locate(flag, p.global.url)
	if err != nil {
		return location{}, usagef("%w", err)
	}

	l := location{Location: where, Settings: s}
	if l.URL == "" && p.global.token != "" {
		return l, usagef("--token requires %s: a database file needs no token", l.URLName)
	}
	if l.Note != "" {
		fmt.Fprintf(p.stderr, "ledgerd: %s\n", terminal.Printable(l.Note))
	}
	if l.URL != "" {
		l.Token, err = p.token()
	}
	return l, err
}

// token returns the API token from the flag or else the environment.
func (p *program) token() (string, error) {
	if p.global.token != "" {
		return p.global.token, nil
	}
	if token := os.Getenv("LEDGERD_TOKEN"); token != "" {
		return strings.TrimSpace(token), nil
	}
	file := os.Getenv("LEDGERD_TOKEN_FILE")
	if file == "" {
		return "", errors.New("an API token is required: set LEDGERD_TOKEN, LEDGERD_TOKEN_FILE or --token")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("LEDGERD_TOKEN_FILE: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// with runs do on a connection to the ledger of the command.
func (p *program) with(command *cobra.Command, do func(ctx context.Context, c *connection) error) error {
	l, err := p.locate(command)
	if err != nil {
		return err
	}
	return l.Use(command.Context(), do)
}

// A repoName is the argument ORG/REPO.
type repoName struct{ org, repo string }

func (n repoName) String() string { return n.org + "/" + n.repo }

func parseRepoName(s string) (repoName, error) {
	org, repo, ok := strings.Cut(s, "/")
	if !ok || ledger.CheckOrg(org) != nil || ledger.CheckRepo(repo) != nil {
		return repoName{}, usagef("invalid repo %q: use ORG/REPO, such as acme/api", s)
	}
	return repoName{org, repo}, nil
}

// withRepo runs do with a connection and the repo of the first argument.
func (p *program) withRepo(
	command *cobra.Command, args []string, do func(context.Context, *connection, repoName) error,
) error {
	name, err := parseRepoName(args[0])
	if err != nil {
		return err
	}
	return p.with(command, func(ctx context.Context, c *connection) error { return do(ctx, c, name) })
}

// orgFlag defines --org.
func orgFlag(command *cobra.Command, value *string) {
	command.Flags().StringVar(value, "org", "", "`org` (default: the token's org)")
}

// withOrg runs do with a connection and the org of --org, or by default the org of
// the caller's token.
func (p *program) withOrg(
	command *cobra.Command, org string, do func(ctx context.Context, c *connection, org string) error,
) error {
	return p.with(command, func(ctx context.Context, c *connection) error {
		if org == "" && c.Local != nil {
			return usagef("--org is required")
		}
		if org == "" {
			own, err := c.OwnToken(ctx)
			if err != nil {
				return err
			}
			org = own.Org
		}
		if ledger.CheckOrg(org) != nil {
			return usagef("invalid --org %q", org)
		}
		return do(ctx, c, org)
	})
}

// at returns ORG/REPO@SHA for a commit of the repo, with an abbreviated sha.
func (n repoName) at(sha string) string { return display.At(n.String(), sha) }

// mustExist returns an error if the repo does not exist or the caller has no access.
func (n repoName) mustExist(ctx context.Context, c *connection) error {
	_, err := c.Repo(ctx, n.org, n.repo)
	return err
}

// withWebhook runs do with a connection and the webhook of the first two arguments.
func (p *program) withWebhook(
	command *cobra.Command, args []string, do func(ctx context.Context, c *connection, name repoName, id string) error,
) error {
	return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
		err := do(ctx, c, name, args[1])
		if client.CodeOf(err) == ledger.CodeWebhookInactive {
			err = fmt.Errorf("%w (run 'ledgerd webhook update %s %s --active')", err, name, terminal.Printable(args[1]))
		}
		return err
	})
}

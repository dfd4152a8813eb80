package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A target is the ledger that a command is about: a server, or a database file
// of this machine.
type target struct {
	url      string // empty for a file
	from     string // what gave the URL: --url, --server or LEDGERD_URL
	token    string
	settings config.Settings
}

// serverFlag takes the place of --url in commands whose --url is another one.
const serverFlag = "server"

// settings returns the settings in effect for a command.
func (p *program) settings(command *cobra.Command) (config.Settings, error) {
	return config.Load(command.Flags(), p.global.config)
}

// target finds out what the command line and the environment name. It opens
// nothing.
func (p *program) target(command *cobra.Command) (target, error) {
	s, err := p.settings(command)
	if err != nil {
		return target{}, err
	}
	t := target{url: p.global.url, from: "--url", settings: s}
	if command.Flags().Lookup(serverFlag) != nil {
		t.from = "--" + serverFlag
	}
	if t.url != "" && command.Flags().Changed("database") {
		return t, usagef("--database and %s exclude each other", t.from)
	}
	if t.url == "" && !command.Flags().Changed("database") {
		if url := os.Getenv("LEDGERD_URL"); url != "" {
			t.url, t.from = url, "LEDGERD_URL"
		}
	}
	if t.url == "" {
		if p.global.token != "" {
			return t, usagef("--token goes with %s: on a database file of this machine nobody asks for one", t.from)
		}
		return t, nil
	}
	t.token, err = p.token()
	return t, err
}

// token returns the API token that the command line or the environment gives.
func (p *program) token() (string, error) {
	if p.global.token != "" {
		return p.global.token, nil
	}
	if token := os.Getenv("LEDGERD_TOKEN"); token != "" {
		return strings.TrimSpace(token), nil
	}
	file := os.Getenv("LEDGERD_TOKEN_FILE")
	if file == "" {
		return "", errors.New("the server asks for an API token: give it as LEDGERD_TOKEN, LEDGERD_TOKEN_FILE or --token")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("LEDGERD_TOKEN_FILE: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// check reports what can be told without opening anything.
func (t target) check() error {
	if t.url == "" {
		return service.CheckExists(t.settings.Database, t.from)
	}
	_, err := client.New(t.url, client.Options{})
	return err
}

// explain adds, where a server refused what only the administrator of its host
// may do, why a server was asked at all.
func (t target) explain(err error) error {
	if t.url == "" || client.CodeOf(err) != ledger.CodeForbidden {
		return err
	}
	return fmt.Errorf("%w\nA server was asked because %s is set; on its host, --database FILE instead works on the "+
		"file itself", err, t.from)
}

// A connection is a client of the API, and what stands behind it.
type connection struct {
	*client.Client
	local *service.Local // nil where a server answers
}

// open connects to the ledger. The connection must be closed.
func (t target) open(ctx context.Context) (*connection, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if t.url == "" {
		return openFile(ctx, t.settings)
	}
	c, err := client.New(t.url, client.Options{Token: t.token, UserAgent: buildinfo.UserAgent()})
	if err != nil {
		return nil, err
	}
	return &connection{Client: c}, nil
}

// openFile connects to the database file of this machine, which it creates if it
// does not exist.
func openFile(ctx context.Context, s config.Settings) (*connection, error) {
	local, err := service.OpenLocal(ctx, s)
	if err != nil {
		return nil, err
	}
	return &connection{local.Client, local}, nil
}

// settle does, on a file, what time has made due: a server does it by itself.
func (c *connection) settle(ctx context.Context) error {
	if c.local == nil {
		return nil
	}
	return c.local.Settle(ctx)
}

// close ends the connection. What was written to a file is carried out before:
// there may be no server to do it.
func (c *connection) close(ctx context.Context) error {
	if c.local == nil {
		return nil
	}
	return c.local.Close(ctx)
}

// with runs do on a connection to the ledger that the command names.
func (p *program) with(command *cobra.Command, do func(ctx context.Context, c *connection) error) error {
	t, err := p.target(command)
	if err != nil {
		return err
	}
	return t.use(command.Context(), do)
}

// use runs do on a connection.
func (t target) use(ctx context.Context, do func(ctx context.Context, c *connection) error) error {
	c, err := t.open(ctx)
	if err != nil {
		return err
	}
	return c.use(ctx, do)
}

// make is use on the database file of this machine, which it makes where there
// is none.
func (t target) make(ctx context.Context, do func(ctx context.Context, c *connection) error) error {
	c, err := openFile(ctx, t.settings)
	if err != nil {
		return err
	}
	return c.use(ctx, do)
}

func (c *connection) use(ctx context.Context, do func(ctx context.Context, c *connection) error) error {
	return errors.Join(do(ctx, c), c.close(ctx))
}

// A repoName is ORG/REPO, as commands take it.
type repoName struct{ org, repo string }

func (n repoName) String() string { return n.org + "/" + n.repo }

func parseRepoName(s string) (repoName, error) {
	org, repo, ok := strings.Cut(s, "/")
	if !ok || ledger.CheckOrg(org) != nil || ledger.CheckRepo(repo) != nil {
		return repoName{}, usagef("%q does not name a repo: write ORG/REPO, such as acme/api", s)
	}
	return repoName{org, repo}, nil
}

// withRepo runs do on a connection and the repo that the first argument names.
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
	command.Flags().StringVar(value, "org", "", "`ORG`; with a token, by default the token's own")
}

// withOrg runs do on a connection and the org that --org names, or else the
// org of the caller's token.
func (p *program) withOrg(
	command *cobra.Command, org string, do func(ctx context.Context, c *connection, org string) error,
) error {
	return p.with(command, func(ctx context.Context, c *connection) error {
		if org == "" && c.local != nil {
			return usagef("--org is missing")
		}
		if org == "" {
			own, err := c.OwnToken(ctx)
			if err != nil {
				return err
			}
			org = own.Org
		}
		if ledger.CheckOrg(org) != nil {
			return usagef("--org %q cannot name an org", org)
		}
		return do(ctx, c, org)
	})
}

// at names a commit of the repo.
func (n repoName) at(sha string) string { return n.String() + "@" + terminal.Short(sha) }

// mustExist reports why the repo cannot be used, if so.
func (n repoName) mustExist(ctx context.Context, c *connection) error {
	_, err := c.Repo(ctx, n.org, n.repo)
	return err
}

// withWebhook runs do on a connection and the webhook that the first two
// arguments name.
func (p *program) withWebhook(
	command *cobra.Command, args []string, do func(ctx context.Context, c *connection, name repoName, id string) error,
) error {
	return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
		err := do(ctx, c, name, args[1])
		if client.CodeOf(err) == ledger.CodeWebhookInactive {
			err = fmt.Errorf("%w: 'ledgerd webhook update %s %s --active' does", err, name, terminal.Printable(args[1]))
		}
		return err
	})
}

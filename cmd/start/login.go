package start

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/contexts"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newLogin(p *cli.Program) *cobra.Command {
	var name string
	command := p.Takes(&cobra.Command{
		Use:   "login",
		Short: "Log in to a server with an API token",
		Long: `Asks for an API token, or reads it from standard input, checks it, and stores it
as a context, which becomes the current one: from now on, commands use this
server and this token, unless flags or LEDGERD_* variables name another ledger.
Without URL, it is the server of --server, LEDGERD_URL or the current context.

Contexts are in ledgerd/contexts.yaml in your configuration folder, which only
you can read. To get a token, open the server's web interface, or have an admin
run 'ledgerd token create'.`,
		Example: `  ledgerd login https://ledger.example
  ledgerd login https://ledger.example <token.txt`,
		RunE: func(command *cobra.Command, args []string) error {
			server, err := loginServer(p, args)
			if err != nil {
				return err
			}
			token, err := readToken(p, server)
			if err != nil {
				return err
			}
			return login(p, command, name, server, token)
		},
	}, "[URL]")
	command.Flags().StringVar(&name, "name", "", "`name` of the context (default ORG@HOST)")
	return command
}

// loginServer returns the canonical URL of the server to log in to. It is never taken
// from .ledgerd.yaml: a repository must not ask for a token.
func loginServer(p *cli.Program, args []string) (string, error) {
	_, server := p.Global.ServerFlag()
	switch {
	case len(args) > 0 && server != "" && server != args[0]:
		return "", cli.Usagef("URL and --server are mutually exclusive")
	case len(args) > 0:
		server = args[0]
	case server == "":
		server = os.Getenv("LEDGERD_URL")
	}

	if server == "" {
		list, err := contexts.Load()
		if err != nil {
			return "", err
		}
		current, _ := list.Find(list.Current)
		server = current.Server
	}
	if server == "" {
		return "", cli.Usagef("URL is required, such as https://ledger.example")
	}
	server, err := contexts.Canonical(server)
	if err != nil {
		return "", cli.Usagef("%w", err)
	}
	return server, nil
}

// readToken returns --token, or else asks for it or reads it from standard input.
func readToken(p *cli.Program, server string) (string, error) {
	if p.Global.Token != "" {
		return p.Global.Token, nil
	}
	if !isProtected(server) {
		terminal.Printf(p.Stderr, "ledgerd: %s is not https: the token is sent unencrypted\n", server)
	}

	text, asked, err := terminal.AskSecret(p.Stdin, p.Stderr, "API token of "+server+":")
	if !asked {
		text, err = bufio.NewReader(io.LimitReader(p.Stdin, 4096)).ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token, err := cli.Secret(text)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if token == "" {
		return "", errors.New("no token: type it, or pass it on standard input")
	}
	return token, nil
}

// isProtected reports whether nobody on the way can read what is sent to the server: it
// is https, or on this machine.
func isProtected(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// login checks the token and stores the context.
func login(p *cli.Program, command *cobra.Command, name, server, token string) error {
	c, err := client.New(server, client.Options{Token: token, UserAgent: buildinfo.UserAgent()})
	if err != nil {
		return err
	}
	own, err := c.OwnToken(command.Context())
	if err != nil {
		return err
	}

	if name == "" {
		_, host, _ := strings.Cut(server, "://")
		name = own.Org + "@" + host
	}
	if err := contexts.CheckName(name); err != nil {
		return cli.Usagef("%w", err)
	}
	list, err := contexts.Load()
	if err != nil {
		return err
	}
	entry := contexts.Context{Name: name, Server: server, Org: own.Org, TokenID: own.ID, Token: token}
	if err := list.Put(entry); err != nil {
		return err
	}
	if err := list.Save(); err != nil {
		return err
	}
	record := struct {
		contexts.Context
		Scope ledger.Scope `json:"scope"`
	}{entry, own.Scope}
	return p.Print(record, func() {
		terminal.Printf(p.Stdout, "Logged in to %s with the %s token %q of %s. Context: %s\n", server, own.Scope,
			terminal.Clean(own.Name), own.Org, name)
	})
}

func newLogout(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:   "logout",
		Short: "Forget the token of a server",
		Long: `Removes a context, by default the current one, and its token from this machine.
The token stays valid: 'ledgerd token revoke' ends it.`,
		Example: "  ledgerd logout\n  ledgerd logout acme@ledger.example",
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := contexts.Load()
			if err != nil {
				return err
			}
			name := list.Current
			if len(args) > 0 {
				name = args[0]
			}
			if name == "" {
				return errors.New("not logged in: there is no current context")
			}
			return forget(p, list, name)
		},
	}, "[CONTEXT]")
}

// forget removes a context.
func forget(p *cli.Program, list contexts.List, name string) error {
	c, ok := list.Find(name)
	if !ok {
		return fmt.Errorf("there is no context %q: see 'ledgerd context list'", name)
	}
	list.Remove(name)
	if err := list.Save(); err != nil {
		return err
	}
	return p.Print(c, func() {
		terminal.Printf(p.Stdout, "Removed the context %s. Its token %s is still valid: an admin can revoke it\n", c.Name,
			terminal.Clean(c.TokenID))
	})
}

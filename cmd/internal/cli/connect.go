package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// Settings returns the settings in effect for a command.
func (p *Program) Settings(command *cobra.Command) (config.Settings, error) {
	return config.Load(command.Flags(), p.Global.Config)
}

// Locate returns the location of the ledger. It is the server or database that the flags,
// the environment or the configuration file set, else the server of a context, else the
// default database. It opens nothing. If both a server and a database are set, it prints
// which one is used.
func (p *Program) Locate(command *cobra.Command) (Location, error) {
	if p.located != nil {
		return *p.located, nil
	}
	l, err := p.locate(command)
	if err == nil {
		p.located = &l
	}
	return l, err
}

func (p *Program) locate(command *cobra.Command) (Location, error) {
	s, err := p.Settings(command)
	if err != nil {
		return Location{}, err
	}
	where, err := s.Locate(p.Global.ServerFlag())
	if err != nil {
		return Location{}, Usagef("%w", err)
	}

	l := Location{Location: where, Settings: s}
	if l.URL == "" && s.DatabaseSource == config.FromDefault {
		if l, err = p.useContext(command.Context(), l); err != nil {
			return l, err
		}
	}
	if l.URL == "" && p.Global.Token != "" {
		return l, Usagef("--token requires %s: a database needs no token", l.URLName)
	}
	if l.Note != "" {
		fmt.Fprintf(p.Hints(), "ledgerd: %s\n", terminal.Printable(l.Note))
	}
	if l.URL != "" && l.Token == "" {
		l.Token, err = p.token(l.URL)
		if _, ok := errors.AsType[*noTokenError](err); ok && p.tokenless {
			err = nil
		}
	}
	return l, err
}

// NeedNoToken lets Locate return a server without an API token.
func (p *Program) NeedNoToken() { p.tokenless = true }

// token returns the API token for a server from the flag, else the environment, else the
// context of this server.
func (p *Program) token(server string) (string, error) {
	if p.Global.Token != "" {
		return p.Global.Token, nil
	}
	if token := os.Getenv("LEDGERD_TOKEN"); token != "" {
		return strings.TrimSpace(token), nil
	}
	if token, err := SecretIn("LEDGERD_TOKEN_FILE"); token != "" || err != nil {
		return token, err
	}
	return p.storedToken(server)
}

// With runs do on a connection to the ledger of the command.
func (p *Program) With(command *cobra.Command, do func(ctx context.Context, c *Connection) error) error {
	l, err := p.Locate(command)
	if err != nil {
		return err
	}
	return l.Use(command.Context(), do)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/ci"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/connect"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

type (
	// Location is where a command finds the ledger.
	Location = connect.Location
	// Connection is a client of the ledger.
	Connection = connect.Connection
)

// Settings returns the settings in effect for a command.
func (p *Program) Settings(command *cobra.Command) (config.Settings, error) {
	return config.Load(command.Flags(), p.Global.Config)
}

// Locate returns the location that the flags, the environment and the configuration
// file set. It opens nothing. If they set both a server and a database, it prints which
// one is used.
func (p *Program) Locate(command *cobra.Command) (Location, error) {
	s, err := p.Settings(command)
	if err != nil {
		return Location{}, err
	}
	where, err := s.Locate(p.Global.ServerFlag())
	if err != nil {
		return Location{}, Usagef("%w", err)
	}

	l := Location{Location: where, Settings: s}
	if l.URL == "" && p.Global.Token != "" {
		return l, Usagef("--token requires %s: a database file needs no token", l.URLName)
	}
	if l.Note != "" {
		fmt.Fprintf(p.Hints(), "ledgerd: %s\n", terminal.Printable(l.Note))
	}
	if l.URL != "" {
		l.Token, err = p.token()
	}
	return l, err
}

// token returns the API token from the flag or else the environment.
func (p *Program) token() (string, error) {
	if p.Global.Token != "" {
		return p.Global.Token, nil
	}
	if token := os.Getenv("LEDGERD_TOKEN"); token != "" {
		return strings.TrimSpace(token), nil
	}
	file := os.Getenv("LEDGERD_TOKEN_FILE")
	if file == "" {
		return "", errNoToken()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("LEDGERD_TOKEN_FILE: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// errNoToken returns the error for a missing token. Jobs for pull requests of forks get no
// secrets.
func errNoToken() error {
	const missing = "an API token is required: set LEDGERD_TOKEN, LEDGERD_TOKEN_FILE or --token"
	if job, ok := ci.Detect(os.Getenv); ok && job.Fork {
		return fmt.Errorf("%s (%s gives no secrets to pull requests of forks: record from a job of the repository itself; "+
			"see docs/ci)", missing, job.Provider.Name())
	}
	return errors.New(missing)
}

// With runs do on a connection to the ledger of the command.
func (p *Program) With(command *cobra.Command, do func(ctx context.Context, c *Connection) error) error {
	l, err := p.Locate(command)
	if err != nil {
		return err
	}
	return l.Use(command.Context(), do)
}

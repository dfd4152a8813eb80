// Package connect connects commands to the ledger: to a server, or to a database file
// on this machine.
package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/ledger"
)

// A Location is where a command finds the ledger: on a server, or in a database file on
// this machine.
type Location struct {
	config.Location
	Token    string // the API token, for a server
	Settings config.Settings
}

// check reports an invalid URL or a missing database file, without opening anything.
func (l Location) check() error {
	if l.URL == "" {
		return service.CheckExists(string(l.Settings.Database), l.URLName)
	}
	_, err := client.New(l.URL, client.Options{})
	return err
}

// Explain extends the error of a server that refused a request reserved for the
// administrator of the host: it says why a server was used and what to do instead.
func (l Location) Explain(err error) error {
	if l.URL == "" || client.CodeOf(err) != ledger.CodeForbidden {
		return err
	}
	return errors.Join(err, fmt.Errorf("the request went to a server because %s is set; on its host, use --database FILE "+
		"to work on the file directly", l.URLName))
}

// A Connection is a client of a server or of a database file.
type Connection struct {
	*client.Client
	Local *service.Local // nil for a server
}

// Open connects to the ledger. The caller must close the connection.
func (l Location) Open(ctx context.Context) (*Connection, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.URL == "" {
		return openFile(ctx, l.Settings)
	}
	c, err := client.New(l.URL, client.Options{Token: l.Token, UserAgent: buildinfo.UserAgent()})
	if err != nil {
		return nil, err
	}
	return &Connection{Client: c}, nil
}

// openFile connects to the database file of the settings, and creates the file if it
// does not exist.
func openFile(ctx context.Context, s config.Settings) (*Connection, error) {
	local, err := service.OpenLocal(ctx, s)
	if err != nil {
		return nil, err
	}
	return &Connection{local.Client, local}, nil
}

// Settle makes changes that are due, such as the expiry of evidence, on a database
// file. A server does this continuously.
func (c *Connection) Settle(ctx context.Context) error {
	if c.Local == nil {
		return nil
	}
	return c.Local.Settle(ctx)
}

// Close closes the connection. On a database file it first re-evaluates commits if
// something was written, since there may be no server to do it.
func (c *Connection) Close(ctx context.Context) error {
	if c.Local == nil {
		return nil
	}
	return c.Local.Close(ctx)
}

// Use runs do on a connection.
func (l Location) Use(ctx context.Context, do func(ctx context.Context, c *Connection) error) error {
	c, err := l.Open(ctx)
	if err != nil {
		return err
	}
	return c.Use(ctx, do)
}

// UseNew runs do on a connection to the database file, and creates the file if it
// does not exist.
func (l Location) UseNew(ctx context.Context, do func(ctx context.Context, c *Connection) error) error {
	c, err := openFile(ctx, l.Settings)
	if err != nil {
		return err
	}
	return c.Use(ctx, do)
}

// Use runs do and closes the connection.
func (c *Connection) Use(ctx context.Context, do func(ctx context.Context, c *Connection) error) error {
	return errors.Join(do(ctx, c), c.Close(ctx))
}

// Describe returns why a request failed. If the server is unreachable, it
// also suggests what to check.
func Describe(err *url.Error) string {
	dial, ok := errors.AsType[*net.OpError](err)
	if !ok || dial.Op != "dial" {
		return err.Error()
	}
	server := err.URL
	if u, err := url.Parse(server); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	reason := dial.Err.Error()
	if e, ok := errors.AsType[*net.DNSError](dial); ok {
		reason = e.Err
	}
	return fmt.Sprintf("cannot reach the server at %s: is 'ledgerd serve' running? (%s)", server, reason)
}

// IsReady reports whether connecting changes nothing: it neither creates nor migrates a
// database.
func (l Location) IsReady(ctx context.Context) bool {
	return l.URL != "" || service.IsCurrent(ctx, l.Settings)
}

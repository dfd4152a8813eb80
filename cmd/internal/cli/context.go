package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/ci"
	"github.com/ledgerd/ledgerd/cmd/internal/contexts"
	"github.com/ledgerd/ledgerd/cmd/internal/workfile"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// useContext returns the location with the server and the token of a context: of the
// server that .ledgerd.yaml names, or else the current one. Without a context it returns
// the location unchanged.
//
// Anyone who can change the repository can change this file. So a server in it counts only if
// the user has logged in to it, and gets no other token than that of its own context: not
// even LEDGERD_TOKEN, which belongs to LEDGERD_URL.
func (p *Program) useContext(ctx context.Context, l Location) (Location, error) {
	list, err := contexts.Load()
	if err != nil {
		return l, err
	}
	file, err := p.workFile(ctx)
	if err != nil {
		return l, err
	}

	c, ok := list.Find(list.Current)
	if file.Server != "" {
		org, _, _ := cutRepo(file.Repo)
		if c, ok, err = list.ForServer(file.Server, org); err != nil {
			return l, err
		}
		if !ok {
			return l, Usagef("%s names the server %s, to which you are not logged in: if you trust it, run "+
				"'ledgerd login %[2]s'; otherwise choose a ledger with --server or --database", workfile.Name,
				terminal.Clean(file.Server))
		}
		if c.Name != list.Current {
			p.notef("using the context %s, of the server in %s", c.Name, workfile.Name)
		}
	}
	if !ok {
		return l, nil
	}

	l.URL, l.URLName, l.Token = c.Server, "the context "+c.Name, c.Token
	if p.Global.Token != "" {
		l.Token = p.Global.Token
	} else if os.Getenv("LEDGERD_TOKEN") != "" || os.Getenv("LEDGERD_TOKEN_FILE") != "" {
		p.notef("using the token of the context %s; that in the environment is only used with LEDGERD_URL or --server",
			c.Name)
	}
	p.context = c.Name
	return l, nil
}

// storedToken returns the token of the context of exactly this server.
func (p *Program) storedToken(server string) (string, error) {
	list, err := contexts.Load()
	if err != nil {
		return "", err
	}
	c, ok, err := list.ForServer(server, "")
	if err != nil {
		return "", err
	}
	if !ok {
		if _, err := client.New(server, client.Options{}); err != nil {
			return "", err // it is not a URL, and that is the first thing to mend
		}
		return "", errNoToken()
	}
	p.context = c.Name
	return c.Token, nil
}

// TokenOf returns the token of the context of exactly this server, or "" without one. It
// never returns one that was given for another server.
func TokenOf(server, org string) (string, error) {
	list, err := contexts.Load()
	if err != nil {
		return "", err
	}
	c, ok, err := list.ForServer(server, org)
	if err != nil || !ok || c.Org != org {
		return "", err
	}
	return c.Token, nil
}

// A noTokenError is the error for a missing token.
type noTokenError struct{ text string }

func (e *noTokenError) Error() string { return e.text }

// errNoToken returns the error for a missing token. Jobs for pull requests of forks get no
// secrets.
func errNoToken() error {
	const missing = "an API token is required: set LEDGERD_TOKEN, LEDGERD_TOKEN_FILE or --token, or run 'ledgerd login'"
	if job, ok := ci.Detect(os.Getenv); ok && job.Fork {
		return &noTokenError{fmt.Sprintf("%s (%s gives no secrets to pull requests of forks: record from a job of the "+
			"repository itself; see docs/ci)", missing, job.Provider.Name())}
	}
	return &noTokenError{missing}
}

// ContextName returns the name of the context in use, or "". It is known after Locate.
func (p *Program) ContextName() string { return p.context }

// workFile returns the content of .ledgerd.yaml. It reads the file once.
func (p *Program) workFile(ctx context.Context) (workfile.File, error) {
	if p.file != nil {
		return *p.file, nil
	}
	f, err := workfile.Find(ctx, ".")
	if err == nil {
		p.file = &f
	}
	return f, err
}

// notef prints what a person may want to know about a choice. Scripts are not told: what
// they set is what they get.
func (p *Program) notef(format string, args ...any) {
	if terminal.IsTerminal(p.Stderr) {
		fmt.Fprintf(p.Hints(), "ledgerd: %s\n", terminal.Printable(fmt.Sprintf(format, args...)))
	}
}

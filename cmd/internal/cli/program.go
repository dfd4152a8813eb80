// Package cli has what the commands of ledgerd share: their streams and global flags, the
// connection to the ledger, arguments, output and exit statuses.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/ci"
	"github.com/ledgerd/ledgerd/cmd/internal/ci/report"
	"github.com/ledgerd/ledgerd/cmd/internal/connect"
	"github.com/ledgerd/ledgerd/cmd/internal/jq"
	"github.com/ledgerd/ledgerd/cmd/internal/workfile"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A Program is one run of ledgerd.
type Program struct {
	Stdin  io.Reader
	Stdout *terminal.Screen
	Stderr *terminal.Screen
	// RawStdout and RawStderr are the streams without the guard for CI systems, for the
	// output of other programs and for commands to these systems.
	RawStdout, RawStderr io.Writer
	// Command is the running command. It is nil until the command line has been
	// checked: an error before that is a usage error.
	Command *cobra.Command
	Global  GlobalFlags

	arguments map[*cobra.Command][]string // names; see Takes
	located   *connect.Location           // result of Locate
	// tokenless is set by NeedNoToken.
	tokenless bool
	context   string // name of the context in use, if any
	file      *workfile.File
	// repoSource is what names the repo; it is empty for an argument.
	repoSource string
}

// New returns a Program with the given streams. In a CI job, texts of commits in its output
// cannot act as commands of the CI system.
func New(stdin io.Reader, stdout, stderr io.Writer) *Program {
	p := &Program{Stdin: stdin, RawStdout: stdout, RawStderr: stderr,
		arguments: make(map[*cobra.Command][]string)}
	provider := ci.DetectProvider(os.Getenv)
	stdout = report.Guard(stdout, provider, p.style)
	stderr = report.Guard(stderr, provider, func() report.Style { return report.Text })
	p.Stdout, p.Stderr = terminal.NewScreen(stdout), terminal.NewScreen(stderr)
	return p
}

// style returns what the command prints to standard output.
func (p *Program) style() report.Style {
	switch {
	case p.Global.JQ != nil:
		return report.Exact
	case p.Global.Output == "json":
		return report.JSON
	}
	return report.Text
}

// ReadFile reads a text file in UTF-8, or standard input if the name is "-". It returns the text without a byte
// order mark.
func (p *Program) ReadFile(name string) (text []byte, err error) {
	if name == "-" {
		text, err = io.ReadAll(p.Stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	if text, err = ledger.UTF8(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// GlobalFlags are the values of the flags that every command has.
type GlobalFlags struct {
	Config string
	Server string
	Token  string
	Org    string // of commands by ForOrg
	Repo   string // of commands about a repo
	Output string
	JQ     *jq.Query // nil without --jq
	Quiet  bool
	Wide   bool
	Yes    bool // of commands with YesFlag

	oldServer string // --url, the earlier name of --server
}

// ServerFlag returns the name and the value of the flag that names the server. The name
// is the one that the user typed, if any.
func (g GlobalFlags) ServerFlag() (name, value string) {
	if g.oldServer != "" {
		return "--url", g.oldServer
	}
	return "--server", g.Server
}

// AddGlobalFlags defines the flags that every command has.
func (p *Program) AddGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.Global.Config, "config", "", "configuration `file` (LEDGERD_CONFIG)")
	flags.String("database", string(config.Default().Database), "database `file` or postgres:// URL (LEDGERD_DATABASE)")
	flags.Bool("no-copy", false, "migrate the schema without copying the database first")
	flags.StringVar(&p.Global.Server, "server", "", "`URL` of the server (LEDGERD_URL)")
	flags.StringVar(&p.Global.oldServer, "url", "", "earlier name of --server")
	_ = flags.MarkHidden("url")
	flags.StringVar(&p.Global.Token, "token", "", "API `token`; visible to other users of this machine: prefer "+
		"LEDGERD_TOKEN or LEDGERD_TOKEN_FILE")
	flagvalue.ChoiceVar(root, flags, &p.Global.Output, "output", "o", "output format", "table", "json")
	flags.Var(jq.Flag(&p.Global.JQ), "jq", "print what this jq expression selects from the JSON output; implies -o json")
	flags.BoolVarP(&p.Global.Quiet, "quiet", "q", false,
		"print results and errors, but no progress, hints or confirmations")
	flags.BoolVar(&p.Global.Wide, "wide", false, "do not cut tables to the width of the terminal")
}

// CheckGlobalFlags returns an error if global flags of a command exclude each other.
func CheckGlobalFlags(command *cobra.Command) error {
	inherited := command.InheritedFlags() // without those that the command redefines
	var errs []error
	for _, pair := range [][]string{
		{"server", "url"}, {"database", "server"}, {"database", "url"}, {"no-copy", "server"}, {"no-copy", "url"},
	} {
		errs = append(errs, flagvalue.CheckExclusive(inherited, pair...))
	}
	return errors.Join(errs...)
}

// MarkStart makes the command and its subcommands set p.Command when they start.
func (p *Program) MarkStart(command *cobra.Command) {
	if run := command.RunE; run != nil {
		command.RunE = func(command *cobra.Command, args []string) error {
			p.Command = command
			return run(command, args)
		}
	}
	for _, child := range command.Commands() {
		p.MarkStart(child)
	}
}

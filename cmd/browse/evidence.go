package browse

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newEvidence(p *cli.Program) *cobra.Command {
	return cli.Group("evidence", "Export the evidence about commits as one file", newEvidenceExport(p))
}

// An evidenceExport is what the flags of evidence export say.
type evidenceExport struct {
	rev          string
	since, until ledger.Time
	out          string // file name, or -
}

func newEvidenceExport(p *cli.Program) *cobra.Command {
	var x evidenceExport
	command := p.Takes(&cobra.Command{
		Use:   "export",
		Short: "Write all evidence about commits to a tar file for an auditor",
		Long: `Writes a tar file with what the ledger has about a commit, or about all commits
that got an attestation since a time: signed statements and envelopes, the
identities that signed them, the contract, states, receipts, and the proofs that
the log of the org has all of this. index.html in it is a page for reading.

'ledgerd verify evidence FILE' checks the file without the server. Others need
only the key of the log: see docs/evidence-export.md.

The server must sign the log (base_url). The command waits until the newest
checkpoint covers what it exports. A token with the scope read is enough. What
the server has pruned is listed in manifest.json.`,
		Example: `  ledgerd evidence export acme/api --commit HEAD --out release.tar
  ledgerd evidence export acme/api --since 2026-10-01 --until 2027-01-01 --out q4.tar`,
		RunE: func(command *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return x.run(ctx, p, command, c, name)
			})
		},
	}, cli.RepoArg)
	flags := command.Flags()
	flags.StringVar(&x.rev, "commit", "", "commit to export, a sha or a git `rev`")
	flags.Var(flagvalue.Past(&x.since), "since", "export the commits that got an attestation since then: a date, "+
		"date-time, yesterday, or how long ago, such as 5d")
	flags.Var(&flagvalue.Parsed[ledger.Time]{Value: &x.until, Kind: "WHEN", Parse: ledger.ParseSince}, "until",
		"with --since: and not after this date or time (default now)")
	flags.StringVar(&x.out, "out", "", "`file` to write, or - for standard output")
	return command
}

// check checks the flags.
func (x evidenceExport) check() error {
	switch {
	case (x.rev == "") == (x.since == 0):
		return cli.Usagef("one of --commit and --since is required")
	case x.until != 0 && x.since == 0:
		return cli.Usagef("--until requires --since")
	case x.until != 0 && x.until < x.since:
		return cli.Usagef("--until %s is before --since %s", x.until, x.since)
	case x.out == "":
		return cli.Usagef("--out is required (use - for standard output)")
	}
	return nil
}

func (x evidenceExport) run(
	ctx context.Context, p *cli.Program, command *cobra.Command, c *cli.Connection, name cli.RepoName,
) (err error) {
	l, err := p.Locate(command)
	if err != nil {
		return err
	}
	progress := p.NewProgress()
	o := evidence.Options{Org: name.Org, Repo: name.Repo, Since: x.since, Until: x.until, Server: l.URL,
		Version: buildinfo.Version(), Now: ledger.TimeOf(time.Now()), Progress: progress.Show}
	if x.rev != "" {
		if o.Commit, err = gitrepo.Find(ctx, x.rev); err != nil {
			return err
		}
	}
	if err := c.Settle(ctx); err != nil {
		return err
	}

	var m evidence.Manifest
	export := func(w io.Writer) error {
		buffered := bufio.NewWriterSize(w, 1<<20)
		m, err = evidence.Export(ctx, c.Client, o, buffered)
		progress.Clear()
		if err != nil {
			return err
		}
		return buffered.Flush()
	}
	if x.out == "-" {
		if terminal.IsTerminal(p.Stdout) {
			return cli.Usagef("--out -: a tar file is not for a terminal (name a file, or redirect the output)")
		}
		return export(p.Stdout.Exact())
	}
	if err := writeTo(x.out, export); err != nil {
		return err
	}
	terminal.Printf(p.Hints(), "Wrote %s: the evidence of %s. See 'ledgerd verify evidence %s'.\n", x.out, countOf(m),
		x.out)
	return nil
}

// writeTo writes a file, which gets its name when it is complete.
func writeTo(name string, write func(io.Writer) error) error {
	file, err := atomicfile.Create(name, 0o644)
	if err != nil {
		return err
	}
	defer file.Discard()
	if err := file.FillWith(write); err != nil {
		return err
	}
	return file.Rename()
}

// countOf says how many commits an export has, and what it lacks.
func countOf(m evidence.Manifest) string {
	text := fmt.Sprintf("%d commits", len(m.Commits))
	if len(m.Commits) == 1 {
		text = fmt.Sprintf("%s/%s@%.12s", m.Org, m.Repo, m.Commits[0])
	}
	if n := len(m.Pruned); n > 0 {
		text += fmt.Sprintf(", without %d files that the server has pruned", n)
	}
	return text
}

package manage

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/contractfile"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

func newPolicy(p *cli.Program) *cobra.Command {
	return cli.Group("policy", "Manage the policy of a repo",
		newPolicyShow(p), newPolicyApply(p), newPolicyHistory(p), newPolicySimulate(p), newPolicyLint(p))
}

func newPolicyShow(p *cli.Program) *cobra.Command {
	var version int
	var format string
	command := p.Takes(&cobra.Command{
		Use:   "show",
		Short: "Print the policy contract of a repo, as YAML for 'policy apply'",
		Example: `  ledgerd policy show acme/api >policy.yaml
  ledgerd policy show acme/api --version 3 -o json`,
		RunE: func(command *cobra.Command, args []string) error {
			if version < 0 || (version == 0 && command.Flags().Changed("version")) {
				return cli.Usagef("invalid --version %d: use 1 or more", version)
			}

			p.Global.Output = format
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) (err error) {
				var shown policy.Policy
				if version == 0 {
					shown, _, err = c.Policy(ctx, name.Org, name.Repo)
				} else {
					shown, err = c.PolicyVersion(ctx, name.Org, name.Repo, version)
				}
				if err != nil {
					return err
				}

				text, err := contractfile.YAML(shown)
				if err != nil {
					return err
				}
				return p.Print(shown, func() { _, _ = p.Stdout.Exact().Write(text) })
			})
		},
	}, cli.RepoArg)

	command.Flags().IntVar(&version, "version", 0, "show version `N` (default the active one)")
	flagvalue.ChoiceVar(command, command.Flags(), &format, "output", "o", "output format; table means yaml",
		"yaml", "json", "table")

	return command
}

func newPolicyHistory(p *cli.Program) *cobra.Command {
	var limit int
	command := p.Takes(&cobra.Command{
		Use:     "history",
		Short:   "List the policy versions of a repo, newest first",
		Example: "  ledgerd policy history acme/api",
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				columns := []string{"VERSION", "CREATED", "BY", "DIGEST"}
				return cli.PrintList(p, c.PolicyVersions(ctx, name.Org, name.Repo), limit, columns, func(v policy.Summary) []any {
					return []any{v.Version, v.CreatedAt, v.CreatedBy, v.Digest}
				})
			})
		},
	}, cli.RepoArg)
	cli.LimitFlag(command, &limit)
	return command
}

func newPolicySimulate(p *cli.Program) *cobra.Command {
	var source contractSource
	command := p.Takes(&cobra.Command{
		Use:   "simulate",
		Short: "Dry run: show which commits would change state under a contract",
		Long: `Shows which commits of the repo would change state if the contract were applied
now, and why. Nothing is written.

In the radar section of the contract, only 'block' is simulated, with the current
overlaps. Commits are not compared again: the effects of 'ignore', 'enabled' and
'max_age' on the overlaps show only after the contract is applied.`,
		Example: `  ledgerd policy simulate acme/api -f policy.yaml
  ledgerd policy simulate acme/api --default`,
		RunE: func(command *cobra.Command, args []string) error {
			contract, err := readContract(p, source)
			if err != nil {
				return err
			}
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				s, err := c.Simulate(ctx, name.Org, name.Repo, contract.JSON())
				if err != nil {
					return withLines(err, contract)
				}
				return p.Print(s, func() { display.Simulation(p.Stdout, s) })
			})
		},
	}, cli.RepoArg)
	source.addFlags(command)
	return command
}

func newPolicyLint(p *cli.Program) *cobra.Command {
	var file string
	command := p.Takes(&cobra.Command{
		Use:   "lint",
		Short: "Review a contract for probable mistakes (sets the exit status)",
		Long: `Reviews the active contract of the repo, or the one in a YAML or JSON file: which
requirements any trusted identity satisfies alone, which nobody can meet, and
which do not mean what they seem to. It compares the contract with the identities
of the org and with what was ever signed in it. Nothing is written.

EXIT STATUS
  0  no findings, or only warnings
  1  error (server unreachable or request refused), or not everything was checked
  2  usage error
  4  errors among the findings`,
		Example: `  ledgerd policy lint acme/api
  ledgerd policy lint acme/api -f policy.yaml`,
		RunE: func(command *cobra.Command, args []string) (err error) {
			var contract contractfile.File
			if command.Flags().Changed("file") {
				if contract, err = readContract(p, contractSource{file: file}); err != nil {
					return err
				}
			}
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return lintPolicy(ctx, p, c, name, contract)
			})
		},
	}, cli.RepoArg)
	command.Flags().StringVarP(&file, "file", "f", "",
		"contract, a YAML or JSON `file`; - for standard input (default the active one)")
	return command
}

func lintPolicy(
	ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, contract contractfile.File,
) error {
	review, err := c.LintPolicy(ctx, name.Org, name.Repo, contract.JSON())
	if err != nil {
		err = withLines(err, contract)
	} else {
		err = p.Print(review, func() { display.Review(p.Stdout, review) })
	}
	switch {
	case err != nil:
		return err
	case review.HasErrors():
		return &cli.ExitError{Status: cli.ExitNotReached}
	case review.Unchecked != "":
		return errors.New("not everything was checked: " + review.Unchecked)
	}
	return nil
}

func newPolicyApply(p *cli.Program) *cobra.Command {
	var source contractSource
	command := p.Takes(&cobra.Command{
		Use:   "apply",
		Short: "Apply a policy contract to a repo",
		Long: `Makes the contract in a YAML or JSON file the active one of the repo, as a new
version, and derives the states of the commits again. If the contract is equal to
the active one, this is a no-op. If the policy changes at the same time, the
command fails and writes nothing.`,
		Example: `  ledgerd policy apply acme/api -f policy.yaml
  ledgerd policy show acme/api | sed 's/threshold: 1/threshold: 2/' | ledgerd policy apply acme/api -f -`,
		RunE: func(command *cobra.Command, args []string) error {
			contract, err := readContract(p, source)
			if err != nil {
				return err
			}
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return applyPolicy(ctx, p, c, name, contract)
			})
		},
	}, cli.RepoArg)

	source.addFlags(command)
	return command
}

// A contractSource is where a command takes a contract from.
type contractSource struct {
	file      string
	isDefault bool
}

func (s *contractSource) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&s.file, "file", "f", "", "contract, a YAML or JSON `file`; - for standard input")
	command.Flags().BoolVar(&s.isDefault, "default", false, "the contract that new repos start with")
	flagvalue.RequireOne(command, "file", "default")
	flagvalue.Exclude(command, "file", "default")
}

func applyPolicy(
	ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, contract contractfile.File,
) error {
	active, etag, err := c.Policy(ctx, name.Org, name.Repo)
	if err != nil {
		return err
	}
	if contract.Is(active.Digest) {
		return p.Confirm(active, func() {
			terminal.Printf(p.Stdout, "No change: %s already has this policy (v%d, %s)\n", name, active.Version, active.Digest)
		})
	}

	applied, err := c.SetPolicy(ctx, name.Org, name.Repo, contract.JSON(), etag)
	if client.CodeOf(err) == ledger.CodePreconditionFailed {
		return fmt.Errorf("nothing was written: the policy of %s has just changed (review it and apply again): %w", name, err)
	}
	if err != nil {
		return withLines(err, contract)
	}

	return p.Confirm(applied, func() {
		terminal.Printf(p.Stdout, "Applied policy v%d to %s (%s)\n", applied.Version, name, applied.Digest)
		display.Difference(p.Stdout, active.Contract, applied.Contract)
	})
}

// readContract reads a contract.
func readContract(p *cli.Program, source contractSource) (contractfile.File, error) {
	if source.isDefault {
		return contractfile.Read("the default contract", policy.Default().Canonical())
	}
	text, err := p.ReadFile(source.file)
	if err != nil {
		return contractfile.File{}, err
	}
	return contractfile.Read(source.file, text)
}

// withLines adds to an error of the server where in the file the invalid fields are.
func withLines(err error, file contractfile.File) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	located := *e
	located.Problem.Errors = nil
	for _, field := range e.Problem.Errors {
		if where := file.Where(field.Field); where != "" {
			field.Message += " (" + where + ")"
		}
		located.Problem.Errors = append(located.Problem.Errors, field)
	}

	first := ""
	if len(e.Problem.Errors) > 0 {
		first = e.Problem.Errors[0].Field
	}
	if where := file.Where(first); where != "" && len(e.Problem.Errors) < 2 {
		located.Problem.Detail += " (" + where + ")"
	}
	return &located
}

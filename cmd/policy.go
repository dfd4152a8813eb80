package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/contractfile"
	"github.com/ledgerd/ledgerd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

func newPolicy(p *program) *cobra.Command {
	return group("policy", "Manage the policy of a repo",
		newPolicyShow(p), newPolicyApply(p), newPolicyHistory(p), newPolicySimulate(p), newPolicyLint(p))
}

func newPolicyShow(p *program) *cobra.Command {
	var version int
	var format string
	command := &cobra.Command{
		Use:   "show ORG/REPO",
		Short: "Print the policy contract of a repo, as YAML for 'policy apply'",
		Example: `  ledgerd policy show acme/api >policy.yaml
  ledgerd policy show acme/api --version 3 -o json`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			if version < 0 || (version == 0 && command.Flags().Changed("version")) {
				return usagef("invalid --version %d: use 1 or more", version)
			}

			p.global.output = format
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) (err error) {
				var shown policy.Policy
				if version == 0 {
					shown, _, err = c.Policy(ctx, name.org, name.repo)
				} else {
					shown, err = c.PolicyVersion(ctx, name.org, name.repo, version)
				}
				if err != nil {
					return err
				}

				text, err := contractfile.YAML(shown)
				if err != nil {
					return err
				}
				return p.print(shown, func() { _, _ = p.stdout.Write(text) })
			})
		},
	}

	command.Flags().IntVar(&version, "version", 0, "show version `N` (default the active one)")
	flagvalue.ChoiceVar(command, command.Flags(), &format, "output", "o", "output format; table means yaml",
		"yaml", "json", "table")

	return command
}

func newPolicyHistory(p *program) *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use:     "history ORG/REPO",
		Short:   "List the policy versions of a repo, newest first",
		Example: "  ledgerd policy history acme/api",
		Args:    takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				columns := []string{"VERSION", "CREATED", "BY", "DIGEST"}
				return printList(p, c.PolicyVersions(ctx, name.org, name.repo), limit, columns, func(v policy.Summary) []any {
					return []any{v.Version, v.CreatedAt, v.CreatedBy, v.Digest}
				})
			})
		},
	}
	limitFlag(command, &limit)
	return command
}

func newPolicySimulate(p *program) *cobra.Command {
	var source contractSource
	command := &cobra.Command{
		Use:   "simulate ORG/REPO",
		Short: "Dry run: show which commits would change state under a contract",
		Long: `Shows which commits of the repo would change state if the contract were applied
now, and why. Nothing is written.

In the radar section of the contract, only 'block' is simulated, with the current
overlaps. Commits are not compared again: the effects of 'ignore', 'enabled' and
'max_age' on the overlaps show only after the contract is applied.`,
		Example: `  ledgerd policy simulate acme/api -f policy.yaml
  ledgerd policy simulate acme/api --default`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			contract, err := p.readContract(source)
			if err != nil {
				return err
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				s, err := c.Simulate(ctx, name.org, name.repo, contract)
				if err != nil {
					return err
				}
				return p.print(s, func() { display.Simulation(p.stdout, s) })
			})
		},
	}
	source.addFlags(command)
	return command
}

func newPolicyLint(p *program) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "lint ORG/REPO",
		Short: "Review a contract for probable mistakes (sets the exit status)",
		Long: `Reviews the active contract of the repo, or the one in a YAML or JSON file: which
requirements any trusted identity satisfies alone, which nobody can meet, and
which do not mean what they seem to. It compares the contract with the identities
of the org and with what was ever signed in it. Nothing is written.

EXIT STATUS
  0  no findings
  1  error (server unreachable or request refused), or not everything was checked
  2  usage error
  4  findings`,
		Example: `  ledgerd policy lint acme/api
  ledgerd policy lint acme/api -f policy.yaml`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) (err error) {
			var contract jsontext.Value
			if command.Flags().Changed("file") {
				if contract, err = p.readContract(contractSource{file: file}); err != nil {
					return err
				}
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				return p.lintPolicy(ctx, c, name, contract)
			})
		},
	}
	command.Flags().StringVarP(&file, "file", "f", "",
		"contract, a YAML or JSON `file`; - for standard input (default the active one)")
	return command
}

func (p *program) lintPolicy(ctx context.Context, c *connection, name repoName, contract jsontext.Value) error {
	review, err := c.LintPolicy(ctx, name.org, name.repo, contract)
	if err == nil {
		err = p.print(review, func() { display.Review(p.stdout, review) })
	}
	switch {
	case err != nil:
		return err
	case len(review.Findings) > 0:
		return &exitError{status: exitNotReached}
	case review.Unchecked != "":
		return errors.New("not everything was checked: " + review.Unchecked)
	}
	return nil
}

func newPolicyApply(p *program) *cobra.Command {
	var source contractSource
	command := &cobra.Command{
		Use:   "apply ORG/REPO",
		Short: "Apply a policy contract to a repo",
		Long: `Makes the contract in a YAML or JSON file the active one of the repo, as a new
version, and re-evaluates the commits of the repo. If the contract is equal to
the active one, this is a no-op. If the policy changes at the same time, the
command fails and writes nothing.`,
		Example: `  ledgerd policy apply acme/api -f policy.yaml
  ledgerd policy show acme/api | sed 's/threshold: 1/threshold: 2/' | ledgerd policy apply acme/api -f -`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			contract, err := p.readContract(source)
			if err != nil {
				return err
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				return p.applyPolicy(ctx, c, name, contract)
			})
		},
	}

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

func (p *program) applyPolicy(ctx context.Context, c *connection, name repoName, contract jsontext.Value) error {
	active, etag, err := c.Policy(ctx, name.org, name.repo)
	if err != nil {
		return err
	}
	if contractfile.Same(contract, active) {
		return p.print(active, func() {
			fmt.Fprintf(p.stdout, "No change: %s already has this policy (v%d, %s)\n", name, active.Version, active.Digest)
		})
	}

	applied, err := c.SetPolicy(ctx, name.org, name.repo, contract, etag)
	if client.CodeOf(err) == ledger.CodePreconditionFailed {
		return fmt.Errorf("nothing was written: the policy of %s has just changed (review it and apply again): %w", name, err)
	}
	if err != nil {
		return err
	}

	return p.print(applied, func() {
		fmt.Fprintf(p.stdout, "Applied policy v%d to %s (%s)\n", applied.Version, name, applied.Digest)
		display.Difference(p.stdout, active.Contract, applied.Contract)
	})
}

// readContract returns a contract as JSON.
func (p *program) readContract(source contractSource) (jsontext.Value, error) {
	if source.isDefault {
		return policy.Default().Canonical(), nil
	}
	text, err := p.readFile(source.file)
	if err != nil {
		return nil, err
	}
	contract, err := contractfile.FromYAML(source.file, text)
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && (err != nil || jsontext.Value(text).IsValid()) {
		return text, nil // JSON: the server reports the errors in it
	}
	return contract, err
}

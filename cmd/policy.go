package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newPolicy(p *program) *cobra.Command {
	return group("policy", "Manage what a repo's commits need",
		newPolicyShow(p), newPolicyApply(p), newPolicyHistory(p), newPolicySimulate(p))
}

func newPolicyShow(p *program) *cobra.Command {
	var version int
	var format string
	command := &cobra.Command{
		Use:   "show ORG/REPO",
		Short: "Print a repo's policy contract, as YAML fit for apply",
		Example: `  ledgerd policy show acme/api >policy.yaml
  ledgerd policy show acme/api --version 3 -o json`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			if version < 0 || (version == 0 && command.Flags().Changed("version")) {
				return usagef("--version %d is none: versions are counted from 1", version)
			}
			p.global.output = format
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) (err error) {
				var policy ledger.Policy
				if version == 0 {
					policy, _, err = c.Policy(ctx, name.org, name.repo)
				} else {
					policy, err = c.PolicyVersion(ctx, name.org, name.repo, version)
				}
				if err != nil {
					return err
				}
				text, err := contractYAML(policy)
				if err != nil {
					return err
				}
				return p.print(policy, func() { _, _ = p.stdout.Write(text) })
			})
		},
	}
	command.Flags().IntVar(&version, "version", 0, "an older version, `N` (default the active one)")
	flagvalue.ChoiceVar(command, command.Flags(), &format, "output", "o", "how to print; table is as yaml", "yaml", "json", "table")
	return command
}

// contractYAML writes a policy's contract as YAML, under a comment that says
// where it comes from.
func contractYAML(policy ledger.Policy) ([]byte, error) {
	text, err := json.Marshal(policy.Contract)
	if err != nil {
		return nil, fmt.Errorf("writing the contract: %w", err)
	}
	var document yaml.Node // JSON is YAML; the nodes keep its order
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	blockStyle(&document)
	origin := fmt.Sprintf("# %s/%s, policy version %d of %s\n", policy.Org, policy.Repo, policy.Version, policy.CreatedAt)
	text, err = writeYAML(&document)
	return append([]byte(origin), text...), err
}

// blockStyle makes mappings and lists of mappings take a line for each entry,
// and drops quotes that YAML does not need.
func blockStyle(n *yaml.Node) {
	flat := n.Kind == yaml.SequenceNode
	for _, child := range n.Content {
		blockStyle(child)
		flat = flat && child.Kind == yaml.ScalarNode
	}
	n.Style = 0
	if flat {
		n.Style = yaml.FlowStyle
	}
}

func newPolicyHistory(p *program) *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use:     "history ORG/REPO",
		Short:   "List the versions of a repo's policy, the newest first",
		Example: "  ledgerd policy history acme/api",
		Args:    takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				columns := []string{"VERSION", "CREATED", "BY", "DIGEST"}
				return printList(p, c.PolicyVersions(ctx, name.org, name.repo), limit, columns, func(v ledger.Policy) []any {
					return []any{v.Version, v.CreatedAt, v.CreatedBy, v.Digest}
				})
			})
		},
	}
	limitFlag(command, &limit)
	return command
}

func newPolicySimulate(p *program) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "simulate ORG/REPO",
		Short: "Tell which commits would move under a contract, without applying it",
		Long: `Tells which of the repo's commits would move to another state if the contract
were applied now, and why. Nothing is written.

Of the contract's radar part it foresees 'block', from the overlaps that are
known now. It compares nothing anew: what 'ignore' would take from these, and
what it, 'enabled' and 'max_age' would add, shows once the contract is applied.`,
		Example: `  ledgerd policy simulate acme/api -f policy.yaml`,
		Args:    takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			contract, err := p.readContract(file)
			if err != nil {
				return err
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				s, err := c.Simulate(ctx, name.org, name.repo, contract)
				if err != nil {
					return err
				}
				return p.print(s, func() { p.showSimulation(s) })
			})
		},
	}
	contractFlag(command, &file)
	return command
}

func (p *program) showSimulation(s ledger.Simulation) {
	type move struct{ from, to ledger.State }
	counts := make(map[move]int64)
	if len(s.Moves) > 0 {
		t := terminal.NewTable(p.stdout, "COMMIT", "FROM", "TO", "WHY")
		for _, m := range s.Moves {
			counts[move{from: m.From, to: m.To}]++
			t.Row(terminal.Short(m.Commit), m.From, m.To, strings.Join(m.Reasons, "; "))
		}
		t.Flush()
		fmt.Fprintln(p.stdout)
	}
	fmt.Fprintf(p.stdout, "%s looked at, %d would move\n", terminal.Plural(s.Evaluated, "commit"), len(s.Moves))
	for _, from := range ledger.States() {
		for _, to := range ledger.States() {
			if n := counts[move{from: from, to: to}]; n > 0 {
				fmt.Fprintf(p.stdout, "  %d from %s to %s\n", n, from, to)
			}
		}
	}
}

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newPolicyApply(p *program) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "apply ORG/REPO",
		Short: "Make a contract the active one",
		Long: `Makes the contract in a YAML or JSON file the repo's active one, as a new
version, unless it says what the active one says. The repo's commits are then
evaluated anew. Nothing is written when somebody else applies another one
meanwhile.`,
		Example: `  ledgerd policy apply acme/api -f policy.yaml
  ledgerd policy show acme/api | sed 's/threshold: 1/threshold: 2/' | ledgerd policy apply acme/api -f -`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			contract, err := p.readContract(file)
			if err != nil {
				return err
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				return p.applyPolicy(ctx, c, name, contract)
			})
		},
	}
	contractFlag(command, &file)
	return command
}

// contractFlag defines -f.
func contractFlag(command *cobra.Command, file *string) {
	command.Flags().StringVarP(file, "file", "f", "", "contract, a YAML or JSON `file`; - is standard input")
	require(command, "file")
}

func (p *program) applyPolicy(ctx context.Context, c *connection, name repoName, contract jsontext.Value) error {
	active, etag, err := c.Policy(ctx, name.org, name.repo)
	if err != nil {
		return err
	}
	if saysTheSame(contract, active) {
		return p.print(active, func() {
			fmt.Fprintf(p.stdout, "%s has this policy already: version %d, %s\n", name, active.Version, active.Digest)
		})
	}
	applied, err := c.SetPolicy(ctx, name.org, name.repo, contract, etag)
	if client.CodeOf(err) == ledger.CodePreconditionFailed {
		return fmt.Errorf("somebody else has just changed the policy of %s, and nothing was written: look at it and apply yours again: %w", name, err)
	}
	if err != nil {
		return err
	}
	return p.print(applied, func() {
		fmt.Fprintf(p.stdout, "%s has policy version %d, %s\n", name, applied.Version, applied.Digest)
		p.showDifference(active.Contract, applied.Contract)
	})
}

// saysTheSame reports whether a contract is the one that is active, however it
// is written. One that cannot be read here is for the server to refuse.
func saysTheSame(contract jsontext.Value, active ledger.Policy) bool {
	var members map[string]jsontext.Value
	if json.Unmarshal(contract, &members) != nil {
		return false
	}
	for _, name := range ledger.PolicyRecordFields() {
		delete(members, name)
	}
	text, err := json.Marshal(members)
	if err != nil {
		return false
	}
	draft, err := ledger.ParseContract(text)
	return err == nil && draft.Digest() == active.Digest
}

// readContract reads a contract from a file and returns it as JSON.
func (p *program) readContract(file string) (jsontext.Value, error) {
	text, err := p.readFile(file)
	if err != nil {
		return nil, err
	}
	contract, err := contractOfYAML(file, text)
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && (err != nil || jsontext.Value(text).IsValid()) {
		return text, nil // JSON: its mistakes are for the server to name
	}
	return contract, err
}

// contractOfYAML returns a contract in YAML as JSON.
func contractOfYAML(file string, text []byte) (jsontext.Value, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil, fmt.Errorf("%s: there is no contract in it", file)
	}
	if root.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: a contract is a mapping, with its list under the key requirements", file)
	}
	var document map[string]any
	if err := root.Decode(&document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is more than one document in it", file)
	}
	contract, err := json.Marshal(document, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return contract, nil
}

// showDifference prints which requirements came and went.
func (p *program) showDifference(before, after ledger.Contract) {
	old, current := contractLines(before), contractLines(after)
	for _, line := range old {
		if !slices.Contains(current, line) {
			fmt.Fprintln(p.stdout, "  - "+terminal.Printable(line))
		}
	}
	for _, line := range current {
		if !slices.Contains(old, line) {
			fmt.Fprintln(p.stdout, "  + "+terminal.Printable(line))
		}
	}
}

// contractLines writes a contract with a line for each requirement.
func contractLines(c ledger.Contract) []string {
	var lines []string
	for _, r := range c.Requirements {
		lines = append(lines, requirementLine(r))
	}
	radar := c.Radar
	line := fmt.Sprintf("radar enabled=%t notify=%s block=%s max_age=%s", radar.Enabled, radar.Notify, radar.Block, radar.MaxAge)
	if len(radar.Ignore) > 0 {
		line += " ignore=" + strings.Join(radar.Ignore, ",")
	}
	return append(lines, line)
}

func requirementLine(r ledger.Requirement) string {
	line := fmt.Sprintf("%s needs %s", r.State, r.Predicate)
	if r.Threshold != 1 {
		line += fmt.Sprintf(" by %d", r.Threshold)
	}
	var signers []string
	for _, s := range r.Signers {
		signers = append(signers, s.String())
	}
	if len(signers) > 0 {
		line += " of " + strings.Join(signers, " or ")
	}
	if len(r.Accept) != 1 || r.Accept[0] != ledger.Pass {
		line += fmt.Sprintf(" accept=%v", r.Accept)
	}
	if r.MaxAge != 0 {
		line += " max_age=" + r.MaxAge.String()
	}
	if r.ExcludeAuthor {
		line += " exclude_author"
	}
	if len(r.Paths) > 0 {
		line += " paths=" + strings.Join(r.Paths, ",")
	}
	if len(r.Branches) > 0 {
		line += " branches=" + strings.Join(r.Branches, ",")
	}
	return line
}

// Package contractfile writes policy contracts as YAML and as lines of text, and reads
// the YAML.
package contractfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// YAML writes a policy's contract as YAML, under a comment that says where it comes
// from.
func YAML(p policy.Policy) ([]byte, error) {
	text, err := json.Marshal(p.Contract)
	if err != nil {
		return nil, fmt.Errorf("writing the contract: %w", err)
	}
	var document yaml.Node // JSON is YAML; the nodes keep its order
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	blockStyle(&document)
	origin := fmt.Sprintf("# %s/%s, policy version %d of %s\n", p.Org, p.Repo, p.Version, p.CreatedAt)
	text, err = terminal.YAML(&document)
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

// Same reports whether a contract is the active one, however it is written. One that
// cannot be read here is for the server to refuse.
func Same(contract jsontext.Value, active policy.Policy) bool {
	var members map[string]jsontext.Value
	if json.Unmarshal(contract, &members) != nil {
		return false
	}
	for _, name := range policy.RecordFields() {
		delete(members, name)
	}
	text, err := json.Marshal(members)
	if err != nil {
		return false
	}
	draft, err := policy.Parse(text)
	return err == nil && draft.Digest() == active.Digest
}

// FromYAML returns a contract in YAML as JSON.
func FromYAML(file string, text []byte) (jsontext.Value, error) {
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

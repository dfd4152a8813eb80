// Package contractfile converts policy contracts to and from YAML, and to lines of
// text for people.
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

// YAML returns the contract of a policy as YAML. A comment above it names the repo and
// version.
func YAML(p policy.Policy) ([]byte, error) {
	text, err := json.Marshal(p.Contract)
	if err != nil {
		return nil, fmt.Errorf("write the contract: %w", err)
	}
	var document yaml.Node // JSON is YAML, and nodes preserve its order
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	blockStyle(&document)
	origin := fmt.Sprintf("# %s/%s, policy v%d, created %s\n", p.Org, p.Repo, p.Version, p.CreatedAt)
	text, err = terminal.YAML(&document)
	return append([]byte(origin), text...), err
}

// blockStyle puts each entry of mappings and of lists of mappings on its own line, and
// removes quotes that YAML does not need.
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

// Same reports whether a contract is equal to the active one, whatever its formatting.
// For an invalid contract it returns false; the server reports the error.
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

// FromYAML converts a contract from YAML to JSON. Its errors name the file.
func FromYAML(file string, text []byte) (jsontext.Value, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil, fmt.Errorf("%s: no contract found", file)
	}
	if root.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: a contract must be a mapping with the key requirements", file)
	}

	var document map[string]any
	if err := root.Decode(&document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: several YAML documents (use only one)", file)
	}

	contract, err := json.Marshal(document, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return contract, nil
}

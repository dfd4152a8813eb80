package document

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/ledger/policy"
)

// maxFlow is the maximum length in bytes of the values of a list on one line.
const maxFlow = 80

// YAML returns a contract as YAML to read and edit. It leaves out fields that are empty,
// which is their default.
func YAML(c policy.Contract) (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write the contract: %w", err)
	}
	var root yaml.Node // JSON is YAML, and nodes preserve its order
	if err := yaml.Unmarshal(text, &root); err != nil {
		return "", fmt.Errorf("read the contract: %w", err)
	}
	for _, n := range root.Content {
		tidy(n, true)
	}

	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&root), encoder.Close()); err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return b.String(), nil
}

// tidy removes the empty members of mappings below a node, puts each of the others and
// each item of a long list on its own line, and removes quotes that YAML does not need.
func tidy(n *yaml.Node, isRoot bool) {
	n.Style = 0
	switch n.Kind {
	case yaml.MappingNode:
		var kept []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			key.Style = 0
			tidy(value, false)
			isDefault := key.Value == "exclude_author" && value.Value == "false"
			if isRoot && key.Value == "requirements" || !isEmpty(value) && !isDefault {
				kept = append(kept, key, value)
			}
		}
		n.Content = kept

	case yaml.SequenceNode:
		length, flat := 0, true
		for _, item := range n.Content {
			tidy(item, false)
			length += len(item.Value) + 2
			flat = flat && item.Kind == yaml.ScalarNode
		}
		if flat && length <= maxFlow {
			n.Style = yaml.FlowStyle
		}
	}
}

// isEmpty reports whether a value of a contract is empty: an empty list, mapping or
// string, or null.
func isEmpty(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return len(n.Content) == 0
	}
	return n.ShortTag() == "!!null" || n.ShortTag() == "!!str" && n.Value == ""
}

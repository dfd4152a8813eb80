package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// The limits of what a document in YAML may expand to. A contract is far below them.
const (
	maxDepth  = 50      // of nested lists and mappings
	maxVisits = 200_000 // values, with those that aliases and merges repeat
)

// parseYAML reads a document in YAML. Errors are of the type *Error.
func parseYAML(text string) (Document, error) {
	d := newDocument(text)
	if len(text) > MaxSize {
		return d, d.explain(0, "", fmt.Sprintf("too large: at most %d bytes", MaxSize))
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return d, d.syntaxError(err)
	}

	switch {
	case len(root.Content) == 0 || root.Content[0].ShortTag() == "!!null":
		return d, d.explain(0, "", "no contract found")
	case root.Content[0].Kind != yaml.MappingNode:
		return d, d.explain(root.Content[0].Line, "", "a contract must be a mapping with the key requirements")
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		return d, d.explain(second.Line, "", "several YAML documents (use only one)")
	case !errors.Is(err, io.EOF):
		return d, d.syntaxError(err)
	}

	var b bytes.Buffer
	c := converter{document: &d, encoder: jsontext.NewEncoder(&b)}
	if err := c.convert(root.Content[0], "", 0); err != nil {
		return d, err
	}
	d.json = bytes.TrimSpace(b.Bytes())
	return d, nil
}

// yamlError matches the errors of the YAML library that name a line.
var yamlError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(?s:(.*))$`)

func (d Document) syntaxError(err error) *Error {
	parts := yamlError.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(parts[1])
	if line == 0 && !strings.Contains(parts[2], "anchor") {
		line = 1 // which the library does not name
	}
	return d.explain(line, "", "invalid YAML: "+parts[2])
}

// A converter writes YAML as JSON, and notes the lines of the fields.
type converter struct {
	document *Document
	encoder  *jsontext.Encoder
	visits   int
}

// convert writes a node with all nodes below it. path is the path of the field, and depth
// the number of lists and mappings around it.
func (c *converter) convert(n *yaml.Node, path string, depth int) error {
	if _, known := c.document.fields[path]; !known {
		c.document.fields[path] = n.Line
	}
	if err := c.visit(n, path, depth); err != nil {
		return err
	}

	switch n.Kind {
	case yaml.AliasNode:
		return c.convert(n.Alias, path, depth+1)
	case yaml.SequenceNode:
		return c.list(n, path, depth)
	case yaml.MappingNode:
		return c.mapping(n, path, depth)
	}
	token, err := scalar(n)
	if err != nil {
		return c.document.explain(n.Line, path, err.Error())
	}
	return c.write(n, path, token)
}

// visit counts a node. It returns an error if the document has too many, or too deep ones.
func (c *converter) visit(n *yaml.Node, path string, depth int) error {
	c.visits++
	switch {
	case depth > maxDepth:
		return c.document.explain(n.Line, path, fmt.Sprintf("nested too deeply: at most %d levels", maxDepth))
	case c.visits > maxVisits || c.encoder.OutputOffset() > MaxSize:
		return c.document.explain(n.Line, path, "the document is too large with its aliases resolved: use fewer")
	}
	return nil
}

func (c *converter) write(n *yaml.Node, path string, token jsontext.Token) error {
	if err := c.encoder.WriteToken(token); err != nil {
		return c.document.explain(n.Line, path, "invalid value: "+err.Error())
	}
	return nil
}

func (c *converter) list(n *yaml.Node, path string, depth int) error {
	if err := c.write(n, path, jsontext.BeginArray); err != nil {
		return err
	}
	for i, item := range n.Content {
		if err := c.convert(item, below(path, strconv.Itoa(i)), depth+1); err != nil {
			return err
		}
	}
	return c.write(n, path, jsontext.EndArray)
}

func (c *converter) mapping(n *yaml.Node, path string, depth int) error {
	members, err := c.members(n, path, depth)
	if err != nil {
		return err
	}
	if err := c.write(n, path, jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range members {
		at := below(path, m.key.Value)
		if err := c.write(m.key, at, jsontext.String(m.key.Value)); err != nil {
			return err
		}
		c.document.fields[at] = m.key.Line
		if err := c.convert(m.value, at, depth+1); err != nil {
			return err
		}
	}
	return c.write(n, path, jsontext.EndObject)
}

// A member is an entry of a mapping.
type member struct{ key, value *yaml.Node }

// members returns the entries of a mapping and, after them, those of the mappings that it
// merges, without the ones that it has itself.
func (c *converter) members(n *yaml.Node, path string, depth int) ([]member, error) {
	var members []member
	var merged []*yaml.Node
	has := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			return nil, c.document.explain(key.Line, path, "the name of a field must be a string (put it in quotes)")
		case has[key.Value]:
			return nil, c.document.explain(key.Line, below(path, key.Value), "already defined in this mapping")
		default:
			has[key.Value] = true
			members = append(members, member{key, value})
		}
	}

	for _, source := range merged {
		inherited, err := c.merge(source, path, depth+1)
		if err != nil {
			return nil, err
		}
		for _, m := range inherited {
			if !has[m.key.Value] {
				has[m.key.Value] = true
				members = append(members, m)
			}
		}
	}
	return members, nil
}

// merge returns the entries that the value of a merge key adds: those of a mapping, or of
// a list of mappings.
func (c *converter) merge(n *yaml.Node, path string, depth int) ([]member, error) {
	if err := c.visit(n, path, depth); err != nil {
		return nil, err
	}

	switch n.Kind {
	case yaml.AliasNode:
		return c.merge(n.Alias, path, depth+1)
	case yaml.MappingNode:
		return c.members(n, path, depth)

	case yaml.SequenceNode:
		var all []member
		for _, item := range n.Content {
			members, err := c.merge(item, path, depth+1)
			if err != nil {
				return nil, err
			}
			c.visits += len(members)
			all = append(all, members...)
		}
		return all, nil
	}
	return nil, c.document.explain(n.Line, path, "<< must name a mapping, or a list of mappings")
}

// scalar returns a scalar as JSON. Dates and other special values are strings.
func scalar(n *yaml.Node) (jsontext.Token, error) {
	switch n.ShortTag() {
	case "!!null":
		return jsontext.Null, nil
	case "!!str", "!!timestamp":
		return jsontext.String(n.Value), nil
	}

	var value any
	if err := n.Decode(&value); err != nil {
		return jsontext.Token{}, errors.New("invalid value " + strconv.Quote(n.Value))
	}
	switch value := value.(type) {
	case bool:
		return jsontext.Bool(value), nil
	case int:
		return jsontext.Int(int64(value)), nil
	case int64:
		return jsontext.Int(value), nil
	case uint64:
		return jsontext.Uint(value), nil
	case float64:
		if !math.IsInf(value, 0) && !math.IsNaN(value) {
			return jsontext.Float(value), nil
		}
	}
	return jsontext.Token{}, fmt.Errorf("a value of the type %s is not possible in a contract", n.ShortTag())
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// readConfig merges the values of a configuration file into v, and returns notes about settings in it
// that were removed. If the file has errors, it still merges the rest, so that later checks report the
// errors there as well.
func readConfig(v *viper.Viper, file string) (notes []string, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("configuration file %s not found", file)
	}
	if err != nil {
		return nil, err
	}

	document, err := readDocument(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	f := configFile{name: file, keys: v.AllKeys(), gone: goneKeys(), values: map[string]any{}}
	if document != nil {
		f.read("", document)
	}
	if err := v.MergeConfigMap(f.values); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return f.notes, errors.Join(f.problems...)
}

// readDocument returns the YAML mapping in text, or nil if there is no document.
func readDocument(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if err == io.EOF {
		return nil, nil
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	if err == nil {
		return nil, errors.New("several YAML documents: use only one")
	}
	if err != io.EOF {
		return nil, fmt.Errorf("invalid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}

	switch root := first.Content[0]; {
	case root.Kind == yaml.MappingNode:
		return root, nil
	case root.ShortTag() == "!!null":
		return nil, nil
	}
	return nil, errors.New("not a mapping: use keys and values, such as listen: 127.0.0.1:8080")
}

// A configFile collects the values and errors of a configuration file.
type configFile struct {
	name     string
	keys     []string       // all valid keys
	gone     []string       // keys of settings that were removed
	values   map[string]any // by key, as text
	notes    []string       // about settings that were removed
	problems []error
}

// reportf records an error in the file.
func (f *configFile) reportf(format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf("%s: %s", f.name, fmt.Sprintf(format, args...)))
}

// read reads the values of a mapping, whose keys get the prefix. Values are the text
// in the file, whatever their YAML type: a duration without a unit is not a number,
// and true may be the name of a file.
func (f *configFile) read(prefix string, mapping *yaml.Node) {
	for pair := range slices.Chunk(mapping.Content, 2) {
		key, value := prefix+pair[0].Value, pair[1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}

		members := membersOf(key, f.keys)
		isSection := members != nil || membersOf(key, f.gone) != nil
		switch _, duplicate := f.values[key]; {
		case slices.Contains(f.gone, key): // whatever its value
			f.notes = append(f.notes, goneNote(key, "in "+f.name))
		case isSection && value.Kind == yaml.MappingNode:
			f.read(key+".", value)
		case members != nil:
			f.reportf("%s is a section: set %s below it, one per line", key, strings.Join(members, " and "))
		case !slices.Contains(f.keys, key):
			f.reportf("unknown key %q (use %s)", key, joinSorted(f.keys))
		case duplicate:
			f.reportf("duplicate key %s", key)
		case value.Kind == yaml.SequenceNode && slices.Contains(listKeys(), key):
			f.readList(key, value)
		case value.Kind != yaml.ScalarNode:
			f.reportf("%s must be a single value", key)
		case value.ShortTag() == "!!null":
			f.reportf("%s has no value: set one or omit the key", key)
		default:
			f.values[key] = value.Value
		}
	}
}

// readList reads a list as one comma-separated text.
func (f *configFile) readList(key string, list *yaml.Node) {
	var values []string
	for _, item := range list.Content {
		if item.Kind == yaml.AliasNode {
			item = item.Alias
		}
		if item.Kind != yaml.ScalarNode || item.ShortTag() == "!!null" {
			f.reportf("%s must be a list of single values", key)
			return
		}
		values = append(values, item.Value)
	}
	f.values[key] = strings.Join(values, ",")
}

// membersOf returns the names of the keys in a section, or nil if there is no such
// section.
func membersOf(section string, keys []string) []string {
	var members []string
	for _, key := range keys {
		if member, ok := strings.CutPrefix(key, section+"."); ok {
			members = append(members, member)
		}
	}
	slices.Sort(members)
	return members
}

// joinSorted returns the keys in alphabetical order, separated by commas.
func joinSorted(keys []string) string { return strings.Join(slices.Sorted(slices.Values(keys)), ", ") }

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

// readConfig gives v what a configuration file says. Of a file with problems it
// takes the rest, so that the problems of that are found as well.
func readConfig(v *viper.Viper, file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no configuration file %s", file)
	}
	if err != nil {
		return err
	}
	document, err := readDocument(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	f := configFile{name: file, keys: v.AllKeys(), values: map[string]any{}}
	if document != nil {
		f.read("", document)
	}
	if err := v.MergeConfigMap(f.values); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return errors.Join(f.problems...)
}

// readDocument returns the mapping that the text holds as YAML; nil, and no
// error, where it holds nothing.
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
		return nil, errors.New("it holds several YAML documents: keep one")
	}
	if err != io.EOF {
		return nil, fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	switch root := first.Content[0]; {
	case root.Kind == yaml.MappingNode:
		return root, nil
	case root.ShortTag() == "!!null":
		return nil, nil
	}
	return nil, errors.New("it must hold keys with their values, such as listen: 127.0.0.1:8080")
}

// A configFile is what is found in a configuration file.
type configFile struct {
	name     string
	keys     []string       // that there are
	values   map[string]any // by key, each the text that is written there
	problems []error
}

func (f *configFile) wrong(format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf("%s: %s", f.name, fmt.Sprintf(format, args...)))
}

// read takes the values of a mapping whose keys begin with the prefix. A value
// is the text as it stands, whatever type YAML sees in it: a duration without
// a unit is no number, and true may name a file.
func (f *configFile) read(prefix string, mapping *yaml.Node) {
	for pair := range slices.Chunk(mapping.Content, 2) {
		key, value := prefix+pair[0].Value, pair[1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		members := membersOf(key, f.keys)
		switch _, twice := f.values[key]; {
		case members != nil && value.Kind == yaml.MappingNode:
			f.read(key+".", value)
		case members != nil:
			f.wrong("%s takes no value itself: it has %s, one to a line below it", key, strings.Join(members, " and "))
		case !slices.Contains(f.keys, key):
			f.wrong("there is no key %q; the keys are %s", key, listed(f.keys))
		case twice:
			f.wrong("%s is there twice", key)
		case value.Kind == yaml.SequenceNode && slices.Contains(listKeys(), key):
			f.readList(key, value)
		case value.Kind != yaml.ScalarNode:
			f.wrong("%s takes a single value", key)
		case value.ShortTag() == "!!null":
			f.wrong("%s has no value: give it one, or leave the key out", key)
		default:
			f.values[key] = value.Value
		}
	}
}

// readList takes the values of a list: as one text, with commas between them.
func (f *configFile) readList(key string, list *yaml.Node) {
	var values []string
	for _, item := range list.Content {
		if item.Kind == yaml.AliasNode {
			item = item.Alias
		}
		if item.Kind != yaml.ScalarNode || item.ShortTag() == "!!null" {
			f.wrong("%s takes a list of single values", key)
			return
		}
		values = append(values, item.Value)
	}
	f.values[key] = strings.Join(values, ",")
}

// membersOf returns the last parts of the keys in a section, nil where there is
// no such section.
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

func listed(keys []string) string { return strings.Join(slices.Sorted(slices.Values(keys)), ", ") }

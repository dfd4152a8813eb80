package config

import (
	"bytes"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestExampleConfig checks that config.example.yaml has exactly the known keys, with
// their defaults.
func TestExampleConfig(t *testing.T) {
	text, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var example yaml.Node
	if err := yaml.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	dropComments(&example)
	got, err := yaml.Marshal(&example)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(Default())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("config.example.yaml has\n%s\nthe defaults are\n%s", got, want)
	}
}

func dropComments(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, child := range n.Content {
		dropComments(child)
	}
}

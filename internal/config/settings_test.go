package config

import (
	"bytes"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/must"
)

// TestExampleConfig checks that config.example.yaml has exactly the known keys, with
// their defaults.
func TestExampleConfig(t *testing.T) {
	text := must.Read(t, "../../config.example.yaml")
	var example yaml.Node
	must.OK(t, yaml.Unmarshal(text, &example))
	dropComments(&example)
	got, err := yaml.Marshal(&example)
	must.OK(t, err)
	want, err := yaml.Marshal(Default())
	must.OK(t, err)
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

func TestChanged(t *testing.T) {
	old := Default()
	s := old
	s.Log.Level, s.Listen, s.Webhooks.Schedule = "debug", ":80", s.Webhooks.Schedule[1:]
	changed, err := s.Changed(old)
	if want := []string{"listen", "log.level", "webhooks.schedule"}; !slices.Equal(changed, want) || err != nil {
		t.Errorf("Changed = %v, %v, want %v", changed, err, want)
	}
	if changed, err := old.Changed(old); len(changed) > 0 || err != nil {
		t.Errorf("Changed = %v, %v for equal settings", changed, err)
	}
}

package start

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestExamples checks that init writes the examples of docs/ci, which are tested, for its
// repo, and without their deployments.
func TestExamples(t *testing.T) {
	for _, name := range []string{"github.yml", "gitlab-ci.yml", "gitea.yml"} {
		text, err := examples.ReadFile("ci/" + name)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "ci", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != string(docs) {
			t.Errorf("cmd/start/ci/%s differs from docs/ci/%[1]s: copy it", name)
		}

		adapted := adapt(string(text), "globex/web")
		var parsed map[string]any
		if err := yaml.Unmarshal([]byte(adapted), &parsed); err != nil || len(parsed) < 2 {
			t.Errorf("%s: %v: %v", name, err, parsed)
		}
		for _, part := range []string{"acme/api", "deploy.sh", "ledgerd gate"} {
			if strings.Contains(adapted, part) {
				t.Errorf("%s contains %q:\n%s", name, part, adapted)
			}
		}
		for _, part := range []string{"ledgerd commit register globex/web", "ledgerd attest globex/web"} {
			if !strings.Contains(adapted, part) {
				t.Errorf("%s lacks %q:\n%s", name, part, adapted)
			}
		}
	}
}

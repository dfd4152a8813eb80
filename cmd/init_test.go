package cmd

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/must"
)

// newClone makes a new git repository the current folder.
func newClone(t *testing.T) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "clone")
	if output, err := exec.Command("git", "init", "-q", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	t.Chdir(folder)
}

// TestExamples checks that init writes the examples of docs/ci, which are tested, for its
// repo, and without their deployments.
func TestExamples(t *testing.T) {
	_, ledgerd := newLocal(t)
	for _, example := range []struct{ name, ci, file string }{
		{"github.yml", "github", ".github/workflows/ledgerd.yml"},
		{"gitlab-ci.yml", "gitlab", ".gitlab-ci.yml"},
		{"gitea.yml", "gitea", ".gitea/workflows/ledgerd.yml"},
	} {
		t.Run(example.name, func(t *testing.T) {
			newClone(t)
			ledgerd("init --org globex --repo web --ci " + example.ci)
			text := must.Read(t, example.file)

			adapted := string(text)
			var parsed map[string]any
			if err := yaml.Unmarshal(text, &parsed); err != nil || len(parsed) < 2 {
				t.Errorf("%v: %v", err, parsed)
			}
			for _, part := range []string{"acme/api", "deploy.sh", "ledgerd gate"} {
				if strings.Contains(adapted, part) {
					t.Errorf("contains %q:\n%s", part, adapted)
				}
			}
			for _, part := range []string{"ledgerd commit register globex/web", "ledgerd attest globex/web"} {
				if !strings.Contains(adapted, part) {
					t.Errorf("lacks %q:\n%s", part, adapted)
				}
			}
		})
	}
}

// The examples that init has are those of docs/ci.
func TestExamplesAreThoseOfTheDocs(t *testing.T) {
	for _, name := range []string{"github.yml", "github-mainline.yml", "gitlab-ci.yml", "gitea.yml"} {
		text := must.Read(t, filepath.Join("start", "ci", name))
		docs := must.Read(t, filepath.Join(ciDocs, name))
		if string(text) != string(docs) {
			t.Errorf("cmd/start/ci/%s differs from docs/ci/%[1]s: copy it", name)
		}
	}
}

// What a clone came with cannot have init create anything elsewhere.
func TestNothingIsCreatedThroughALink(t *testing.T) {
	const workflow, gitlab = ".github/workflows/ledgerd.yml", ".gitlab-ci.yml"
	newLocal(t)
	for name, test := range map[string]struct {
		link, target string // of the clone; elsewhere exists, and nowhere does not
		file         string
		isRefused    bool // or the file is left as it is
	}{
		"a folder":                    {".github", "../elsewhere", workflow, true},
		"a folder that is missing":    {".github", "../nowhere", workflow, true},
		"a folder below":              {".github/workflows", "../../elsewhere", workflow, true},
		"a missing one below":         {".github/workflows", "../../nowhere", workflow, true},
		"a folder of the clone":       {".github", "inside", workflow, true},
		"the folder itself":           {".github", ".", workflow, true},
		"the file":                    {gitlab, "../elsewhere/file", gitlab, false},
		"the file, to a missing one":  {gitlab, "../nowhere", gitlab, false},
		"the file, to an outer root":  {gitlab, "/nowhere/at/all", gitlab, false},
		"the file, in a deep folder":  {workflow, "../../../nowhere", workflow, false},
		"the file, to one of its own": {gitlab, "inside/file", gitlab, false},
		"the file of the repo":        {".ledgerd.yaml", "../nowhere", workflow, true},
	} {
		t.Run(name, func(t *testing.T) {
			newClone(t)
			for _, folder := range []string{filepath.Dir(test.link), "inside", "../elsewhere"} {
				must.OK(t, os.MkdirAll(folder, 0o777))
			}
			if err := os.Symlink(test.target, test.link); err != nil {
				t.Skip(err) // Windows permits it to some users only
			}

			ci := map[string]string{workflow: "github", gitlab: "gitlab"}[test.file]
			status, stdout, stderr := perform("init", "--org", "acme", "--repo", "api", "--ci", ci, "-o", "json")
			if (status != 0) != test.isRefused || !test.isRefused && wasCreated(t, stdout, test.file) {
				t.Errorf("status %d, %s%s", status, stdout, stderr)
			}
			for _, folder := range []string{"../elsewhere", "inside"} {
				if list, err := os.ReadDir(folder); err != nil || len(list) > 0 {
					t.Errorf("%s has %v, %v", folder, list, err)
				}
			}
			if _, err := os.Lstat("../nowhere"); err == nil {
				t.Error("the target was created")
			}
		})
	}
}

// wasCreated reports whether init says that it created a file. It must name the file.
func wasCreated(t *testing.T, output, file string) bool {
	t.Helper()
	var done struct {
		Steps []struct {
			Name    string
			Created bool
		}
	}
	if err := json.Unmarshal([]byte(output), &done); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, step := range done.Steps {
		if step.Name == file {
			return step.Created
		}
	}
	t.Errorf("no step for %s: %s", file, output)
	return false
}

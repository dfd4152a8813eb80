package start

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// What a clone came with cannot have init create anything elsewhere.
func TestNothingIsCreatedThroughALink(t *testing.T) {
	const workflow = ".github/workflows/ledgerd.yml"
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
		"the file":                    {".ledgerd.yaml", "../elsewhere/file", ".ledgerd.yaml", false},
		"the file, to a missing one":  {".ledgerd.yaml", "../nowhere", ".ledgerd.yaml", false},
		"the file, to an outer root":  {".ledgerd.yaml", "/nowhere/at/all", ".ledgerd.yaml", false},
		"the file, in a deep folder":  {workflow, "../../../nowhere", workflow, false},
		"the file, to one of its own": {".ledgerd.yaml", "inside/file", ".ledgerd.yaml", false},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			clone := filepath.Join(top, "clone")
			for _, folder := range []string{filepath.Dir(filepath.Join(clone, test.link)), clone + "/inside",
				top + "/elsewhere"} {
				if err := os.MkdirAll(folder, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(test.target, filepath.Join(clone, test.link)); err != nil {
				t.Skip(err) // Windows permits it to some users only
			}

			s := &setup{git: gitrepo.Repo{Dir: clone}}
			err := s.create("file", test.file, []byte("text"))
			if (err != nil) != test.isRefused || err == nil && s.steps[0].Created {
				t.Errorf("got %v, %+v", err, s.steps)
			}
			for _, folder := range []string{top + "/elsewhere", clone + "/inside"} {
				if list, err := os.ReadDir(folder); err != nil || len(list) > 0 {
					t.Errorf("%s has %v, %v", folder, list, err)
				}
			}
			if _, err := os.Lstat(top + "/nowhere"); err == nil {
				t.Error("the target was created")
			}
		})
	}
}

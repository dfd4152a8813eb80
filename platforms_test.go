package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/must"
)

var platforms = flag.Bool("platforms", false, "type-check the programs for all released platforms")

// TestTypesOnAllPlatforms checks the types of ledgerd and bench for each platform in
// goreleaser.yaml. Of dependencies it checks declarations, but no bodies of functions.
// Nothing is compiled, so it takes a few seconds where a build takes a minute.
func TestTypesOnAllPlatforms(t *testing.T) {
	if !*platforms {
		t.Skip("the step cross_build of .ci/run runs this test")
	}
	text := must.Read(t, "goreleaser.yaml")
	var release struct {
		Builds []struct{ Goos, Goarch []string }
	}
	must.OK(t, yaml.Unmarshal(text, &release))
	if len(release.Builds) != 1 {
		t.Fatalf("goreleaser.yaml has %d builds, want 1", len(release.Builds))
	}

	files := &sourceFiles{set: token.NewFileSet(), parsed: map[string]*ast.File{}}
	for _, system := range release.Builds[0].Goos {
		for _, arch := range release.Builds[0].Goarch {
			t.Run(system+"/"+arch, func(t *testing.T) { checkTypes(t, files, system, arch) })
		}
	}
}

// sourceFiles parses each file once, for all platforms.
type sourceFiles struct {
	set    *token.FileSet
	parsed map[string]*ast.File
}

func (s *sourceFiles) parse(path string) (*ast.File, error) {
	if file := s.parsed[path]; file != nil {
		return file, nil
	}
	file, err := parser.ParseFile(s.set, path, nil, parser.SkipObjectResolution)
	s.parsed[path] = file
	return file, err
}

// checkTypes checks the types of the programs and of all that they import.
func checkTypes(t *testing.T, files *sourceFiles, system, arch string) {
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", ".",
		"./e2e/bench")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	list.Stderr = os.Stderr
	out, err := list.Output()
	must.OK(t, err)

	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
			Module          *struct{ Main bool }
		}
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}

		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := files.parse(filepath.Join(p.Dir, name))
			must.OK(t, err)
			parsed = append(parsed, file)
		}
		config := types.Config{
			Importer: importerFunc(func(path string) (*types.Package, error) {
				if mapped := p.ImportMap[path]; mapped != "" {
					path = mapped
				}
				if found := checked[path]; found != nil {
					return found, nil
				}
				return nil, errors.New("not listed")
			}),
			Sizes:            types.SizesFor("gc", arch),
			IgnoreFuncBodies: p.Module == nil || !p.Module.Main,
			Error:            func(err error) { t.Error(err) },
		}
		checked[p.ImportPath], _ = config.Check(p.ImportPath, files.set, parsed, nil)
	}
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

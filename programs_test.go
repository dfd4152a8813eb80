package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// startsPrograms lists the functions that start other programs, with the programs. All of git
// starts in one: its options keep a clone from choosing programs that git runs.
var startsPrograms = map[string]string{
	"internal/gitrepo/repo.go newCommand":       "git",
	"cmd/internal/subprocess/subprocess.go Run": "the command under attest",
}

// TestProgramsAreStartedInListedPlaces checks that nothing else starts a program. Packages that
// only tests use may.
func TestProgramsAreStartedInListedPlaces(t *testing.T) {
	found := make(map[string]bool)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "e2e" || name != "." && d.Name()[0] == '.' || d.Name() == "testdata" ||
			strings.HasSuffix(d.Name(), "test")):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		for _, function := range programStarts(t, name) {
			found[filepath.ToSlash(name)+" "+function] = true
		}
		return nil
	})
	must.OK(t, err)

	for place := range found {
		if startsPrograms[place] == "" {
			t.Errorf("%s starts a program: for git, use internal/gitrepo; otherwise list it here", place)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(startsPrograms)) {
		if !found[place] {
			t.Errorf("%s does not start a program", place)
		}
	}
}

// programStarts returns the functions of a file that start programs.
func programStarts(t *testing.T, name string) (functions []string) {
	t.Helper()
	file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
	starts := []string{"exec.Command", "exec.CommandContext", "os.StartProcess", "syscall.Exec", "syscall.ForkExec",
		"syscall.StartProcess", "unix.Exec"}

	for _, d := range file.Decls {
		function := "outside of functions"
		if f, ok := d.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if literal, ok := n.(*ast.CompositeLit); ok && selects(literal.Type, "exec.Cmd") {
				functions = append(functions, function)
			}
			if e, ok := n.(ast.Expr); ok && selects(e, starts...) {
				functions = append(functions, function)
			}
			return true
		})
	}
	return functions
}

// selects reports whether an expression is one of the given names of packages.
func selects(e ast.Expr, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && slices.Contains(names, pkg.Name+"."+s.Sel.Name)
}

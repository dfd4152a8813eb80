package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// TestFilesFormNoCycle checks that the files of each package form layers. If a file
// uses a name that another file declares, the other one must not use names of the
// first, directly or through other files.
func TestFilesFormNoCycle(t *testing.T) {
	for _, folder := range slices.Sorted(maps.Keys(mayImport)) {
		t.Run(folder, func(t *testing.T) { checkCycles(t, folder) })
	}
}

// The size limits of a package, without its tests. A larger one should be split.
const (
	maxFiles = 24
	maxLines = 4000
)

// TestNoPackageIsTooLarge checks the size of each package.
func TestNoPackageIsTooLarge(t *testing.T) {
	for _, folder := range slices.Sorted(maps.Keys(mayImport)) {
		files, lines := 0, 0
		for _, name := range filesOf(t, folder) {
			text := must.Read(t, name)
			files, lines = files+1, lines+bytes.Count(text, []byte("\n"))
		}
		if files > maxFiles || lines > maxLines {
			t.Errorf("%s has %d files and %d lines, want at most %d and %d", folder, files, lines, maxFiles, maxLines)
		}
	}
}

// minLines is the size below which a package joins a neighbour.
const minLines = 45

// small has the smaller packages, and why they stay.
var small = map[string]string{
	".":                      "main",
	"e2e":                    "only tests",
	"e2e/fault":              "only tests",
	"internal/sigstoretest":  "files of the domain, for tests outside of it",
	"ledger/internal/issuer": "exchange and member use it, and neither imports the other",
	"store/postgres/model":   "only a test",
}

// TestNoPackageIsTooSmall checks that small lists the packages with fewer lines than minLines.
func TestNoPackageIsTooSmall(t *testing.T) {
	for _, folder := range slices.Sorted(maps.Keys(mayImport)) {
		lines := 0
		for _, name := range filesOf(t, folder) {
			lines += bytes.Count(must.Read(t, name), []byte("\n"))
		}
		if isListed := small[folder] != ""; isListed != (lines < minLines) {
			t.Errorf("%s has %d lines, and small lists it: %t", folder, lines, isListed)
		}
	}
}

// filesOf lists the files of a package, without its tests.
func filesOf(t *testing.T, folder string) []string {
	t.Helper()
	names := must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// checkCycles reports the cycles between the files of a package.
func checkCycles(t *testing.T, folder string) {
	uses := usesBetweenFiles(t, folder)
	reached := make(map[string]map[string]bool, len(uses))
	for file := range uses {
		reached[file] = reachedFrom(uses, file)
	}

	reported := make(map[string]bool)
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if reported[file] || !reached[file][file] {
			continue
		}
		var cycle []string
		for other := range reached[file] {
			if reached[other][file] {
				cycle = append(cycle, other)
				reported[other] = true
			}
		}
		slices.Sort(cycle)
		t.Errorf("files of %s form a cycle: %s:\n%smove declarations until the files form layers",
			folder, strings.Join(cycle, ", "), describeUses(uses, cycle))
	}
}

// fileUses has the names that a file uses of another one: its keys are the using
// file, the declaring file and the name.
type fileUses map[string]map[string]map[string]bool

// usesBetweenFiles resolves the names in the files of a package, without its tests.
// It does not load other packages (see stubImporter), and ignores the type errors
// that this causes.
func usesBetweenFiles(t *testing.T, folder string) fileUses {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	selected := make(stubImporter)
	for _, name := range filesOf(t, folder) {
		file := must.Get(parser.ParseFile(fset, name, nil, parser.SkipObjectResolution))(t)
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.IsExported() {
				selected[s.Sel.Name] = true
			}
			return true
		})
	}

	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: selected, Error: func(error) {}}
	pkg, _ := config.Check(folder, fset, files, &info) // ignore errors, as config.Error does

	uses := make(fileUses)
	base := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	for ident, object := range info.Uses {
		if object.Pkg() != pkg {
			continue
		}
		from, to := base(ident.Pos()), base(object.Pos())
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = make(map[string]map[string]bool)
		}
		if uses[from][to] == nil {
			uses[from][to] = make(map[string]bool)
		}
		uses[from][to][object.Name()] = true
	}

	if len(uses) == 0 && folder == "store" { // names were not resolved
		t.Fatalf("found no names that the files of %s use of each other", folder)
	}
	return uses
}

// A stubImporter imports every package as a stub that declares each of the names as
// an empty struct type. This makes generic types valid that are instantiated with
// types of other packages, such as keyed[ledger.Commit], and their fields resolve.
// Results of another package's generic functions have no type.
type stubImporter map[string]bool

// Import implements types.Importer.
func (i stubImporter) Import(name string) (*types.Package, error) {
	pkg := types.NewPackage(name, path.Base(name))
	for declared := range i {
		object := types.NewTypeName(token.NoPos, pkg, declared, nil)
		types.NewNamed(object, types.NewStruct(nil, nil), nil)
		pkg.Scope().Insert(object)
	}
	pkg.MarkComplete()
	return pkg, nil
}

// reachedFrom returns the files that a file uses, directly or through others.
func reachedFrom(uses fileUses, file string) map[string]bool {
	reached := make(map[string]bool)
	var visit func(string)
	visit = func(from string) {
		for to := range uses[from] {
			if !reached[to] {
				reached[to] = true
				visit(to)
			}
		}
	}
	visit(file)
	return reached
}

// describeUses lists the names that the files of a cycle use of each other.
func describeUses(uses fileUses, cycle []string) string {
	var text strings.Builder
	for _, from := range cycle {
		for _, to := range cycle {
			if names := slices.Sorted(maps.Keys(uses[from][to])); len(names) > 0 {
				text.WriteString("  " + from + " uses " + strings.Join(names, ", ") + " of " + to + "\n")
			}
		}
	}
	return text.String()
}

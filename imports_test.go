package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

const module = "github.com/ledgerd/ledgerd"

var impure = []string{"database/sql", "net/http", "os", "log", "log/slog", "context", "sync"}

// mayNotImport keeps ledger and parts of the pages pure, webhook small, and the
// radar's index free of SQL.
var mayNotImport = map[string][]string{
	"ledger":                    impure,
	"ledger/identity":           impure,
	"ledger/ca":                 impure,
	"ledger/review":             impure,
	"ledger/passkey":            impure,
	"ledger/attestation":        impure,
	"ledger/authors":            impure,
	"ledger/attention":          impure,
	"ledger/policy":             impure,
	"ledger/gitobject":          impure,
	"ledger/lineage":            impure,
	"ledger/running":            impure,
	"ledger/policy/document":    impure,
	"ledger/policy/candidate":   impure,
	"ledger/policy/conflicts":   impure,
	"ledger/policy/earlier":     impure,
	"ledger/policy/lint":        impure,
	"ledger/where":              impure,
	"ledger/radar":              impure,
	"ledger/eventstream":        impure,
	"ledger/exchange":           impure,
	"ledger/forge":              impure,
	"ledger/insights":           impure,
	"ledger/search":             impure,
	"ledger/internal/glob":      impure,
	"ledger/internal/issuer":    impure,
	"ledger/internal/publickey": impure,
	"ledger/internal/text":      impure,
	"ledger/member":             impure,
	"ledger/outbound":           impure,
	"transparency/witness":      {"github.com/prometheus/client_golang/prometheus"},
	"webhook":                   {"github.com/prometheus/client_golang/prometheus"},
	"webhook/dispatch":          {"github.com/prometheus/client_golang/prometheus"},
	"store/radarindex":          {"database/sql"},
	"server/web/draw":           {"net/http", "context"},
	"server/web/commitview":     {"net/http", "context"},
	"server/web/format":         {"net/http", "context"},
	"server/web/policytext":     {"net/http", "context"},

	"ledger/attestation/bulk":    impure,
	"ledger/attestation/foreign": impure,
	"ledger/identity/sshkey":     impure,
	"ledger/proof/receipt":       impure,
	"ledger/proof/trustpolicy":   impure,
	"ledger/proof/verify":        impure,
}

func TestImportsGoOneWay(t *testing.T) {
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir // as the go command does
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := path.Dir(filepath.ToSlash(file))
		allowed, ok := mayImport[folder]
		if !ok {
			t.Errorf("%s: unknown package %s: add it to mayImport", file, folder)
		}

		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			ours, isOurs := strings.CutPrefix(imported, module+"/")
			if isOurs && !slices.Contains(allowed, ours) {
				t.Errorf("%s may not import %s", file, imported)
			}
			if slices.Contains(mayNotImport[folder], imported) {
				t.Errorf("%s imports %s, which mayNotImport forbids for %s", file, imported, folder)
			}
		}
		return nil
	})
	must.OK(t, err)
}

// TestWhatOnlyCommandsUseIsInCmd checks that packages of internal have another importer than commands. Those
// that only tests import may have none.
func TestWhatOnlyCommandsUseIsInCmd(t *testing.T) {
	importers := make(map[string][]string)
	for importer, list := range mayImport {
		for _, imported := range list {
			importers[imported] = append(importers[imported], importer)
		}
	}

	for _, folder := range slices.Sorted(maps.Keys(importers)) {
		isShared := slices.ContainsFunc(importers[folder], func(importer string) bool {
			return importer != "cmd" && !strings.HasPrefix(importer, "cmd/")
		})
		if strings.HasPrefix(folder, "internal/") && !isShared {
			t.Errorf("only commands import %s: move it to cmd/internal", folder)
		}
	}
}

// heavy has the packages that the domain must not link, and linkers its packages that may. What is
// linked into the domain is linked into most test binaries.
var (
	heavy   = []string{"net/http", "google.golang.org/grpc", "github.com/sigstore/sigstore-go"}
	linkers = []string{
		module + "/ledger/identity/sigstore",
		module + "/ledger/passkey", // go-webauthn links net/http
	}
)

func TestTheDomainLinksNoNetworkLibraries(t *testing.T) {
	command := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./ledger/...")
	listed, err := command.Output()
	must.OK(t, err)
	imports := make(map[string][]string)
	for line := range strings.Lines(string(listed)) {
		words := strings.Fields(line)
		imports[words[0]] = words[1:]
	}

	seen := make(map[string]bool)
	var follow func(importer string)
	follow = func(importer string) {
		if seen[importer] || slices.Contains(linkers, importer) {
			return
		}
		seen[importer] = true
		for _, imported := range imports[importer] {
			for _, h := range heavy {
				if imported == h || strings.HasPrefix(imported, h+"/") {
					t.Errorf("the domain links %s: %s imports it", imported, importer)
				}
			}
			follow(imported)
		}
	}
	for importPath := range imports {
		if strings.HasPrefix(importPath, module+"/ledger") {
			follow(importPath)
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d packages were listed", len(seen))
	}
}

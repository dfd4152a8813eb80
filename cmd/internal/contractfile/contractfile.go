// Package contractfile reads and writes policy contracts in files, and as lines of text for
// people.
package contractfile

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/document"
)

// YAML returns the contract of a policy as YAML. A comment above it names the repo and
// version.
func YAML(p policy.Policy) ([]byte, error) {
	text, err := document.YAML(p.Contract)
	if err != nil {
		return nil, err
	}
	origin := fmt.Sprintf("# %s/%s, policy v%d, created %s\n", p.Org, p.Repo, p.Version, p.CreatedAt)
	return []byte(origin + text), nil
}

// A File is a contract in a file.
type File struct {
	document.Document
	name string
}

// Read reads a contract in YAML or JSON. Its errors name the file and the line.
func Read(name string, text []byte) (File, error) {
	d, err := document.Parse(string(text))
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	return File{d, name}, nil
}

// Where returns where a field of the contract is, such as "policy.yaml, line 3". It is empty
// if the field is not in the file.
func (f File) Where(field string) string {
	if line := f.Line(field); line > 0 {
		return fmt.Sprintf("%s, line %d", f.name, line)
	}
	return ""
}

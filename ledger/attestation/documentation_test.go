package attestation

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

var updateDocs = flag.Bool("update", false, "write the table of predicate types to docs/evidence.md")

// The table of predicate types in docs/evidence.md is between these lines.
const (
	docsFile   = "../../docs/evidence.md"
	tableBegin = "<!-- The table of predicate types. go test ./ledger/attestation -run Documented -update writes it. -->\n"
	tableEnd   = "<!-- The end of the table. -->\n"
)

// The documented table is the one that statements are read by.
func TestMappingsAreDocumented(t *testing.T) {
	doc := must.Read(t, docsFile)
	before, rest, begins := strings.Cut(string(doc), tableBegin)
	table, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("%s has no table between %q and %q", docsFile, tableBegin, tableEnd)
	}

	want := documentedMappings(t)
	switch {
	case table == want:
	case *updateDocs:
		must.OK(t, os.WriteFile(docsFile, []byte(before+tableBegin+want+tableEnd+after), 0o644))
	default:
		t.Errorf("%s has another table than the code (run go test ./ledger/attestation -run Documented -update):\n"+
			"%s\nwant\n%s", docsFile, table, want)
	}
}

// documentedMappings renders the mappings and their version as Markdown.
func documentedMappings(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe version of these rules is `mapping_version` %d.\n\n", MappingVersion)
	b.WriteString("| predicate type | predicate | result | slot |\n|---|---|---|---|\n")
	for _, m := range mappings {
		var types []string
		for _, uri := range m.Types {
			types = append(types, "`"+uri+"`")
		}
		if m.AnyVersion {
			types = append(types, "of any version")
		}
		writeRow(&b, strings.Join(types, "<br>"), m)
	}

	others, err := mappingFor("https://example.com/any")
	must.OK(t, err)
	others.Predicate, others.Result = "the predicate type", "`recorded`"
	writeRow(&b, "all others", others)
	return b.String() + "\n"
}

func writeRow(b *strings.Builder, types string, m Mapping) {
	slot := cmp.Or(m.Source, "none")
	if m.Slots {
		slot = "the other subjects"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", types, m.Predicate, m.Result, slot)
}

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/where"
)

// A requirement asks for levels, which a summary states by themselves or by a higher one of the track.
func TestLevels(t *testing.T) {
	for _, test := range []struct {
		wanted, stated string
		isMet          bool
	}{
		{"SLSA_SOURCE_LEVEL_3", `["SLSA_SOURCE_LEVEL_3"]`, true},
		{"SLSA_SOURCE_LEVEL_3", `["SLSA_SOURCE_LEVEL_4"]`, true},
		{"SLSA_SOURCE_LEVEL_3", `["SLSA_BUILD_LEVEL_1","SLSA_SOURCE_LEVEL_3"]`, true},
		{"SLSA_SOURCE_LEVEL_0", `["SLSA_SOURCE_LEVEL_0"]`, true},
		{"SLSA_SOURCE_LEVEL_0", `["SLSA_SOURCE_LEVEL_2"]`, true},
		{"SLSA_SOURCE_LEVEL_3", `["SLSA_SOURCE_LEVEL_2"]`, false},
		{"SLSA_SOURCE_LEVEL_3", `["SLSA_SOURCE_LEVEL_0"]`, false},
		{"SLSA_SOURCE_LEVEL_3", `["SLSA_BUILD_LEVEL_3"]`, false},
		{"SLSA_SOURCE_LEVEL_3", `["SLSA_SOURCE_LEVEL_30"]`, false},
		{"SLSA_SOURCE_LEVEL_3", `[]`, false},
		{"SLSA_SOURCE_LEVEL_3", `"SLSA_SOURCE_LEVEL_3"`, false},
		{"ORG_SOURCE_REVIEWED", `["ORG_SOURCE_REVIEWED"]`, true},
		{"ORG_SOURCE_REVIEWED", `["ORG_SOURCE_TESTED"]`, false},
		{`SLSA_SOURCE_LEVEL_1","SLSA_BUILD_LEVEL_2`, `["SLSA_SOURCE_LEVEL_1","SLSA_BUILD_LEVEL_3"]`, true},
		{`SLSA_SOURCE_LEVEL_1","SLSA_BUILD_LEVEL_2`, `["SLSA_SOURCE_LEVEL_1"]`, false},
	} {
		c, err := policy.Parse(fmt.Appendf(nil, `{"requirements":[{"state":"ATTESTED","predicate":"vsa:*","levels":["%s"],
"where":"predicate.verifier.id == 'x' // ours"}]}`, test.wanted))
		must.OK(t, err)
		program := must.Get(where.Compile(c.Requirements[0].Expression()))(t)
		got := program.Eval(where.Read(fmt.Appendf(nil,
			`{"predicate":{"verifier":{"id":"x"},"verifiedLevels":%s}}`, test.stated)))
		if got.True != test.isMet {
			t.Errorf("%s, and the summary states %s: %+v", test.wanted, test.stated, got)
		}
	}
}

func TestInvalidLevelsNameTheirField(t *testing.T) {
	contract := func(subject string, levels ...string) []byte {
		return fmt.Appendf(nil, `{"requirements":[{"state":"ATTESTED",%s,"levels":["%s"]}]}`, subject,
			strings.Join(levels, `","`))
	}
	const summaries = `"predicate":"vsa:*"`
	for _, level := range []string{"", "slsa_source_level_3", "SLSA_SOURCE_LEVEL_5", "SLSA_SOURCE_LEVEL_-1",
		"SLSA_SOURCE_LEVEL_", "SLSA_LEVEL", "SLSA_SOURCE_LEVEL_03", "A B", strings.Repeat("A", 65)} {
		_, err := policy.Parse(contract(summaries, "SLSA_SOURCE_LEVEL_1", level))
		wantFields(t, err, "requirements[0].levels[1]")
	}
	_, err := policy.Parse(contract(`"predicate":"test:*"`, "SLSA_SOURCE_LEVEL_1"))
	wantFields(t, err, "requirements[0].levels")
	_, err = policy.Parse(contract(`"type":"https://slsa.dev/verification_summary/v1"`, "SLSA_SOURCE_LEVEL_1"))
	must.OK(t, err)
	many := strings.Split(strings.Repeat("SLSA_SOURCE_LEVEL_0,", 30)+"SLSA_SOURCE_LEVEL_0", ",")
	_, err = policy.Parse(contract(summaries, many...)) // as an expression, they are too long
	wantFields(t, err, "requirements[0].levels")
}

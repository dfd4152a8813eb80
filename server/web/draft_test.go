package web_test

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// draft returns a random contract as JSON.
func (h *history) draft() string {
	r := h.rnd
	var requirements []string
	most := 5
	if h.merging || h.deploys {
		most = 2
	}
	if h.deploys {
		requirements = append(requirements, `{"name":"live","state":"DEPLOYED","predicate":"deploy:prod"}`)
	}
	for i, n := 0, 1+r.IntN(most); i < n; i++ {
		requirements = append(requirements, h.requirement(i))
	}

	members := []string{`"requirements":[` + strings.Join(requirements, ",") + `]`}
	if one(r, 3) {
		members = append(members, `"targets":"claimed"`)
	}
	if one(r, 2) {
		members = append(members, fmt.Sprintf(`"exceptions":{"signers":[%s],"max_duration":%q}`,
			pick(r, `"ou=platform"`, `"cn=b*"`, `"ou=dev","ou=platform"`), pick(r, "2h", "24h")))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (h *history) requirement(i int) string {
	r := h.rnd
	state := pick(r, ledger.Attested, ledger.Promotable, ledger.Deployed)
	carries, ways := 2, pick(r, `"tree"`, `"tree","merge"],"carry_signers":["ou=dev","ou=platform"`,
		`"merge"],"carry_signers":["ou=build"`)
	if h.merging {
		state = pick(r, ledger.Attested, ledger.Promotable)
		carries, ways = 1, `"tree","merge"],"carry_signers":["cn=*"`
	}
	if h.deploys {
		state = pick(r, ledger.Attested, ledger.Promotable)
	}
	members := []string{fmt.Sprintf(`"name":"r%d","state":%q`, i, state)}
	add := func(chance int, format string, args ...any) {
		if chance == 1 || one(r, chance) && !((h.merging || h.deploys) && one(r, 2)) {
			members = append(members, fmt.Sprintf(format, args...))
		}
	}

	switch state {
	case ledger.Attested:
		add(1, `"predicate":%q`, pick(r, "test:*", "test:go", "*"))
		add(carries, `"carry":[%s]`, ways)
	case ledger.Promotable:
		add(1, `"predicate":%q`, pick(r, "review:*", "review:code", "test:*"))
		add(2, `"distinct_from":["ATTESTED"]`)
		add(carries, `"carry":[%s]`, ways)
	default:
		add(1, `"predicate":%q`, pick(r, "deploy:*", "deploy:prod"))
		add(2, `"distinct_from":[%s]`, pick(r, `"PROMOTABLE"`, `"ATTESTED","PROMOTABLE"`))
	}
	if h.updating {
		add(3, `"covers":"change"`)
	}
	add(3, `"signers":[%s]`, pick(r, `"ou=build"`, `"ou=dev,o=acme"`, `"cn=*,ou=platform"`, `"cn=b*"`,
		`"ou=dev","ou=platform"`))
	add(4, `"threshold":2`)
	add(4, `"accept":[%s]`, pick(r, `"pass","warn"`, `"pass","fail"`, `"warn"`))
	add(4, `"max_age":%q`, pick(r, "1h", "3h"))
	add(3, `"exclude_author":%s`, pick(r, "true", "true", `"proven"`))
	add(4, `"where":%q`, pick(r, whereShort, whereOfHand, `type.startsWith("https://")`))
	add(5, `"paths":[%s]`, pick(r, `"a/**"`, `"b/*"`, `"**/*.go"`))
	add(5, `"branches":[%s]`, pick(r, `"main"`, `"release/*"`, `"topic"`))
	return "{" + strings.Join(members, ",") + "}"
}

// Expressions, with what the test knows of them: checks that take 50 ms are not short, and
// only some have the annotation.
const (
	whereShort  = "predicate.result.duration_ms < 10"
	whereOfHand = `predicate.annotations.by == "hand"`
)

// learn adds what expressions say.
func (h *history) learn(verdicts policy.Verdicts) {
	for expression, said := range verdicts {
		for attestation, verdict := range said {
			h.verdicts.Add(expression, attestation, verdict)
		}
	}
}

// verdicts returns what the expressions say of a statement.
func verdicts(attestation string, isShort, isAnnotated bool) policy.Verdicts {
	ofHand := policy.Verdict{True: true}
	if !isAnnotated {
		ofHand = policy.Verdict{Error: "no such key: annotations"}
	}
	return policy.Verdicts{
		whereShort:                    {attestation: {True: isShort}},
		whereOfHand:                   {attestation: ofHand},
		`type.startsWith("https://")`: {attestation: {True: true}},
	}
}

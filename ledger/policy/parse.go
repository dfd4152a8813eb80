package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/assign"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/fields"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The JSON form of a contract. Optional members are pointers, to distinguish a missing
// member from a zero value.
type (
	document struct {
		Rules        *int                  `json:"rules"`
		Requirements []requirementDocument `json:"requirements"`
		Targets      string                `json:"targets"`
		Exceptions   *exceptionDocument    `json:"exceptions"`
		Artifacts    *artifactDocument     `json:"artifacts"`
		Radar        radarDocument         `json:"radar"`
	}
	exceptionDocument struct {
		Signers     []string `json:"signers"`
		MaxDuration *string  `json:"max_duration"`
	}
	artifactDocument struct {
		Signers []string `json:"signers"`
	}
	requirementDocument struct {
		Name          string   `json:"name"`
		State         string   `json:"state"`
		Predicate     string   `json:"predicate"`
		Type          string   `json:"type"`
		Signers       []string `json:"signers"`
		Threshold     *int     `json:"threshold"`
		Accept        []string `json:"accept"`
		MaxAge        *string  `json:"max_age"`
		ExcludeAuthor any      `json:"exclude_author"`
		DistinctFrom  []string `json:"distinct_from"`
		Levels        []string `json:"levels"`
		Where         string   `json:"where"`
		Passkey       bool     `json:"passkey"`
		Covers        *string  `json:"covers"`
		Delivery      bool     `json:"delivery"`
		Carry         []string `json:"carry"`
		CarrySigners  []string `json:"carry_signers"`
		Paths         []string `json:"paths"`
		Branches      []string `json:"branches"`
	}
	radarDocument struct {
		Enabled *bool    `json:"enabled"`
		Notify  *string  `json:"notify"`
		Block   *string  `json:"block"`
		Ignore  []string `json:"ignore"`
		MaxAge  *string  `json:"max_age"`
	}
)

// Parse decodes a contract from JSON, validates it, and sets the defaults. The error
// lists all invalid fields, each with its path. How large a contract may be depends on the one that it
// replaces: CheckSize checks this.
func Parse(data []byte) (Contract, error) { return parse(data, contractCheck{}) }

// ParseStored decodes the canonical document of a contract. Releases before the member
// targets knew one target for each commit: their contracts keep this meaning, which is
// that of ClaimedTargets. They may have no Rules.
func ParseStored(data []byte) (Contract, error) {
	return parse(data, contractCheck{fields.Check{Stored: true}})
}

// A contractCheck collects the faults of one document.
type contractCheck struct{ fields.Check }

func parse(data []byte, k contractCheck) (Contract, error) {
	var doc document
	if err := ledger.DecodeStrict(data, &doc); err != nil {
		return Contract{}, contractTypeError(data, err)
	}
	c := k.contract(&doc)
	if len(k.Faults) > 0 {
		return Contract{}, ledger.FieldsError(ledger.CodeInvalidContract, k.Faults...)
	}
	return c, nil
}

// fieldTypes holds the JSON type of each member of a contract.
var fieldTypes = map[string]string{
	"rules": "a whole number", "requirements": "a list of objects", "radar": "an object",
	"state": "a string", "predicate": "a string", "type": "a string",
	"max_age": "a string", "notify": "a string", "block": "a string", "name": "a string", "where": "a string",
	"targets": "a string", "exceptions": "an object", "max_duration": "a string", "distinct_from": "a list of strings",
	"signers": "a list of strings", "accept": "a list of strings",
	"paths": "a list of strings", "branches": "a list of strings", "ignore": "a list of strings",
	"threshold": "a whole number", "enabled": "true or false", "passkey": "true or false", "artifacts": "an object",
	"delivery": "true or false",
	"covers":   "a string", "carry": "a list of strings", "carry_signers": "a list of strings",
}

// contractTypeError converts an error about a JSON value of the wrong type into one that
// names the right type. It returns other errors unchanged.
func contractTypeError(data []byte, err error) error {
	e, ok := errors.AsType[*ledger.Error](err)
	if !ok || e.Code != ledger.CodeInvalidJSON || !jsontext.Value(data).IsValid() {
		return err
	}
	if len(e.Fields) == 0 {
		return ledger.Errorf(ledger.CodeInvalidContract, "the contract must be a JSON object")
	}

	path := e.Fields[0].Field
	name, _, inList := strings.Cut(path[strings.LastIndexByte(path, '.')+1:], "[")
	must := "must be " + fieldTypes[name]
	if inList { // the path names an element of the list
		must = name + " " + must
	}
	return ledger.FieldErrorf(ledger.CodeInvalidContract, path, "%s", must)
}

func (k *contractCheck) contract(doc *document) Contract {
	switch n := len(doc.Requirements); {
	case doc.Requirements == nil:
		// An empty contract makes every attested commit PROMOTABLE, which must be explicit.
		k.Fault("requirements", "required (use [] if commits need no evidence)")
	case n > assign.MaxRequirements:
		k.Fault("requirements", "too many: %d entries, at most %d", n, MaxRequirements)
		return Contract{}
	}
	c := Contract{Rules: k.rules(doc.Rules), Targets: k.targets(doc.Targets), Exceptions: k.exceptions(doc.Exceptions),
		Artifacts: k.artifacts(doc.Artifacts), Radar: k.radar(&doc.Radar)}
	c.Requirements = make([]Requirement, len(doc.Requirements))
	for i := range doc.Requirements {
		c.Requirements[i] = k.requirement(fmt.Sprintf("requirements[%d]", i), &doc.Requirements[i])
	}
	return c
}

func (k *contractCheck) rules(version *int) int {
	switch {
	case version == nil && k.Stored:
		return 0
	case version == nil:
	case *version < 2 || *version > Rules:
		k.Fault("rules", "%d is not supported (use %d, or omit it)", *version, Rules)
	case k.Stored:
		return *version
	}
	return Rules
}

func (k *contractCheck) targets(rule string) TargetRule {
	switch r := TargetRule(rule); {
	case r == AllTargets || r == ClaimedTargets:
		return r
	case rule == "" && k.Stored:
		return ClaimedTargets
	case rule != "":
		k.Fault("targets", "%q is not a rule (use all or claimed)", text.Clip(rule))
	}
	return AllTargets
}

func (k *contractCheck) exceptions(doc *exceptionDocument) ExceptionRule {
	const week = ledger.Duration(7 * 24 * time.Hour)
	if doc == nil {
		return ExceptionRule{}
	}
	if len(doc.Signers) == 0 {
		k.Fault("exceptions.signers", "required (use e.g. [\"ou=security,o=acme\"])")
	}
	r := ExceptionRule{Signers: k.Signers("exceptions.signers", doc.Signers),
		MaxDuration: k.MaxAge("exceptions.max_duration", doc.MaxDuration, week)}
	const maxExceptionAge = ledger.Duration(366 * 24 * time.Hour)
	if r.MaxDuration > maxExceptionAge {
		k.Fault("exceptions.max_duration", "%s is too long (use at most %s)", r.MaxDuration, maxExceptionAge)
	}
	return r
}

func (k *contractCheck) artifacts(doc *artifactDocument) ArtifactRule {
	if doc == nil {
		return ArtifactRule{}
	}
	if len(doc.Signers) == 0 {
		k.Fault("artifacts.signers", "required (use e.g. [\"ou=build,o=acme\"], or omit artifacts)")
	}
	return ArtifactRule{Signers: k.Signers("artifacts.signers", doc.Signers)}
}

func (k *contractCheck) requirement(at string, doc *requirementDocument) Requirement {
	r := Requirement{
		Name:          k.Name(at+".name", doc.Name),
		State:         k.State(at+".state", doc.State),
		Predicate:     k.predicate(at, doc),
		Type:          k.predicateType(at+".type", doc.Type),
		Signers:       k.Signers(at+".signers", doc.Signers),
		Threshold:     k.Threshold(at+".threshold", doc.Threshold),
		Accept:        k.Accept(at+".accept", doc.Accept),
		MaxAge:        k.MaxAge(at+".max_age", doc.MaxAge, 0),
		ExcludeAuthor: k.excludeAuthor(at+".exclude_author", doc.ExcludeAuthor),
		DistinctFrom:  k.distinctFrom(at+".distinct_from", doc),
		Levels:        k.Levels(at+".levels", doc.Predicate+doc.Type, doc.Levels),
		Where:         k.Where(at+".where", doc.Where),
		Passkey:       doc.Passkey,
		Covers:        k.covers(at+".covers", doc.Covers),
		Delivery:      k.delivery(at+".delivery", doc),
		Carry:         k.carry(at+".carry", doc),
		CarrySigners:  k.carrySigners(at+".carry_signers", doc),
		Paths:         k.Globs(at+".paths", doc.Paths, glob.CheckPath),
		Branches:      k.Globs(at+".branches", doc.Branches, glob.Check),
	}
	if len(r.Levels) > 0 {
		k.Where(at+".levels", r.Expression())
	}
	return r
}

func (k *contractCheck) radar(doc *radarDocument) conflicts.Settings {
	r := conflicts.Default()
	if doc.Enabled != nil {
		r.Enabled = *doc.Enabled
	}
	r.Notify = k.Level("radar.notify", doc.Notify, r.Notify)
	if r.Notify == radar.NoLevel {
		k.Fault("radar.notify", "%q is not allowed (use LOW, MEDIUM or HIGH, or set enabled to false)", r.Notify)
	}
	r.Block = k.Level("radar.block", doc.Block, r.Block)
	r.Ignore = k.Globs("radar.ignore", doc.Ignore, glob.CheckPath)
	r.MaxAge = k.MaxAge("radar.max_age", doc.MaxAge, r.MaxAge)
	return r
}

// distinctFrom validates a list of states, which must be lower than that of the
// requirement.
func (k *contractCheck) distinctFrom(field string, doc *requirementDocument) (states []ledger.State) {
	if !k.Fits(field, doc.DistinctFrom) {
		return nil
	}
	own, _ := ledger.ParseState(doc.State)
	for i, name := range doc.DistinctFrom {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch s := k.State(at, name); {
		case s < ledger.Attested: // reported
		case s >= own:
			k.Fault(at, "%s is not lower than %s (use a lower state)", s, text.Clip(doc.State))
		case slices.Contains(states, s):
			k.Fault(at, "%q occurs twice", name)
		default:
			states = append(states, s)
		}
	}
	slices.Sort(states)
	return states
}

func (k *contractCheck) excludeAuthor(field string, rule any) AuthorRule {
	switch rule {
	case nil, false:
		return AuthorCounts
	case true:
		return AuthorExcluded
	case "proven":
		return ProvenAuthorExcluded
	case "known":
		return KnownAuthorExcluded
	}
	k.Fault(field, "must be true, false, \"proven\" or \"known\"")
	return AuthorCounts
}

func (k *contractCheck) covers(field string, name *string) Coverage {
	switch {
	case name == nil || *name == "tree":
		return CoversTree
	case *name == string(CoversChange):
		return CoversChange
	}
	k.Fault(field, "%q is not known (use tree or change)", text.Clip(*name))
	return CoversTree
}

// delivery validates that only deployments are asked for all that they ship.
func (k *contractCheck) delivery(field string, doc *requirementDocument) bool {
	prefix := ledger.EnvironmentPredicate("")
	isDeployment := doc.State == ledger.Deployed.String() && strings.HasPrefix(doc.Predicate, prefix) &&
		doc.Predicate != prefix && !IsTypePattern(doc.Predicate)
	if doc.Delivery && !isDeployment {
		k.Fault(field, "is only for requirements for DEPLOYED with a predicate deploy:NAME")
	}
	return doc.Delivery
}

// carry validates a list of ways in which evidence carries.
func (k *contractCheck) carry(field string, doc *requirementDocument) (rule CarryRule) {
	if !k.Fits(field, doc.Carry) {
		return rule
	}
	for i, name := range doc.Carry {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch way, ok := carryNames[name]; {
		case !ok:
			k.Fault(at, "%q is not a way to carry evidence (use tree or merge)", text.Clip(name))
		case rule&way != 0:
			k.Fault(at, "%q occurs twice", name)
		default:
			rule |= way
		}
	}
	if rule != 0 && doc.State == ledger.Deployed.String() {
		k.Fault(field, "deployments do not carry (remove it from requirements for DEPLOYED)")
	}
	return rule
}

func (k *contractCheck) carrySigners(field string, doc *requirementDocument) []identity.Pattern {
	carriesMerges := slices.Contains(doc.Carry, "merge")
	switch {
	case carriesMerges && len(doc.CarrySigners) == 0:
		k.Fault(field, "required with merge in carry: whose claims of merges count (use e.g. [\"cn=merge-bot,o=acme\"])")
	case !carriesMerges && len(doc.CarrySigners) > 0:
		k.Fault(field, "used only with merge in carry")
	}
	return k.Signers(field, doc.CarrySigners)
}

func (k *contractCheck) predicate(at string, doc *requirementDocument) string {
	switch {
	case doc.Type == "" && doc.Predicate == "":
		k.Fault(at+".predicate", "required (use e.g. test:go or test:*)")
	case doc.Type != "" && doc.Predicate != "":
		k.Fault(at+".type", "use either predicate or type")
	}
	k.Pattern(at+".predicate", doc.Predicate)
	return doc.Predicate
}

func (k *contractCheck) predicateType(field, p string) string {
	if p != "" && !IsTypePattern(p) {
		k.Fault(field, "%q is not a URI (use e.g. https://slsa.dev/provenance/v1)", text.Clip(p))
	}
	k.Pattern(field, p)
	return p
}

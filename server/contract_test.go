package server

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

var updateContract = flag.Bool("update", false, "write testdata/contract.txt instead of comparing with it")

// TestContractIsPinned compares the API that clients rely on with
// testdata/contract.txt: problem codes, endpoints, parameters, statuses, webhooks and
// the fields of all bodies. Names that are not sent, such as those of schemas and
// operations, and prose are ignored. After an intended change, run
//
//	go test ./server -run ContractIsPinned -update
//
// and review the diff of the file: within /v1, only additions are allowed.
func TestContractIsPinned(t *testing.T) {
	file := filepath.Join("testdata", "contract.txt")
	got := contractOf(loadDescription(t))
	if *updateContract {
		must.OK(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	pinned := must.Read(t, file)
	want := strings.ReplaceAll(string(pinned), "\r\n", "\n")
	if got == want {
		return
	}
	old, current := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range missing(old, current) {
		t.Errorf("- %s", line)
	}
	for _, line := range missing(current, old) {
		t.Errorf("+ %s", line)
	}
	t.Errorf("openapi.yaml and %s differ; see the comment of this test", file)
}

// missing returns the lines that occur more often in lines than in others.
func missing(lines, others []string) (only []string) {
	count := make(map[string]int)
	for _, line := range others {
		count[line]++
	}
	for _, line := range lines {
		if count[line]--; count[line] < 0 {
			only = append(only, line)
		}
	}
	return only
}

// A contract builds the text of testdata/contract.txt.
type contract struct {
	text    strings.Builder
	problem string            // the fields of a problem
	bodies  map[string]string // maps the fields of a body to where it was first listed
	headers map[string]bool   // the lines of all response headers
}

// contractOf returns the text for a description. Each line is self-contained, so that
// a diff shows every change.
func contractOf(doc *openapi3.T) string {
	c := &contract{bodies: make(map[string]string), headers: make(map[string]bool)}
	c.line("problem codes")
	kinds := wire.Kinds()
	for _, code := range slices.Sorted(maps.Keys(kinds)) {
		c.line("  %s %d", code, kinds[code].Status)
	}

	c.problem = fieldsOf(doc.Components.Schemas["Problem"])
	c.line("\nproblem\n%s", strings.TrimSuffix(c.problem, "\n"))

	paths := doc.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := paths[path].Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			c.operation(method+" "+path, paths[path], operations[method])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Webhooks)) {
		c.operation("webhook "+name, doc.Webhooks[name], doc.Webhooks[name].Post)
	}

	for _, event := range []string{"Attestation", "State", "Policy", "Radar"} {
		c.line("\ndata of %s on the stream\n%s", strings.ToLower(event), fieldsOf(doc.Components.Schemas["Stream"+event]))
	}
	c.line("response headers\n%s", strings.Join(slices.Sorted(maps.Keys(c.headers)), "\n"))
	return c.text.String()
}

func (c *contract) line(format string, args ...any) {
	fmt.Fprintf(&c.text, format+"\n", args...)
}

func (c *contract) operation(name string, item *openapi3.PathItem, operation *openapi3.Operation) {
	c.line("\n%s", name)
	if scope, ok := operation.Extensions["x-scope"].(string); ok {
		c.line("  scope %s", scope)
	}

	parameters := slices.Concat(item.Parameters, operation.Parameters)
	slices.SortStableFunc(parameters, func(a, b *openapi3.ParameterRef) int {
		return cmp.Or(strings.Compare(a.Value.In, b.Value.In), strings.Compare(a.Value.Name, b.Value.Name))
	})
	for _, p := range parameters {
		c.line("  %s %s: %s%s", p.Value.In, p.Value.Name, typeOf(p.Value.Schema), required(p.Value.Required))
	}
	if operation.RequestBody != nil {
		c.content("request", required(operation.RequestBody.Value.Required), name, operation.RequestBody.Value.Content)
	}

	var failures []string
	responses := operation.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		response := responses[status].Value
		var names []string
		for header, h := range response.Headers {
			c.headers[fmt.Sprintf("  %s: %s%s", header, typeOf(h.Value.Schema), required(h.Value.Required))] = true
			if header != wire.HeaderRequestID {
				names = append(names, header)
			}
		}
		slices.Sort(names)
		with := ""
		if len(names) > 0 {
			with = " with " + strings.Join(names, ", ")
		}
		problem := response.Content[typeProblem]
		switch {
		case problem != nil && len(response.Content) == 1 && fieldsOf(problem.Schema) == c.problem:
			failures = append(failures, status+with)
		case len(response.Content) == 0:
			c.line("  %s%s", status, with)
		default:
			c.content(status, with, name, response.Content)
		}
	}
	if len(failures) > 0 {
		c.line("  problems: %s", strings.Join(failures, "; "))
	}
}

// content lists the bodies of a request or response. A body that was listed before is
// replaced by a reference.
func (c *contract) content(what, with, operation string, content openapi3.Content) {
	for _, mediaType := range slices.Sorted(maps.Keys(content)) {
		fields := fieldsOf(content[mediaType].Schema)
		location := operation + ", " + what
		if first, ok := c.bodies[fields]; ok {
			c.line("  %s %s%s: as in %s", what, mediaType, with, first)
			continue
		}
		c.bodies[fields] = location
		c.line("  %s %s%s\n%s", what, mediaType, with, strings.TrimSuffix(fields, "\n"))
	}
}

func required(is bool) string {
	if is {
		return ", required"
	}
	return ""
}

// fieldsOf returns a body and its fields, one per line.
func fieldsOf(ref *openapi3.SchemaRef) string {
	var text strings.Builder
	listFields(&text, "body", ref, false)
	return text.String()
}

func listFields(text *strings.Builder, path string, ref *openapi3.SchemaRef, isRequired bool) {
	s := ref.Value
	if len(s.AllOf) == 1 && len(s.Properties) == 0 {
		inner := s.AllOf[0].Value
		if len(inner.Properties) > 0 || inner.Items != nil {
			listFields(text, path, s.AllOf[0], isRequired)
			return
		}
	}

	fmt.Fprintf(text, "    %s: %s%s\n", path, typeOf(ref), required(isRequired))
	for i, variant := range slices.Concat(s.OneOf, s.AnyOf) {
		listFields(text, fmt.Sprintf("%s(%d)", path, i+1), variant, false)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		listFields(text, path+"."+name, s.Properties[name], slices.Contains(s.Required, name))
	}
	if s.Items != nil && !isScalar(s.Items.Value) {
		listFields(text, path+"[]", s.Items, false)
	}
	if values := s.AdditionalProperties.Schema; values != nil {
		listFields(text, path+".*", values, false)
	}
}

func isScalar(s *openapi3.Schema) bool {
	return len(s.Properties) == 0 && s.Items == nil && len(s.OneOf) == 0 && len(s.AnyOf) == 0
}

// typeOf describes a value by its type and its limits.
func typeOf(ref *openapi3.SchemaRef) string {
	s := ref.Value
	limits := limitsOf(s)
	for _, part := range s.AllOf {
		limits = append([]string{typeOf(part)}, limits...)
	}
	switch {
	case s.Type != nil:
		limits = append([]string{strings.Join(*s.Type, " or ")}, limits...)
	case len(s.OneOf)+len(s.AnyOf) > 0:
		limits = append(limits, fmt.Sprintf("one of %d forms", len(s.OneOf)+len(s.AnyOf)))
	case len(limits) == 0:
		limits = append(limits, "anything")
	}
	if s.Items != nil && isScalar(s.Items.Value) {
		limits[0] = "array of (" + typeOf(s.Items) + ")"
	}
	return strings.Join(limits, ", ")
}

// limitsOf returns the keywords of the description that limit a value.
func limitsOf(s *openapi3.Schema) (limits []string) {
	values := s.Enum
	if s.Const != nil {
		values = append(values, s.Const)
	}
	if len(values) > 0 {
		var names []string
		for _, v := range values {
			names = append(names, fmt.Sprint(v))
		}
		slices.Sort(names)
		limits = append(limits, "one of "+strings.Join(names, " "))
	}

	written, err := s.MarshalJSON()
	if err != nil {
		panic(err)
	}
	var keywords map[string]any
	if err := json.Unmarshal(written, &keywords); err != nil {
		panic(err)
	}
	for _, name := range []string{"format", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems",
		"maxItems", "uniqueItems", "default"} {
		if v, ok := keywords[name]; ok {
			limits = append(limits, fmt.Sprintf("%s %v", name, v))
		}
	}
	return limits
}

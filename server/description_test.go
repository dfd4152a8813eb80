package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/webhook"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// The server rejects unknown fields, and clients must accept them.
func TestOnlyRequestsAreClosed(t *testing.T) {
	doc := loadDescription(t)
	objects := func(where string, content openapi3.Content, closed bool) {
		for _, body := range content {
			must.OK(t, body.Schema.WalkSubtree(func(pointer string, ref *openapi3.SchemaRef) error {
				s := ref.Value
				if got := s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has; got != closed &&
					len(s.Properties) > 0 {
					t.Errorf("%s%s %s: closed: %t, want %t", where, pointer, ref.Ref, got, closed)
				}
				return nil
			}))
		}
	}

	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			// recordAttestation takes foreign formats, and exchangeToken ignores unknown fields (RFC 6749).
			if operation.RequestBody != nil && operation.OperationID != "recordAttestation" &&
				operation.OperationID != "exchangeToken" {
				objects(method+" "+path, operation.RequestBody.Value.Content, true)
			}
			for status, response := range operation.Responses.Map() {
				objects(method+" "+path+" "+status, response.Value.Content, false)
			}
		}
	}
	for name, item := range doc.Webhooks {
		objects("webhook "+name, item.Post.RequestBody.Value.Content, false)
	}
}

// Some schemas have the same fields and differ only in being closed, or in additional
// fields. openapi.yaml repeats the fields, because some generators do not merge schemas.
func TestSchemasThatShareFields(t *testing.T) {
	schemas := describedSchemas(t)

	for _, test := range []struct {
		one, other string
		onlyOther  []string
	}{
		{"Author", "NewAuthor", nil},
		{"Hunk", "NewHunk", nil},
		{"Change", "NewChange", nil},
		{"Requirement", "ContractRequirement", nil},
		{"Radar", "ContractRadar", nil},
		{"Registration", "RadarQuery", []string{"commit"}},
		{"Webhook", "WebhookWithSecret", []string{"secret"}},
		{"Delivery", "DeliveryRecord", []string{"body", "history"}},
	} {
		t.Run(test.other, func(t *testing.T) {
			want, got := fieldLines(t, schemas, test.one), fieldLines(t, schemas, test.other)
			for _, name := range test.onlyOther {
				if _, ok := got[name]; !ok {
					t.Errorf("%s has no field %s", test.other, name)
				}
				delete(got, name)
			}
			for name := range want {
				if want[name] != got[name] {
					t.Errorf("%s: in %s\n%sin %s\n%s", name, test.one, want[name], test.other, got[name])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s has fields %q, %s has %q", test.one, slices.Sorted(maps.Keys(want)), test.other,
					slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

func describedSchemas(t *testing.T) map[string]any {
	t.Helper()
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	must.OK(t, yaml.Unmarshal(description, &doc))
	return doc.Components.Schemas
}

// pairNames maps the names of both schemas of a pair to the same name.
var pairNames = strings.NewReplacer("/schemas/New", "/schemas/", "/schemas/Contract", "/schemas/")

// fieldLines returns the YAML of each field of a schema, and whether it is
// required.
func fieldLines(t *testing.T, schemas map[string]any, name string) map[string]string {
	t.Helper()
	schema := schemas[name].(map[string]any)
	requires, _ := schema["required"].([]any)
	fields := make(map[string]string)
	for field, described := range schema["properties"].(map[string]any) {
		text, err := yaml.Marshal(described)
		must.OK(t, err)
		isRequired := slices.Contains(requires, any(field))
		fields[field] = fmt.Sprintf("%srequired: %t\n", pairNames.Replace(string(text)), isRequired)
	}
	return fields
}

// TestExamplesOfSchemas checks the examples of schemas. kin-openapi checks those of
// bodies, parameters and headers.
func TestExamplesOfSchemas(t *testing.T) {
	compiler, err := schemas()
	must.OK(t, err)
	checked := 0

	var visit func(pointer string, node any)
	visit = func(pointer string, node any) {
		switch node := node.(type) {
		case map[string]any:
			if examples, ok := node["examples"].([]any); ok {
				schema, err := compiler.at(pointer)
				must.OK(t, err)
				for _, example := range examples {
					checked++
					if err := schema.Validate(example); err != nil {
						t.Errorf("%s: %v", pointer, err)
					}
				}
			}
			for name, inner := range node {
				visit(pointer+"/"+pointerEscapes.Replace(name), inner)
			}
		case []any:
			for i, inner := range node {
				visit(fmt.Sprintf("%s/%d", pointer, i), inner)
			}
		}
	}

	visit("/components/schemas", describedSchemas(t))
	if checked < 30 {
		t.Errorf("checked only %d examples", checked)
	}
}

// The other tests rely on the harness to fail on fields that are not described.
func TestUndescribedFieldsFail(t *testing.T) {
	for body, want := range map[string]bool{
		`{"status":"ok"}`:             true,
		`{"status":"ok","since":"x"}`: false,
		`{}`:                          false,
		`{"status":"well"}`:           false,
	} {
		request := httptest.NewRequest("GET", "/healthz", nil)
		resp := httptest.NewRecorder()
		for name, value := range map[string]string{
			"Content-Type": typeJSON, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			wire.HeaderRequestID: "x",
		} {
			resp.Header().Set(name, value)
		}
		d := &checkedTransport{t: t}
		if err := d.check(request, nil, resp.Result(), []byte(body)); (err == nil) != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A delivery is a request that a receiver got.
type delivery struct {
	request *http.Request
	body    []byte
}

func TestWebhooksAreDescribed(t *testing.T) {
	b := newBackend(t)
	got := make(chan delivery, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- delivery{r.Clone(context.Background()), body}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	types := `["attestation","state","policy","radar","violation","commit","key","identity","audit","standing"]`
	w := b.webhook(fmt.Sprintf(`{"url":%q,"events":%s}`, receiver.URL, types))
	at := webhooksPath + "/" + w.ID
	b.post(at+"/ping", "").want(202)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.attest(ci.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	b.attest(ci.statement(t, commitID(1), "deploy:prod", ledger.Pass, 1)).want(201)
	b.send(request{method: "PUT", path: "/v1/orgs/acme/policies/api", token: b.admin,
		body:   `{"requirements":[{"state":"PROMOTABLE","predicate":"test:*"},{"state":"DEPLOYED","predicate":"deploy:*"}]}`,
		header: map[string]string{"If-Match": "*"}}).want(200)
	b.attest(ci.statement(t, commitID(4), "test:go", ledger.Pass, 1)).want(201)
	b.attest(ci.statement(t, commitID(4), "deploy:prod", ledger.Pass, 1)).want(201)
	b.attest(ci.statement(t, commitID(4), "test:go", ledger.Fail, 1)).want(201)
	b.push(2, "one", editing("cmd/root.go", 100))
	b.clock.advance(time.Second)
	b.push(3, "two", editing("cmd/root.go", 101))
	raw := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", "Pay")
	b.register(raw.sha, raw.body("")).want(201)
	b.logKey(ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog, PublicKey: []byte("key"),
		NotBefore: 1, NotAfter: 2, Reason: "restored",
		Previous: &ledger.PreviousLog{Origin: "ledger.example/v1/orgs/acme/log", Size: 7, Root: "AAAA", Checkpoint: "x"}})
	b.post(at+"/rotate", "").want(200) // now both secrets sign

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	dispatcher := dispatch.New(dispatch.Config{Outbox: b.store, UserAgent: "ledgerd/0.0.0-test",
		Guard: dispatch.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})
	go func() { defer close(ended); dispatcher.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })

	doc := loadDescription(t)
	missing := slices.Sorted(maps.Keys(doc.Webhooks))
	for len(missing) > 0 {
		select {
		case d := <-got:
			name := d.request.Header.Get(webhook.HeaderEvent)
			if err := checkDelivery(doc, name, d); err != nil {
				t.Errorf("%s: %v\n%s", name, err, d.body)
			}
			missing = slices.DeleteFunc(missing, func(other string) bool { return other == name })
		case <-time.After(10 * time.Second):
			t.Fatalf("no delivery for %q", missing)
		}
	}
}

// checkDelivery checks a delivery against the webhook of that name in
// openapi.yaml.
func checkDelivery(doc *openapi3.T, name string, d delivery) error {
	item := doc.Webhooks[name]
	if item == nil {
		return fmt.Errorf("unknown webhook")
	}
	operation := item.Post
	d.request.Body = io.NopCloser(bytes.NewReader(d.body))
	err := openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{
		Request: d.request, Route: &routers.Route{Spec: doc, Path: name, PathItem: item, Method: http.MethodPost,
			Operation: operation},
		Options: &openapi3filter.Options{ExcludeRequestBody: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
	if err != nil {
		return err
	}

	for header := range d.request.Header {
		described := slices.ContainsFunc(operation.Parameters, func(p *openapi3.ParameterRef) bool {
			return strings.EqualFold(p.Value.Name, header)
		})
		if !described && header != "Content-Type" && header != "Content-Length" {
			return fmt.Errorf("header %s is not described", header)
		}
	}
	for _, p := range operation.Parameters { // also optional headers: this delivery has them all
		if d.request.Header.Get(p.Value.Name) == "" {
			return fmt.Errorf("header %s was not sent", p.Value.Name)
		}
	}
	return checkBody("", operation.RequestBody.Value.Content, d.request.Header, d.body)
}

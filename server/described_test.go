package server

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// openAPI returns openapi.yaml, loaded and validated once.
var openAPI = sync.OnceValues(func() (*openapi3.T, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(description)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(loader.Context, openapi3.EnableExamplesValidation())
})

func loadDescription(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openAPI()
	must.OK(t, err)
	return doc
}

var openAPIRouter = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openAPI()
	if err != nil {
		return nil, err
	}
	anyServer := *doc
	anyServer.Servers = nil
	router, err := legacy.NewRouter(&anyServer)
	// The schemas of parameters and headers mean the same in this version, and are not compiled each time.
	anyServer.OpenAPI = "3.0.3"
	return router, err
})

// A checkedTransport checks requests and responses against openapi.yaml. Every
// response must be described, and so must every request that succeeds.
type checkedTransport struct {
	t    testing.TB
	next http.RoundTripper
}

func (d *checkedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	received, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(received))
	if err == nil {
		if mismatch := d.check(r, sent, resp, received); mismatch != nil {
			d.t.Errorf("%s %s: %d does not match openapi.yaml: %v", r.Method, r.URL, resp.StatusCode, mismatch)
		}
	}
	return resp, err
}

func (d *checkedTransport) check(r *http.Request, sent []byte, resp *http.Response, received []byte) error {
	if err := checkHeader(resp); err != nil {
		return err
	}
	router, err := openAPIRouter()
	if err != nil {
		return err
	}
	request := r.Clone(r.Context())
	if dir, file, ok := strings.Cut(r.URL.Path, "/log/"); ok { // a parameter with slashes, which OpenAPI does not have
		request.URL.Path = dir + "/log/" + strings.ReplaceAll(file, "/", ":")
	}
	request.Body = io.NopCloser(bytes.NewReader(sent))
	if r.Method == http.MethodHead {
		request.Method = http.MethodGet
	}
	route, parameters, err := router.FindRoute(request)
	if err != nil {
		return checkUnrouted(resp, received)
	}

	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		SkipSettingDefaults:   true,
		ExcludeRequestBody:    true, // checked by checkBody
		ExcludeResponseBody:   true,
	}
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: parameters, Route: route, Options: options,
	}

	if resp.StatusCode < 400 {
		if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
			return fmt.Errorf("request: %w", err)
		}
		if err := checkQuery(route, r); err != nil {
			return err
		}
		if body := route.Operation.RequestBody; body != nil && (body.Value.Required || len(sent) > 0) {
			at := operationPointer(route) + "/requestBody"
			text := bytes.TrimPrefix(sent, []byte("\ufeff")) // the server skips it
			if err := checkBody(at, body.Value.Content, r.Header, text); err != nil {
				return fmt.Errorf("request: %w", err)
			}
		}
	}

	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 resp.StatusCode,
		Header:                 resp.Header,
		Options:                options,
	})
	if err != nil || r.Method == http.MethodHead {
		return err
	}
	if received, err = unzipped(resp, received); err != nil {
		return err
	}

	content := route.Operation.Responses.Status(resp.StatusCode).Value.Content
	if len(content) == 0 {
		if len(received) > 0 {
			return fmt.Errorf("body of %d bytes, but no body is described", len(received))
		}
		return nil
	}
	at := fmt.Sprintf("%s/responses/%d", operationPointer(route), resp.StatusCode)
	return checkBody(at, content, resp.Header, received)
}

func unzipped(resp *http.Response, body []byte) ([]byte, error) {
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return body, nil
	}
	zipped, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zipped)
}

// tileCaching lists what Cache-Control may be for tiles, which never change.
var tileCaching = []string{"private, max-age=31536000, immutable", "public, max-age=31536000, immutable"}

// checkHeader checks the headers that all responses have.
func checkHeader(resp *http.Response) error {
	h := resp.Header
	cache := h.Get("Cache-Control")
	switch {
	case len(h["X-Request-Id"]) != 1:
		return fmt.Errorf("request ids: %q", h["X-Request-Id"])
	case h.Get("X-Content-Type-Options") != "nosniff":
		return fmt.Errorf("no nosniff")
	case resp.Header.Get("Content-Type") == typeEvents && cache == "no-cache, no-transform": // required for a stream
	case h.Get("Content-Type") == typeTile && slices.Contains(tileCaching, cache):
	case h.Get("Content-Type") == typeNote && cache == "public, no-cache": // the checkpoint of a public log
	case cache != "private, no-cache" && cache != "no-store":
		return fmt.Errorf("Cache-Control: %s", cache)
	}
	return nil
}

// checkUnrouted checks the response to a request that openapi.yaml has no operation
// for.
func checkUnrouted(resp *http.Response, received []byte) error {
	unrouted := []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone}
	if !slices.Contains(unrouted, resp.StatusCode) {
		return fmt.Errorf("unknown operation")
	}
	if resp.Request != nil && resp.Request.Method == http.MethodHead {
		return nil
	}
	var problem ledger.Problem
	return ledger.DecodeStrict(received, &problem)
}

// checkQuery returns an error if a query parameter is not described. openapi3filter
// ignores such parameters.
func checkQuery(route *routers.Route, r *http.Request) error {
	for name := range r.URL.Query() {
		if route.Operation.Parameters.GetByInAndName("query", name) == nil {
			return fmt.Errorf("query parameter %s is not described", name)
		}
	}
	return nil
}

// endpointsOfRoutes returns the endpoints of routes.go, each with its scope and
// parameters.
func endpointsOfRoutes() map[string]string {
	endpoints := make(map[string]string)
	for _, rt := range New(Config{}).routes() {
		var path strings.Builder
		for i, part := range strings.Split(rt.pattern, "/") {
			if i > 0 {
				path.WriteByte('/')
			}
			if strings.HasPrefix(part, ":") || strings.HasPrefix(part, "*") {
				part = "{" + part[1:] + "}"
			}
			path.WriteString(part)
		}
		parameters := slices.Clone(rt.parameters)
		slices.Sort(parameters)
		endpoints[rt.method+" "+path.String()] = fmt.Sprintf("scope %q, parameters %q", rt.scope, parameters)
	}
	return endpoints
}

// endpointsOfDescription returns the endpoints of openapi.yaml in the same form.
func endpointsOfDescription(t *testing.T) map[string]string {
	endpoints := make(map[string]string)
	for path, item := range loadDescription(t).Paths.Map() {
		for method, operation := range item.Operations() {
			scope, _ := operation.Extensions["x-scope"].(string)
			if open := operation.Security != nil && len(*operation.Security) == 0; open != (scope == "") {
				t.Errorf("%s %s: open: %t, but x-scope: %q", method, path, open, scope)
			}
			parameters := []string{}
			for _, p := range operation.Parameters {
				if p.Value.In == "query" {
					parameters = append(parameters, p.Value.Name)
				}
			}
			slices.Sort(parameters)
			endpoints[method+" "+path] = fmt.Sprintf("scope %q, parameters %q", scope, parameters)
		}
	}
	return endpoints
}

func TestEveryRouteIsDescribed(t *testing.T) {
	routes, described := endpointsOfRoutes(), endpointsOfDescription(t)
	for endpoint, want := range routes {
		if got, ok := described[endpoint]; !ok {
			t.Errorf("%s is not in openapi.yaml", endpoint)
		} else if got != want {
			t.Errorf("%s: openapi.yaml has %s; routes.go has %s", endpoint, got, want)
		}
	}
	for endpoint := range described {
		if _, ok := routes[endpoint]; !ok {
			t.Errorf("%s is in openapi.yaml, but not in routes.go", endpoint)
		}
	}
}

func TestDescriptionIsServed(t *testing.T) {
	b := newBackend(t)
	got := b.send(request{method: "GET", path: "/v1/openapi.yaml"}).want(200)
	if !bytes.Equal(got.body, description) || got.header.Get("Content-Type") != typeYAML {
		t.Errorf("served as %s: %d bytes, want openapi.yaml's %d", got.header.Get("Content-Type"), len(got.body),
			len(description))
	}
}

func TestCommonResponses(t *testing.T) {
	for path, item := range loadDescription(t).Paths.Map() {
		for method, operation := range item.Operations() {
			want := []string{"400", "500"}
			if operation.Extensions["x-scope"] != nil {
				want = append(want, "401", "403", "429", "503")
			}
			if operation.RequestBody != nil {
				want = append(want, "408", "413", "415", "422")
			}

			for _, status := range want {
				if operation.Responses.Value(status) == nil {
					t.Errorf("%s %s: no response %s", method, path, status)
				}
			}
			if operation.OperationID == "" || operation.Summary == "" || operation.Description == "" ||
				len(operation.Tags) != 1 {
				t.Errorf("%s %s: want an operationId, a summary, a description and one tag", method, path)
			}
		}
	}
}

// codesOfLedger returns the codes in the source of package ledger, so that a new code
// cannot be forgotten.
func codesOfLedger(t *testing.T) []ledger.Code {
	file := must.Get(parser.ParseFile(token.NewFileSet(), "../ledger/error.go", nil, 0))(t)
	var codes []ledger.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
			for _, value := range spec.Values {
				codes = append(codes, ledger.Code(strings.Trim(value.(*ast.BasicLit).Value, `"`)))
			}
		}
		return true
	})
	slices.Sort(codes)
	return codes
}

func TestEveryCodeHasAStatus(t *testing.T) {
	codes := codesOfLedger(t)
	if len(codes) < 30 {
		t.Fatalf("only found the codes %q", codes)
	}
	if known := slices.Sorted(maps.Keys(wire.Kinds())); !slices.Equal(known, codes) {
		t.Errorf("package wire has\n%q, package ledger\n%q", known, codes)
	}
	var described []ledger.Code
	for _, code := range loadDescription(t).Components.Schemas["Code"].Value.Enum {
		described = append(described, ledger.Code(code.(string)))
	}
	slices.Sort(described)
	if !slices.Equal(described, codes) {
		t.Errorf("openapi.yaml has\n%q, package ledger\n%q", described, codes)
	}
	for code, k := range wire.Kinds() {
		if k.Status < 400 || k.Title == "" || http.StatusText(k.Status) == "" {
			t.Errorf("%s: %d %q", code, k.Status, k.Title)
		}
	}
}

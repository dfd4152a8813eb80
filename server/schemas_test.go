package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// schemas compiles the schemas of openapi.yaml as JSON Schema 2020-12, each once.
// kin-openapi does not check bodies, because it applies the rules of OpenAPI 3.0 to
// schemas that refer to others.
//
// All objects are closed here, except for foreign ones. In openapi.yaml the objects of
// responses are open, so that clients accept the fields of later versions. The tests
// must fail on fields that are not described.
var schemas = sync.OnceValues(func() (*schemaCompiler, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(description, &doc); err != nil {
		return nil, err
	}
	named := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for name, schema := range named {
		if !foreign[name] {
			closeObjects(schema)
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	return &schemaCompiler{compiler: compiler}, compiler.AddResource(openAPIURL, resource)
})

const openAPIURL = "https://ledgerd.test/openapi.json"

// foreign names the schemas of formats that ledgerd does not define. Envelopes may
// have unknown fields.
var foreign = map[string]bool{"Envelope": true, "EnvelopeSignature": true, "Bundle": true, "AttestationList": true}

// closeObjects closes all objects with named properties in a schema.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok {
			s["additionalProperties"] = false
		}
		for _, inner := range s {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range s {
			closeObjects(inner)
		}
	}
}

type schemaCompiler struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler // caches compiled schemas
}

// at returns the schema at a JSON pointer.
func (c *schemaCompiler) at(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compiler.Compile(openAPIURL + "#" + pointer)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// operationPointer returns the JSON pointer of an operation in openapi.yaml.
func operationPointer(route *routers.Route) string {
	return "/paths/" + pointerEscapes.Replace(route.Path) + "/" + strings.ToLower(route.Method)
}

// checkBody checks a body against the schema for its media type. The pointer is that
// of the request body or response with this content. Only JSON is checked.
func checkBody(pointer string, content openapi3.Content, header http.Header, body []byte) error {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	described := content[mediaType]
	if described == nil {
		return fmt.Errorf("media type %s is not described", mediaType)
	}
	if mediaType != typeJSON && !strings.HasSuffix(mediaType, "+json") {
		return nil
	}

	pointer += "/content/" + pointerEscapes.Replace(mediaType) + "/schema"
	if ref, ok := strings.CutPrefix(described.Schema.Ref, "#"); ok {
		pointer = ref
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	compiler, err := schemas()
	if err != nil {
		return err
	}
	schema, err := compiler.at(pointer)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

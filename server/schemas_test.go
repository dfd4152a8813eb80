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
// Bodies are not left to kin-openapi, which falls back to the rules of OpenAPI
// 3.0 for schemas that refer to others.
//
// All our objects are closed here. In openapi.yaml those that the server sends
// are open, so that clients accept the fields of later versions. The tests have
// to notice a field that is not described.
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

// foreign names the schemas of formats that are not ours. Envelopes may have
// members that we do not know.
var foreign = map[string]bool{"Envelope": true, "EnvelopeSignature": true, "Bundle": true}

// closeObjects closes all objects with named properties within a schema.
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
	compiler *jsonschema.Compiler // returns what it has compiled before
}

// at returns the schema at a JSON pointer.
func (c *schemaCompiler) at(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compiler.Compile(openAPIURL + "#" + pointer)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// operationPointer is the JSON pointer of an operation in openapi.yaml.
func operationPointer(route *routers.Route) string {
	return "/paths/" + pointerEscapes.Replace(route.Path) + "/" + strings.ToLower(route.Method)
}

// checkBody checks a body against what is described for its media type. The
// pointer is that of the request body or response that has this content. The
// content of what is not JSON is not checked.
func checkBody(pointer string, content openapi3.Content, header http.Header, body []byte) error {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	described := content[mediaType]
	if described == nil {
		return fmt.Errorf("the media type %s is not described", mediaType)
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

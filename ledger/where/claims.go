package where

import (
	"bytes"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/go-json-experiment/json/jsontext"
)

// CompileClaims compiles an expression about the claims of a token, which are its only variable,
// claims. It has the limits of other expressions.
func CompileClaims(expression string) (*Program, error) {
	return compile(expression, cel.Variable("claims", cel.MapType(cel.StringType, cel.DynType)))
}

// Claims are the claims of a token as expressions see them.
type Claims struct {
	claims ref.Val
	fault  string // why no expression can read them; empty if they can
}

// ReadClaims reads the payload of a token. If it cannot be read, the verdict of every expression
// says why.
func ReadClaims(payload []byte) *Claims {
	d := decoder{Decoder: jsontext.NewDecoder(bytes.NewReader(payload))}
	doc, err := d.value()
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return &Claims{fault: clean("the claims cannot be read: " + err.Error())}
	}
	if doc.Type() != types.MapType {
		return &Claims{fault: "the claims are not a JSON object"}
	}
	return &Claims{claims: doc}
}

// EvalClaims evaluates an expression that CompileClaims has compiled.
func (p *Program) EvalClaims(c *Claims) Verdict {
	if c.fault != "" {
		return Verdict{Error: c.fault}
	}
	return p.eval(map[string]any{"claims": c.claims})
}

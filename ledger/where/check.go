package where

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// matches is the function of the standard library that matches a regular expression.
const matches = "matches"

// maxPattern limits the instructions of a compiled regular expression.
const maxPattern = 1000

// patterns holds the instructions of the regular expressions in an expression.
type patterns map[string]int

// A check refuses what the standard library has but no requirement may use.
type check struct{ patterns patterns }

// Name implements cel.ASTValidator.
func (check) Name() string { return "ledgerd" }

// Validate implements cel.ASTValidator.
func (c check) Validate(_ *cel.Env, _ cel.ValidatorConfig, tree *ast.AST, issues *cel.Issues) {
	calls := ast.MatchDescendants(ast.NavigateAST(tree), ast.KindMatcher(ast.CallKind))
	for _, node := range calls {
		call := node.AsCall()
		switch name := call.FunctionName(); {
		case name == matches && len(call.Args()) > 0:
			c.pattern(call.Args()[len(call.Args())-1], issues)
		case strings.HasPrefix(name, "get") && len(call.Args()) > 0:
			// The time zones are files of the machine.
			issues.ReportErrorAtID(node.ID(), "%s with a time zone is not available (times are in UTC)", name)
		}
	}
}

// pattern checks a regular expression. Only the contract may say it: one that the signer
// of a statement chose could take very long.
func (c check) pattern(arg ast.Expr, issues *cel.Issues) {
	var pattern string
	if arg.Kind() == ast.LiteralKind {
		pattern, _ = arg.AsLiteral().Value().(string)
	} else {
		issues.ReportErrorAtID(arg.ID(), "the pattern of matches must be a text in quotes")
		return
	}
	size, err := programSize(pattern)
	switch {
	case err != nil:
		issues.ReportErrorAtID(arg.ID(), "%v", err)
	case size > maxPattern:
		issues.ReportErrorAtID(arg.ID(), "the pattern is too large: %d instructions, at most %d", size, maxPattern)
	default:
		c.patterns[pattern] = size
	}
}

// programSize returns the number of instructions of a regular expression.
func programSize(pattern string) (int, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// cost returns the cost of matching a text: a unit for 40 steps.
func (p patterns) cost(pattern, in string) uint64 {
	return uint64(len(in)/10+1) * uint64(p[pattern]/4+1)
}

// optimization compiles the patterns once, and has no text matched that costs more than
// an evaluation may.
func (p patterns) optimization() *interpreter.RegexOptimization {
	return &interpreter.RegexOptimization{Function: matches, RegexIndex: 1, Factory: func(
		call interpreter.InterpretableCall, pattern string,
	) (interpreter.InterpretableCall, error) {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			in, ok := args[0].(types.String)
			switch {
			case !ok:
				return types.MaybeNoSuchOverloadErr(args[0])
			case p.cost(pattern, string(in)) > maxCost:
				return types.NewErr(errTooDear)
			}
			return types.Bool(re.MatchString(string(in)))
		}), nil
	}}
}

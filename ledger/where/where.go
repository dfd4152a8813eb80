// Package where compiles the expressions of requirements and evaluates them on
// statements. They are in the Common Expression Language (CEL) with its standard library,
// less what depends on the machine or has no bound. No expression can read a clock.
package where

import (
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// A Program is a compiled expression. It is safe for concurrent use.
type Program struct{ program cel.Program }

// A Verdict is what an expression says of a statement.
type Verdict struct {
	True bool
	// Error is why the expression could not be evaluated, in one short line. It is empty
	// if it was.
	Error string
}

// Compile compiles an expression about a statement. The error says what is wrong, and where.
func Compile(expression string) (*Program, error) {
	return compile(expression, statementVariables()...)
}

func compile(expression string, variables ...cel.EnvOption) (*Program, error) {
	if len(expression) > MaxSize {
		return nil, fmt.Errorf("too long: %d bytes, at most %d", len(expression), MaxSize)
	}
	patterns := make(patterns)
	env, err := newEnv(patterns, variables...)
	if err != nil {
		return nil, err
	}

	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issueError(issues)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the result is %s (write a condition, which is true or false)", cel.FormatCELType(t))
	}

	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.CostTracking(coster{patterns}),
		cel.OptimizeRegex(patterns.optimization()))
	if err != nil {
		return nil, err
	}
	return &Program{program}, nil
}

// statementVariables declares the variables of expressions about statements.
func statementVariables() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable("predicate", cel.DynType),
		cel.Variable("subject", cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Variable("type", cel.StringType),
	}
}

// newEnv returns the environment of an expression with the variables. Its check adds the
// patterns of the expression to those given.
func newEnv(p patterns, variables ...cel.EnvOption) (*cel.Env, error) {
	return cel.NewEnv(append(variables,
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserExpressionSizeLimit(MaxSize),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ParserErrorRecoveryLimit(4),
		cel.ASTValidators(check{p}),
	)...)
}

// issueError returns the first issue of an expression, with its place, and the number of
// the others.
func issueError(issues *cel.Issues) error {
	list := issues.Errors()
	if len(list) == 0 {
		return errors.New(clean(issues.Err().Error()))
	}

	first, more := list[0], ""
	if len(list) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(list)-1)
	}
	message := clean(first.Message)
	if first.Location.Line() < 1 { // it is about the whole expression
		return fmt.Errorf("%s%s", message, more)
	}
	return fmt.Errorf("line %d, column %d: %s%s", first.Location.Line(), first.Location.Column()+1, message, more)
}

// Eval evaluates the expression on a statement. The result depends on nothing else.
func (p *Program) Eval(s *Statement) Verdict {
	if s.fault != "" {
		return Verdict{Error: s.fault}
	}
	return p.eval(map[string]any{"predicate": s.predicate, "subject": s.subject, "type": s.typ})
}

// eval evaluates the expression with the values of its variables.
func (p *Program) eval(variables map[string]any) Verdict {
	out, _, err := p.program.Eval(variables)
	switch value, isBool := out.(types.Bool); {
	case err != nil:
		return Verdict{Error: reasonOf(err)}
	case !isBool:
		return Verdict{Error: "the result is " + clean(out.Type().TypeName()) + ", not true or false"}
	default:
		return Verdict{True: bool(value)}
	}
}

// reasonOf returns why an evaluation failed.
func reasonOf(err error) string {
	cancelled, ok := errors.AsType[interpreter.EvalCancelledError](err)
	if ok && cancelled.Cause == interpreter.CostLimitExceeded {
		return errTooDear
	}
	return clean(err.Error())
}

// Package jq applies expressions in the language of jq to what commands print.
package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/itchyny/gojq"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// A Query is an expression that was compiled. It reads no file, no environment variable and
// no input but the value that it is applied to.
type Query struct{ code *gojq.Code }

// Flag returns a flag value that accepts an expression. Until it is set, *query is nil.
func Flag(query **Query) pflag.Value {
	return &flagvalue.Parsed[*Query]{Value: query, Kind: "EXPR", Parse: Parse}
}

// maxExpression is the maximum length of an expression in bytes.
const maxExpression = 64 << 10

// Parse compiles an expression.
func Parse(expression string) (*Query, error) {
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("it has %d bytes: at most %d", len(expression), maxExpression)
	}
	parsed, err := gojq.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("%w (see https://jqlang.org/manual)", err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return nil, fmt.Errorf("%w (see https://jqlang.org/manual)", err)
	}
	return &Query{code}, nil
}

// The limits of one run of an expression.
const (
	// MaxTime is how long it may take.
	MaxTime = 10 * time.Second
	// MaxOutput is how many bytes it may print.
	MaxOutput = 64 << 20
)

// Write applies the query to a JSON text and writes the results, a line each. A string is
// written without quotes, any other value as JSON. On a terminal, nothing of it controls the
// terminal.
func (q *Query) Write(ctx context.Context, w io.Writer, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	var input any
	if err := json.Unmarshal(text, &input); err != nil {
		return fmt.Errorf("read JSON for --jq: %w", err)
	}

	if screen, ok := w.(*terminal.Screen); ok {
		w = screen.Exact()
	}
	results, written := q.code.RunWithContext(ctx, input), 0
	for {
		value, ok := results.Next()
		if !ok {
			return nil
		}
		line, err := format(value)
		if err != nil {
			return describe(err)
		}
		if written += len(line) + 1; written > MaxOutput {
			return fmt.Errorf("--jq: the results take more than %d MiB", MaxOutput>>20)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
}

// Lines returns a writer that applies the query to the JSON text of each Write, and writes
// the results to w.
func (q *Query) Lines(ctx context.Context, w io.Writer) io.Writer { return lines{ctx, q, w} }

type lines struct {
	ctx   context.Context //nolint:containedctx // that of the command which writes
	query *Query
	w     io.Writer
}

func (l lines) Write(text []byte) (int, error) {
	if err := l.query.Write(l.ctx, l.w, text); err != nil {
		return 0, err
	}
	return len(text), nil
}

// describe returns why an expression failed. It returns nil if it ended itself without an
// error.
func describe(err error) error {
	if e, ok := errors.AsType[*gojq.HaltError](err); ok && e.Value() == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("--jq: the expression takes more than %v", MaxTime)
	}
	return fmt.Errorf("--jq: %w", err)
}

// format returns a result as a line of text.
func format(value any) ([]byte, error) {
	switch v := value.(type) {
	case error:
		return nil, v
	case string:
		return []byte(v), nil
	case *big.Int:
		return v.Append(nil, 10), nil
	}
	text, err := gojq.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write a result: %w", err)
	}
	return terminal.EscapeJSON(text), nil
}

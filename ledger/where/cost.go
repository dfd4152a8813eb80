package where

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// A coster says what calls of functions cost. CEL takes a call for cheap if it knows the
// types of the arguments only when it evaluates, as it does with all in a predicate. Here
// a call costs what its arguments weigh, whatever their types.
type coster struct{ patterns patterns }

// CallCost implements cost.ActualCostEstimator. It returns nil for what CEL knows.
func (c coster) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	var units uint64

	switch function {
	case operators.Equals, operators.NotEquals:
		units = comparison(args[0], args[1]) / weightPerUnit
	case operators.In, operators.OldIn:
		units = textLen(args[0]) / weightPerUnit
		if _, isMap := args[1].(traits.Mapper); !isMap {
			units += weight(args[1]) / weightPerUnit
		}
	case matches:
		in, _ := args[0].(types.String)
		pattern, _ := args[1].(types.String)
		if units = c.patterns.cost(string(pattern), string(in)); units > maxCost {
			units = 0 // it was not matched
		}
	default:
		for _, arg := range args {
			units += textLen(arg) / weightPerUnit
		}
		if units == 0 {
			return nil
		}
	}

	units++
	return &units
}

// comparison returns the weight of what CEL reads to compare two values, or more. It
// weighs only what it also charges: it would be no bound if weighing cost more than that.
func comparison(a, b ref.Val) uint64 {
	list, isContainer := a.(traits.Sizer)
	other, isOther := b.(traits.Sizer)
	switch {
	case isContainer != isOther || isContainer && a.Type() != b.Type():
		return 0
	case a.Type() == types.StringType || a.Type() == types.BytesType:
		return min(textLen(a), textLen(b))
	case isContainer && list.Size() != other.Size():
		return 0
	}
	return weight(a)
}

// A value weighs as much as its texts have bytes, and a little more for each value in it.
const (
	weightPerUnit = 10
	weightOfValue = 10
	maxWeight     = (maxCost + 1) * weightPerUnit // more is not counted
)

// weight returns the weight of a value with all that it contains, at most about maxWeight.
func weight(v ref.Val) uint64 {
	left := int64(maxWeight)
	weigh(v, &left)
	return uint64(maxWeight - left)
}

// weigh subtracts the weight of a value from what is left, and stops when nothing is.
func weigh(v ref.Val, left *int64) {
	*left -= weightOfValue + int64(textLen(v))
	switch v := v.(type) {
	case traits.Mapper:
		for it := v.Iterator(); *left > 0 && it.HasNext() == types.True; {
			key := it.Next()
			weigh(key, left)
			weigh(v.Get(key), left)
		}
	case traits.Lister:
		for it := v.Iterator(); *left > 0 && it.HasNext() == types.True; {
			weigh(it.Next(), left)
		}
	}
}

// textLen returns the number of bytes of a text.
func textLen(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	}
	return 0
}

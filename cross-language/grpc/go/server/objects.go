package main

import (
	"fmt"
	"slices"

	"crosslanguage/service"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Limits of the contract.
const (
	smallArrayLimit = 64
	squaresLimit    = 20_000
	objectLimit     = 1_024
)

// objects are values, which calls add to.
type objects struct {
	// The value of object 1, of object 2, …
	values []int64
}

func invalid(format string, arguments ...any) error {
	return status.Errorf(codes.InvalidArgument, format, arguments...)
}

// execute executes an operation other than a callback, which needs the caller. A failed operation changes no object.
func (o *objects) execute(operation service.Operation, argument any) (any, error) {
	switch operation {
	case service.Ping:
		return nil, nil
	case service.Successor:
		return add(argument.(int64), 1)
	case service.Reverse:
		return reversed(argument.(string)), nil
	case service.RunningSums:
		return runningSums(argument.([]int64))
	case service.Create:
		return o.create(argument.(service.Pair))
	case service.Call:
		return o.call(argument.(service.Pair))
	case service.Transform:
		return transformed(argument)
	case service.Total:
		var sum int64
		for _, value := range argument.([]int64) {
			var err error
			if sum, err = add(sum, value); err != nil {
				return nil, err
			}
		}
		return sum, nil
	case service.Squares:
		return squares(argument.(int64))
	case service.TransformAll:
		if _, isList := argument.([]any); !isList {
			return nil, invalid("not a list")
		}
		return transformed(argument)
	default:
		return nil, invalid("no operation without messages: %v", operation)
	}
}

func (o *objects) create(argument service.Pair) (any, error) {
	if len(o.values) == objectLimit {
		return nil, status.Errorf(codes.ResourceExhausted, "%d objects", objectLimit)
	}
	value, err := add(argument.First, argument.Second)
	if err != nil {
		return nil, err
	}
	o.values = append(o.values, value)
	return service.Pair{First: int64(len(o.values)), Second: value}, nil
}

func (o *objects) call(argument service.Pair) (any, error) {
	id := argument.First
	if id < 1 || id > int64(len(o.values)) {
		return nil, status.Errorf(codes.NotFound, "no object %d", id)
	}
	value, err := add(o.values[id-1], argument.Second)
	if err != nil {
		return nil, err
	}
	o.values[id-1] = value
	return service.Pair{First: id, Second: value}, nil
}

func add(value, amount int64) (int64, error) {
	sum := value + amount
	// Overflow: both summands have the sign that the sum lacks.
	if (value^sum)&(amount^sum) < 0 {
		return 0, invalid("%d + %d is out of range", value, amount)
	}
	return sum, nil
}

func reversed(text string) string {
	bytes := []byte(text)
	slices.Reverse(bytes)
	for _, unit := range bytes {
		if unit >= 0x80 {
			characters := []rune(text)
			slices.Reverse(characters)
			return string(characters)
		}
	}
	return string(bytes)
}

func runningSums(values []int64) (any, error) {
	if len(values) > smallArrayLimit {
		return nil, invalid("%d integers: at most %d", len(values), smallArrayLimit)
	}
	sums := make([]int64, len(values))
	var sum int64
	for i, value := range values {
		var err error
		if sum, err = add(sum, value); err != nil {
			return nil, err
		}
		sums[i] = sum
	}
	return sums, nil
}

func squares(count int64) (any, error) {
	if count < 0 || count > squaresLimit {
		return nil, invalid("%d squares: 0 to %d", count, squaresLimit)
	}
	squares := make([]int64, count)
	for i := range squares {
		squares[i] = int64(i) * int64(i)
	}
	return squares, nil
}

// transformed changes each value in a way that shows that its type was understood.
func transformed(value any) (any, error) {
	switch value := value.(type) {
	case nil:
		return nil, nil
	case bool:
		return !value, nil
	case int64:
		if value != 0 && value == -value {
			return nil, invalid("-(%d) is out of range", value)
		}
		return -value, nil
	case float64:
		return value / 2, nil
	case string:
		return reversed(value), nil
	case []any:
		list := make([]any, len(value))
		for i, member := range value {
			var err error
			if list[len(list)-1-i], err = transformed(member); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		members := make(map[string]any, len(value))
		for key, member := range value {
			var err error
			if members[key], err = transformed(member); err != nil {
				return nil, err
			}
		}
		return members, nil
	default:
		return nil, fmt.Errorf("no value: %T", value)
	}
}

// Package service calls the cross-language service over Aeron's C client. CONTRACT.md defines messages, operations,
// errors and deadlines. Without cgo, the package has messages and operations only, for other transports.
package service

import "fmt"

// The channels, unless an option names others.
const (
	RequestChannel  = "aeron:ipc?term-length=4m|mtu=8k"
	ResponseChannel = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k"
)

// An Operation of the service. The numbers are those of the schema.
type Operation uint8

// The operations.
const (
	Ping Operation = iota + 1
	Successor
	Reverse
	RunningSums
	Create
	Call
	Callback
	Transform
	Total
	Squares
	TransformAll
)

var operationNames = []string{
	"", "ping", "successor", "reverse", "running_sums", "create", "call", "callback", "transform", "total", "squares",
	"transform_all",
}

// ParseOperation returns the operation of a name.
func ParseOperation(name string) (Operation, error) {
	for number, other := range operationNames {
		if number > 0 && name == other {
			return Operation(number), nil
		}
	}
	return 0, fmt.Errorf("no such operation: %q", name)
}

func (o Operation) String() string {
	return operationNames[o]
}

// A Kind of body. The numbers are the templates of the schema. Void is nil, Integer an int64, Text a string, Integers
// a []int64, and the two-field kinds are Pairs. A Value is nil, a bool, int64, float64, string, []any or
// map[string]any.
type Kind uint16

// The kinds.
const (
	Void Kind = iota + 10
	Integer
	Text
	Integers
	CreateObject
	CallObject
	ObjectValue
	Value
)

// A Pair is a body of two fields, in the order of the schema.
type Pair struct {
	First, Second int64
}

// kinds has the kinds of each operation's argument and result.
var kinds = map[Operation][2]Kind{
	Ping:         {Void, Void},
	Successor:    {Integer, Integer},
	Reverse:      {Text, Text},
	RunningSums:  {Integers, Integers},
	Create:       {CreateObject, ObjectValue},
	Call:         {CallObject, ObjectValue},
	Callback:     {Integer, Integer},
	Transform:    {Value, Value},
	Total:        {Integers, Integer},
	Squares:      {Integer, Integers},
	TransformAll: {Value, Value},
}

// Argument returns the kind of an operation's argument.
func (o Operation) Argument() Kind {
	return kinds[o][0]
}

// Result returns the kind of an operation's result.
func (o Operation) Result() Kind {
	return kinds[o][1]
}

// A Status is the result of a call.
type Status uint8

// Statuses that callers use.
const (
	OK             Status = 0
	CallbackFailed Status = 7
)

var statusNames = []string{
	"OK", "MALFORMED_MESSAGE", "UNKNOWN_OPERATION", "MALFORMED_BODY", "INVALID_ARGUMENT", "UNKNOWN_OBJECT",
	"UNKNOWN_CALL", "CALLBACK_FAILED", "RESPONSE_TOO_LONG", "LIMIT_REACHED",
}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// A Failure is an answer of the server that is an error.
type Failure struct {
	Status Status
	Text   string
}

func (f *Failure) Error() string {
	return f.Status.String() + ": " + f.Text
}

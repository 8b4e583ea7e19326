// Package messages converts bodies, of the types that service.Kind says, to the messages of service.proto and back.
package messages

import (
	"fmt"
	"math"

	"crosslanguage/service"
	"crosslanguagegrpc/target/protocol"

	"google.golang.org/protobuf/proto"
)

// WindowLength is that of the flow control of HTTP/2, in bytes: equal in all languages.
const WindowLength = 1 << 20

// Message returns the message of a body.
func Message(kind service.Kind, body any) (proto.Message, error) {
	switch body := body.(type) {
	case service.Pair:
		switch kind {
		case service.CreateObject:
			return &protocol.CreateObject{InitialValue: body.First, Amount: body.Second}, nil
		case service.CallObject:
			return &protocol.CallObject{ObjectId: body.First, Amount: body.Second}, nil
		case service.ObjectValue:
			return &protocol.ObjectValue{ObjectId: body.First, Value: body.Second}, nil
		}
	case int64:
		if kind == service.Integer {
			return &protocol.Integer{Value: body}, nil
		}
	case string:
		if kind == service.Text {
			return &protocol.Text{Value: body}, nil
		}
	case []int64:
		if kind == service.Integers {
			return &protocol.Integers{Values: body}, nil
		}
	case nil:
		if kind == service.Void {
			return &protocol.Void{}, nil
		}
	}
	if kind == service.Value {
		return newValue("", body)
	}
	return nil, fmt.Errorf("%T is no body of kind %d", body, kind)
}

// Body returns the body of a message.
func Body(message proto.Message) (any, error) {
	switch message := message.(type) {
	case *protocol.Void:
		return nil, nil
	case *protocol.Integer:
		return message.Value, nil
	case *protocol.Text:
		return message.Value, nil
	case *protocol.Integers:
		if message.Values == nil {
			return []int64{}, nil
		}
		return message.Values, nil
	case *protocol.CreateObject:
		return service.Pair{First: message.InitialValue, Second: message.Amount}, nil
	case *protocol.CallObject:
		return service.Pair{First: message.ObjectId, Second: message.Amount}, nil
	case *protocol.ObjectValue:
		return service.Pair{First: message.ObjectId, Second: message.Value}, nil
	case *protocol.Value:
		return body(message)
	default:
		return nil, fmt.Errorf("no body: %T", message)
	}
}

func newValue(key string, body any) (*protocol.Value, error) {
	value := &protocol.Value{Key: key}
	add := func(key string, member any) error {
		message, err := newValue(key, member)
		value.Members = append(value.Members, message)
		return err
	}
	switch body := body.(type) {
	case nil:
		value.Kind = protocol.Value_NULL
	case bool:
		value.Kind, value.Boolean = protocol.Value_BOOLEAN, body
	case int64:
		value.Kind, value.Integer = protocol.Value_INTEGER, body
	case float64:
		value.Kind, value.Number = protocol.Value_NUMBER, &body
	case string:
		value.Kind, value.Text = protocol.Value_TEXT, body
	case []any:
		value.Kind = protocol.Value_LIST
		for _, member := range body {
			if err := add("", member); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		value.Kind = protocol.Value_MAP
		for key, member := range body {
			if err := add(key, member); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("%T is no value", body)
	}
	return value, nil
}

func body(value *protocol.Value) (any, error) {
	switch value.Kind {
	case protocol.Value_NULL:
		return nil, nil
	case protocol.Value_BOOLEAN:
		return value.Boolean, nil
	case protocol.Value_INTEGER:
		return value.Integer, nil
	case protocol.Value_NUMBER:
		number := value.GetNumber()
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, fmt.Errorf("the number %v", number)
		}
		return number, nil
	case protocol.Value_TEXT:
		return value.Text, nil
	case protocol.Value_LIST:
		list := make([]any, len(value.Members))
		for i, member := range value.Members {
			var err error
			if list[i], err = body(member); err != nil {
				return nil, err
			}
		}
		return list, nil
	case protocol.Value_MAP:
		members := make(map[string]any, len(value.Members))
		for _, member := range value.Members {
			if _, isThere := members[member.Key]; isThere {
				return nil, fmt.Errorf("a key occurs twice")
			}
			var err error
			if members[member.Key], err = body(member); err != nil {
				return nil, err
			}
		}
		return members, nil
	default:
		return nil, fmt.Errorf("kind %d", value.Kind)
	}
}

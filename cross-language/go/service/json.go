package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

func writeJSON(message []byte, kind Kind, body any) ([]byte, error) {
	if pair, isPair := body.(Pair); isPair {
		names := kind.fields()
		return fmt.Appendf(message, `{"%s":%d,"%s":%d}`, names[0], pair.First, names[1], pair.Second), nil
	}
	return writeJSONValue(message, body)
}

func writeJSONValue(message []byte, value any) ([]byte, error) {
	var err error
	switch value := value.(type) {
	case float64:
		// With an exponent, so that it is no integer.
		return strconv.AppendFloat(message, value, 'e', -1, 64), nil
	case int64:
		return strconv.AppendInt(message, value, 10), nil
	case []int64:
		message = append(message, '[')
		for i, member := range value {
			if i > 0 {
				message = append(message, ',')
			}
			message = strconv.AppendInt(message, member, 10)
		}
		return append(message, ']'), nil
	case []any:
		message = append(message, '[')
		for i, member := range value {
			if i > 0 {
				message = append(message, ',')
			}
			if message, err = writeJSONValue(message, member); err != nil {
				return nil, err
			}
		}
		return append(message, ']'), nil
	case map[string]any:
		message = append(message, '{')
		separator := ""
		for key, member := range value {
			message = append(message, separator...)
			separator = ","
			if message, err = writeJSONValue(message, key); err != nil {
				return nil, err
			}
			if message, err = writeJSONValue(append(message, ':'), member); err != nil {
				return nil, err
			}
		}
		return append(message, '}'), nil
	default:
		text, err := json.Marshal(value)
		return append(message, text...), err
	}
}

// ReadJSON reads a body of a kind in JSON.
func ReadJSON(text []byte, kind Kind) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var parsed any
	if err := decoder.Decode(&parsed); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("two values")
	}
	value, err := typed(parsed)
	if err != nil {
		return nil, err
	}
	body := value
	switch kind {
	case Integers:
		if list, isList := value.([]any); isList {
			values := make([]int64, len(list))
			for i, member := range list {
				element, isInteger := member.(int64)
				if !isInteger {
					return nil, fmt.Errorf("element %d is no integer", i)
				}
				values[i] = element
			}
			body = values
		}
	case CreateObject, CallObject, ObjectValue:
		if members, isMap := value.(map[string]any); isMap && len(members) == 2 {
			names := kind.fields()
			first, hasFirst := members[names[0]].(int64)
			second, hasSecond := members[names[1]].(int64)
			if hasFirst && hasSecond {
				body = Pair{first, second}
			}
		}
	}
	if !isOfKind(kind, body) {
		return nil, fmt.Errorf("%T is not of kind %d", body, kind)
	}
	return body, nil
}

// typed replaces the numbers of a value by int64 and float64.
func typed(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case json.Number:
		if strings.ContainsAny(string(value), ".eE") {
			return value.Float64()
		}
		return value.Int64()
	case []any:
		for i, member := range value {
			if value[i], err = typed(member); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[string]any:
		for key, member := range value {
			if value[key], err = typed(member); err != nil {
				return nil, err
			}
		}
		return value, nil
	default:
		return value, nil
	}
}

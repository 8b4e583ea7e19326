package service

import "fmt"

// WriteBody appends a body of a kind.
func WriteBody(message []byte, kind Kind, encoding Encoding, body any) ([]byte, error) {
	if !isOfKind(kind, body) {
		return nil, fmt.Errorf("%T is no argument of kind %d", body, kind)
	}
	if encoding == JSON {
		return writeJSON(message, kind, body)
	}
	return writeBinary(message, kind, body)
}

// ReadBody reads a body of a kind, which is all of the bytes.
func ReadBody(bytes []byte, kind Kind, encoding Encoding) (any, error) {
	switch encoding {
	case Binary:
		return readBinary(bytes, kind)
	case JSON:
		return ReadJSON(bytes, kind)
	default:
		return nil, fmt.Errorf("encoding %d", encoding)
	}
}

func isOfKind(kind Kind, body any) bool {
	is := false
	switch kind {
	case Void:
		is = body == nil
	case Integer:
		_, is = body.(int64)
	case Text:
		_, is = body.(string)
	case Integers:
		_, is = body.([]int64)
	case CreateObject, CallObject, ObjectValue:
		_, is = body.(Pair)
	case Value:
		is = true
	}
	return is
}

package service

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

const (
	nodeLength = 16
	groupLimit = 65534
	depthLimit = 64
)

const (
	schemaID            = 3001
	headerLength        = 8
	envelopeBlockLength = 16
)

// Templates of envelopes.
const (
	requestTemplate uint16 = iota + 1
	responseTemplate
	callbackRequestTemplate
	callbackResponseTemplate
)

type envelope struct {
	template      uint16
	correlationID int64
	// Operation or status.
	code uint8
}

// write appends the envelope.
func (e envelope) write(message []byte) []byte {
	message = writeHeader(message, envelopeBlockLength, e.template)
	message = binary.LittleEndian.AppendUint64(message, uint64(e.correlationID))
	return append(message, e.code, 0, 0, 0, 0, 0, 0, 0)
}

// readEnvelope returns the envelope and the body of a message.
func readEnvelope(message []byte) (envelope, []byte, error) {
	if len(message) < headerLength+envelopeBlockLength {
		return envelope{}, nil, fmt.Errorf("a message of %d bytes", len(message))
	}
	blockLength := int(binary.LittleEndian.Uint16(message))
	template := binary.LittleEndian.Uint16(message[2:])
	schema := binary.LittleEndian.Uint16(message[4:])
	if schema != schemaID || template < requestTemplate || template > callbackResponseTemplate {
		return envelope{}, nil, fmt.Errorf("template %d of schema %d", template, schema)
	}
	if blockLength < envelopeBlockLength || blockLength > len(message)-headerLength {
		return envelope{}, nil, fmt.Errorf("block length %d in a message of %d bytes", blockLength, len(message))
	}
	block := message[headerLength:]
	id := int64(binary.LittleEndian.Uint64(block))
	return envelope{template, id, block[8]}, block[blockLength:], nil
}

func writeHeader(message []byte, blockLength, template uint16) []byte {
	for _, field := range [...]uint16{blockLength, template, schemaID, 0} {
		message = binary.LittleEndian.AppendUint16(message, field)
	}
	return message
}

// Kinds of nodes.
const (
	nullNode uint8 = iota
	boolNode
	integerNode
	numberNode
	textNode
	listNode
	mapNode
)

// WriteBody appends a body of a kind.
func WriteBody(message []byte, kind Kind, body any) ([]byte, error) {
	if !isOfKind(kind, body) {
		return nil, fmt.Errorf("%T is no body of kind %d", body, kind)
	}
	template := uint16(kind)
	switch value := body.(type) {
	case Pair:
		message = writeHeader(message, 16, template)
		message = binary.LittleEndian.AppendUint64(message, uint64(value.First))
		return binary.LittleEndian.AppendUint64(message, uint64(value.Second)), nil
	case []int64:
		message, err := writeGroup(writeHeader(message, 0, template), 8, len(value))
		for _, element := range value {
			message = binary.LittleEndian.AppendUint64(message, uint64(element))
		}
		return message, err
	}
	switch kind {
	case Void:
		return writeHeader(message, 0, template), nil
	case Integer:
		message = writeHeader(message, 8, template)
		return binary.LittleEndian.AppendUint64(message, uint64(body.(int64))), nil
	case Text:
		return writeText(writeHeader(message, 0, template), body.(string)), nil
	default:
		message, err := writeGroup(writeHeader(message, 0, template), nodeLength, nodeCount(body))
		if err != nil {
			return nil, err
		}
		return writeNode(message, "", body)
	}
}

func writeGroup(message []byte, entryLength, count int) ([]byte, error) {
	if count > groupLimit {
		return nil, fmt.Errorf("%d elements: at most %d", count, groupLimit)
	}
	message = binary.LittleEndian.AppendUint16(message, uint16(entryLength))
	return binary.LittleEndian.AppendUint16(message, uint16(count)), nil
}

func writeText(message []byte, text string) []byte {
	message = binary.LittleEndian.AppendUint32(message, uint32(len(text)))
	return append(message, text...)
}

func nodeCount(value any) int {
	count := 1
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			count += nodeCount(member)
		}
	case map[string]any:
		for _, member := range value {
			count += nodeCount(member)
		}
	}
	return count
}

func writeNode(message []byte, key string, value any) ([]byte, error) {
	if len(key) > groupLimit {
		return nil, fmt.Errorf("a key of %d bytes: at most %d", len(key), groupLimit)
	}
	var kind uint8
	var children int
	var bits uint64
	var text string
	switch value := value.(type) {
	case nil:
		kind = nullNode
	case bool:
		kind = boolNode
		if value {
			bits = 1
		}
	case int64:
		kind, bits = integerNode, uint64(value)
	case float64:
		kind, bits = numberNode, math.Float64bits(value)
	case string:
		kind, text = textNode, value
	case []any:
		kind, children = listNode, len(value)
	case map[string]any:
		kind, children = mapNode, len(value)
	default:
		return nil, fmt.Errorf("%T is no value", value)
	}
	message = append(message, kind, 0, 0, 0)
	message = binary.LittleEndian.AppendUint32(message, uint32(children))
	message = binary.LittleEndian.AppendUint64(message, bits)
	message = binary.LittleEndian.AppendUint16(message, uint16(len(key)))
	message = append(message, key...)
	message = writeText(message, text)
	var err error
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			if message, err = writeNode(message, "", member); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key, member := range value {
			if message, err = writeNode(message, key, member); err != nil {
				return nil, err
			}
		}
	}
	return message, nil
}

// A reader takes bytes from the front. After a failure it yields zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, arguments ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, arguments...)
	}
}

func (r *reader) bytes(length int) []byte {
	if r.err == nil && length > len(r.rest) {
		r.fail("%d bytes, of which %d", length, len(r.rest))
	}
	if r.err != nil {
		return nil
	}
	bytes := r.rest[:length]
	r.rest = r.rest[length:]
	return bytes
}

func (r *reader) number(length int) uint64 {
	var number [8]byte
	copy(number[:], r.bytes(length))
	return binary.LittleEndian.Uint64(number[:])
}

func (r *reader) text(lengthOfLength int) string {
	bytes := r.bytes(int(r.number(lengthOfLength)))
	if !utf8.Valid(bytes) {
		r.fail("a text that is not UTF-8")
	}
	return string(bytes)
}

func (r *reader) group(least int) (entryLength, count int) {
	entryLength, count = int(r.number(2)), int(r.number(2))
	if entryLength < least || entryLength*count > len(r.rest) {
		r.fail("%d entries of %d bytes in %d bytes", count, entryLength, len(r.rest))
	}
	return entryLength, count
}

// ReadBody reads a body of a kind, which is all of the bytes.
func ReadBody(bytes []byte, kind Kind) (any, error) {
	r := reader{rest: bytes}
	blockLength := int(r.number(2))
	template, schema := Kind(r.number(2)), r.number(2)
	r.number(2)
	if template != kind || schema != schemaID {
		r.fail("template %d of schema %d, not %d", template, schema, kind)
	}
	block := reader{rest: r.bytes(blockLength)}
	var body any
	switch kind {
	case Void:
	case Integer:
		body = int64(block.number(8))
	case Text:
		body = r.text(4)
	case Integers:
		entryLength, count := r.group(8)
		if r.err == nil {
			values := make([]int64, count)
			for i := range values {
				values[i] = int64(binary.LittleEndian.Uint64(r.bytes(entryLength)))
			}
			body = values
		}
	case CreateObject, CallObject, ObjectValue:
		body = Pair{int64(block.number(8)), int64(block.number(8))}
	default:
		entryLength, count := r.group(nodeLength)
		_, body = r.node(entryLength, &count, depthLimit)
		if count > 0 {
			r.fail("%d nodes after the value", count)
		}
	}
	if len(r.rest) > 0 {
		r.fail("%d bytes after the body", len(r.rest))
	}
	return body, errors.Join(r.err, block.err)
}

// node reads a node and its children. Returns key and value.
func (r *reader) node(entryLength int, count *int, depth int) (string, any) {
	if *count == 0 || depth == 0 {
		r.fail("a child is missing, or a value deeper than %d", depthLimit)
	}
	*count--
	block := reader{rest: r.bytes(entryLength), err: r.err}
	kind := uint8(block.number(4))
	children, bits := int(block.number(4)), block.number(8)
	key, text := r.text(2), r.text(4)
	if r.err != nil {
		return "", nil
	}
	number := math.Float64frombits(bits)
	switch {
	case kind == nullNode:
		return key, nil
	case kind == boolNode && bits <= 1:
		return key, bits == 1
	case kind == integerNode:
		return key, int64(bits)
	case kind == numberNode && !math.IsNaN(number) && !math.IsInf(number, 0):
		return key, number
	case kind == textNode:
		return key, text
	case kind == listNode:
		list := []any{}
		for i := 0; i < children && r.err == nil; i++ {
			_, member := r.node(entryLength, count, depth-1)
			list = append(list, member)
		}
		return key, list
	case kind == mapNode:
		members := map[string]any{}
		for i := 0; i < children && r.err == nil; i++ {
			memberKey, member := r.node(entryLength, count, depth-1)
			if _, exists := members[memberKey]; exists || strings.Contains(memberKey, "\x00") {
				r.fail("a key occurs twice, or has U+0000")
			}
			members[memberKey] = member
		}
		return key, members
	default:
		r.fail("a node of kind %d with bits %d", kind, bits)
		return "", nil
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

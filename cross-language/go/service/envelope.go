package service

import (
	"encoding/binary"
	"fmt"
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
	code     uint8
	encoding Encoding
}

// write appends the envelope.
func (e envelope) write(message []byte) []byte {
	message = writeHeader(message, envelopeBlockLength, e.template)
	message = binary.LittleEndian.AppendUint64(message, uint64(e.correlationID))
	return append(message, e.code, byte(e.encoding), 0, 0, 0, 0, 0, 0)
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
	return envelope{template, id, block[8], Encoding(block[9])}, block[blockLength:], nil
}

func writeHeader(message []byte, blockLength, template uint16) []byte {
	for _, field := range [...]uint16{blockLength, template, schemaID, 0} {
		message = binary.LittleEndian.AppendUint16(message, field)
	}
	return message
}

package main

// #include "session.h"
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unsafe"

	"crosslanguage/service"
)

// A session has the objects of one caller. One goroutine at a time uses it.
type session struct {
	library    *C.cross_language_session_t
	handle     cgo.Handle
	encoding   service.Encoding
	onCallback func(argument int64) (int64, error)
	argument   []byte
	result     *C.uint8_t
	length     C.size_t
}

func newSession(encoding service.Encoding, onCallback func(argument int64) (int64, error)) *session {
	s := &session{encoding: encoding, onCallback: onCallback}
	s.handle = cgo.NewHandle(s)
	s.library = C.new_session(C.uintptr_t(s.handle))
	return s
}

// Call calls an operation. The error is a *service.Failure, or says why there is no answer.
func (s *session) Call(operation service.Operation, argument any) (any, error) {
	bytes, err := service.WriteBody(s.argument[:0], operation.Argument(), s.encoding, argument)
	if err != nil {
		return nil, err
	}
	s.argument = bytes
	status := C.cross_language_call(
		s.library, C.uint8_t(operation), C.uint8_t(s.encoding),
		(*C.uint8_t)(unsafe.SliceData(bytes)), C.size_t(len(bytes)), &s.result, &s.length)
	if status < 0 {
		return nil, fmt.Errorf("the library returned %d", int(status))
	}
	// The library's memory, until the next call. Reading copies what is kept.
	result := unsafe.Slice((*byte)(s.result), int(s.length))
	if service.Status(status) == service.OK {
		return service.ReadBody(result, operation.Result(), s.encoding)
	}
	text, err := service.ReadBody(result, service.Text, s.encoding)
	if err != nil {
		return nil, err
	}
	return nil, &service.Failure{Status: service.Status(status), Text: text.(string)}
}

// Close frees the session.
func (s *session) Close() {
	C.cross_language_session_free(s.library)
	s.handle.Delete()
}
